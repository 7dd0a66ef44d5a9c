//! A tool's declaration: everything that the engine must know before it runs it.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};

use crate::{
    contract::{approver::ToolApproval, model::ToolDecl},
    value::{effect::EffectClass, receipt::RemoteReport},
};

/// What a tool is. Built with [`ToolSpec::new`] and the setters; the defaults are the careful ones.
///
/// ```
/// use safepoint::tool::{EffectClass, ToolSpec};
/// let spec = ToolSpec::new("weather", "Says what the weather is").effect(EffectClass::ReadOnly);
/// assert_eq!(spec.name, "weather");
/// ```
#[derive(Clone, Debug)]
pub struct ToolSpec {
    /// The name that the model uses.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub parameters: Value,
    /// What running it may change in the world. Default: [`EffectClass::Unsafe`].
    pub effect: EffectClass,
    /// What a stop does to it. Default: [`OnStop::Drop`].
    pub on_stop: OnStop,
    /// Its time limit; none = the run's `call_timeout`.
    pub timeout: Option<Duration>,
    /// Whether it may run in parallel to other calls. Default: as the effect says.
    pub overlap: Concurrency,
    /// Whether its calls need a person's approval. Default: not needed.
    pub approval: ToolApproval,
    /// Whether its failure fails the run. Default: the model gets the error.
    pub on_failure: OnToolFailure,
    /// Bytes of output that the model is shown; none = the run's `call_output_bytes`.
    pub output_bytes: Option<usize>,
    /// What it works on, such as its directory: a lasting approval is not valid for another. Default:
    /// nothing.
    pub place: Option<String>,
    /// Whether its body runs on a thread, which cannot be ended; dropping ends async bodies.
    pub(crate) is_blocking: bool,
    /// What is reported of the remote agent if the end of the call was not seen; `None`: there is no remote
    /// agent.
    pub(crate) unseen_at: Option<Arc<RemoteReport>>,
    /// Whether its body reads its arguments as a type, and refuses others.
    pub(crate) is_typed: bool,
}

/// What a stop does to a running call (S4.3). Exhaustive: the four contracts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnStop {
    /// Its future is dropped at once.
    Drop,
    /// It sees the stop, has this long (`None`: the run's `cleanup`), and is then dropped.
    Cooperate(Option<Duration>),
    /// It may end by itself for this long (`None`: the run's `finish_grace`), and is then dropped.
    Finish(Option<Duration>),
    /// It cannot be stopped: it is left running, and its late result is fenced.
    Detach,
}

/// Whether a call may run in parallel to others (S4.2). Exhaustive: it may or it may not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Concurrency {
    /// Read-only tools run in parallel to each other, others run alone.
    #[default]
    ByEffect,
    /// It may run in parallel to every other call that may.
    Parallel,
    /// It runs alone.
    Exclusive,
}

/// Whose failure a failed call is (S2.13). Exhaustive: the call's or the run's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnToolFailure {
    /// The model gets the error and continues.
    #[default]
    TellModel,
    /// The run fails.
    EndRun,
}

impl ToolSpec {
    /// A tool without arguments; set `parameters` for others.
    #[must_use]
    pub fn new(name: impl Into<String>, description: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            parameters: json!({"type": "object", "properties": {}}),
            effect: EffectClass::Unsafe,
            on_stop: OnStop::Drop,
            timeout: None,
            overlap: Concurrency::default(),
            approval: ToolApproval::default(),
            on_failure: OnToolFailure::default(),
            output_bytes: None,
            place: None,
            is_blocking: false,
            unseen_at: None,
            is_typed: false,
        }
    }

    /// Sets the JSON Schema of the arguments.
    #[must_use]
    pub fn parameters(mut self, schema: Value) -> Self {
        self.parameters = schema;
        self
    }

    /// Derives the JSON Schema of the arguments from a type. It needs the feature `schema`.
    #[cfg(feature = "schema")]
    #[must_use]
    pub fn arguments<A: schemars::JsonSchema>(self) -> Self {
        let mut schema = schemars::schema_for!(A).to_value();
        if let Some(object) = schema.as_object_mut() {
            object.remove("$schema");
            object.remove("title");
        }
        self.parameters(schema)
    }

    /// Sets the effect.
    #[must_use]
    pub fn effect(mut self, effect: EffectClass) -> Self {
        self.effect = effect;
        self
    }

    /// Sets the contract for a stop.
    #[must_use]
    pub fn on_stop(mut self, on_stop: OnStop) -> Self {
        self.on_stop = on_stop;
        self
    }

    /// Sets the time limit.
    #[must_use]
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.timeout = Some(limit);
        self
    }

    /// Sets whether it may run in parallel to others.
    #[must_use]
    pub fn overlap(mut self, overlap: Concurrency) -> Self {
        self.overlap = overlap;
        self
    }

    /// Sets whether its calls need a person's approval.
    #[must_use]
    pub fn approval(mut self, approval: ToolApproval) -> Self {
        self.approval = approval;
        self
    }

    /// Sets whether its failure fails the run.
    #[must_use]
    pub fn on_failure(mut self, on_failure: OnToolFailure) -> Self {
        self.on_failure = on_failure;
        self
    }

    /// Sets the bytes of output that the model is shown.
    #[must_use]
    pub fn output_bytes(mut self, bytes: usize) -> Self {
        self.output_bytes = Some(bytes);
        self
    }

    /// Sets what it works on.
    #[must_use]
    pub fn place(mut self, place: impl Into<String>) -> Self {
        self.place = Some(place.into());
        self
    }

    /// Whether it may run in parallel to others, with its effect taken into account.
    #[must_use]
    pub fn may_overlap(&self) -> bool {
        match self.overlap {
            Concurrency::ByEffect => self.effect == EffectClass::ReadOnly,
            Concurrency::Parallel => true,
            Concurrency::Exclusive => false,
        }
    }

    /// The declaration that the model gets.
    #[must_use]
    pub fn decl(&self) -> ToolDecl {
        ToolDecl {
            name: self.name.clone(),
            description: self.description.clone(),
            parameters: self.parameters.clone(),
        }
    }
}
