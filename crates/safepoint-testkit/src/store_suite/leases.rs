//! Facts about leases: one holder can write at a time, and a displaced holder writes nothing (S7.4).

use std::{sync::Arc, time::Duration};

use futures_util::future::join_all;
use safepoint::{
    ids::SessionId,
    raw::store::{Changes, Durability, Lease, Liveness, Rest},
    store::Error,
};

use super::{Bed, BrokenStore, Fresh, TTL, a_record, acquire, must, not_there, owner, refused, same};

/// One holds a session at a time; who was displaced, or gave it back, can record nothing.
///
/// # Errors
/// The first fact that does not hold.
///
/// # Cancel safety
/// Nothing is lost but the check.
pub async fn leases(fresh: Fresh<'_>) -> Result<(), BrokenStore> {
    the_others_see_who_holds(&Bed::make(fresh)).await?;
    the_dead_are_displaced(&Bed::make(fresh)).await?;
    who_wakes_late_records_nothing(&Bed::make(fresh)).await?;
    a_lease_is_renewed_and_given_back(&Bed::make(fresh)).await?;
    a_clock_that_jumps_takes_nothing(&Bed::make(fresh)).await?;
    one_of_many_gets_it(&Bed::make(fresh)).await
}

/// Whether the error names this process as the holder.
fn names(error: &Error, pid: u32) -> bool {
    matches!(error, Error::Held(_, held) if held.owner == owner(pid))
}

async fn the_others_see_who_holds(bed: &Bed) -> Result<(), BrokenStore> {
    let (session, lease) = bed.held("a").await?;
    same("the first epoch", lease.epoch(), 1)?;
    must("the lease's time has begun", lease.node().left() <= TTL)?;
    let other = bed.take(&session, 2).await;
    refused("a session that is held", other, |error| names(error, 1))?;
    let again = bed.take(&session, 1).await;
    refused("a session that is held by oneself", again, |error| names(error, 1))?;
    let row = bed.other.open(&session).await?;
    let times = row.holder.as_ref().map(|held| (held.since, held.expires));
    let now = bed.time.now();
    same("since and until when", times, Some((now, now.saturating_add(TTL).unwrap_or(now))))?;
    same("the epoch of the row", row.epoch, 1)?;
    not_there(bed.take(&"none".into(), 1).await)?;
    let (_, second) = bed.held("b").await?;
    same("the epoch of the next lease of any session", second.epoch(), 2)
}

/// A displaced lease can do nothing, and what it tried has left no trace.
async fn is_fenced(bed: &Bed, session: &SessionId, lease: &Lease) -> Result<(), BrokenStore> {
    let before = bed.other.open(session).await?;
    let fenced = |error: &Error| matches!(error, Error::Fenced { epoch, newest, .. } if *epoch == lease.epoch() && *newest == before.epoch);
    refused("an append of a stale lease", bed.append(lease, a_record("late")).await, fenced)?;
    refused("an append of nothing by a stale lease", bed.append(lease, vec![]).await, fenced)?;
    let release = bed.store.release(lease, Changes::default(), Rest::Now).await;
    refused("a release of a stale lease", release, fenced)?;
    same("the session after a stale lease's tries", bed.other.open(session).await?, before)
}

async fn the_dead_are_displaced(bed: &Bed) -> Result<(), BrokenStore> {
    let (session, lease) = bed.held("a").await?;
    bed.lives.say(1, Liveness::Unknown);
    let unknown = bed.take(&session, 2).await;
    refused("a holder that may live", unknown, |error| names(error, 1))?;
    bed.lives.say(1, Liveness::Dead);
    let taken = bed.take(&session, 2).await?;
    must("the epoch grows", taken.epoch() > lease.epoch())?;
    is_fenced(bed, &session, &lease).await?;
    bed.other.append(&taken, a_record("mine"), Durability::Recorded).await?;
    is_fenced(bed, &session, &lease).await
}

async fn who_wakes_late_records_nothing(bed: &Bed) -> Result<(), BrokenStore> {
    let (session, lease) = bed.held("a").await?;
    bed.append(&lease, a_record("in time")).await?;
    bed.time.pass(TTL + Duration::from_secs(1));
    let early = bed.take(&session, 2).await;
    refused("a lease that is over, within the margin", early, |error| names(error, 1))?;
    bed.append(&lease, a_record("over, and not taken")).await?;
    bed.time.pass(Duration::from_secs(4));
    bed.time.pass(Duration::from_micros(1));
    let taken = bed.take(&session, 2).await?;
    must("the epoch grows", taken.epoch() > lease.epoch())?;
    is_fenced(bed, &session, &lease).await?;
    same("what was recorded", bed.other.open(&session).await?.head, 2)
}

async fn a_lease_is_renewed_and_given_back(bed: &Bed) -> Result<(), BrokenStore> {
    let (session, lease) = bed.held("a").await?;
    bed.time.pass(TTL);
    bed.store.beat(lease.node(), 1).await?;
    bed.time.pass(TTL);
    let other = bed.take(&session, 2).await;
    refused("a lease that was renewed", other, |error| names(error, 1))?;
    bed.append(&lease, vec![]).await?;
    bed.give_back(&lease).await?;
    is_fenced(bed, &session, &lease).await?;
    same("it has no holder", bed.other.open(&session).await?.holder, None)?;
    let next = bed.take(&session, 2).await?;
    must("the epoch grows", next.epoch() > lease.epoch())
}

/// A change of the clock frees no session that a process of this machine holds. The lease ends by the
/// machine's own time; after that the former holder records nothing.
async fn a_clock_that_jumps_takes_nothing(bed: &Bed) -> Result<(), BrokenStore> {
    const HOUR: Duration = Duration::from_secs(3600);
    let (session, lease) = bed.held("a").await?;
    bed.time.go_back(HOUR);
    let early = bed.take(&session, 2).await;
    refused("a session that is held, after the clock went back", early, |error| names(error, 1))?;
    bed.append(&lease, a_record("after the clock went back")).await?;
    // Renewed, it is over when the new time says so, and not an hour later.
    bed.store.beat(lease.node(), 0).await?;
    let expires = bed.other.open(&session).await?.holder.map(|held| held.expires);
    same("until when", expires, bed.time.now().saturating_add(TTL).ok())?;
    bed.time.jump(2 * HOUR);
    let jumped = bed.take(&session, 2).await;
    refused("a session that is held, after the clock jumped ahead", jumped, |error| names(error, 1))?;
    refused("its removal", bed.other.remove(&session).await, |error| names(error, 1))?;
    bed.lives.say(1, Liveness::Unknown);
    let unknown = bed.take(&session, 2).await;
    refused("the same of a process in another space of the machine", unknown, |error| names(error, 1))?;
    bed.time.pass(HOUR);
    let taken = bed.take(&session, 2).await?;
    is_fenced(bed, &session, &lease).await?;
    bed.other.append(&taken, a_record("mine"), Durability::Recorded).await?;
    bed.time.go_back(HOUR);
    is_fenced(bed, &session, &lease).await?;
    let back = bed.take(&session, 1).await;
    refused("the session of another", back, |error| names(error, 2))?;
    same("what was recorded", bed.other.open(&session).await?.head, 2)
}

async fn one_of_many_gets_it(bed: &Bed) -> Result<(), BrokenStore> {
    const MANY: u32 = 16;
    let session = bed.session("a").await?;
    let tries = (1..=MANY).map(|pid| {
        let store = if pid % 2 == 0 { Arc::clone(&bed.store) } else { Arc::clone(&bed.other) };
        let session = session.clone();
        async move { acquire(&*store, &session, owner(pid), TTL).await }
    });
    let tries = join_all(tries).await;
    let holder = bed.store.open(&session).await?.holder.map(|held| held.owner.pid).unwrap_or_default();
    same("how many got it", tries.iter().filter(|answer| answer.is_ok()).count(), 1)?;
    for answer in tries.into_iter().filter(Result::is_err) {
        refused("the others", answer, |error| names(error, holder))?;
    }
    Ok(())
}
