//! The truth of a declaration: what a stop really does to the work, by the account of the worker.

use safepoint::{
    Outcome, RunHandle, StopRequest,
    receipt::{CallStatus, StopSupport},
};
use tokio::time::timeout;

use super::{BrokenBackend, Fresh, GONE_WITHIN, Holds, LAG, Measured, SETTLES_WITHIN, Subject, must};

/// Measures what a stop does to the work, and holds it against what is declared.
///
/// # Errors
/// A declaration that is not true, or a word in the receipt that is not.
///
/// # Cancel safety
/// Work of the subject may continue.
pub async fn grade(fresh: Fresh<'_>) -> Holds<Measured> {
    let subject = fresh();
    let handle = subject.running().await?;
    handle.stop(StopRequest::now());
    let Ok(outcome) = timeout(SETTLES_WITHIN, handle.done()).await else {
        subject.probe.finish();
        let outcome = handle.done().await;
        let is_done = matches!(outcome, Outcome::Done(_));
        must("it continues under a stop, and its own end is not reported as its end", is_done)?;
        return judged(&subject, &handle, StopSupport::None).await;
    };
    let receipt = outcome.receipt();
    let says_stopped = |call: &safepoint::receipt::CallReport| {
        matches!(call.status, CallStatus::Stopped | CallStatus::Killed | CallStatus::NotStarted)
    };
    if receipt.calls.iter().any(says_stopped) {
        let gone = subject.until(LAG, |now| now.in_flight == 0).await;
        must("its receipt says that the work was stopped, and the work continues", gone)?;
    }
    let is_gone = subject.until(GONE_WITHIN, |now| now.in_flight == 0).await;
    let measured = match (is_gone, receipt.calls.first().and_then(|call| call.remote.as_ref())) {
        (true, _) => StopSupport::Hard,
        // The run went on without the peer, which does not support stops: that is the peer's grade.
        (false, Some(remote)) if refused(remote.stop) => StopSupport::None,
        (false, _) => StopSupport::CallerSide,
    };
    judged(&subject, &handle, measured).await
}

fn refused(stop: Option<safepoint::receipt::RemoteStopState>) -> bool {
    stop == Some(safepoint::receipt::RemoteStopState::Refused)
}

async fn judged(subject: &Subject, handle: &RunHandle, measured: StopSupport) -> Holds<Measured> {
    let spec = subject.backend.spec();
    if spec.grade != measured {
        let (declared, true_one) = (spec.grade.as_str(), measured.as_str());
        subject.probe.finish();
        return Err(BrokenBackend::new(format!("{} is declared {declared}, and is {true_one}", spec.name)));
    }
    let receipt = subject.closed(handle).await?;
    let call = receipt.calls.first();
    Ok(Measured {
        name: spec.name,
        grade: measured,
        row: call.map(|call| call.status),
        confirmed: call.and_then(|call| call.remote.as_ref()).and_then(|remote| remote.stop),
        is_quiet: receipt.quiet_at.is_some(),
    })
}
