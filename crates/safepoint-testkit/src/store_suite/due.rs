//! Facts about what wants an owner and has none (S7.46, S7.47), and about a stop of many (S7.48).

use std::time::Duration;

use safepoint::{
    ids::SessionId,
    raw::store::{
        Among, ApprovalsToWithdraw, Changes, Leaving, Liveness, MOST_TRIES, NewSession, Rest, StopIntent,
        Write,
    },
    store::{Error, NewNode},
};

use super::{
    Bed, BrokenStore, Fresh, TTL, a_record, approvals::asked, item, must, not_there, owner, play::decision,
    refused, same, wish,
};

/// What others give a session to do makes it due, unless a node holds it; so does its holder's death. One whose owners die
/// again and again is parked.
///
/// # Errors
/// The first fact that does not hold.
///
/// # Cancel safety
/// Nothing is lost but the check.
pub async fn due(fresh: Fresh<'_>) -> Result<(), BrokenStore> {
    what_is_given_to_do_is_due(&Bed::make(fresh)).await?;
    each_is_named_once_in_a_while(&Bed::make(fresh)).await?;
    one_that_was_taken_is_named_anew(&Bed::make(fresh)).await?;
    the_urgent_and_the_oldest_come_first(&Bed::make(fresh)).await?;
    what_is_due_elsewhere_is_left(&Bed::make(fresh)).await?;
    a_holder_says_when_it_is_due_again(&Bed::make(fresh)).await?;
    the_sessions_of_the_dead_are_due(&Bed::make(fresh)).await?;
    one_whose_owners_die_is_parked(&Bed::make(fresh)).await?;
    many_are_stopped_at_once(&Bed::make(fresh)).await
}

const MINUTE: Duration = Duration::from_secs(60);
/// After this, what was named is named again.
const AGAIN: Duration = Duration::from_secs(5);

/// What is due to who takes sessions of the pool that facts have sessions of, in order.
async fn named(bed: &Bed) -> Result<Vec<String>, BrokenStore> {
    named_of(bed, &["gpu"]).await
}

/// What is due to who takes sessions of these pools.
async fn named_of(bed: &Bed, pools: &[&str]) -> Result<Vec<String>, BrokenStore> {
    let due = bed.other.due(100, pools.iter().map(|pool| (*pool).to_owned()).collect()).await?;
    Ok(due.into_iter().map(|due| due.session.to_string()).collect())
}

fn nothing() -> Vec<String> {
    Vec::new()
}

async fn what_is_given_to_do_is_due(bed: &Bed) -> Result<(), BrokenStore> {
    // Session `a`, held, with a question.
    let (a, lease) = asked(bed, &["q"]).await?;
    bed.session("b").await?;
    bed.session("c").await?;
    bed.store.push(&a, item("1", "for its holder")).await?;
    same("nothing to do but for a holder", named(bed).await?, nothing())?;
    bed.give_back(&lease).await?;
    same("nor if it saw all when it gave the session back", named(bed).await?, nothing())?;
    bed.store.push(&"b".into(), item("1", "hello")).await?;
    same("one that was pushed to", named(bed).await?, vec!["b".to_owned()])?;
    bed.store.ask_stop(&"c".into(), wish("stop")).await?;
    bed.store.decide(&a, decision("q", "ann")).await?;
    bed.store.create(NewSession { items: vec![item("1", "hello")], ..NewSession::of("d") }).await?;
    let mut rest = named(bed).await?;
    rest.sort();
    same(
        "a decision, a stop, and one that begins with an item",
        rest,
        ["a", "c", "d"].map(str::to_owned).into(),
    )?;
    bed.time.pass(AGAIN);
    bed.take(&"b".into(), 1).await?;
    bed.store.remove(&"d".into()).await?;
    let mut left = named(bed).await?;
    left.sort();
    same("one that is held is not, nor one that is gone", left, ["a", "c"].map(str::to_owned).into())
}

async fn each_is_named_once_in_a_while(bed: &Bed) -> Result<(), BrokenStore> {
    bed.session("a").await?;
    bed.store.push(&"a".into(), item("1", "hello")).await?;
    same("it is named", named(bed).await?, vec!["a".to_owned()])?;
    same("once", bed.store.due(100, Vec::new()).await?, vec![])?;
    bed.time.pass(AGAIN - Duration::from_micros(1));
    bed.store.push(&"a".into(), item("2", "and this")).await?;
    same("also if there is more to do", named(bed).await?, nothing())?;
    bed.time.pass(Duration::from_micros(1));
    same("and again if no node took it", named(bed).await?, vec!["a".to_owned()])?;
    bed.time.go_back(Duration::from_secs(3600));
    same("a clock that goes back makes nothing due that is not yet", named(bed).await?, nothing())?;
    bed.time.pass(Duration::from_secs(3600));
    bed.time.pass(AGAIN);
    same("nor hides it then", named(bed).await?, vec!["a".to_owned()])
}

/// S7.47: the session had the owner that it was named to, so it is named at once for what is given after that.
async fn one_that_was_taken_is_named_anew(bed: &Bed) -> Result<(), BrokenStore> {
    let a = bed.session("a").await?;
    bed.store.push(&a, item("1", "hello")).await?;
    same("it is named", named(bed).await?, vec!["a".to_owned()])?;
    let lease = bed.take(&a, 1).await?;
    bed.store.push(&a, item("2", "while it is held")).await?;
    same("not while it is held", named(bed).await?, nothing())?;
    bed.give_back(&lease).await?;
    same("nor as it was given back", named(bed).await?, nothing())?;
    bed.store.push(&a, item("3", "and this")).await?;
    same("at once for what comes then", named(bed).await?, vec!["a".to_owned()])?;
    same("once", named(bed).await?, nothing())
}

/// S7.47: a session of a pool is named to those who take its sessions, and is as it was when others have asked.
async fn what_is_due_elsewhere_is_left(bed: &Bed) -> Result<(), BrokenStore> {
    // The first is in no pool; the names of the others are texts like any.
    const POOLS: [&str; 5] = ["", "gpu", "gpu2", "\"", "[\"gpu\"]"];
    for (id, pool) in ["a", "b", "c", "d", "e"].into_iter().zip(POOLS) {
        let items = vec![item("1", "hello")];
        bed.store.create(NewSession { items, pool: pool.into(), ..NewSession::of(id) }).await?;
    }
    let of = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();
    same("of no pool", named_of(bed, &[]).await?, of(&["a"]))?;
    same("nor is one of no pool named again", named_of(bed, &["", "none"]).await?, nothing())?;
    same("of one", named_of(bed, &["gpu"]).await?, of(&["b"]))?;
    same("of several", named_of(bed, &["none", "[\"gpu\"]", "gpu2", "gpu"]).await?, of(&["c", "e"]))?;
    same("of the last", named_of(bed, &["\""]).await?, of(&["d"]))
}

async fn the_urgent_and_the_oldest_come_first(bed: &Bed) -> Result<(), BrokenStore> {
    for (id, priority, pool) in
        [("late", 0, ""), ("early", 0, "gpu"), ("urgent", -1, ""), ("background", 10, "")]
    {
        let new = NewSession { priority, pool: pool.into(), ..NewSession::of(id) };
        bed.store.create(new).await?;
    }
    for id in ["background", "early", "late", "urgent"] {
        bed.store.push(&id.into(), item("1", "hello")).await?;
        bed.time.pass(Duration::from_millis(1));
    }
    let first = bed.other.due(2, vec!["gpu".into()]).await?;
    let shown: Vec<(String, String, i16, u16)> =
        first.into_iter().map(|due| (due.session.to_string(), due.pool, due.priority, due.tries)).collect();
    let wanted = vec![("urgent".into(), String::new(), -1, 0), ("early".into(), "gpu".into(), 0, 0)];
    same("the first two", shown, wanted)?;
    same("and then the others", named(bed).await?, vec!["late".to_owned(), "background".to_owned()])
}

async fn a_holder_says_when_it_is_due_again(bed: &Bed) -> Result<(), BrokenStore> {
    for (id, rest) in [
        ("nothing", Rest::Nothing),
        ("after", Rest::After(MINUTE)),
        ("now", Rest::Now),
        ("unseen", Rest::Nothing),
    ] {
        let (session, lease) = bed.held(id).await?;
        let seen = bed.store.notice(&session).await?;
        if id == "unseen" {
            bed.other.ask_stop(&session, wish("while it gives it back")).await?;
        }
        bed.store.release(&lease, seen, rest).await?;
    }
    let mut first = named(bed).await?;
    first.sort();
    same("now, and what it did not see", first, vec!["now".to_owned(), "unseen".to_owned()])?;
    bed.time.pass(MINUTE);
    must("after its time", named(bed).await?.contains(&"after".to_owned()))?;
    let (session, lease) = bed.held("later").await?;
    bed.store.release(&lease, Changes::default(), Rest::After(MINUTE)).await?;
    bed.other.push(&session, item("1", "hello")).await?;
    must("before, if there is something to do", named(bed).await?.contains(&"later".to_owned()))
}

async fn the_sessions_of_the_dead_are_due(bed: &Bed) -> Result<(), BrokenStore> {
    let node = bed.store.join(NewNode::of(owner(1), TTL)).await?;
    for id in ["a", "b"] {
        bed.store.acquire(&bed.session(id).await?, &node).await?;
    }
    bed.session("c").await?;
    bed.lives.say(1, Liveness::Dead);
    same("before they are buried", named(bed).await?, nothing())?;
    bed.other.bury().await?;
    same("those that it held", named(bed).await?, vec!["a".to_owned(), "b".to_owned()])?;
    let leaves = bed.other.join(NewNode::of(owner(2), TTL)).await?;
    bed.other.acquire(&"c".into(), &leaves).await?;
    bed.other.leave(leaves.id(), Leaving::Gone).await?;
    same("those of one that left", named(bed).await?, vec!["c".to_owned()])
}

/// The owner of a session dies; when the session is due again, if at all.
async fn dies(bed: &Bed, session: &SessionId, writes: Vec<Write>) -> Result<Option<Duration>, BrokenStore> {
    const LONGEST: u64 = 60;
    let node = bed.store.join(NewNode::of(owner(1), TTL)).await?;
    let lease = bed.store.acquire(session, &node).await?;
    bed.append(&lease, writes).await?;
    bed.lives.say(1, Liveness::Dead);
    bed.other.bury().await?;
    bed.lives.say(1, Liveness::Alive);
    // Whatever named it before is over.
    for second in 0..LONGEST {
        if !bed.other.due(100, Vec::new()).await?.is_empty() {
            return Ok(Some(Duration::from_secs(second)));
        }
        bed.time.pass(Duration::from_secs(1));
    }
    Ok(None)
}

async fn one_whose_owners_die_is_parked(bed: &Bed) -> Result<(), BrokenStore> {
    let session = bed.session("a").await?;
    let works = || [vec![Write::AtWork], a_record("works")].concat();
    for _ in 0..2 * MOST_TRIES {
        must("at rest, no death counts", dies(bed, &session, a_record("rests")).await?.is_some())?;
        bed.time.pass(AGAIN);
    }
    let mut waits = Vec::new();
    for _ in 1..MOST_TRIES {
        waits.push(dies(bed, &session, works()).await?.ok_or_else(|| BrokenStore::new("it is due again"))?);
        bed.time.pass(AGAIN);
    }
    must("each time after a longer while", waits.is_sorted() && waits[1] >= Duration::from_secs(2))?;
    same("the last time it is not", dies(bed, &session, works()).await?, None)?;
    let parked = |error: &Error| matches!(error, Error::Parked(id, _) if id.as_str() == "a");
    refused("one that is parked", bed.take(&session, 2).await, parked)?;
    bed.other.push(&session, item("1", "hello")).await?;
    bed.other.ask_stop(&session, wish("it can be stopped")).await?;
    same("also with something to do", named(bed).await?, nothing())?;
    must("and read", bed.other.read(&session, 0, 100).await?.entries.len() > 1)?;
    bed.other.unpark(&session).await?;
    same("once it is unparked it is due", named(bed).await?, vec!["a".to_owned()])?;
    bed.time.pass(AGAIN);
    must("and counted from none", dies(bed, &session, works()).await? == Some(Duration::ZERO))?;
    let lease = bed.take(&session, 1).await?;
    bed.append(&lease, vec![Write::AtRest]).await?;
    bed.give_back(&lease).await?;
    not_there(bed.other.unpark(&"none".into()).await)
}

/// S7.48
async fn many_are_stopped_at_once(bed: &Bed) -> Result<(), BrokenStore> {
    let node = bed.store.join(NewNode::of(owner(1), TTL)).await?;
    for id in ["a", "b"] {
        bed.store.acquire(&bed.session(id).await?, &node).await?;
    }
    bed.take(&bed.session("c").await?, 2).await?;
    bed.store.create(NewSession { pool: "gpu".into(), ..NewSession::of("d") }).await?;
    let asked = || async {
        let mut asked = Vec::new();
        for id in ["a", "b", "c", "d"] {
            asked.push(bed.store.stops(&id.into(), 0).await?.len());
        }
        Ok::<_, BrokenStore>(asked)
    };
    let ask = |among| bed.other.ask_stops(among, wish("all of you"));
    same("those of a node", ask(Among::Node(node.id().clone())).await?, 2)?;
    same("an intent each", asked().await?, vec![1, 1, 0, 0])?;
    same("those that are held", ask(Among::Held).await?, 3)?;
    same("those of a pool", ask(Among::Pool("gpu".into())).await?, 1)?;
    same("those of none such", ask(Among::Pool("none".into())).await?, 0)?;
    same("these, each once", ask(Among::These(vec!["a".into(), "d".into(), "a".into()])).await?, 2)?;
    same("as many as were asked", asked().await?, vec![3, 2, 1, 2])?;
    not_there(ask(Among::These(vec!["a".into(), "none".into()])).await)?;
    let withdraws = StopIntent { approvals: ApprovalsToWithdraw::Withdrawn, ..wish("with questions") };
    let withdrawn = bed.other.ask_stops(Among::Held, withdraws).await;
    refused("one that withdraws approvals", withdrawn, |error| matches!(error, Error::Failed(_)))?;
    same("all or none", asked().await?, vec![3, 2, 1, 2])?;
    same("one that no node holds is due", named(bed).await?, vec!["d".to_owned()])
}
