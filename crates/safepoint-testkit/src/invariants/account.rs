//! The run's own account against itself and against the ledger: I1, I4, I6.

use std::collections::HashSet;

use safepoint::tool::EffectClass;

use super::{
    BrokenInvariant, CallStatus, Ending, Fact, Invariant, Ledger, Outcome, Receipt, RecordedAttempt, Settled,
    SideEffect, children, must,
};

/// I1: exactly one `settled`, the last event, equal to the returned outcome; the stream has no gap.
pub(super) fn one_settled(
    recording: &RecordedAttempt,
    outcome: &Outcome,
) -> Result<Settled, BrokenInvariant> {
    let gap = recording.gap();
    must(Invariant::I1, gap.is_none(), || format!("event {gap:?} is missing"))?;
    let [settled] = <[Settled; 1]>::try_from(recording.settled()).map_err(|all| {
        let what = format!("{} events are `settled`", all.len());
        BrokenInvariant { invariant: Invariant::I1, what }
    })?;
    let last = recording.events.last().map(|event| event.seq);
    must(Invariant::I1, last == Some(settled.seq), || {
        format!("`settled` is {}, the last is {last:?}", settled.seq)
    })?;
    must(Invariant::I1, settled.receipt == *outcome.receipt(), || {
        format!("shown was {:?}, returned was {:?}", settled.receipt, outcome.receipt())
    })?;
    let code = match outcome {
        Outcome::Failed(error) => Some(error.code()),
        Outcome::Done(_) | Outcome::Stopped(_) | Outcome::Suspended(_) => None,
    };
    let shown = settled.error.as_ref().map(|error| error.code.as_str());
    must(Invariant::I1, code == shown, || format!("failed with {code:?}, shown was {shown:?}"))?;
    Ok(settled)
}

/// I4: what began is reported as begun, what is reported as completed was committed, and no change is called
/// none; of the run and of every child run.
pub(super) fn ledger_agrees(
    ledger: &Ledger,
    receipt: &Receipt,
    recording: &RecordedAttempt,
) -> Result<(), BrokenInvariant> {
    let children = children::members(receipt, recording);
    if receipt.attempt == 1 {
        let inside = children.iter().map(|member| (&*member.receipt, &member.recording));
        let runs: Vec<_> = std::iter::once((receipt, recording)).chain(inside).collect();
        let shown = recording.runs();
        for line in ledger.lines() {
            let announced = |recording: &RecordedAttempt| recording.started().any(|call| *call == line.call);
            must(Invariant::I4, announced(recording) || shown.values().any(announced), || {
                format!("{} wrote {:?} and was never announced", line.call, line.mark)
            })?;
            let is_reported =
                runs.iter().any(|(run, _)| run.calls.iter().any(|call| call.call_id == line.call));
            // A run in the background that has not settled has no account yet.
            let unsettled = shown
                .iter()
                .any(|(path, shown)| announced(shown) && !runs.iter().any(|(run, _)| run.path == *path));
            must(Invariant::I4, is_reported || unsettled, || {
                format!("{} wrote {:?} and is not in the receipt", line.call, line.mark)
            })?;
        }
    }
    rows_agree(ledger, receipt, recording)?;
    children.iter().try_for_each(|member| rows_agree(ledger, &member.receipt, &member.recording))
}

fn rows_agree(
    ledger: &Ledger,
    receipt: &Receipt,
    recording: &RecordedAttempt,
) -> Result<(), BrokenInvariant> {
    let started: HashSet<_> = recording.started().collect();
    let harmless: HashSet<_> = recording
        .facts()
        .filter_map(|fact| match &**fact {
            Fact::CallStarted { call_id, effect: EffectClass::ReadOnly, .. } => Some(call_id),
            _ => None,
        })
        .collect();
    for call in &receipt.calls {
        let id = &call.call_id;
        let (entered, committed) = (ledger.has_entered(id), ledger.has_committed(id));
        let row = || format!("{id}: entered {entered}, committed {committed}, reported {call:?}");
        let never_began =
            matches!(call.status, CallStatus::NotStarted | CallStatus::Denied | CallStatus::Expired);
        must(Invariant::I4, !(entered && started.contains(id) && never_began), row)?;
        must(Invariant::I4, !entered || never_began || call.started_at.is_some(), row)?;
        let done = call.status == CallStatus::Completed || call.effect == SideEffect::Done;
        must(Invariant::I4, !(entered && done) || committed, row)?;
        let says_none = call.effect == SideEffect::None && !harmless.contains(id) && started.contains(id);
        must(Invariant::I4, !(committed && says_none), row)?;
    }
    Ok(())
}

/// I6: no stop stands as a success or a failure, and neither of them as a stop.
pub(super) fn a_stop_is_a_stop(
    outcome: &Outcome,
    settled: &Settled,
    receipt: &Receipt,
) -> Result<(), BrokenInvariant> {
    let fired = receipt.stop.as_ref().and_then(|stop| stop.fired.as_deref());
    let holds = match outcome.ending() {
        Ending::Stopped => fired.is_some() && outcome.answer().is_none() && settled.error.is_none(),
        Ending::Done => outcome.answer().is_some() && settled.error.is_none(),
        Ending::Failed => outcome.answer().is_none() && settled.error.is_some(),
        Ending::Suspended => outcome.answer().is_none() && settled.error.is_none() && fired.is_none(),
    };
    must(Invariant::I6, holds, || {
        format!("{:?}, fired {fired:?}, error {:?}", outcome.ending(), settled.error)
    })?;
    must(Invariant::I6, receipt.ending == outcome.ending(), || {
        format!("the outcome is {:?}, the receipt says {:?}", outcome.ending(), receipt.ending)
    })?;
    for call in &receipt.calls {
        let stopped = matches!(call.status, CallStatus::Stopped | CallStatus::Killed);
        must(Invariant::I6, !stopped || (call.reason.is_some() && call.stopped_by.is_some()), || {
            format!("{} is {:?}, and no stop is named", call.call_id, call.status)
        })?;
    }
    Ok(())
}
