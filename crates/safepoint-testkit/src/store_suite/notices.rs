//! Facts about notices: who writes from outside is noticed by looking at a few numbers (S1.5, S7.5).

use safepoint::raw::store::{
    ApprovalsToWithdraw, Changes, DecisionResult, NewDecision, Pushed, StopIntent, Withdrawn,
};

use super::{
    Bed, BrokenStore, Fresh, TTL, a_record, approvals::asked, item, must, not_there, owner, same, wish,
};

/// A change by another process changes the stamp, and the notice says of what kind it was.
///
/// # Errors
/// The first fact that does not hold.
///
/// # Cancel safety
/// Nothing is lost but the check.
pub async fn notices(fresh: Fresh<'_>) -> Result<(), BrokenStore> {
    what_others_do_is_noticed(&Bed::make(fresh)).await
}

async fn what_others_do_is_noticed(bed: &Bed) -> Result<(), BrokenStore> {
    let (session, lease) = asked(bed, &["q", "r"]).await?;
    let mut quiet = Changes::default();
    quiet.epoch = lease.epoch();
    same("no other client has written", bed.store.notice(&session).await?, quiet)?;
    let mut stamp = bed.store.stamp().await?;
    same("and nothing has changed", bed.store.stamp().await?, stamp)?;
    let decision =
        NewDecision { id: "q".into(), digest: "digest of q".into(), principal: "ann".into(), bytes: vec![] };
    let run = StopIntent { approvals: ApprovalsToWithdraw::Withdrawn, ..wish("the run") };
    for step in 0..5 {
        let store = &bed.other;
        let is_done = match step {
            0 => store.push(&session, item("1", "hello")).await? == Pushed::Accepted(1),
            1 => matches!(store.withdraw(&session, 1).await?, Withdrawn::Item(_)),
            2 => store.decide(&session, decision.clone()).await? == DecisionResult::Taken,
            3 => store.ask_stop(&session, wish("the loop")).await? == 1,
            _ => store.ask_stop(&session, run.clone()).await? == 2,
        };
        must("another process writes", is_done)?;
        let newer = bed.store.stamp().await?;
        must("a change by another process changes the stamp", newer != stamp)?;
        stamp = newer;
    }
    let mut wanted = quiet;
    (wanted.items, wanted.decisions, wanted.stops) = (2, 2, 2);
    same("what others did", bed.store.notice(&session).await?, wanted)?;
    bed.append(&lease, a_record("mine")).await?;
    same("what the holder does is no news to it", bed.store.notice(&session).await?, wanted)?;
    bed.lives.say(1, safepoint::raw::store::Liveness::Dead);
    let taken = bed.other.acquire(&session, owner(2), TTL).await?;
    must("the stamp changes with the holder", bed.store.stamp().await? != stamp)?;
    let epoch = bed.store.notice(&session).await?.epoch;
    same("who was displaced sees another epoch", epoch, taken.epoch())?;
    not_there(bed.store.notice(&"none".into()).await)
}
