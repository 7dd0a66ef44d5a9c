//! Facts about nodes: one lease for all that a process holds, and burial for good (S7.12, S7.13).

use std::time::Duration;

use safepoint::{
    ids::{NodeId, SessionId},
    raw::store::{Durability, Leaving, Liveness, NodeLease, NodeState, Tenure},
    store::{Error, NewNode},
};

use super::{Bed, BrokenStore, Fresh, TTL, a_record, must, not_there, owner, refused, same};

/// A process holds all its sessions by one lease; who was declared dead holds and records nothing again.
///
/// # Errors
/// The first fact that does not hold.
///
/// # Cancel safety
/// Nothing is lost but the check.
pub async fn nodes(fresh: Fresh<'_>) -> Result<(), BrokenStore> {
    a_node_is_stored_as_it_joined(&Bed::make(fresh)).await?;
    a_name_is_one_node_s(&Bed::make(fresh)).await?;
    one_beat_renews_all(&Bed::make(fresh)).await?;
    the_buried_are_so_for_good(&Bed::make(fresh)).await?;
    only_the_dead_are_buried(&Bed::make(fresh)).await?;
    who_drains_takes_nothing(&Bed::make(fresh)).await?;
    who_held_what_is_known(&Bed::make(fresh)).await
}

fn new(pid: u32, name: &str) -> NewNode {
    NewNode { name: name.into(), ..NewNode::of(owner(pid), TTL) }
}

fn is_buried(node: &NodeLease) -> impl Fn(&Error) -> bool {
    let id = node.id().clone();
    move |error| matches!(error, Error::Buried(buried) if *buried == id)
}

async fn state(bed: &Bed, id: &NodeId) -> Result<Option<NodeState>, BrokenStore> {
    Ok(bed.other.nodes().await?.into_iter().find(|row| row.node.id == *id).map(|row| row.state))
}

async fn a_node_is_stored_as_it_joined(bed: &Bed) -> Result<(), BrokenStore> {
    let joined = NewNode {
        pools: vec!["gpu".into(), "an \"odd\" one".into()],
        room: 7,
        address: Some("http://10.0.0.1:7717".into()),
        ..new(1, "worker-1")
    };
    let lease = bed.store.join(joined.clone()).await?;
    same("its id", lease.id(), &joined.id)?;
    same("how long its lease is valid", lease.ttl(), TTL)?;
    must("its time has begun", lease.left() <= TTL)?;
    bed.store.join(new(2, "worker-2")).await?;
    bed.time.pass(Duration::from_secs(1));
    bed.store.beat(&lease, 3).await?;
    let rows = bed.other.nodes().await?;
    same("the nodes, as they joined", rows.len(), 2)?;
    let now = bed.time.now();
    let row = &rows[0];
    same("what it joined with", &row.node, &joined)?;
    same("its state and load", (row.state, row.load, row.ended), (NodeState::Serving, 3, None))?;
    same("when its lease is over", Some(row.expires), now.saturating_add(TTL).ok())?;
    same("the same by the machine's clock", row.until, Some(bed.time.up() + TTL))?;
    must("when it joined", row.since < now)
}

async fn a_name_is_one_node_s(bed: &Bed) -> Result<(), BrokenStore> {
    let first = bed.store.join(new(1, "worker")).await?;
    let taken = |error: &Error| matches!(error, Error::NodeExists(name) if name == "worker");
    refused("a name that is taken", bed.other.join(new(2, "worker")).await, taken)?;
    bed.lives.say(1, Liveness::Dead);
    let second = bed.other.join(new(2, "worker")).await?;
    same("a dead namesake is buried", state(bed, first.id()).await?, Some(NodeState::Buried))?;
    bed.other.leave(second.id(), Leaving::Gone).await?;
    bed.other.join(new(3, "worker")).await?;
    let again = NewNode { id: second.id().clone(), ..new(2, "another") };
    refused("an id twice", bed.other.join(again).await, |error| matches!(error, Error::NodeExists(_)))
}

async fn one_beat_renews_all(bed: &Bed) -> Result<(), BrokenStore> {
    let node = bed.store.join(new(1, "one")).await?;
    let mut held = Vec::new();
    for id in ["a", "b", "c"] {
        held.push(bed.store.acquire(&bed.session(id).await?, &node).await?);
    }
    // Past the lease and the margin, if it were not renewed in between.
    for _ in 0..3 {
        bed.time.pass(TTL);
        same("it serves", bed.store.beat(&node, 3).await?, NodeState::Serving)?;
    }
    same("no node is dead", bed.other.bury().await?, vec![])?;
    for lease in &held {
        bed.append(lease, a_record("still mine")).await?;
        let row = bed.other.open(lease.session()).await?;
        let holder = row.holder.ok_or_else(|| BrokenStore::new("it has a holder"))?;
        same(
            "the holder",
            (&holder.node, holder.name.as_str(), &holder.owner),
            (node.id(), "one", &owner(1)),
        )?;
        same("until when", Some(holder.expires), bed.time.now().saturating_add(TTL).ok())?;
    }
    Ok(())
}

/// S7.13: before another takes the session, and after.
async fn the_buried_are_so_for_good(bed: &Bed) -> Result<(), BrokenStore> {
    let (session, lease) = bed.held("a").await?;
    let free = bed.session("b").await?;
    bed.lives.say(1, Liveness::Dead);
    same("who is buried", bed.other.bury().await?, vec![lease.node().id().clone()])?;
    bed.lives.say(1, Liveness::Alive);
    same("once", bed.other.bury().await?, vec![])?;
    same("its sessions have no holder", bed.other.open(&session).await?.holder, None)?;
    let before = bed.other.open(&session).await?;
    refused("a beat", bed.store.beat(lease.node(), 0).await, is_buried(lease.node()))?;
    refused("an append", bed.append(&lease, a_record("late")).await, is_buried(lease.node()))?;
    refused("taking a session", bed.store.acquire(&free, lease.node()).await, is_buried(lease.node()))?;
    bed.store.leave(lease.node().id(), Leaving::Gone).await?;
    same("it stays buried", state(bed, lease.node().id()).await?, Some(NodeState::Buried))?;
    same("nothing was written", bed.other.open(&session).await?, before)?;
    let taken = bed.take(&session, 2).await?;
    must("the epoch grows", taken.epoch() > lease.epoch())?;
    let fenced = |error: &Error| matches!(error, Error::Fenced { newest, .. } if *newest == taken.epoch());
    refused("an append after another took it", bed.append(&lease, a_record("later")).await, fenced)?;
    refused("a beat after it", bed.store.beat(lease.node(), 0).await, is_buried(lease.node()))
}

async fn only_the_dead_are_buried(bed: &Bed) -> Result<(), BrokenStore> {
    let [first, second] = [bed.store.join(new(1, "1")).await?, bed.store.join(new(2, "2")).await?];
    bed.lives.say(1, Liveness::Unknown);
    same("one that may live", bed.other.bury().await?, vec![])?;
    bed.time.pass(TTL + Duration::from_secs(5));
    same("one whose lease is over, within the margin", bed.other.bury().await?, vec![])?;
    bed.store.beat(&second, 0).await?;
    bed.time.pass(Duration::from_micros(1));
    same("one whose lease and margin are over", bed.other.bury().await?, vec![first.id().clone()])?;
    let ended = bed.other.nodes().await?.iter().map(|row| row.ended).collect::<Vec<_>>();
    same("when it was", ended, vec![Some(bed.time.now()), None])?;
    bed.time.pass(Duration::from_secs(25 * 60 * 60));
    bed.store.beat(&second, 0).await?;
    bed.store.join(new(3, "3")).await?;
    same("one that was long ago is forgotten", state(bed, first.id()).await?, None)?;
    refused("and still buried", bed.store.beat(&first, 0).await, is_buried(&first))
}

async fn who_drains_takes_nothing(bed: &Bed) -> Result<(), BrokenStore> {
    let node = bed.store.join(new(1, "1")).await?;
    let (held, free) = (bed.session("a").await?, bed.session("b").await?);
    let lease = bed.store.acquire(&held, &node).await?;
    bed.other.leave(node.id(), Leaving::Draining).await?;
    same("any process may ask it", state(bed, node.id()).await?, Some(NodeState::Draining))?;
    let drains = |error: &Error| matches!(error, Error::Draining(id) if id == node.id());
    refused("taking one", bed.store.acquire(&free, &node).await, drains)?;
    bed.append(&lease, a_record("what it holds it may write")).await?;
    same("its beat learns of it", bed.store.beat(&node, 1).await?, NodeState::Draining)?;
    let other = bed.take(&held, 2).await;
    refused("it holds on", other, |error| matches!(error, Error::Held(_, held) if held.owner == owner(1)))?;
    bed.store.leave(node.id(), Leaving::Gone).await?;
    same("it is gone", state(bed, node.id()).await?, Some(NodeState::Gone))?;
    refused("a beat of one that left", bed.store.beat(&node, 0).await, is_buried(&node))?;
    let fenced = |error: &Error| matches!(error, Error::Fenced { .. });
    refused("an append of one that left", bed.append(&lease, a_record("late")).await, fenced)?;
    bed.take(&held, 2).await?;
    bed.other.leave(&"none".into(), Leaving::Gone).await?;
    Ok(())
}

/// The epoch of each holder, and from which record on it wrote.
async fn who_held_what_is_known(bed: &Bed) -> Result<(), BrokenStore> {
    let (session, first) = bed.held("a").await?;
    let at = bed.time.now();
    bed.append(&first, [a_record("one"), a_record("two")].concat()).await?;
    bed.time.pass(Duration::from_secs(1));
    bed.lives.say(1, Liveness::Dead);
    let second = bed.take(&session, 2).await?;
    bed.other.append(&second, a_record("three"), Durability::Recorded).await?;
    let tenure = |epoch, lease: &NodeLease, head, at| Tenure { epoch, node: lease.id().clone(), head, at };
    let wanted = vec![tenure(1, first.node(), 0, at), tenure(2, second.node(), 2, bed.time.now())];
    same("who held it", bed.store.tenures(&session).await?, wanted)?;
    let never: SessionId = bed.session("b").await?;
    same("one that was never held", bed.store.tenures(&never).await?, vec![])?;
    bed.lives.say(2, Liveness::Dead);
    bed.store.remove(&session).await?;
    not_there(bed.store.tenures(&session).await)?;
    bed.session("a").await?;
    same("one that was made again", bed.store.tenures(&session).await?, vec![])
}
