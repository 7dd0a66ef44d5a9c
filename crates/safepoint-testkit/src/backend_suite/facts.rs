//! One run, one stop, at each moment of its life.

use safepoint::{Outcome, RunHandle, StopRequest, receipt::StopSupport, stop::StopAck};
use tokio::time::sleep;

use crate::invariants::Invariants;

use super::{BrokenBackend, Fresh, Holds, LAG, SHOWN_LATE, must, stop_now};

/// Work that ends by itself is done. Its handle reports finished work: all readers see the same, and a stop
/// comes too late.
///
/// # Errors
/// How that does not hold.
///
/// # Cancel safety
/// Work of the subject may continue.
pub async fn ends_by_itself(fresh: Fresh<'_>) -> Holds {
    let subject = fresh();
    let handle = subject.running().await?;
    must("it is done while its work continues", !handle.is_done())?;
    subject.probe.finish();
    let outcome = handle.done().await;
    let Some(answer) = outcome.answer() else {
        return Err(BrokenBackend::new(format!(
            "work that ends by itself is not done: {:?}",
            outcome.ending()
        )));
    };
    must("its outcome is not the same for everybody", handle.done().await.answer() == Some(answer))?;
    already_over(&handle).await?;
    drop(subject.closed(&handle).await?);
    let stops = subject.probe.look().await.stops;
    must("work that had ended was asked to stop", stops == 0)
}

/// A handle for work that is already over, however it came to that: it says so, and a stop is too late and
/// changes nothing.
///
/// # Errors
/// How that does not hold.
///
/// # Cancel safety
/// Nothing is lost.
pub async fn already_over(handle: &RunHandle) -> Holds {
    must("it is done, and its handle says that it is not", handle.is_done())?;
    let before = handle.done().await.ending();
    must("a stop of work that is over is not too late", stop_now(handle)? == StopAck::TooLate)?;
    must("it reports a stop that was not requested", handle.stop_requested().is_none())?;
    must("a stop that came too late changed the outcome", handle.done().await.ending() == before)?;
    let closed =
        Invariants::of(handle).check().await.map_err(|broken| BrokenBackend::new(broken.to_string()))?;
    must("a stop that came too late is in the receipt", closed.receipt.stop.is_none())
}

/// A stop before anything has begun: nothing begins, or what begins is ended as any work is.
///
/// # Errors
/// How that does not hold.
///
/// # Cancel safety
/// Work of the subject may continue.
pub async fn before_the_start(fresh: Fresh<'_>) -> Holds {
    let subject = fresh();
    let handle = subject.start();
    must("the first stop is not the first", stop_now(&handle)? == StopAck::First)?;
    must("a stop was asked, and its handle does not say so", handle.stop_requested().is_some())?;
    let outcome = subject.settled(&handle).await?;
    let may_end_by_itself = subject.declared() == StopSupport::None;
    let is_stopped = matches!(outcome, Outcome::Stopped(_));
    must("it was stopped before its start, and is not stopped", is_stopped || may_end_by_itself)?;
    drop(subject.closed(&handle).await?);
    Ok(())
}

/// A stop while work runs: the request returns at once, the run settles within a bound, and a second request
/// adds nothing.
///
/// # Errors
/// How that does not hold.
///
/// # Cancel safety
/// Work of the subject may continue.
pub async fn stops_at_once(fresh: Fresh<'_>) -> Holds {
    let subject = fresh();
    let handle = subject.running().await?;
    must("it reports a stop that was not requested", handle.stop_requested().is_none())?;
    must("the first stop is not the first", stop_now(&handle)? == StopAck::First)?;
    must("a stop was asked, and its handle does not say so", handle.stop_requested().is_some())?;
    let again = stop_now(&handle)?;
    must("the same stop again adds something", matches!(again, StopAck::Unchanged | StopAck::TooLate))?;
    let outcome = subject.settled(&handle).await?;
    match (&outcome, subject.declared()) {
        (Outcome::Stopped(_), _) | (Outcome::Done(_), StopSupport::None) => {}
        (other, _) => return Err(BrokenBackend::new(format!("a stop is reported as {:?}", other.ending()))),
    }
    must("a stop after the end is not too late", stop_now(&handle)? == StopAck::TooLate)?;
    let shown = subject.probe.shown();
    drop(subject.closed(&handle).await?);
    sleep(LAG).await;
    must(SHOWN_LATE, subject.probe.shown() == shown)
}

/// The work gets one stop request, however often and however strongly callers ask.
///
/// # Errors
/// How that does not hold.
///
/// # Cancel safety
/// Work of the subject may continue.
pub async fn native_stop_once(fresh: Fresh<'_>) -> Holds {
    let subject = fresh();
    let handle = subject.running().await?;
    handle.stop(StopRequest::graceful_unbounded());
    handle.stop(StopRequest::now());
    handle.stop(StopRequest::now());
    drop(subject.settled(&handle).await?);
    handle.stop(StopRequest::now());
    drop(subject.closed(&handle).await?);
    let stops = subject.probe.look().await.stops;
    must("its work was asked to stop more than once", stops <= 1)?;
    let must_hear = subject.declared() == StopSupport::Hard;
    must("it stops hard, and its work neither saw the stop nor saw its caller go", stops == 1 || !must_hear)
}
