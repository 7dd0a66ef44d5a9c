//! What one run has in place of its agent's own, and what an agent makes anew for each attempt.
//!
//! **Invariants**: nothing of this is recorded; a definition that could not be made whole says why, and nothing is sent.

use std::{fmt, sync::Arc};

use safepoint_scope::Failure;

use super::{
    Definition,
    secret::{Cleaned, Secrets},
    toolset::Callable,
};
use crate::{
    contract::{
        extensions::{Extensions, RunValues},
        model::{self, Model},
        setup::RunSetup,
        tool::{Tool, Tools},
    },
    sync::callback::{Foreign, Panicked},
    value::{event::ErrorReport, ids::RunId, limits::Limits},
};

/// The code of a run whose instructions, tools or limits cannot be made.
const CODE: &str = "setup";

/// What one run has in place of its agent's own. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct RunSettings {
    pub(crate) system: Option<Arc<str>>,
    pub(crate) limits: Option<Arc<Limits>>,
    pub(crate) model: Option<Arc<dyn Model>>,
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
        let Self { system, limits, model, tools, given } = self;
        let has_none = system.is_none() && limits.is_none() && model.is_none();
        has_none && tools.is_empty() && given.is_empty()
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
        let mut own = Arc::unwrap_or_clone(self);
        let setup = RunSetup::new(run.clone(), values.clone());
        if let Err(flaw) = own.set_up(&settings, &setup) {
            own.flaw = Some(flaw);
        }
        own.settings = Some(Arc::new(settings));
        Arc::new(own)
    }

    fn set_up(&mut self, settings: &RunSettings, setup: &RunSetup) -> Result<(), ErrorReport> {
        if let Some(limits) = &settings.limits {
            if let Some(flaw) = limits.flaw() {
                return Err(ErrorReport::new(CODE, format!("of the run's limits, {flaw}"), None));
            }
            self.limits = Arc::clone(limits);
        }
        if let Some(model) = &settings.model {
            if self.is_remote {
                let hint = Some("ask another agent, or begin one with `Agent::builder(model)`");
                return Err(ErrorReport::new(CODE, "a remote agent has its own model", hint));
            }
            self.model = model::Guarded::new(cleaned(Arc::clone(model), &self.secrets));
        }
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
        self.tools.add_all(tools.collect()).map_err(|flaw| ErrorReport::new(CODE, flaw, None))?;
        self.meter = self.meter.as_ref().map(|meter| meter.of(&self.spec()));
        Ok(())
    }
}

/// A model that tells none of the secrets.
fn cleaned(model: Arc<dyn Model>, secrets: &Secrets) -> Arc<dyn Model> {
    if secrets.is_empty() { model } else { Arc::new(Cleaned::new(model, secrets.clone())) }
}

fn made<T>(result: Result<Result<T, Failure>, Panicked>, what: &str) -> Result<T, ErrorReport> {
    match result {
        Ok(Ok(made)) => Ok(made),
        Ok(Err(failure)) => {
            let message = format!("the run's {what} cannot be made: {failure}");
            Err(ErrorReport::new(CODE, message, failure.hint()))
        }
        Err(Panicked(message)) => Err(ErrorReport::new(
            "callback",
            format!("what makes the run's {what} panicked: {message}"),
            None,
        )),
    }
}
