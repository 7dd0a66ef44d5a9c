//! Sleep: waits its time, and not a moment longer than a stop lets it.

use safepoint::{StopRequest, receipt::CallStatus};
use serde_json::json;

use super::support::Bench;

#[tokio::test(start_paused = true)]
async fn it_sleeps_as_long_as_it_is_told() {
    let began = tokio::time::Instant::now();
    let text = Bench::new().call("sleep", json!({"seconds": 2.5})).await.good();
    assert_eq!(text, "slept for 2.5s");
    assert_eq!(began.elapsed().as_millis(), 2500);
}

#[tokio::test(start_paused = true)]
async fn a_time_that_makes_no_sense_is_refused() {
    for seconds in [-1.0, 1e9, 1e300] {
        let text = Bench::new().call("sleep", json!({"seconds": seconds})).await.refused();
        assert!(text.contains("`seconds` must be from 0 to 86400"), "{text}");
    }
}

/// S2.8, S4.3: every wait ends at once.
#[tokio::test]
async fn a_stop_ends_it_at_once() {
    let running = Bench::new().start("sleep", json!({"seconds": 1000}));
    let mut events = running.handle.events();
    while let Some(event) = events.next().await {
        if format!("{:?}", event.kind).contains("CallStarted") {
            break;
        }
    }
    let (reported, _) = running.stop(StopRequest::now()).await;
    assert_eq!(reported.report.status, CallStatus::Stopped);
}
