//! A tree of everything: a local agent with a local child, an A2A child and an ACP child, all at work; stopped at once, and
//! killed and taken up again.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, also in its helpers")]

use std::{
    fs,
    future::pending,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Child as Process, Command, Stdio},
    sync::Arc,
    time::Duration,
};

use safepoint::{
    Agent, Outcome, Session, StopRequest, Tool,
    approval::ApprovalMode,
    ids::SessionId,
    receipt::{CallReport, CallStatus, Ending, RemoteStopState, SideEffect, StopSupport},
    remote::RemoteTool,
    session::{ChatPlanner, ItemOutcome, SessionEvent},
    store::OwnerProcess,
    tool::{EffectClass, from_fn},
};
use safepoint_remote::{a2a::A2a, acp::Acp};
use safepoint_stores::SqliteStore;
use safepoint_testkit::{
    a2a::{A2aManners as PeerManners, A2aServer, A2aWire},
    acp::{self, ASKED, AcpManners},
    invariants::Invariants,
    script::{Reply, Script},
    scripted::ScriptedModel,
    wait,
};
use serde_json::json;

const PATIENCE: Duration = Duration::from_secs(30);

/// The variables that make this program the runtime of a tree: where it writes, and where its A2A agent is.
const FOLDER: &str = "SAFEPOINT_TEST_TREE";
const PEER: &str = "SAFEPOINT_TEST_TREE_PEER";

/// This very program, started again, is the agent: it holds no test then.
#[test]
fn this_program_is_an_agent_when_it_is_asked_to_be() {
    acp::serve_if_asked();
    assert!(std::env::var(ASKED).is_err(), "an agent never returns");
}

/// Or it is the runtime, until it is killed.
#[test]
fn this_program_runs_a_tree_when_it_is_asked_to() {
    let (Ok(folder), Ok(peer)) = (std::env::var(FOLDER), std::env::var(PEER)) else { return };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let place = Place { folder: folder.into() };
        let session = place.open(place.tree(&peer, first())).await;
        drop(session.push("go".to_owned()).unwrap());
        pending::<()>().await;
    });
}

/// Where everything of a tree is written down.
struct Place {
    folder: PathBuf,
}

/// What the models say: those of the root and of the local child.
type Words = (Script, Script);

fn first() -> Words {
    let calls = Reply::call("reader", json!({"task": "pay the rent"}))
        .and_call("assistant", json!({"task": "do it"}))
        .and_call("coder", json!({"task": "deaf"}));
    (Script::of([calls]), Script::of([Reply::call("pay", json!({}))]))
}

/// After a restart nothing that was said is asked for again.
fn second() -> Words {
    (Script::of([Reply::text("so be it")]), Script::of([Reply::text("nobody knows whether it was paid")]))
}

impl Place {
    fn log(&self) -> PathBuf {
        self.folder.join("agent")
    }

    /// A tool that pays, which nobody may do twice, and then never comes back.
    fn pay(&self) -> impl Tool + use<> {
        let ledger = self.folder.join("ledger");
        let pay = from_fn("pay", "Pays the rent.", move |_cx, _args: serde_json::Value| {
            let mut file = fs::OpenOptions::new().append(true).create(true).open(&ledger).unwrap();
            file.write_all(b"paid\n").unwrap();
            async move { pending::<safepoint::ToolResult<String>>().await }
        });
        pay.with(|spec| spec.effect(EffectClass::Unsafe))
    }

    fn paid(&self) -> usize {
        fs::read_to_string(self.folder.join("ledger")).unwrap_or_default().lines().count()
    }

    fn tree(&self, peer: &str, (root, child): Words) -> Agent {
        let reader =
            Agent::builder(ScriptedModel::new(child)).approvals(ApprovalMode::Auto).tool(self.pay()).build();
        let assistant = A2a::at(peer).unwrap().named("assistant").grade(StopSupport::Hard);
        let manners = AcpManners { log: Some(self.log()), ..AcpManners::default() };
        let coder = Acp::program("coder", std::env::current_exe().unwrap())
            .args(["--exact", "this_program_is_an_agent_when_it_is_asked_to_be", "--nocapture"])
            .env(ASKED, manners.to_json())
            .without_env(FOLDER)
            .stop_within(PATIENCE / 5);
        Agent::builder(ScriptedModel::new(root))
            .approvals(ApprovalMode::Auto)
            .child(reader.as_subagent("reader", "Pays."))
            .tool(RemoteTool::new(assistant))
            .tool(RemoteTool::new(coder))
            .build()
    }

    async fn open(&self, agent: Agent) -> Session<String> {
        let store = Arc::new(SqliteStore::open(self.folder.join("store.db")).unwrap());
        Session::builder(ChatPlanner::new(agent))
            .open(store, SessionId::from("s"), OwnerProcess::here())
            .await
            .unwrap()
    }

    /// All three children are at work.
    async fn at_work(&self, server: &A2aServer) {
        server.came(1).await;
        wait::so("they are at work", || self.paid() == 1 && acp::work(&self.log()).in_flight == 1).await;
    }
}

fn row<'r>(calls: &'r [CallReport], name: &str) -> &'r CallReport {
    calls.iter().find(|call| call.name == name).unwrap()
}

/// S1.3, S3.7, S9.2, S10.3 / T3, vicoa-ai/vicoa PR#41; anomalyco/opencode#28866: one stop, one receipt, four honest rows:
/// the root's, its child's with its call, what the A2A agent said, and what became of the ACP agent that said nothing.
#[tokio::test]
async fn a_tree_of_everything_is_stopped_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let place = Place { folder: folder.path().to_owned() };
    let server = A2aServer::start(PeerManners::honest(A2aWire::V1)).unwrap();
    let handle = place.tree(server.url(), first()).run("go").detach();
    place.at_work(&server).await;
    handle.stop(StopRequest::now());
    let outcome = tokio::time::timeout(PATIENCE, handle.done()).await.unwrap();
    assert!(matches!(outcome, Outcome::Stopped(_)), "{outcome:?}");
    let closed = tokio::time::timeout(PATIENCE, Invariants::of(&handle).check()).await.unwrap().unwrap();
    let receipt = &closed.receipt;
    assert_eq!((receipt.ending, receipt.calls.len()), (Ending::Stopped, 3));
    assert!(receipt.quiet_at.is_some() && receipt.survivors.is_empty(), "{receipt}");

    let child = row(&receipt.calls, "reader").child.as_ref().unwrap();
    let child = child.receipt.as_ref().unwrap();
    assert_eq!(child.ending, Ending::Stopped);
    let pay = row(&child.calls, "pay");
    assert_eq!((pay.status, pay.effect), (CallStatus::Stopped, SideEffect::Unknown));

    let assistant = row(&receipt.calls, "assistant");
    let remote = assistant.remote.as_ref().unwrap();
    assert_eq!((assistant.status, assistant.effect), (CallStatus::Stopped, SideEffect::Unknown));
    assert_eq!((remote.stop, remote.word.as_str()), (Some(RemoteStopState::Confirmed), "canceled"));
    assert_eq!(server.running(), 0, "and so it is");

    let coder = row(&receipt.calls, "coder");
    let remote = coder.remote.as_ref().unwrap();
    assert_eq!((coder.status, coder.effect), (CallStatus::Stopped, SideEffect::Unknown));
    assert_eq!(remote.stop, Some(RemoteStopState::Confirmed));
    assert!(remote.word.contains("it said nothing to that; its process"), "{remote:?}");
    assert_eq!(acp::work(&place.log()).in_flight, 0, "and so it is");
    assert_eq!(place.paid(), 1);
}

fn runtime(folder: &Path, peer: &str) -> Process {
    let mut runtime = Command::new(std::env::current_exe().unwrap());
    runtime.args(["--exact", "this_program_runs_a_tree_when_it_is_asked_to", "--nocapture"]);
    runtime.env(FOLDER, folder).env(PEER, peer);
    runtime.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    runtime.spawn().unwrap()
}

/// S7.2, S7.3, S9.1, S10.3 / T10: the same tree in a process that is killed. The next one asks the A2A agent for the
/// work by its name, tells the others that what they did is not known, and repeats nothing.
#[tokio::test]
async fn a_tree_of_everything_is_killed_and_nothing_is_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let place = Place { folder: folder.path().to_owned() };
    let server = A2aServer::start(PeerManners::honest(A2aWire::V1)).unwrap();
    let mut killed = runtime(folder.path(), server.url());
    place.at_work(&server).await;
    killed.kill().unwrap();
    killed.wait().unwrap();
    wait::so("the ACP agent is gone with it", || acp::work(&place.log()).in_flight == 0).await;
    assert_eq!(server.running(), 1, "the A2A agent's work outlives us");

    let session = place.open(place.tree(server.url(), second())).await;
    let mut events = session.events();
    assert!(session.resume().await);
    server.let_on();
    let ended = async {
        while let Some(event) = events.next().await {
            if let SessionEvent::TurnEnded { fate, .. } = event.kind {
                return fate;
            }
        }
        panic!("the session ended before its turn did");
    };
    let fate = tokio::time::timeout(PATIENCE, ended).await.unwrap();
    assert!(matches!(fate, ItemOutcome::Completed(_)), "{fate:?}");
    assert_eq!(place.paid(), 1, "paid once");
    assert_eq!(server.begun(), 1, "asked for by its name");
    assert_eq!(acp::work(&place.log()).begun, 1, "what it did is unknown, and it is not asked again");
}
