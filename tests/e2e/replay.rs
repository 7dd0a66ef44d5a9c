//! A conversation that was recorded on a wire is served from its file again, strictly; secrets are not in it.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use safepoint::{Agent, Model, Outcome, StopRequest, receipt::Ending, tool::EffectClass};
use safepoint_models::{anthropic, gemini, openai, responses};
use safepoint_testkit::{
    invariants::Invariants,
    replay::{RecordingModel, Replay},
    script::Reply,
    server::{ModelServer, ServedWire},
};
use serde_json::json;
use tokio::sync::Semaphore;

use super::world::{Ledger, WIRES, gated, server, started};

const SECRET: &str = "sk-very-secret";

/// Each test has its own file: tests run at once.
fn file(name: &str) -> PathBuf {
    static FILES: AtomicUsize = AtomicUsize::new(0);
    let number = FILES.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("safepoint-replay-{}-{name}-{number}", std::process::id()))
}

fn keyed(wire: ServedWire, server: &ModelServer, path: &PathBuf) -> safepoint::AgentBuilder {
    let key = || SECRET.to_owned().into();
    let url = server.url();
    match wire {
        ServedWire::OpenAi => Agent::builder(recorded(openai::model("m").base_url(url).api_key(key()), path)),
        ServedWire::Anthropic => {
            Agent::builder(recorded(anthropic::model("m").base_url(url).api_key(key()), path))
        }
        ServedWire::Responses => {
            Agent::builder(recorded(responses::model("m").base_url(url).api_key(key()), path))
        }
        ServedWire::Gemini => Agent::builder(recorded(gemini::model("m").base_url(url).api_key(key()), path)),
    }
}

fn recorded<M: Model>(model: M, path: &PathBuf) -> RecordingModel<M> {
    drop(std::fs::remove_file(path));
    RecordingModel::new(model, path).unwrap()
}

fn look(ledger: &Ledger, permits: usize) -> safepoint::tool::FnTool {
    gated("look", EffectClass::ReadOnly, ledger, &Arc::new(Semaphore::new(permits)))
}

/// What was recorded, of two rounds with a call, and the answer.
async fn record(wire: ServedWire) -> (PathBuf, Outcome) {
    let path = file(wire.as_str());
    let server =
        server([Reply::text("let me ").and_call("look", json!({})), Reply::text("paid it is")]).await;
    let agent = keyed(wire, &server, &path).tool(look(&Ledger::default(), 9)).build();
    (path, agent.run("is it?").await)
}

/// S14: what a wire said is said again without it, and no key is in the file.
#[tokio::test]
async fn a_recording_answers_as_the_wire_did_and_holds_no_key() {
    for wire in WIRES {
        let (path, before) = record(wire).await;
        assert_eq!(before.answer(), Some("paid it is"), "{wire:?}: {before:?}");
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(!text.contains(SECRET) && !text.to_lowercase().contains("authorization"), "{wire:?}");
        let replay = Replay::open(&path).unwrap();
        let ledger = Ledger::default();
        let handle = Agent::builder(replay.clone()).tool(look(&ledger, 9)).build().run("is it?").detach();
        let closed = Invariants::of(&handle).ledger(ledger.book()).check().await.unwrap();
        assert_eq!(closed.outcome.answer(), Some("paid it is"), "{wire:?}: {:?}", closed.outcome);
        assert_eq!((replay.left(), ledger.count("commit")), (0, 1));
        assert_eq!(closed.outcome.history(), before.history());
    }
}

/// S14: another request, or one more, is an error that says where it differs.
#[tokio::test]
async fn a_replay_is_strict() {
    let (path, _) = record(ServedWire::OpenAi).await;
    let agent = |replay: &Replay| Agent::builder(replay.clone()).tool(look(&Ledger::default(), 9)).build();
    let replay = Replay::open(&path).unwrap();
    let Outcome::Failed(error) = agent(&replay).run("is it not?").await else { panic!() };
    let says = error.to_string();
    assert!(says.contains("/history/0/text \"is it?\" was recorded, and now it is \"is it not?\""), "{says}");
    assert_eq!(replay.left(), 2);
    let done = agent(&replay).run("is it?").await;
    let Outcome::Failed(error) = agent(&replay).run_on(done.history().clone(), "sure?").await else {
        panic!()
    };
    assert!(error.to_string().contains("one more"), "{error}");
}

/// S2.1, S3.6: a stop in the middle of a replay is a stop as any, and the run is taken up on the rest of the
/// recording.
#[tokio::test]
async fn a_stop_in_a_replay_is_a_stop() {
    let (path, _) = record(ServedWire::Gemini).await;
    let (ledger, permits) = (Ledger::default(), Arc::new(Semaphore::new(0)));
    let tool = gated("look", EffectClass::ReadOnly, &ledger, &permits);
    let agent = Agent::builder(Replay::open(&path).unwrap()).tool(tool).build();
    let handle = agent.run("is it?").detach();
    started(&handle, 1).await;
    handle.stop(StopRequest::now());
    let closed = Invariants::of(&handle).ledger(ledger.book()).check().await.unwrap();
    assert_eq!(closed.outcome.ending(), Ending::Stopped);
    permits.add_permits(9);
    assert_eq!(agent.resume(&closed.outcome).await.answer(), Some("paid it is"));
}

/// S14: a recording is not written over.
#[tokio::test]
async fn a_recording_is_not_written_over() {
    let (path, _) = record(ServedWire::Responses).await;
    assert!(RecordingModel::new(openai::model("m"), &path).is_err());
}
