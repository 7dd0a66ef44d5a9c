//! Agents to be tested against, runs over them, and what became of those.

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use safepoint::{
    Agent, Outcome, RunHandle, StopRequest,
    approval::{ApprovalMode, ApprovalRequest},
    event::{EventKind, Events, Fact},
    receipt::{CallReport, RemoteReport, RemoteStopState},
};
use safepoint_remote::acp::Acp;
use safepoint_testkit::{
    acp::{self, ASKED, AcpManners},
    invariants::{ClosedScenario, Invariants},
};
use serde_json::Value;

/// How long anything may take on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Whatever the machine does meanwhile, an agent that says nothing is gone by then, and that is known.
pub(crate) const AMPLE: Duration = Duration::from_secs(8);

/// The arguments with which this program is the agent.
pub(crate) const THIS_TEST: [&str; 3] =
    ["--exact", "acp::support::this_program_is_an_agent_when_it_is_asked_to_be", "--nocapture"];

/// This very program, started again, is the agent: it holds no test then.
#[test]
fn this_program_is_an_agent_when_it_is_asked_to_be() {
    acp::serve_if_asked();
    assert!(std::env::var(ASKED).is_err(), "an agent never returns");
}

/// A place for an agent's own account.
pub(crate) struct Place {
    pub(crate) folder: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    /// An agent that writes its account here, and has ample time for a stop.
    pub(crate) fn agent(&self, manners: AcpManners) -> Acp {
        let program = Acp::program("coder", std::env::current_exe().unwrap());
        self.dressed(program.args(THIS_TEST), manners)
    }

    /// The same of an agent that starts this test in a way of its own.
    pub(crate) fn dressed(&self, agent: Acp, manners: AcpManners) -> Acp {
        let manners = AcpManners { log: Some(self.log()), ..manners };
        agent.env(ASKED, manners.to_json()).cwd(self.folder.path()).stop_within(AMPLE)
    }

    pub(crate) fn honest(&self) -> Acp {
        self.agent(AcpManners::default())
    }

    /// What it received and did.
    pub(crate) fn account(&self) -> Vec<Value> {
        acp::read_log(&self.log()).into_iter().map(|(_, got)| got).collect()
    }

    /// The messages of this method that it received.
    pub(crate) fn received(&self, method: &str) -> Vec<Value> {
        self.account().into_iter().filter(|got| got["method"] == method).collect()
    }

    /// What of its agents is alive: by the place of their log, which is in their environment.
    pub(crate) fn alive(&self) -> Vec<i32> {
        let mark = self.log().to_str().unwrap().as_bytes().to_vec();
        let pids = std::fs::read_dir("/proc").unwrap();
        let pids = pids.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        let is_ours = |pid: &i32| {
            let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environ.windows(mark.len()).any(|part| part == mark)
        };
        pids.filter(is_ours).collect()
    }

    /// How often it paid.
    pub(crate) fn paid(&self) -> usize {
        self.account().iter().filter(|got| got["paid"].is_number()).count()
    }
}

/// A run over an agent that may do what it asks for.
pub(crate) fn run(agent: Acp, text: &str) -> Running {
    Running::of(Agent::remote(agent).approvals(ApprovalMode::Auto).build().run(text).detach())
}

/// A run under way.
pub(crate) struct Running {
    pub(crate) handle: RunHandle,
    events: Events,
}

impl Running {
    pub(crate) fn of(handle: RunHandle) -> Self {
        let events = handle.events();
        Self { handle, events }
    }

    /// Waits until the agent has said this.
    pub(crate) async fn says(&mut self, wanted: &str) {
        let mut said = String::new();
        while !said.contains(wanted) {
            let event = tokio::time::timeout(PATIENCE, self.events.next()).await.unwrap();
            match event.expect("it says so before it ends").kind {
                EventKind::Text(text) => said.push_str(&text),
                EventKind::Progress { text, .. } | EventKind::Notice { text, .. } => said.push_str(&text),
                EventKind::Fact(fact) if matches!(*fact, Fact::Settled { .. }) => {
                    panic!("it said only {said:?}")
                }
                _ => {}
            }
        }
    }

    /// Waits until it asks.
    pub(crate) async fn asks(&mut self) -> ApprovalRequest {
        loop {
            let event = tokio::time::timeout(PATIENCE, self.events.next()).await.unwrap();
            if let EventKind::Fact(fact) = event.expect("it asks before it ends").kind
                && let Fact::ApprovalRequested(request) = &*fact
            {
                return request.clone();
            }
        }
    }

    /// Runs to its end, which holds what every end must.
    pub(crate) async fn end(self) -> Ended {
        let closed = tokio::time::timeout(PATIENCE, Invariants::of(&self.handle).check()).await.unwrap();
        Ended { closed: closed.unwrap() }
    }

    /// Stops it now, and says how long it took to settle.
    pub(crate) async fn stop(self) -> (Ended, Duration) {
        self.stop_by(StopRequest::now()).await
    }

    pub(crate) async fn stop_by(self, request: StopRequest) -> (Ended, Duration) {
        let asked = Instant::now();
        self.handle.stop(request);
        let outcome = tokio::time::timeout(PATIENCE, self.handle.done()).await.expect("it settles");
        let took = asked.elapsed();
        assert!(matches!(outcome, Outcome::Stopped(_)), "{outcome:?}");
        (self.end().await, took)
    }
}

/// A run that is over.
pub(crate) struct Ended {
    pub(crate) closed: ClosedScenario,
}

impl Ended {
    pub(crate) fn answer(&self) -> &str {
        self.closed.outcome.answer().unwrap_or_else(|| panic!("{:?}", self.closed.outcome))
    }

    /// What the run says of its failure.
    pub(crate) fn failure(&self) -> String {
        let Outcome::Failed(error) = &self.closed.outcome else { panic!("{:?}", self.closed.outcome) };
        error.to_string()
    }

    pub(crate) fn call(&self) -> &CallReport {
        self.closed.receipt.calls.first().expect("there was a call")
    }

    pub(crate) fn remote(&self) -> &RemoteReport {
        self.call().remote.as_ref().expect("a peer did it")
    }

    /// The peer ended its work, as this word says, and nothing is left of it.
    pub(crate) fn confirmed(&self, word: &str) {
        let remote = self.remote();
        assert_eq!(remote.stop, Some(RemoteStopState::Confirmed), "{remote:?}");
        assert!(remote.word.contains(word), "{remote:?}");
        let receipt = &self.closed.receipt;
        assert!(receipt.quiet_at.is_some() && receipt.survivors.is_empty(), "{receipt}");
        assert!(!receipt.calls[0].processes.is_empty(), "{receipt}");
    }
}
