//! Facts that are one append, because nothing has an effect between them: what they announce begins, or is reported as never
//! begun, and what is asked meanwhile is noticed as if they were apart.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use safepoint::{
    Outcome, RunHandle, StopRequest,
    approval::{Rule, RuleAction},
    receipt::Ending,
};
use tokio::{sync::OnceCell, time::timeout};

use crate::world::{agent, ask, does, say};

/// Longer than any wait of these runs; the clock is a controlled one.
const NEVER: Duration = Duration::from_secs(3600);

async fn settled(handle: &RunHandle) -> Outcome {
    timeout(NEVER, handle.done()).await.expect("the run never settled")
}

/// S12.5: a stop that comes while the calls of a message are judged is noticed before the next call is.
#[tokio::test(start_paused = true)]
async fn a_stop_is_noticed_between_two_calls_that_are_judged() {
    let (judged, stops) = (Arc::new(AtomicUsize::new(0)), Arc::new(OnceCell::<RunHandle>::new()));
    let rule = {
        let (judged, stops) = (Arc::clone(&judged), Arc::clone(&stops));
        Rule::on("work", RuleAction::Allow).when(move |_| {
            judged.fetch_add(1, Ordering::SeqCst);
            stops.get().unwrap().stop(StopRequest::now());
            true
        })
    };
    let work = does("work", |_| async { Ok("done".into()) });
    let handle = agent([ask(&["work"; 8]), say("end")]).tool(work).rule(rule).build().run("go").detach();
    stops.set(handle.clone()).unwrap();
    assert_eq!(settled(&handle).await.ending(), Ending::Stopped);
    assert_eq!(judged.load(Ordering::SeqCst), 1);
}
