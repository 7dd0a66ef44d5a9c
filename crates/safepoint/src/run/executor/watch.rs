//! The watch over a call whose body may block its thread: such a body hides neither a stop nor a time limit (S4.3, S4.6).
//!
//! **Invariants**: a watch ends a call only by the call's one claim, and only when the time of the body's contract is over.

use std::{pin::pin, sync::Arc, time::Duration};

use futures_util::future::{Either, select};
use safepoint_scope::{Actor, Code, Reason, Scope, StopRequest};
use tokio::time::{Instant, sleep_until};

use super::{AT_ONCE, BodyOutcome, Mail, RunningCall, Unwatched};
use crate::value::limits::after;

/// Signals the call's time limit, and ends the call as left running if its own task does not end it in time. A stop
/// is known `since` then, where it is known already.
///
/// # Cancel safety
/// Dropped, it watches no more. The end of the call is in its own task, which nothing drops.
pub(crate) async fn watch<M: Mail>(call: Arc<RunningCall<M>>, since: Option<Instant>) {
    let _unwatched = Unwatched(&call);
    match call.limit() {
        None => drop(call.scope.stopped().await),
        Some(limit) => match call.board.waits.within(limit, call.scope.stopped()).await {
            Some(stop) => drop(stop),
            None => {
                // Noted first: the body's task looks for it when the stop wakes it.
                call.board.pass_time(limit);
                let reason =
                    Reason::new(Code::TIMEOUT).with_actor(Actor::Engine).with_text("its time limit passed");
                call.stop.stop(StopRequest::now().with_reason(reason));
            }
        },
    }
    let began = since.unwrap_or_else(Instant::now);
    let over = match call.time_to_end() {
        Some(time) => over(&call.scope, began, time).await,
        None => began,
    };
    sleep_until(after(over, AT_ONCE)).await;
    if let Some(claim) = call.claim() {
        let ending = call.ending(BodyOutcome::LeftRunning, call.board.time_passed());
        // By itself, since this task is dropped with the call's end.
        drop(call.run.spawn("the end of a call that was left running", claim.end(Box::new(ending))));
    }
}

/// Waits until `time` after `began` is over, and says when that was. A stronger demand may make it earlier.
pub(super) async fn over(scope: &Scope, began: Instant, time: Duration) -> Instant {
    let mut seen = scope.demand();
    loop {
        let over = after(began, time.min(seen.map_or(time, |demand| demand.cleanup_cap)));
        let passed = pin!(sleep_until(over));
        let changed = pin!(scope.changed(seen));
        // Both are made anew in each round: `changed` gets the demand seen last, so no change between two rounds is missed.
        match select(passed, changed).await {
            Either::Left(_) => return over,
            Either::Right((demand, _)) => seen = Some(demand),
        }
    }
}
