//! A free command that takes its own holder away. One that is confined cannot.

use safepoint::receipt::{CallStatus, SideEffect};
use serde_json::json;

use super::support::{Bench, reported};

/// S3.8, S4.9: a command that takes its own holder away ends without a witness: it is no success, and what it did is not
/// known; what it had said is kept.
#[tokio::test]
async fn a_command_whose_end_nobody_saw_is_of_unknown_effect() {
    let bench = Bench::new();
    let line = "echo before; until [ -e go ]; do sleep 0.01; done; kill -9 $PPID; sleep 1000";
    let mut running = bench.start("shell", json!({ "command": line }));
    // One that is killed while it starts is another matter.
    running.until_progress("before").await;
    bench.put("go", "");
    let reported = reported(&running.end().await);
    let call = &reported.report;
    assert_eq!((call.status, call.effect), (CallStatus::Failed, SideEffect::Unknown), "{call:?}");
    assert!(call.processes[0].ended.ends_with("killed because its keeper died"), "{call:?}");
    assert!(
        reported.text.contains("before") && reported.text.contains("it is unknown how far it came"),
        "{}",
        reported.text
    );
}
