//! A tree of runs: what holds of the root holds of each child run, and their accounts fit into each other.

use std::{collections::BTreeMap, sync::Arc};

use safepoint::{
    ids::Path,
    receipt::{CallKind, CallReport, CallStatus, ChildReport, Ending},
};

use super::{BrokenInvariant, Invariant, QuietReport, Receipt, RecordedAttempt, must};

/// One run of a tree: its account, and what it showed.
pub(super) struct Member {
    pub(super) receipt: Arc<Receipt>,
    pub(super) recording: RecordedAttempt,
}

/// Every run below `root` that has an account in it, at any depth.
pub(super) fn members(root: &Receipt, recording: &RecordedAttempt) -> Vec<Member> {
    let mut shown = recording.runs();
    let mut found = Vec::new();
    gather(root, &mut shown, &mut found);
    found
}

fn gather(receipt: &Receipt, shown: &mut BTreeMap<Path, RecordedAttempt>, found: &mut Vec<Member>) {
    for child in children(receipt) {
        let Some(receipt) = &child.receipt else { continue };
        let recording = shown.remove(&child.path).unwrap_or_default();
        gather(receipt, shown, found);
        found.push(Member { receipt: Arc::clone(receipt), recording });
    }
}

fn children(receipt: &Receipt) -> impl Iterator<Item = &ChildReport> {
    receipt.calls.iter().filter_map(|call| call.child.as_ref()).chain(&receipt.waiting)
}

/// I1, I2: each attached child run that began settled once an attempt, and showed nothing after it; the last
/// account is the one that its parent tells.
pub(super) fn settled_inside(root: &Receipt, recording: &RecordedAttempt) -> Result<(), BrokenInvariant> {
    for member in members(root, recording) {
        let Member { receipt, recording } = member;
        let (opened, settled) = (recording.attempts(), recording.settled());
        if opened == 0 {
            // It settled in an earlier attempt of the root, whose stream is another one.
            continue;
        }
        let path = &receipt.path;
        must(Invariant::I1, settled.len() == opened, || {
            format!("{path}: {opened} attempts and {} events that are `settled`", settled.len())
        })?;
        let last = recording.events.last().map(|event| event.seq);
        must(Invariant::I2, last == settled.last().map(|settled| settled.seq), || {
            format!("{path} showed event {last:?} after it had settled")
        })?;
        let shown = settled.last().map(|settled| &settled.receipt);
        let same = shown.is_some_and(|shown| is_same(shown, &receipt));
        must(Invariant::I1, same, || format!("{path}: shown was {shown:?}, its parent tells {receipt:?}"))?;
    }
    Ok(())
}

/// Whether both tell of the same settling. What comes to be known only later, as that it is quiet, may
/// differ.
fn is_same(one: &Receipt, other: &Receipt) -> bool {
    let settling = |of: &Receipt| (of.run.clone(), of.attempt, of.ending, of.settled_at, of.stop.clone());
    settling(one) == settling(other)
        && one.approvals_cancelled == other.approvals_cancelled
        && one.calls.len() == other.calls.len()
        && one.calls.iter().zip(&other.calls).all(|(one, other)| {
            (&one.call_id, one.status, one.effect) == (&other.call_id, other.status, other.effect)
        })
}

/// I6: a call reports the outcome of its run.
pub(super) fn a_call_is_what_its_run_is(root: &Receipt) -> Result<(), BrokenInvariant> {
    for call in &root.calls {
        let Some(ChildReport { receipt: Some(receipt), work: CallKind::Child, .. }) = &call.child else {
            continue;
        };
        must(Invariant::I6, fits(call, receipt.ending), || {
            format!("{} is {:?}, its run is {:?}", call.call_id, call.status, receipt.ending)
        })?;
        a_call_is_what_its_run_is(receipt)?;
    }
    Ok(())
}

fn fits(call: &CallReport, ending: Ending) -> bool {
    match ending {
        Ending::Done => call.status == CallStatus::Completed,
        Ending::Failed => call.status == CallStatus::Failed,
        // A run that was suspended when the stop came ended no other way.
        Ending::Stopped | Ending::Suspended => {
            matches!(call.status, CallStatus::Stopped | CallStatus::TimedOut)
        }
    }
}

/// I5: what is quiet is quiet all the way down.
pub(super) fn quiet_inside(quiet: &QuietReport, recording: &RecordedAttempt) -> Result<(), BrokenInvariant> {
    let QuietReport::Quiet(receipt) = quiet else { return Ok(()) };
    for member in members(receipt, recording) {
        if member.recording.attempts() > 0 {
            must(Invariant::I5, member.receipt.quiet_at.is_some(), || {
                format!("the root is quiet, {} is not: {:?}", member.receipt.path, member.receipt.survivors)
            })?;
        }
    }
    Ok(())
}
