//! The span of a stop, and the tree that it is in.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use safepoint::{
    Reason, SafePoints, StopRequest,
    ids::CallId,
    receipt::{Ending, QuietReport},
    secs,
    stop::Reach,
};
use serde_json::json;
use tokio::time::timeout;
use tracing_subscriber::layer::SubscriberExt as _;

use super::{
    Bursts, NEVER,
    collected::{Collected, Spans},
    world::{agent, ask, ask_with, call_started, does, say},
};

/// The one span of a stop.
fn stop_of(spans: &Spans) -> Collected {
    let stops = spans.of("safepoint.stop");
    assert_eq!(stops.len(), 1, "{stops:?}");
    stops.into_iter().next().expect("there is one")
}

/// S11.12, S11.13, S11.3: a stopped run, its child run, their model calls and a tool are one tree; the stop has one span in it, with its
/// events in order, and no span is an error.
#[tokio::test(start_paused = true)]
async fn a_stopped_tree_has_one_stop() {
    for (reach, named) in [(Reach::Root, "root"), (Reach::Tree, "tree")] {
        let (spans, _guard) = Spans::collect();
        stopped_tree(reach).await;
        let lead = "invoke_agent lead";
        assert_eq!(
            spans.paths(),
            [
                lead.to_owned(),
                format!("{lead}/chat scripted"),
                format!("{lead}/invoke_agent helper"),
                format!("{lead}/invoke_agent helper/chat scripted"),
                format!("{lead}/invoke_agent helper/execute_tool work"),
                format!("{lead}/safepoint.stop"),
            ]
        );
        for span in spans.all() {
            assert!(span.is_over, "{span:?}");
            assert_ne!(span.field("otel.status_code"), Some("ERROR"), "{span:?}");
            assert_eq!(span.field("error.type"), None, "{span:?}");
        }
        let stop = stop_of(&spans);
        assert_eq!(stop.events(), ["requested", "observed", "settled"]);
        for (field, value) in [
            ("safepoint.stop.mode", "now"),
            ("safepoint.stop.fired", "now"),
            ("safepoint.stop.reach", named),
            ("safepoint.stop.reason", "user"),
            ("safepoint.stop.escalated", "no"),
            ("safepoint.stop.quiet", "true"),
            ("safepoint.ending", "stopped"),
        ] {
            assert_eq!(stop.field(field), Some(value), "{field}");
        }
        assert!(stop.field("safepoint.stop.phase").is_some_and(|phase| !phase.is_empty()));
        assert_eq!(stop.field("safepoint.stop.survivors"), None);
        for span in spans.all() {
            let said = span.fields.values().find(|value| value.contains("enough") || value.contains("do it"));
            assert_eq!(said, None, "what was said is in no span");
        }
    }
}

/// A run is stopped whose child run runs a tool, and all of it is quiet.
async fn stopped_tree(reach: Reach) {
    let work = does("work", |_| std::future::pending());
    let child = agent([ask(&["work"])]).tool(work).build().as_subagent("helper", "for a test");
    let lead = agent([ask_with(&[("helper", json!({"task": "do it"}))])]).name("lead").child(child);
    let handle = lead.build().run("do it").detach();
    call_started(&handle).await;
    let below = loop {
        match handle.children().into_iter().next() {
            Some(below) => break below,
            None => tokio::task::yield_now().await,
        }
    };
    call_started(&below).await;
    handle.stop(StopRequest::now().with_reach(reach).with_reason(Reason::user("enough")));
    assert_eq!(handle.done().await.ending(), Ending::Stopped);
    assert!(matches!(handle.quiet().await, QuietReport::Quiet(_)));
    tokio::task::yield_now().await;
}

/// S11.12: each request is an event, and so is what made the stop `Now`: a later request, or the end of its grace.
#[tokio::test(start_paused = true)]
async fn a_stop_that_grows_says_why() {
    for (is_asked_again, why, events) in [
        (true, "by_request", &["requested", "requested", "escalated", "observed", "settled"][..]),
        (false, "by_deadline", &["requested", "escalated", "observed", "settled"][..]),
    ] {
        let (spans, _guard) = Spans::collect();
        let work = does("work", |_| std::future::pending());
        let handle = agent([ask(&["work"])]).tool(work).build().run("go").detach();
        call_started(&handle).await;
        handle.stop(StopRequest::at_within(SafePoints::ANY, secs(5)));
        if is_asked_again {
            tokio::time::sleep(Duration::from_secs(1)).await;
            handle.stop(StopRequest::now());
        }
        handle.quiet().await;
        let stop = stop_of(&spans);
        assert_eq!(stop.events(), events);
        assert_eq!(stop.field("safepoint.stop.escalated"), Some(why));
        assert_eq!(stop.field("safepoint.stop.fired"), Some("now"));
        assert_ne!(stop.field("safepoint.stop.mode"), Some("now"));
    }
}

/// S11.12: a stop of a child run alone is in the child run; the run above goes on without one.
#[tokio::test(start_paused = true)]
async fn a_child_that_is_stopped_alone_has_the_stop() {
    let (spans, _guard) = Spans::collect();
    let work = does("work", |_| std::future::pending());
    let child = agent([ask(&["work"])]).tool(work).build().as_subagent("helper", "for a test");
    let handle = agent([ask_with(&[("helper", json!({"task": "do it"}))]), say("done")])
        .child(child)
        .build()
        .run("go")
        .detach();
    call_started(&handle).await;
    handle.stop_call(&CallId::from("c0".to_owned()), StopRequest::now()).expect("there is the call");
    assert_eq!(handle.done().await.ending(), Ending::Done);
    handle.quiet().await;
    assert_eq!(stop_of(&spans).events(), ["requested", "observed", "settled"]);
    let path = spans.paths().into_iter().find(|path| path.ends_with("safepoint.stop"));
    assert_eq!(path.as_deref(), Some("invoke_agent/invoke_agent helper/safepoint.stop"));
}

/// S11.12: what is alive when the time for quiet is over is named in the span, which ends then.
#[tokio::test(start_paused = true)]
async fn what_outlives_a_stop_is_named() {
    let (spans, _guard) = Spans::collect();
    let printer = Arc::new(Mutex::new(None));
    let begins = Arc::clone(&printer);
    let work = does("work", move |cx| {
        *begins.lock().unwrap() = Some(cx.delay_quiet("the old printer"));
        std::future::pending()
    });
    let handle = agent([ask(&["work"])]).tool(work).build().run("go").detach();
    call_started(&handle).await;
    tokio::task::yield_now().await;
    handle.stop(StopRequest::now());
    assert!(matches!(handle.quiet().await, QuietReport::NotQuiet(_)));
    let stop = stop_of(&spans);
    assert_eq!(stop.field("safepoint.stop.quiet"), Some("false"));
    assert!(stop.field("safepoint.stop.survivors").is_some_and(|named| named.contains("the old printer")));
    assert!(printer.lock().unwrap().is_some());
}

/// S11.12, S2.16: what subscribes to spans may panic at a stop's span, and the stop is a stop all the same.
#[tokio::test(start_paused = true)]
async fn a_subscriber_that_panics_keeps_no_run_from_its_stop() {
    for at_end in [false, true] {
        let bursts = Bursts { span: "safepoint.stop", at_end, is_over: false.into() };
        let _default = tracing::subscriber::set_default(tracing_subscriber::registry().with(bursts));
        let work = does("work", |_| std::future::pending());
        let handle = agent([ask(&["work"])]).tool(work).build().run("go").detach();
        call_started(&handle).await;
        handle.stop(StopRequest::now());
        let done = timeout(NEVER, handle.done()).await.expect("the run never settled");
        assert_eq!(done.ending(), Ending::Stopped, "{at_end}: {done:?}");
        let quiet = timeout(NEVER, handle.quiet()).await.expect("no word on its quiet");
        assert!(matches!(quiet, QuietReport::Quiet(_)), "{at_end}: {quiet:?}");
    }
}
