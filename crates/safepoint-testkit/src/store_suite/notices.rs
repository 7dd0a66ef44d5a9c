//! Facts about notices: the node that holds a session learns what others do to it (S1.5, S7.5, S7.44).

use std::time::Duration;

use futures_util::StreamExt as _;
use safepoint::{
    ids::SessionId,
    raw::store::{
        ApprovalsToWithdraw, Change, ChangeStream, Changes, DecisionResult, Leaving, NewDecision, Pushed,
        StopIntent, Withdrawn,
    },
    store::{Error, NewNode},
};
use tokio::time::timeout;

use super::{
    Bed, BrokenStore, Fresh, TTL, a_record, approvals::asked, item, must, not_there, owner, same, wish,
};

/// The node that holds a session learns what others write, and the counters say of what kind it was.
///
/// # Errors
/// The first fact that does not hold.
///
/// # Cancel safety
/// Nothing is lost but the check.
pub async fn notices(fresh: Fresh<'_>) -> Result<(), BrokenStore> {
    what_others_do_is_noticed(&Bed::make(fresh)).await?;
    a_node_learns_of_the_sessions_that_it_holds(&Bed::make(fresh)).await?;
    a_node_learns_that_it_was_buried(&Bed::make(fresh)).await
}

/// The next change, within a bound.
async fn next(changes: &mut ChangeStream) -> Result<Result<Change, Error>, BrokenStore> {
    const BOUND: Duration = Duration::from_secs(20);
    let next = timeout(BOUND, changes.next()).await;
    let next = next.map_err(|_elapsed| BrokenStore::new("a change was not seen in time"))?;
    next.ok_or_else(|| BrokenStore::new("the changes ended before their end"))
}

/// Waits until the node learns of this session that the counters are at least these.
async fn learns_of(
    changes: &mut ChangeStream,
    session: &SessionId,
    least: Changes,
) -> Result<(), BrokenStore> {
    learns_past(changes, None, (session, least)).await
}

/// The same past a session of which it has learned before: a store that reaches its server anew assumes nothing, and says that again, and
/// nothing else of it.
async fn learns_past(
    changes: &mut ChangeStream,
    before: Option<(&SessionId, Changes)>,
    (session, least): (&SessionId, Changes),
) -> Result<(), BrokenStore> {
    loop {
        let change = next(changes).await??;
        if let Some((before, known)) = before.filter(|(before, _)| change.session == **before) {
            same(&format!("what is said again of {before}"), change.changes, known)?;
            continue;
        }
        same("the session that changed", &change.session, session)?;
        if !least.is_beyond(change.changes) {
            return Ok(());
        }
    }
}

async fn what_others_do_is_noticed(bed: &Bed) -> Result<(), BrokenStore> {
    let (session, lease) = asked(bed, &["q", "r"]).await?;
    let mut quiet = Changes::default();
    quiet.epoch = lease.epoch();
    same("no other client has written", bed.store.notice(&session).await?, quiet)?;
    let mut changes = bed.store.changes(lease.node());
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
        learns_of(&mut changes, &session, bed.other.notice(&session).await?).await?;
    }
    let mut wanted = quiet;
    (wanted.items, wanted.decisions, wanted.stops) = (2, 2, 2);
    same("what others did", bed.store.notice(&session).await?, wanted)?;
    bed.append(&lease, a_record("mine")).await?;
    same("what the holder does is no news to it", bed.store.notice(&session).await?, wanted)?;
    bed.lives.say(1, safepoint::raw::store::Liveness::Dead);
    let taken = bed.take(&session, 2).await?;
    let epoch = bed.store.notice(&session).await?.epoch;
    same("who was displaced sees another epoch", epoch, taken.epoch())?;
    not_there(bed.store.notice(&"none".into()).await)
}

async fn a_node_learns_of_the_sessions_that_it_holds(bed: &Bed) -> Result<(), BrokenStore> {
    let [a, b, c] = [bed.session("a").await?, bed.session("b").await?, bed.session("c").await?];
    let node = bed.store.join(NewNode::of(owner(1), TTL)).await?;
    let other = bed.other.join(NewNode::of(owner(2), TTL)).await?;
    let mut changes = bed.store.changes(&node);
    bed.store.acquire(&a, &node).await?;
    bed.store.acquire(&b, &node).await?;
    bed.other.acquire(&c, &other).await?;
    // In this order, so that a wrong one comes first.
    bed.other.push(&c, item("1", "of another node")).await?;
    bed.store.push(&a, item("1", "by its own process")).await?;
    let of_a = bed.store.notice(&a).await?;
    learns_of(&mut changes, &a, of_a).await?;
    bed.other.ask_stop(&b, wish("stop")).await?;
    learns_past(&mut changes, Some((&a, of_a)), (&b, bed.store.notice(&b).await?)).await
}

async fn a_node_learns_that_it_was_buried(bed: &Bed) -> Result<(), BrokenStore> {
    let (session, lease) = bed.held("a").await?;
    let mut changes = bed.store.changes(lease.node());
    bed.other.push(&session, item("1", "hello")).await?;
    learns_of(&mut changes, &session, bed.store.notice(&session).await?).await?;
    bed.other.leave(lease.node().id(), Leaving::Draining).await?;
    bed.other.ask_stop(&session, wish("a node that drains still listens")).await?;
    learns_of(&mut changes, &session, bed.store.notice(&session).await?).await?;
    bed.lives.say(1, safepoint::raw::store::Liveness::Dead);
    same("who was buried", bed.other.bury().await?, vec![lease.node().id().clone()])?;
    let buried = next(&mut changes).await?;
    must("the node learns it", matches!(buried, Err(Error::Buried(id)) if id == *lease.node().id()))
}
