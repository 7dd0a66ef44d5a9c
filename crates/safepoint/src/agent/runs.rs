//! An agent, and how its runs begin.

use std::{fmt, sync::Arc};

use super::AgentBuilder;
use crate::{
    contract::{
        approver::{ApprovalMode, WithoutApprover},
        extensions::Extensions,
        log::MemoryLog,
        model::{self, Model, OnModelStop},
        remote::{Remote, RemoteSpec},
        trace::RunTrace,
    },
    definition::{
        Definition, OnRestart, secret::Secrets, stop_times::StopTimes, subagent::Subagent, toolset::Toolset,
    },
    external::{
        backend::{Backend, BackendSpec, RunInput},
        remote::{RemoteModel, RemoteTool},
    },
    run::{Run, RunHandle, driver::Start, outcome::Outcome},
    value::{
        approval::{Decision, OnUnknownEffect, Ruled},
        history::History,
        ids::ApprovalId,
        message::UserMessage,
        receipt::StopSupport,
    },
};

/// A definition: model, instructions, tools, limits. Its runs share nothing but this (S1.8). Cheap to clone.
///
/// ```no_run
/// # use safepoint::{Agent, Model, Outcome, Reason, StopRequest, secs};
/// # async fn hello(model: impl Model) {
/// let agent = Agent::builder(model).system("You are brief.").build();
/// let run = agent.run("What changed in this repository last week?");
/// let handle = run.handle();
/// tokio::spawn(async move {
///     tokio::signal::ctrl_c().await.ok();
///     handle.stop(StopRequest::graceful(secs(5)).with_reason(Reason::user("ctrl-c")));
/// });
/// match run.await {
///     Outcome::Done(answer) => println!("{answer}"),
///     Outcome::Stopped(receipt) => println!("{receipt}"),
///     other => println!("{:?}", other.ending()),
/// }
/// # }
/// ```
#[derive(Clone)]
pub struct Agent {
    pub(crate) def: Arc<Definition>,
}

impl Agent {
    /// This agent as a tool of another, under the name that the model uses: an attached child run. Its calls
    /// may run in parallel to others.
    pub fn as_subagent(&self, name: impl Into<String>, description: impl Into<String>) -> Subagent {
        Subagent::of(name, description, Arc::clone(&self.def))
    }

    /// Begins a definition around a model.
    pub fn builder(model: impl Model) -> AgentBuilder {
        let model: Arc<dyn Model> = Arc::new(model);
        let def = Definition {
            name: None,
            model: model::Guarded::new(Arc::clone(&model)),
            system: None,
            parameters: None,
            tools: Toolset::default(),
            limits: Arc::default(),
            price: None,
            on_cut: OnModelStop::default(),
            approvals: ApprovalMode::Ask(None, WithoutApprover::Deny),
            on_unknown: OnUnknownEffect::Tell,
            on_restart: OnRestart::Wait,
            rules: Vec::new(),
            hooks: Vec::new(),
            times: Arc::default(),
            meter: None,
            form: None,
            grade: StopSupport::Hard,
            is_remote: false,
            provider_tools: Arc::from([]),
            secrets: Secrets::default(),
            context: Extensions::default(),
            setup: Vec::new(),
            attempt: None,
        };
        AgentBuilder { model, tools: Vec::new(), window: None, def }
    }

    /// Begins a definition of an agent that *is* a remote one: each message of a person is one call of it,
    /// and its answer is the run's. The run reports what the call came to, also if it was stopped or is in
    /// doubt.
    pub fn remote(remote: impl Remote) -> AgentBuilder {
        let remote: Arc<dyn Remote> = Arc::new(remote);
        let RemoteSpec { peer, name, grade, .. } = remote.spec().clone();
        let mut builder = Self::builder(RemoteModel::new(peer, name)).tool(RemoteTool::alone(remote));
        (builder.def.grade, builder.def.is_remote) = (grade, true);
        builder
    }

    /// A run on one input. Nothing happens before it is awaited or [started](Run::start). A blank input is refused: the
    /// run fails with the code `input` before anything is sent (S5.1).
    pub fn run(&self, input: impl Into<UserMessage>) -> Run {
        self.run_on(History::new(), input)
    }

    /// A run on one input that continues a conversation: its open end is closed first (S5.3).
    pub fn run_on(&self, history: History, input: impl Into<UserMessage>) -> Run {
        self.run_recorded(Arc::new(MemoryLog::default()), history, input)
    }

    /// Resumes a run where it ended, with the settings of that run (S4.20). Calls that never began run, and those that may
    /// run twice run again; for
    /// the others the model learns that their effect is unknown (S5.3, S7.3). One attempt is active at a
    /// time: meanwhile another fails with the code `conflict` and does nothing (S7.4).
    pub fn resume<T>(&self, outcome: &Outcome<T>) -> Run {
        self.resume_with(outcome, Vec::new())
    }

    /// The same, with decisions for the approvals that a suspended run waits for.
    pub fn resume_with<T>(&self, outcome: &Outcome<T>, decisions: Vec<(ApprovalId, Decision)>) -> Run {
        let ended = outcome.ended();
        let place = (ended.receipt.run.clone(), ended.receipt.path.clone());
        let start = Start::Resume(resumed(decisions), ended.lock.clone());
        Run::new(Arc::clone(&self.def), place, Arc::clone(&ended.log), start).set_as(ended.def.as_deref())
    }

    /// The same agent, whose runs hang in a trace.
    pub(crate) fn traced(&self, trace: RunTrace) -> Self {
        let mut def = Definition::clone(&self.def);
        def.context.insert(trace);
        Self { def: Arc::new(def) }
    }

    /// The same agent under this name, unless it has one.
    pub(crate) fn named(&self, name: &str) -> Self {
        if self.def.name.is_some() {
            return self.clone();
        }
        Self { def: Arc::new(Definition { name: Some(name.into()), ..Definition::clone(&self.def) }) }
    }

    /// How long stops of this agent's runs took, by phase.
    #[must_use]
    pub fn stop_times(&self) -> &StopTimes {
        &self.def.times
    }
}

/// Who decides with a resume.
const RESUMER: &str = "the caller that resumed the run";

/// Decisions that come with a resume.
pub(super) fn resumed(decisions: Vec<(ApprovalId, Decision)>) -> Vec<(ApprovalId, Ruled)> {
    decisions.into_iter().map(|(id, decision)| (id, decision.by(RESUMER))).collect()
}

impl Backend for Agent {
    fn spec(&self) -> BackendSpec {
        BackendSpec { name: self.def.model.name().to_owned(), grade: self.def.grade }
    }

    fn start(&self, task: RunInput) -> RunHandle {
        self.run_on(task.history, task.input).detach()
    }
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent").field("model", &self.def.model.name()).finish_non_exhaustive()
    }
}
