//! An agent as data, and what goes into one.

pub(crate) mod answer;
pub(crate) mod fits;
pub(crate) mod identity;
pub(crate) mod secret;
pub(crate) mod settings;
pub(crate) mod stop_times;
pub(crate) mod subagent;
pub(crate) mod toolset;
pub(crate) mod window;

use std::sync::Arc;

use crate::{
    contract::{
        approver::{ApprovalMode, Rule},
        extensions::Extensions,
        hook::NamedHooks,
        model::{self, AnswerFormat, ModelError, ModelSpec, OnModelStop, Parameters, ProviderTool},
    },
    value::{
        approval::OnUnknownEffect,
        history::{History, Message},
        limits::Limits,
        receipt::StopSupport,
        usage::Price,
    },
};

use self::{
    answer::AnswerSchema,
    secret::Secrets,
    settings::{AttemptSetup, SetupStep},
    stop_times::StopTimes,
    toolset::Toolset,
    window::WindowMeter,
};

/// What all runs of an agent share.
#[derive(Clone)]
pub(crate) struct Definition {
    /// For people and spans.
    pub(crate) name: Option<Arc<str>>,
    pub(crate) model: model::Guarded,
    pub(crate) system: Option<Arc<str>>,
    /// The parameters of its model's calls.
    pub(crate) parameters: Option<Arc<Parameters>>,
    pub(crate) tools: Toolset,
    /// What its model's provider runs itself.
    pub(crate) provider_tools: Arc<[ProviderTool]>,
    pub(crate) limits: Arc<Limits>,
    pub(crate) price: Option<Price>,
    pub(crate) on_cut: OnModelStop,
    pub(crate) approvals: ApprovalMode,
    pub(crate) on_unknown: OnUnknownEffect,
    pub(crate) on_restart: OnRestart,
    pub(crate) rules: Vec<Rule>,
    pub(crate) hooks: Vec<NamedHooks>,
    pub(crate) times: Arc<StopTimes>,
    pub(crate) meter: Option<WindowMeter>,
    /// The schema of its answers; `None` if they are text.
    pub(crate) form: Option<Arc<AnswerSchema>>,
    /// What a stop does to its runs' work.
    pub(crate) grade: StopSupport,
    /// Whether the agent is a remote one: its one call is the whole work, and that call's answer the run's.
    pub(crate) is_remote: bool,
    /// What none of its inputs may contain.
    pub(crate) secrets: Secrets,
    /// The values of its runs' context.
    pub(crate) context: Extensions,
    /// What is made anew for each attempt, in this order.
    pub(crate) setup: Vec<SetupStep>,
    /// The attempt that this definition is made for; `None` in the agent's own.
    pub(crate) attempt: Option<Arc<AttemptSetup>>,
}

impl Definition {
    /// What a conversation with its model begins with.
    pub(crate) fn spec(&self) -> ModelSpec {
        let tools = self.tools.decls();
        let provider_tools = Arc::clone(&self.provider_tools);
        let others = (tools.len() + provider_tools.len()).saturating_sub(1);
        let choice = self.form.as_ref().map(|form| form.choice(others));
        let output_bytes = self.limits.model_output_bytes;
        let answer = self.form.as_ref().map(|form| form.format());
        let (system, parameters) = (self.system.clone(), self.parameters.clone());
        ModelSpec { system, tools, provider_tools, choice, answer, parameters, output_bytes }
    }

    /// The same for a conversation that continues this history. Where the model was already asked to answer by the
    /// tool, and called it, it is asked so again: a run keeps its way, and no call stands beside a request without its tool.
    pub(crate) fn spec_on(&self, history: &History) -> ModelSpec {
        let mut spec = self.spec();
        let has_called = |answer: &AnswerFormat| {
            history.entries().iter().any(|entry| match &**entry {
                Message::Assistant(message) => message.calls().any(|call| call.name == answer.tool),
                Message::User(_) | Message::Results { .. } => false,
            })
        };
        spec.answer = spec.answer.filter(|answer| !has_called(answer));
        spec
    }

    /// Whether no run could work under the limits, or the model does not take the parameters or have the provider tools.
    ///
    /// # Errors
    /// What cannot be used, and what to do instead.
    pub(crate) fn check(&self) -> Result<(), String> {
        if let Some(flaw) = self.limits.flaw() {
            return Err(format!("of the limits, {flaw}"));
        }
        self.check_parameters()?;
        self.check_provider_tools()
    }

    /// # Errors
    /// The first parameter that the model does not take, and what to do instead.
    fn check_parameters(&self) -> Result<(), String> {
        let none = Parameters::new();
        let parameters = self.parameters.as_deref().unwrap_or(&none);
        if let Some((name, why)) = parameters.flaw() {
            return Err(format!("of the parameters, `{name}` cannot be used: {why}"));
        }
        self.model.check(parameters).map_err(refused)
    }

    /// Whether the model has what its provider is to run.
    ///
    /// # Errors
    /// Which tool it does not have, or cannot be used as it is set.
    fn check_provider_tools(&self) -> Result<(), String> {
        for (place, tool) in self.provider_tools.iter().enumerate() {
            let name = tool.name();
            if let Some(flaw) = tool.flaw() {
                return Err(format!("the provider tool {name} cannot be used: {flaw}"));
            }
            if self.provider_tools[..place].iter().any(|other| other.name() == name) {
                return Err(format!("two provider tools are {name}"));
            }
        }
        self.model.accepts(&self.spec()).map_err(refused)
    }

    /// The same definition with answers of this schema.
    pub(crate) fn answering(&self, form: Arc<AnswerSchema>) -> Self {
        let mut tools = self.tools.clone();
        if let Some(before) = &self.form {
            tools.remove(before.name());
        }
        tools.add_form(&form);
        let mut changed = Self { tools, form: Some(form), ..self.clone() };
        changed.meter = self.meter.as_ref().map(|meter| meter.of(&changed.spec()));
        changed
    }
}

/// What a model does not take, and what to do instead.
fn refused(error: ModelError) -> String {
    match error.hint() {
        Some(hint) => format!("{error} ({hint})"),
        None => error.to_string(),
    }
}

/// What happens to a turn whose process ended, by a shutdown or a crash, when its session is opened again
/// (S7.8). A turn that anything else stopped, or whose stop was requested meanwhile, waits in any case.
/// Exhaustive: it waits, or resumes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnRestart {
    /// It waits until a resume, or until a newer item arrives.
    #[default]
    Wait,
    /// It resumes at once, before queued items.
    Resume,
}
