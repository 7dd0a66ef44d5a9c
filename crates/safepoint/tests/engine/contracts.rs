//! What a stop does to a running call: the four contracts, clean-ups, time limits.

use std::{
    future::pending,
    sync::{Arc, Mutex},
    time::Duration,
};

use safepoint::{
    Limits, Reason, Receipt, StopRequest, ToolContext, ToolResult,
    event::EventKind,
    receipt::{CallStatus, CleanupEnd, Ending, SideEffect},
    secret::Secrets,
    stop::{Failure, StopAck},
    tool::{self, EffectClass, OnStop, OnToolFailure},
};
use tokio::time::{Instant, sleep};

use crate::world::{agent, ask, call_started, does, say};

const CAP: Duration = Duration::from_secs(10);

/// Stops a call of this contract `Now`; the final receipt, and how long it took to settle.
async fn stop_it<F, Fut>(contract: OnStop, cap: Duration, body: F) -> (Arc<Receipt>, Duration)
where
    F: Fn(ToolContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = ToolResult<String>> + Send + 'static,
{
    let tool = does("work", body).with(|spec| spec.on_stop(contract));
    let handle = agent([ask(&["work"])]).tool(tool).build().run("go").detach();
    call_started(&handle).await;
    tokio::task::yield_now().await;
    let asked = Instant::now();
    handle.stop(StopRequest::now().with_cleanup_cap(cap));
    let outcome = handle.done().await;
    let took = asked.elapsed();
    assert_eq!(outcome.ending(), Ending::Stopped);
    (Arc::clone(handle.quiet().await.receipt()), took)
}

/// S4.3, S2.7: *drop* resolves at once.
#[tokio::test(start_paused = true)]
async fn drop_resolves_at_once() {
    let (receipt, took) = stop_it(OnStop::Drop, CAP, |_| pending()).await;
    assert_eq!((took, receipt.calls[0].status), (Duration::ZERO, CallStatus::Stopped));
}

/// S4.3, S4.5: *cooperate* sees the stop and has its time; what it returns in it is kept.
#[tokio::test(start_paused = true)]
async fn cooperate_may_return_a_result() {
    let (receipt, took) = stop_it(OnStop::Cooperate(None), CAP, |cx| async move {
        let _stop = cx.stopped().await;
        sleep(Duration::from_secs(2)).await;
        Ok("half of it".into())
    })
    .await;
    assert_eq!((took, receipt.calls[0].status), (Duration::from_secs(2), CallStatus::Completed));
    assert_eq!(receipt.calls[0].effect, SideEffect::Done);
}

/// S4.5: a failure caused by the stop becomes *stopped*.
/// anthropics/claude-agent-sdk-typescript#405: a clean interrupt is reported as an error.
#[tokio::test(start_paused = true)]
async fn a_failure_under_a_stop_is_stopped() {
    let (receipt, _) = stop_it(OnStop::Cooperate(None), CAP, |cx| async move {
        let _stop = cx.stopped().await;
        Err(Failure::new("connection lost").into())
    })
    .await;
    assert_eq!(
        (receipt.calls[0].status, receipt.calls[0].effect),
        (CallStatus::Stopped, SideEffect::Unknown)
    );
}

/// S4.3, S1.1: one that does not return is dropped when its time, or the cap over all of them, is over.
#[tokio::test(start_paused = true)]
async fn a_deaf_one_is_dropped_in_time() {
    for (contract, cap, expected) in [
        (OnStop::Cooperate(None), CAP, 5),
        (OnStop::Cooperate(Some(Duration::from_secs(3))), CAP, 3),
        (OnStop::Cooperate(Some(Duration::from_secs(30))), CAP, 10),
        (OnStop::Finish(None), CAP, 5),
        (OnStop::Finish(None), Duration::from_secs(1), 1),
        (OnStop::Cooperate(None), Duration::ZERO, 0),
    ] {
        let (receipt, took) = stop_it(contract, cap, |_| pending()).await;
        assert_eq!(took, Duration::from_secs(expected), "{contract:?} {cap:?}");
        assert_eq!(receipt.calls[0].status, CallStatus::Stopped);
    }
}

/// S4.3: *finish* is let end.
#[tokio::test(start_paused = true)]
async fn finish_is_let_end() {
    let (receipt, took) = stop_it(OnStop::Finish(None), CAP, |_| async {
        sleep(Duration::from_secs(4)).await;
        Ok("done".into())
    })
    .await;
    assert_eq!((took, receipt.calls[0].status), (Duration::from_secs(4), CallStatus::Completed));
}

/// S4.3, S3.5, S3.6: *detach* is left running, named, and its late result changes nothing.
#[tokio::test(start_paused = true)]
async fn detach_is_left_and_its_result_is_late() {
    let (receipt, took) = stop_it(OnStop::Detach, CAP, |_| async {
        sleep(Duration::from_secs(7)).await;
        Ok("too late".into())
    })
    .await;
    assert_eq!((took, receipt.calls[0].status), (Duration::ZERO, CallStatus::LeftRunning));
    assert_eq!(receipt.calls[0].effect, SideEffect::Unknown);
    assert!(receipt.quiet_at.is_some());
    assert!(receipt.late[0].contains("returned 8 bytes"), "{:?}", receipt.late);
}

/// S3.6: past the quiet deadline the survivors are named, and nothing says that it is quiet. aegra/aegra#528,
/// anomalyco/opencode#16721: a stop is reported as done while the work continues.
#[tokio::test(start_paused = true)]
async fn a_survivor_is_named() {
    let (receipt, _) = stop_it(OnStop::Detach, CAP, |_| pending()).await;
    assert!(receipt.quiet_at.is_none());
    assert!(receipt.survivors.iter().any(|name| name == "tool work"), "{:?}", receipt.survivors);
    assert!(receipt.to_string().contains("warning: still running: "));
}

/// S4.8, S3.6: a blocking tool that polls ends; one that never looks is left running.
#[tokio::test]
async fn a_blocking_tool_that_polls_is_stopped() {
    let polls = tool::from_blocking_fn("work", "polls", |cx, (): ()| {
        while !cx.is_stopping() {
            std::thread::yield_now();
        }
        Err::<String, _>(Failure::new("gave up").into())
    });
    let polls = polls.with(|spec| spec.on_stop(OnStop::Cooperate(None)));
    let handle = agent([ask(&["work"])]).tool(polls).build().run("go").detach();
    call_started(&handle).await;
    handle.stop(StopRequest::now());
    assert_eq!(handle.done().await.receipt().calls[0].status, CallStatus::Stopped);
    assert!(handle.quiet().await.receipt().quiet_at.is_some());
    let blocking = tool::from_blocking_fn("work", "never looks", |_cx, (): ()| Ok("x"));
    assert_eq!(tool::OnStop::Detach, safepoint::Tool::spec(&blocking).on_stop);
}

/// A clean-up that notes its turn; the second panics, the third hangs.
async fn step(n: u8, order: Arc<Mutex<Vec<u8>>>) {
    order.lock().unwrap().push(n);
    match n {
        2 => std::panic::panic_any("ouch"),
        3 => pending().await,
        _ => {}
    }
}

/// S4.12: clean-ups run last in, first out; one that panics or hangs does not skip the others.
/// temporalio/sdk-python#1224: a clean-up is skipped, one time in ten.
#[tokio::test(start_paused = true)]
async fn cleanups_run_backwards_and_all_of_them() {
    let order: Arc<Mutex<Vec<u8>>> = Arc::default();
    let noted = order.clone();
    let (receipt, _) = stop_it(OnStop::Drop, CAP, move |cx| {
        let order = noted.clone();
        async move {
            for n in [1u8, 2, 3, 4] {
                cx.on_cleanup(format!("step {n}"), step(n, order.clone()));
            }
            pending().await
        }
    })
    .await;
    assert_eq!(*order.lock().unwrap(), [4, 3, 2, 1]);
    let ends: Vec<_> = receipt.calls[0].cleanups.iter().map(|cleanup| cleanup.end).collect();
    assert_eq!(ends, [CleanupEnd::Ran, CleanupEnd::TimedOut, CleanupEnd::Failed, CleanupEnd::Ran]);
}

/// S1.1, S4.12: a cap of zero allows no clean-up at all.
#[tokio::test(start_paused = true)]
async fn a_cap_of_zero_allows_no_cleanup() {
    let (receipt, took) = stop_it(OnStop::Cooperate(None), Duration::ZERO, |cx| async move {
        cx.on_cleanup("never", async { std::panic::panic_any("it ran") });
        pending().await
    })
    .await;
    assert_eq!((took, receipt.calls[0].cleanups[0].end), (Duration::ZERO, CleanupEnd::TimedOut));
}

/// S4.5, S4.6: the output of a timed-out call is kept and shown; the call is never called stopped, and the
/// run continues.
#[tokio::test(start_paused = true)]
async fn a_timeout_keeps_what_was_emitted() {
    let slow = does("work", |cx| async move {
        cx.progress("1 of 2\n");
        pending().await
    })
    .with(|spec| spec.timeout(Duration::from_secs(3)));
    let agent = agent([ask(&["work"]), say("ok")]).tool(slow).build();
    let outcome = agent.run("go").await;
    assert_eq!(outcome.answer(), Some("ok"));
    let call = &outcome.receipt().calls[0];
    assert_eq!(
        (call.status, call.effect, &call.stopped_by),
        (CallStatus::TimedOut, SideEffect::Unknown, &None)
    );
    let text = format!("{:?}", outcome.history());
    assert!(text.contains("1 of 2") && text.contains("timed out"), "{text}");
}

/// S4.2: read-only calls overlap, others run alone and in order.
#[tokio::test(start_paused = true)]
async fn only_read_only_calls_overlap() {
    let work = |name: &str, effect| {
        does(name, |_| async {
            sleep(Duration::from_secs(1)).await;
            Ok("x".into())
        })
        .with(|spec| spec.effect(effect))
    };
    for (names, seconds) in [
        (vec!["look"; 5], 1),
        (vec!["pay"; 3], 3),
        (vec!["look", "look", "pay", "look", "look"], 3),
        (vec!["look"; 17], 3),
    ] {
        let agent = agent([ask(&names), say("ok")])
            .tool(work("look", EffectClass::ReadOnly))
            .tool(work("pay", EffectClass::Unsafe))
            .build();
        let began = Instant::now();
        assert_eq!(agent.run("go").await.ending(), Ending::Done);
        assert_eq!(began.elapsed(), Duration::from_secs(seconds), "{names:?}");
    }
}

/// S2.13: a tool whose failure is the run's fails it, and the finished sibling is kept.
#[tokio::test(start_paused = true)]
async fn a_fatal_tool_fails_the_run() {
    let fatal = does("fatal", |_| async { Err(Failure::new("no disk").into()) })
        .with(|spec| spec.on_failure(OnToolFailure::EndRun));
    let fine = does("fine", |_| async { Ok("kept".into()) });
    let agent = agent([ask(&["fine", "fatal", "fine"])]).tool(fatal).tool(fine).build();
    let outcome = agent.run("go").await;
    assert_eq!(outcome.ending(), Ending::Failed);
    let statuses: Vec<_> = outcome.receipt().calls.iter().map(|call| call.status).collect();
    assert_eq!(statuses, [CallStatus::Completed, CallStatus::Failed, CallStatus::NotStarted]);
}

/// S2.13: the hint of a failure goes to the model, and if it is the run's failure, to people.
#[tokio::test(start_paused = true)]
async fn a_failure_carries_its_hint() {
    let failing = |on_failure| {
        let work = does("work", |_| async { Err(Failure::new("no key").with_hint("set PAY_KEY").into()) });
        agent([ask(&["work"]), say("ok")]).tool(work.with(|spec| spec.on_failure(on_failure))).build()
    };
    let text = failing(OnToolFailure::TellModel).run("go").await;
    assert!(format!("{:?}", text.history()).contains("no key\\nhint: set PAY_KEY"));
    let safepoint::Outcome::Failed(error) = failing(OnToolFailure::EndRun).run("go").await else { panic!() };
    assert_eq!(error.hint(), Some("set PAY_KEY"));
}

/// S8.10, S4.7: the text of a failure that is too long for the model is without its secrets where it is shown, also at the
/// place where it is cut, and in the file that has all of it.
#[tokio::test]
async fn a_failure_that_is_spilled_has_no_secret() {
    // Letters that are in no name of a file or a call: those are hexadecimal.
    const KEY: &str = "key-ghijklmnopqrstuv";
    let shown = |text: &str| (4..=KEY.len()).find(|&to| text.contains(&KEY[to - 4..to]));
    for before in 0..KEY.len() {
        let long = format!("{}{}", "x".repeat(before), KEY.repeat(500));
        let work = does("work", move |_| {
            let long = long.clone();
            async move { Err(Failure::new(long).into()) }
        });
        let limits = Limits::default().with_call_output_bytes(1_000);
        let secrets = Secrets::of([("KEY".to_owned(), KEY.to_owned())]);
        let agent = agent([ask(&["work"]), say("ok")]).tool(work).limits(limits).secrets(secrets).build();
        let said = format!("{:?}", agent.run("go").await.history());
        let (_, file) = said.split_once("the whole output is in ").unwrap();
        let file = file.split(' ').next().unwrap();
        let whole = std::fs::read_to_string(file).unwrap();
        std::fs::remove_file(file).unwrap();
        assert!(whole.contains("[secret KEY]") && shown(&whole).is_none(), "{whole}");
        assert!(said.contains("[secret KEY]") && shown(&said).is_none(), "{said}");
    }
}

/// S4.6: a tool whose own limit passed is timed out, not failed; what it keeps stands in place of its progress.
#[tokio::test(start_paused = true)]
async fn a_limit_of_the_tools_own_is_a_timeout() {
    let work = does("work", |cx| async move {
        cx.progress("much at first");
        cx.set_partial_output("the last words");
        Err(Failure::new("3 s have passed").by_time_limit().into())
    });
    let outcome = agent([ask(&["work"]), say("ok")]).tool(work).build().run("go").await;
    let call = &outcome.receipt().calls[0];
    assert_eq!(
        (outcome.answer(), call.status, call.effect),
        (Some("ok"), CallStatus::TimedOut, SideEffect::Unknown)
    );
    let text = format!("{:?}", outcome.history());
    assert!(
        text.contains("the last words\\n3 s have passed\\n[timed out") && !text.contains("much"),
        "{text}"
    );
}

/// S2.10, S2.11: one call can be stopped until it is over; afterwards, and after its run, it is too late, and a name
/// that never was a call is none.
#[tokio::test(start_paused = true)]
async fn a_call_that_is_over_is_too_late_to_be_stopped() {
    let kept: Arc<Mutex<Option<safepoint::stop::Scope>>> = Arc::default();
    let keeps = Arc::clone(&kept);
    let work = does("work", move |cx| {
        *keeps.lock().unwrap() = Some(cx.scope().clone());
        async { Ok("done".into()) }
    });
    let handle = agent([ask(&["work"])]).tool(work).build().run("go").detach();
    // The model streams again: the call is over, the run is not.
    crate::world::until(&handle, |kind| matches!(kind, EventKind::Text(_))).await;
    let call = "c0".into();
    assert_eq!(handle.stop_call(&call, StopRequest::now()), Some(StopAck::TooLate));
    assert_eq!(handle.stop_call(&"none".into(), StopRequest::now()), None);
    handle.stop(StopRequest::now());
    assert_eq!(handle.done().await.receipt().calls[0].status, CallStatus::Completed);
    assert_eq!(handle.stop_call(&call, StopRequest::now()), Some(StopAck::TooLate));
    let (_, part) = kept.lock().unwrap().take().unwrap().child();
    assert_eq!(part.stop(StopRequest::now()), StopAck::TooLate, "a part of the call neither");
}

/// S3.8: a failure that says it did nothing has no effect.
#[tokio::test(start_paused = true)]
async fn a_failure_may_say_that_nothing_was_done() {
    let refuses = does("work", |_| async { Err(Failure::new("out of stock").without_effect().into()) });
    let outcome = agent([ask(&["work"]), say("ok")]).tool(refuses).build().run("go").await;
    assert_eq!(outcome.receipt().calls[0].effect, SideEffect::None);
}

/// S4.12: what is registered after a call's clean-ups have run is done at once and stands in its row, in a later call and
/// after the run; one that hangs is bounded there too.
#[tokio::test(start_paused = true)]
async fn a_clean_up_after_the_end_of_its_call_is_done_at_once() {
    let kept: Arc<Mutex<Option<ToolContext>>> = Arc::default();
    let (keeps, uses) = (Arc::clone(&kept), Arc::clone(&kept));
    let keep = does("keep", move |cx| {
        *keeps.lock().unwrap() = Some(cx);
        async { Ok(String::new()) }
    });
    let late = does("late", move |_| {
        let cx = uses.lock().unwrap().clone().unwrap();
        async move {
            let (ran, waits) = tokio::sync::oneshot::channel();
            cx.on_cleanup("late", async move { ran.send(()).unwrap() });
            waits.await.unwrap();
            cx.on_cleanup("hangs", pending());
            tokio::time::sleep(Duration::from_secs(60)).await;
            Ok(String::new())
        }
    });
    let outcome =
        agent([ask(&["keep"]), ask(&["late"]), say("ok")]).tool(keep).tool(late).build().run("go").await;
    assert_eq!(outcome.answer(), Some("ok"));
    let rows = &outcome.receipt().calls[0].cleanups;
    let rows: Vec<_> = rows.iter().map(|row| (row.label.as_str(), row.end)).collect();
    assert_eq!(rows, [("late", CleanupEnd::Ran), ("hangs", CleanupEnd::TimedOut)]);
    let (ran, waits) = tokio::sync::oneshot::channel();
    let cx = kept.lock().unwrap().clone().unwrap();
    cx.on_cleanup("afterwards", async move { ran.send(()).unwrap() });
    tokio::time::timeout(Duration::from_secs(60), waits).await.unwrap().unwrap();
}

/// S2.14, S1.9: a tool stops its run by asking, and a tool error that says "cancelled" stops nothing.
#[tokio::test(start_paused = true)]
async fn a_tool_stops_its_run_only_by_asking() {
    let asks = does("asks", |cx| async move {
        cx.stop_run(StopRequest::graceful_unbounded().with_reason(Reason::user("found it")));
        Ok("found".into())
    });
    let outcome = agent([ask(&["asks"]), say("never")]).tool(asks).build().run("go").await;
    assert_eq!(outcome.ending(), Ending::Stopped);
    assert_eq!(outcome.receipt().calls[0].status, CallStatus::Completed);
    let lies = does("lies", |_| async { Err(Failure::new("cancelled").into()) });
    let outcome = agent([ask(&["lies"]), say("ok")]).tool(lies).build().run("go").await;
    assert_eq!((outcome.ending(), outcome.receipt().calls[0].status), (Ending::Done, CallStatus::Failed));
}

/// S12.1: nothing but the limits named here is bounded by default.
#[tokio::test(start_paused = true)]
async fn token_and_cost_limits_are_checked_before_a_call() {
    let nothing = || does("nothing", |_| async { Ok(String::new()) });
    let limits = Limits::default().with_max_tokens(1);
    let outcome = agent([ask(&["nothing"]), say("x")]).limits(limits).tool(nothing()).build().run("go").await;
    assert_eq!(outcome.receipt().stop.as_ref().unwrap().reason.code, "max_tokens");
    let limits = Limits::default().with_max_cost(0.000_001);
    let price = safepoint::usage::Price::new(10.0, 1.0, 10.0);
    let priced =
        agent([ask(&["nothing"]), say("x")]).limits(limits.clone()).price(price).tool(nothing()).build();
    assert_eq!(priced.run("go").await.receipt().stop.as_ref().unwrap().reason.code, "max_cost");
    let unpriced = agent([ask(&["nothing"]), say("x")]).limits(limits).tool(nothing()).build();
    assert_eq!(unpriced.run("go").await.ending(), Ending::Done);
}
