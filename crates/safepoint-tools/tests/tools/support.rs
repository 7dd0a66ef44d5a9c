//! A run whose model asks for one call, and what became of it.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::{FutureExt as _, StreamExt as _, stream};
use safepoint::{
    Agent, Answer, History, Model, Outcome, RunHandle, StopRequest,
    approval::{Rule, RuleAction},
    event::{EventKind, Events},
    history::Message,
    ids::CallId,
    message::{CallResult, ToolCall},
    model::{Conversation, Delta, DeltaStream, Finish, ModelSpec},
    raw::OpenEnd,
    receipt::{CallReport, CallStatus, QuietReport, SideEffect},
};
use safepoint_tools::{Root, Toolbox, process::Processes};
use serde_json::Value;

/// How long anything may take on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A directory, and all tools on it.
pub(crate) struct Bench {
    place: tempfile::TempDir,
    run: String,
    pub(crate) processes: Processes,
    pub(crate) toolbox: Toolbox,
    /// What a rule allows.
    pub(crate) allowed: Vec<&'static str>,
    /// A rule that speaks before.
    pub(crate) only: Option<Rule>,
}

/// What a call came to.
pub(crate) struct Reported {
    pub(crate) text: String,
    pub(crate) report: CallReport,
}

impl Reported {
    pub(crate) fn good(self) -> String {
        assert_eq!(self.report.status, CallStatus::Completed, "{}", self.text);
        self.text
    }

    pub(crate) fn failed(self) -> String {
        assert_eq!(self.report.status, CallStatus::Failed, "{}", self.text);
        self.text
    }

    /// A failure that says that it changed nothing.
    pub(crate) fn refused(self) -> String {
        assert_eq!(self.report.effect, SideEffect::None, "{}", self.text);
        self.failed()
    }
}

impl Bench {
    pub(crate) fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        std::fs::create_dir(place.path().join("root")).unwrap();
        let run = format!("tools-{}", uuid::Uuid::new_v4().simple());
        let processes = Processes::guarded_by(run.clone(), env!("CARGO_BIN_EXE_safepoint-guard"));
        let toolbox = crate::toolbox(Root::open(place.path().join("root")).unwrap(), processes.clone());
        Self {
            place,
            run,
            processes,
            toolbox,
            allowed: vec!["http_get/reach", "http_get/private"],
            only: None,
        }
    }

    /// Processes of its commands that are alive.
    pub(crate) fn alive(&self) -> Vec<i32> {
        let mark = format!("{}={}", safepoint_tools::process::RUN_MARK, self.run);
        let pids = std::fs::read_dir("/proc").unwrap();
        let pids = pids.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
        // That of a zombie is empty.
        let carries = |pid: &i32| {
            let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|entry| entry == mark.as_bytes())
        };
        pids.filter(carries).collect()
    }

    /// A path below the root.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.place.path().join("root").join(path)
    }

    /// A path beside the root, where no tool may come.
    pub(crate) fn outside(&self, path: &str) -> PathBuf {
        self.place.path().join(path)
    }

    pub(crate) fn put(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub(crate) fn text(&self, path: &str) -> String {
        std::fs::read_to_string(self.path(path)).unwrap()
    }

    /// Runs one call to its end.
    pub(crate) async fn call(&self, tool: &str, args: Value) -> Reported {
        let outcome = self.agent(vec![asks(tool, &args)]).run("do it").await;
        reported(&outcome)
    }

    /// Starts a run of one call, and returns at once.
    pub(crate) fn start(&self, tool: &str, args: Value) -> Running {
        self.start_rounds(vec![asks(tool, &args)])
    }

    /// The same for two rounds of a call each.
    pub(crate) fn start_two(&self, first: (&str, Value), second: (&str, Value)) -> Running {
        self.start_rounds(vec![asks(first.0, &first.1), asks(second.0, &second.1)])
    }

    fn start_rounds(&self, rounds: Vec<Vec<Delta>>) -> Running {
        let run = self.agent(rounds).run("do it").start();
        let events = run.handle().events();
        Running { handle: run.handle(), outcome: run.boxed(), events }
    }

    fn agent(&self, mut script: Vec<Vec<Delta>>) -> Agent {
        script.push(says("done"));
        let tools = self.toolbox.all();
        let agent = Agent::builder(Scripted(Arc::new(Mutex::new(script)))).tools(tools);
        let allowed = self.allowed.iter().map(|name| Rule::on(*name, RuleAction::Allow));
        let allowed = self.only.iter().cloned().chain(allowed);
        allowed.fold(agent, |agent, rule| agent.rule(rule)).build()
    }
}

/// A run under way.
pub(crate) struct Running {
    pub(crate) handle: RunHandle,
    outcome: futures_util::future::BoxFuture<'static, Outcome>,
    events: Events,
}

impl Running {
    /// Waits until the call's progress, taken together, holds `text`.
    pub(crate) async fn until_progress(&mut self, text: &str) {
        let mut seen = String::new();
        let wait = async {
            while let Some(event) = self.events.next().await {
                if let EventKind::Progress { text: more, .. } = event.kind {
                    seen.push_str(&more);
                    if seen.contains(text) {
                        return;
                    }
                }
            }
        };
        tokio::time::timeout(PATIENCE, wait).await.expect("there is progress");
        assert!(seen.contains(text), "{seen:?}");
    }

    pub(crate) async fn stop(self, request: StopRequest) -> (Reported, QuietReport) {
        let _asked = self.handle.stop(request);
        let outcome = tokio::time::timeout(PATIENCE, self.outcome).await.expect("it settles");
        assert!(matches!(outcome, Outcome::Stopped(_)), "{outcome:?}");
        let quiet = tokio::time::timeout(PATIENCE, self.handle.quiet()).await.expect("it is quiet");
        (reported(&outcome), quiet)
    }

    /// Stops it wherever it is, also before its call.
    pub(crate) async fn stop_whenever(self) -> QuietReport {
        let _asked = self.handle.stop(StopRequest::now());
        drop(tokio::time::timeout(PATIENCE, self.outcome).await.expect("it settles"));
        tokio::time::timeout(PATIENCE, self.handle.quiet()).await.expect("it is quiet")
    }

    pub(crate) async fn end(self) -> Outcome {
        self.outcome.await
    }
}

pub(crate) fn reported(outcome: &Outcome) -> Reported {
    let mut results = closed(outcome.history());
    if let OpenEnd::Open { calls, .. } = outcome.history().tail() {
        results.extend(calls.iter().map(|call| call.result.clone()));
    }
    let text = results.first().map(|result| result.text.clone()).expect("there was a call");
    Reported {
        text: String::clone(&text),
        report: outcome.receipt().calls.first().cloned().expect("there was a call"),
    }
}

fn closed(history: &History) -> Vec<CallResult> {
    let found = history.entries().iter().find_map(|entry| match &**entry {
        Message::Results { results } => Some(results.clone()),
        _ => None,
    });
    found.unwrap_or_default()
}

fn asks(tool: &str, args: &Value) -> Vec<Delta> {
    let call = ToolCall { id: CallId::from("call_1"), name: tool.into(), args: args.to_string() };
    vec![Delta::Sent, Delta::Opened, Delta::CallReady(call), Delta::Ended(Finish::Natural)]
}

fn says(text: &str) -> Vec<Delta> {
    vec![Delta::Sent, Delta::Opened, Delta::Text(text.into()), Delta::Ended(Finish::Natural)]
}

type Script = Arc<Mutex<Vec<Vec<Delta>>>>;

struct Scripted(Script);

struct Talk(Script);

impl Model for Scripted {
    fn name(&self) -> &str {
        "scripted"
    }
    fn open(&self, _: ModelSpec) -> Box<dyn Conversation> {
        Box::new(Talk(Arc::clone(&self.0)))
    }
}

impl Conversation for Talk {
    fn stream(&mut self, _: &History) -> DeltaStream {
        let deltas = self.0.lock().unwrap().remove(0);
        stream::iter(deltas.into_iter().map(Ok)).boxed()
    }
}

/// The answer, so that a test can be sure that the run went on.
pub(crate) fn answered(outcome: &Outcome) -> Option<&Answer> {
    match outcome {
        Outcome::Done(answer) => Some(answer),
        _ => None,
    }
}
