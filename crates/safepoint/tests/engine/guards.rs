//! The model of a run that goes in circles is warned, and then the run is stopped.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use proptest::{prelude::*, test_runner::TestRunner};
use safepoint::{
    History, Outcome, StopRequest,
    guard::LoopGuard,
    history::Message,
    message::ToolCall,
    model::Delta,
    receipt::{CallStatus, Ending},
    tool::{self, FnTool},
};
use serde_json::{Value, json};

use crate::world::{Reply, agent, ask, say};

/// Replies that each ask for one call of `do` with these arguments.
fn asks(args: &[&str]) -> Vec<Reply> {
    let reply = |(at, args): (usize, &&str)| {
        let mut reply = ask(&["do"]);
        for delta in reply.iter_mut().flatten() {
            if let Delta::CallReady(call) = delta {
                *call = ToolCall { id: format!("c{at}").into(), name: "do".into(), args: (*args).into() };
            }
        }
        reply
    };
    args.iter().enumerate().map(reply).collect()
}

/// A tool that counts how often it runs, and whose result is this for the nth time.
fn work(ran: &Arc<AtomicUsize>, gives: fn(usize) -> Result<String, String>) -> FnTool {
    let ran = Arc::clone(ran);
    tool::from_fn("do", "does it", move |_cx, _args: Value| {
        // Counted by itself: no other memory depends on it.
        let at = ran.fetch_add(1, Ordering::Relaxed);
        async move { gives(at).map_err(|error| safepoint::Halt::from(safepoint::stop::Failure::new(error))) }
    })
}

struct Ended {
    outcome: Outcome,
    ran: usize,
}

impl Ended {
    fn statuses(&self) -> Vec<CallStatus> {
        self.outcome.receipt().calls.iter().map(|call| call.status).collect()
    }

    /// The code and text of the stop.
    fn stop(&self) -> (String, String) {
        let reason = &self.outcome.receipt().stop.as_ref().unwrap().reason;
        (reason.code.clone(), reason.text.clone())
    }

    fn history(&self) -> String {
        json!(self.outcome.history()).to_string()
    }
}

async fn run(guard: LoopGuard, args: &[&str], gives: fn(usize) -> Result<String, String>) -> Ended {
    let ran = Arc::new(AtomicUsize::new(0));
    let replies = asks(args).into_iter().chain([say("end")]);
    let outcome = agent(replies).tool(work(&ran, gives)).hooks(guard).build().run("go").await;
    Ended { outcome, ran: ran.load(Ordering::Relaxed) }
}

fn same(_: usize) -> Result<String, String> {
    Ok("pending".into())
}

/// S12.9: the third identical call in a row is refused with a note, and the fifth stops the run, whatever order its
/// arguments are written in.
#[tokio::test(start_paused = true)]
async fn a_repeated_call_is_refused_and_then_stops_the_run() {
    let (one, other) = (r#"{"a":1,"b":2}"#, r#"{"b": 2, "a": 1}"#);
    let warned = run(LoopGuard::new(), &[one, other, one], same).await;
    assert_eq!((warned.outcome.answer(), warned.ran), (Some("end"), 2));
    assert_eq!(warned.statuses()[2], CallStatus::Denied);
    assert!(warned.history().contains("[loop guard: do was called 3 times in a row"), "{}", warned.history());
    let stopped = run(LoopGuard::new(), &[one, other, one, one, one, one], same).await;
    assert_eq!((stopped.outcome.ending(), stopped.ran), (Ending::Stopped, 2));
    assert_eq!(stopped.stop().0, "loop");
    assert!(stopped.stop().1.contains("5 times in a row"), "{:?}", stopped.stop());
    use CallStatus::{Completed, Denied, NotStarted};
    assert_eq!(stopped.statuses(), [Completed, Completed, Denied, Denied, NotStarted]);
}

/// S12.9: so are the same calls by turns.
#[tokio::test(start_paused = true)]
async fn a_cycle_of_calls_is_seen() {
    for cycle in [&["1", "2"][..], &["1", "2", "3"], &["1", "2", "3", "4"]] {
        let args: Vec<&str> = cycle.iter().copied().cycle().take(cycle.len() * 5).collect();
        let stopped = run(LoopGuard::new(), &args, same).await;
        assert_eq!(
            (stopped.outcome.ending(), stopped.stop().0.as_str()),
            (Ending::Stopped, "loop"),
            "{cycle:?}"
        );
        let denied = stopped.statuses().iter().position(|status| *status == CallStatus::Denied);
        assert_eq!(denied, Some(cycle.len() * 3 - 1), "{cycle:?}");
    }
}

/// S12.9: a call that comes to something else each time is no loop, nor is one that a person asked for again.
#[tokio::test(start_paused = true)]
async fn a_call_with_another_result_each_time_is_no_loop() {
    let polls = run(LoopGuard::new(), &["1"; 12], |at| Ok(format!("{at} %"))).await;
    assert_eq!((polls.outcome.answer(), polls.ran), (Some("end"), 12));
    let ran = Arc::new(AtomicUsize::new(0));
    let replies = (0..4).flat_map(|_| asks(&["1"]).into_iter().chain([say("done")]));
    let agent = agent(replies).tool(work(&ran, same)).hooks(LoopGuard::new()).build();
    let mut history = History::new();
    for _ in 0..4 {
        history = agent.run_on(history, "again").await.history().clone();
    }
    assert_eq!(ran.load(Ordering::Relaxed), 4);
}

/// S12.9: identical calls of one message count as well.
#[tokio::test(start_paused = true)]
async fn identical_calls_of_one_message_count() {
    let ran = Arc::new(AtomicUsize::new(0));
    let replies = [ask(&["do", "do", "do"]), say("end")];
    let outcome = agent(replies).tool(work(&ran, same)).hooks(LoopGuard::new()).build().run("go").await;
    assert_eq!((outcome.answer(), ran.load(Ordering::Relaxed)), (Some("end"), 2));
}

/// S12.9: calls that all fail are no progress: the model is warned, and then the run is stopped.
#[tokio::test(start_paused = true)]
async fn calls_that_all_fail_stop_the_run() {
    let args: Vec<String> = (0..20).map(|at| at.to_string()).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let stopped = run(LoopGuard::new(), &args, |at| Err(format!("no {at}"))).await;
    assert_eq!((stopped.outcome.ending(), stopped.ran), (Ending::Stopped, 12));
    assert_eq!(stopped.stop(), ("loop".into(), "12 calls in a row have failed".into()));
    let warned: Vec<usize> = stopped
        .outcome
        .history()
        .entries()
        .iter()
        .filter_map(|entry| match &**entry {
            Message::Results { results } => Some(results[0].text.contains("calls in a row have failed")),
            _ => None,
        })
        .enumerate()
        .filter_map(|(at, is_warned)| is_warned.then_some(at))
        .collect();
    assert_eq!(warned.first(), Some(&5), "the sixth");
    let mixed =
        run(LoopGuard::new(), &args, |at| if at % 5 == 4 { Ok("yes".into()) } else { Err("no".into()) })
            .await;
    assert_eq!((mixed.outcome.answer(), mixed.ran), (Some("end"), 20));
}

/// S12.9, S1.8: a resumed run is judged by its conversation, and another run of the same agent by its own.
#[tokio::test(start_paused = true)]
async fn a_loop_outlasts_a_resume() {
    let ran = Arc::new(AtomicUsize::new(0));
    let agent =
        agent(asks(&["1", "1", "1", "1", "1", "1"])).tool(work(&ran, same)).hooks(LoopGuard::new()).build();
    let stopped = agent.run("go").await;
    assert_eq!(stopped.ending(), Ending::Stopped);
    let resumed = agent.resume(&stopped).await;
    assert_eq!((resumed.ending(), ran.load(Ordering::Relaxed)), (Ending::Stopped, 2));
    assert_eq!(resumed.receipt().stop.as_ref().unwrap().reason.code, "loop");
    let handle = agent.run("another").handle();
    let _asked = handle.stop(StopRequest::now());
}

/// S12.9: whatever a model does, a run in which no call repeats and none fails is left alone.
#[test]
fn a_run_without_repetition_is_left_alone() {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let mut runner = TestRunner::new(ProptestConfig { cases: 16, ..ProptestConfig::default() });
    let distinct = prop::collection::hash_set(0..1000u32, 1..20);
    let ran = runner.run(&distinct, |args| {
        let args: Vec<String> = args.into_iter().map(|arg| arg.to_string()).collect();
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let ended = runtime.block_on(run(LoopGuard::new(), &args, same));
        prop_assert_eq!((ended.outcome.answer(), ended.ran), (Some("end"), args.len()));
        Ok(())
    });
    ran.unwrap();
}
