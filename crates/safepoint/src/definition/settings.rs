//! What one run has in place of its agent's own, and what an agent makes anew for each attempt.
//!
//! **Invariants**: nothing of this is recorded; a definition that could not be made whole says why, and nothing is sent.

use std::{fmt, sync::Arc};

use safepoint_scope::Failure;

use super::{
    Definition,
    secret::Cleaned,
    toolset::Callable,
    window::{Window, WindowMeter},
};
use crate::{
    contract::{
        extensions::{Extensions, RunValues},
        model::{self, Model, Parameters},
        setup::RunSetup,
        tool::{Tool, Tools},
    },
    sync::callback::{Foreign, Panicked},
    value::{
        event::{ErrorKind, ErrorReport},
        ids::RunId,
        limits::Limits,
        usage::Price,
    },
};

/// The code of a run whose settings cannot be used, or whose instructions or tools cannot be made.
const CODE: &str = "setup";

/// What one run has in place of its agent's own. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct RunSettings {
    pub(crate) system: Option<Arc<str>>,
    pub(crate) limits: Option<Arc<Limits>>,
    pub(crate) model: Option<Arc<dyn Model>>,
    pub(crate) price: Option<Price>,
    pub(crate) window: Option<Window>,
    /// Over the agent's own.
    pub(crate) parameters: Option<Arc<Parameters>>,
    /// Beside the agent's own.
    pub(crate) tools: Vec<Arc<dyn Tool>>,
    /// The values of the run's context.
    pub(crate) given: Extensions,
}

impl RunSettings {
    /// Adds a tool, in place of one of the same name that the run was given before.
    pub(crate) fn add_tool(&mut self, tool: Arc<dyn Tool>) {
        self.tools.retain(|before| before.spec().name != tool.spec().name);
        self.tools.push(tool);
    }

    fn is_empty(&self) -> bool {
        let Self { system, limits, model, price, window, parameters, tools, given } = self;
        let has_no_model = model.is_none() && price.is_none() && window.is_none() && parameters.is_none();
        has_no_model && system.is_none() && limits.is_none() && tools.is_empty() && given.is_empty()
    }
}

impl fmt::Debug for RunSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunSettings").field("given", &self.given).finish_non_exhaustive()
    }
}

type MakeSystem = dyn Fn(&RunSetup) -> Result<String, Failure> + Send + Sync;
type MakeTools = dyn Fn(&RunSetup) -> Result<Tools, Failure> + Send + Sync;

/// Something of an agent that is made anew for each attempt. Exhaustive: instructions, or tools.
#[derive(Clone, Debug)]
pub(crate) enum SetupStep {
    System(Foreign<MakeSystem>),
    Tools(Foreign<MakeTools>),
}

/// What makes the definition of one attempt differ from its agent's.
pub(crate) struct AttemptSetup {
    /// The agent's own definition.
    agent: Arc<Definition>,
    settings: RunSettings,
    /// Why the definition of this attempt is not whole.
    flaw: Option<ErrorReport>,
}

impl Definition {
    /// The definition of one attempt: with the settings of the run, and with what is made anew.
    pub(crate) fn for_attempt(
        self: Arc<Self>,
        run: &RunId,
        settings: RunSettings,
        values: &RunValues,
    ) -> Arc<Self> {
        if settings.is_empty() && self.setup.is_empty() {
            return self;
        }
        let mut own = Self::clone(&self);
        let setup = RunSetup::new(run.clone(), values.clone());
        let flaw = own.set_up(&settings, &setup).err();
        own.attempt = Some(Arc::new(AttemptSetup { agent: self, settings, flaw }));
        Arc::new(own)
    }

    /// The agent's own definition, without what one attempt has in its place.
    pub(crate) fn agent(&self) -> &Self {
        self.attempt.as_ref().map_or(self, |attempt| &attempt.agent)
    }

    /// The settings of the run.
    pub(crate) fn settings(&self) -> Option<&RunSettings> {
        self.attempt.as_ref().map(|attempt| &attempt.settings)
    }

    /// Why the definition of this attempt is not whole.
    pub(crate) fn flaw(&self) -> Option<&ErrorReport> {
        self.attempt.as_ref()?.flaw.as_ref()
    }

    /// A model that tells none of the agent's secrets.
    pub(crate) fn cleaned(&self, model: Arc<dyn Model>) -> model::Guarded {
        let secrets = &self.secrets;
        let cleaned = || Arc::new(Cleaned::new(Arc::clone(&model), secrets.clone()));
        model::Guarded::new(if secrets.is_empty() { model } else { cleaned() })
    }

    fn set_up(&mut self, settings: &RunSettings, setup: &RunSetup) -> Result<(), ErrorReport> {
        if let Some(limits) = &settings.limits {
            self.limits = Arc::clone(limits);
        }
        self.set_model(settings)?;
        self.check().map_err(|flaw| unusable(format!("the settings of the run cannot be used: {flaw}")))?;
        let mut tools = Tools::from_iter(settings.tools.iter().cloned());
        let mut texts: Vec<Arc<str>> = self.system.take().into_iter().collect();
        for step in &self.setup {
            match step {
                // What the run was given stands for all of the agent's instructions.
                SetupStep::System(_) if settings.system.is_some() => {}
                SetupStep::System(make) => {
                    texts.push(made(make.call(|make| make(setup)), "instructions")?.into())
                }
                SetupStep::Tools(make) => tools.extend(made(make.call(|make| make(setup)), "tools")?),
            }
        }
        texts.retain(|text| !text.is_empty());
        self.system = match (&settings.system, &*texts) {
            (Some(own), _) => Some(Arc::clone(own)),
            (None, []) => None,
            (None, [only]) => Some(Arc::clone(only)),
            (None, several) => Some(several.join("\n\n").into()),
        };
        let tools = tools.into_iter().map(|tool| Callable::body(tool).cleaned(&self.secrets));
        self.tools.add_all(tools.collect()).map_err(unusable)?;
        self.set_window(settings.window.as_ref())
    }

    /// The run's window, else its agent's, with the requests of this attempt.
    fn set_window(&mut self, own: Option<&Window>) -> Result<(), ErrorReport> {
        let Some(own) = own else {
            self.meter = self.meter.as_ref().map(|meter| meter.of(&self.spec()));
            return Ok(());
        };
        if self.is_remote {
            let hint = "a window belongs to an agent that is begun with `Agent::builder(model)`";
            return Err(ErrorReport::new(CODE, "a remote agent has its own window", Some(hint)));
        }
        let meter = WindowMeter::new(own.clone(), &self.spec()).ok_or_else(|| {
            let hint = "keep less for the answer: `Window::keep_for_answer`";
            let what = "the run's window leaves no room: what is kept for the answer is all of it";
            ErrorReport::new(CODE, what, Some(hint))
        })?;
        self.meter = Some(meter);
        Ok(())
    }

    /// The model of the run, with its price and its parameters.
    fn set_model(&mut self, settings: &RunSettings) -> Result<(), ErrorReport> {
        if let Some(model) = &settings.model {
            if self.is_remote {
                let hint = "ask another agent, or begin one with `Agent::builder(model)`";
                return Err(ErrorReport::new(CODE, "a remote agent has its own model", Some(hint)));
            }
            self.model = self.cleaned(Arc::clone(model));
            // It is the price of the agent's model.
            let priced = self.price.take();
            if priced.is_some() && settings.price.is_none() && self.limits.max_cost.is_some() {
                let hint = "give it with `Run::price`, or give the run limits without `max_cost`";
                let what = "`max_cost` limits the run, and its own model has no price";
                return Err(ErrorReport::new(CODE, what, Some(hint)));
            }
        }
        self.price = settings.price.or(self.price);
        if let Some(own) = &settings.parameters {
            let all = self.parameters.as_ref().map_or_else(|| Parameters::clone(own), |all| all.with(own));
            self.parameters = Some(Arc::new(all)).filter(|all| !all.is_empty());
        }
        Ok(())
    }
}

fn unusable(what: impl Into<String>) -> ErrorReport {
    ErrorReport::new(CODE, what, None)
}

fn made<T>(result: Result<Result<T, Failure>, Panicked>, what: &str) -> Result<T, ErrorReport> {
    match result {
        Ok(Ok(made)) => Ok(made),
        Ok(Err(failure)) => {
            let message = format!("the run's {what} cannot be made: {failure}");
            Err(ErrorReport::new(CODE, message, failure.hint()).of_kind(ErrorKind::Callback))
        }
        Err(Panicked(message)) => Err(ErrorReport::new(
            "callback",
            format!("what makes the run's {what} panicked: {message}"),
            None,
        )),
    }
}
