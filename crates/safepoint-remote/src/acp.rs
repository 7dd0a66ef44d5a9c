//! Agents that speak the Agent Client Protocol (ACP), as processes of ours, guarded like every command, so
//! that a stop is hard. The adapter first asks the agent to end its turn. Then it ends the process and all
//! that the agent started, whatever the agent answers.
//!
//! ```no_run
//! use safepoint::{Agent, Outcome};
//! use safepoint_remote::acp::Acp;
//!
//! # async fn example() {
//! let coder = Acp::program("coder", "my-agent").args(["--acp"]).cwd("project");
//! let agent = Agent::remote(coder).build();
//! if let Outcome::Done(done) = agent.run("Why does the build fail?").await {
//!     println!("{done}");
//! }
//! # }
//! ```
//!
//! One process does one piece of work and ends with it: a run is quiet when the process is gone. Where the
//! agent can load or resume its sessions, the next message of a conversation continues in the same one.
//!
//! The adapter offers the agent neither files nor terminals. The agent works alone, in its own process, and
//! its questions are answered as approvals are.

use std::{env, ffi::OsString, fmt, path::PathBuf, sync::Arc, time::Duration};

use safepoint::{
    ToolContext,
    raw::remote::{Lives, Remote, RemoteCall, RemoteSpec, RemoteTask},
    receipt::StopSupport,
    tool::EffectClass,
};
use safepoint_tools::process::{CommandEnvironment, CommandSpec, OutputTarget, Processes, Service, Stdin};

use crate::conversation_ids::ConversationIds;

mod answer;
mod channel;
mod dialogue;
mod limits;
mod message;
mod outbox;
mod process;
mod program;
mod update;

use channel::Channel;
use dialogue::{Dialogue, Setting};
use process::Work;

/// An ACP agent, described. A process is started for each piece of work, when it begins.
#[derive(Clone)]
#[must_use = "a setting returns the changed value"]
pub struct Acp {
    spec: RemoteSpec,
    command: CommandSpec,
    processes: Processes,
    /// The login method, and how long the agent may take to be ready.
    method: Option<String>,
    start: Duration,
    known: Arc<ConversationIds>,
    services: Vec<Service>,
}

impl Acp {
    /// A program that speaks ACP over its standard input and output. `name` is what models and rules know it by.
    /// Receipts and errors name it by its file, and no argument of it.
    pub fn program(name: impl Into<String>, program: impl Into<OsString>) -> Self {
        Self::at(name.into(), program.into())
    }

    /// The same as a line for the shell. Receipts and errors have only the name of the program that it starts, or
    /// that of the shell where this is not certain.
    pub fn shell(name: impl Into<String>, line: impl Into<String>) -> Self {
        Self::at(name.into(), "/bin/sh".into()).args(["-c".into(), line.into()])
    }

    fn at(name: String, program: OsString) -> Self {
        let spec = RemoteSpec::new(name, DESCRIPTION, "").grade(StopSupport::Hard).stop_within(limits::STOP);
        let spec = spec.lives(Lives::InOurProcesses);
        let output = OutputTarget::Pipe { errors: limits::ERROR_BYTES };
        let mut command = CommandSpec::new(program).stdin(Stdin::Pipe).output(output);
        command.label = format!("ACP agent {}", spec.name);
        // A process that is to end does not stay long at SIGINT, which ends a turn at a terminal.
        command.ladder.interrupt = command.ladder.terminate / limits::INTERRUPT_SHARE;
        let processes = Processes::new(format!("acp_{}", uuid::Uuid::new_v4().simple()));
        let (known, services) = (Arc::default(), Vec::new());
        Self { spec, command, processes, method: None, start: limits::START, known, services }.with_peer()
    }

    /// Where no program's name is certain, it is called what models call it.
    fn with_peer(mut self) -> Self {
        let program = program::name(&self.command.program, &self.command.args);
        self.spec.peer = format!("acp:{}", program.as_ref().unwrap_or(&self.spec.name));
        self
    }

    /// Adds arguments of the program.
    pub fn args(mut self, more: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.command.args.extend(more.into_iter().map(Into::into));
        self.with_peer()
    }

    /// Sets a variable of the agent's environment. Beside these, the agent gets the environment of a command,
    /// without keys. An agent that pays for its own models gets their key here.
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.command.env.push((name.into(), Some(value.into())));
        self
    }

    /// Sets which variables of our environment it is given. Default: as its [`Processes`] say.
    pub fn environment(mut self, environment: CommandEnvironment) -> Self {
        self.command.environment = Some(environment);
        self
    }

    /// Keeps a variable of our environment from it.
    pub fn without_env(mut self, name: impl Into<OsString>) -> Self {
        self.command.env.push((name.into(), None));
        self
    }

    /// Sets where it runs, and what its sessions take as the project's folder. Default: where this program runs.
    pub fn cwd(mut self, place: impl Into<PathBuf>) -> Self {
        self.command.cwd = Some(place.into());
        self
    }

    /// Sets what it does, for models.
    pub fn describe(mut self, text: impl Into<String>) -> Self {
        self.spec.description = text.into();
        self
    }

    /// Sets what its work may change. Default: anything ([`EffectClass::Unsafe`]).
    pub fn effect(mut self, effect: EffectClass) -> Self {
        self.spec = self.spec.effect(effect);
        self
    }

    /// Sets the agent's login methods that the adapter uses before a session begins. Default: none, which
    /// suits an agent that was logged in elsewhere.
    pub fn authenticate(mut self, method: impl Into<String>) -> Self {
        self.method = Some(method.into());
        self
    }

    /// Sets how long the agent may take from the start of its process until it is ready. Default: 60 s.
    pub fn start_within(mut self, limit: Duration) -> Self {
        self.start = limit;
        self
    }

    /// Sets how long a stop may take in all: half of it the agent has to end its turn by itself, then its process is
    /// ended, politely first: by the end of its input, SIGINT and soon SIGTERM, and SIGKILL. Default: 2 s.
    pub fn stop_within(mut self, limit: Duration) -> Self {
        self.spec = self.spec.stop_within(limit);
        self
    }

    /// Declares a service of this machine that the agent calls and that does no work for it, such as a server
    /// of models. A service that continues does not keep a run from being quiet. For any other connection of
    /// a stopped agent, to a process that is not ours, the receipt says that it may continue.
    pub fn calls(mut self, service: Service) -> Self {
        self.services.push(service);
        self
    }

    /// Stores in this folder the agent's session of a conversation, so that the conversation continues in it
    /// after a restart. By default it is remembered as long as this value lives.
    pub fn remember_in(mut self, folder: impl Into<PathBuf>) -> Self {
        self.known = Arc::new(ConversationIds::kept_in(folder.into()));
        self
    }

    /// Sets who holds its processes: share one, and all commands of a program have one guard.
    pub fn under(mut self, processes: &Processes) -> Self {
        self.processes = processes.clone();
        self
    }

    /// Where its sessions are.
    fn folder(&self) -> PathBuf {
        let here = || env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
        match &self.command.cwd {
            Some(place) if place.is_absolute() => place.clone(),
            Some(place) => here().join(place),
            None => here(),
        }
    }
}

const DESCRIPTION: &str = "Another agent, with its own tools. Give it a complete task, with all that it needs to \
                           know; its answer comes back when it is done.";

impl Remote for Acp {
    fn spec(&self) -> &RemoteSpec {
        &self.spec
    }

    fn open(&self, brief: RemoteTask, cx: &ToolContext) -> Box<dyn RemoteCall> {
        let folder = self.folder();
        let setting = Setting { folder: folder.clone(), method: self.method.clone() };
        let work = Work {
            command: self.command.clone().cwd(folder),
            processes: self.processes.clone(),
            start: self.start,
            stop: self.spec.stop_within,
            known: Arc::clone(&self.known),
            services: self.services.clone().into(),
            conversation: brief.conversation.clone(),
            cx: cx.clone(),
        };
        Box::new(Channel::new(work, Dialogue::new(setting, brief)))
    }
}

/// Without its environment, which may hold secrets.
impl fmt::Debug for Acp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Acp")
            .field("spec", &self.spec)
            .field("cwd", &self.command.cwd)
            .finish_non_exhaustive()
    }
}
