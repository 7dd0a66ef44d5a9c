//! Facts about sessions: made once, listed newest first, removed with all that is theirs.

use std::time::Duration;

use safepoint::{
    ids::SessionId,
    raw::store::{
        ApprovalClose, ChainCheck, Liveness, NewItem, NewSession, Pushed, Record, Withdrawn, Write,
    },
    store::{Error, SessionRow},
};

use super::{
    Bed, BrokenStore, Fresh, a_record,
    approvals::{answer, ask},
    item, must, not_there, owner, record, refused, same, wish,
};

/// Sessions are made once, found, listed newest first, and removed with all that is theirs.
///
/// # Errors
/// The first fact that does not hold.
///
/// # Cancel safety
/// Nothing is lost but the check.
pub async fn sessions(fresh: Fresh<'_>) -> Result<(), BrokenStore> {
    made_once(&Bed::make(fresh)).await?;
    created_with_items(&Bed::make(fresh)).await?;
    created_with_records(&Bed::make(fresh)).await?;
    created_as_a_whole_or_not(&Bed::make(fresh)).await?;
    newest_first(&Bed::make(fresh)).await?;
    removed_entirely(&Bed::make(fresh)).await?;
    not_removed_while_held(&Bed::make(fresh)).await?;
    removed_at_rest_alone(&Bed::make(fresh)).await
}

async fn made_once(bed: &Bed) -> Result<(), BrokenStore> {
    let new = |title: &str| NewSession { title: title.into(), label: "new".into(), ..NewSession::of("a") };
    let made = bed.store.create(new("first")).await?;
    same("a new session's title", made.title.as_str(), "first")?;
    same("a new session's label", made.label.as_str(), "new")?;
    same("a new session's head and epoch", (made.head, made.epoch), (0, 0))?;
    same("a new session's times", (made.created, made.updated), (bed.time.now(), bed.time.now()))?;
    same("a session found by another process", bed.other.open(&made.id).await?, made.clone())?;
    let again = bed.other.create(new("second")).await;
    let exists = |error: &Error| matches!(error, Error::SessionExists(id) if *id == made.id);
    refused("a session made twice", again, exists)?;
    same("a session whose name was wanted again", bed.store.open(&made.id).await?, made)?;
    not_there(bed.store.open(&"none".into()).await)
}

async fn created_with_items(bed: &Bed) -> Result<(), BrokenStore> {
    let begin =
        |id: &str, items: Vec<_>| NewSession { items, setup: "with what".into(), ..NewSession::of(id) };
    let row = bed.other.create(begin("a", vec![item("1", "hello"), item("2", "and this")])).await?;
    same("a session that begins with items", bed.store.open(&row.id).await?, row.clone())?;
    same("what it begins with beside them", row.setup.as_str(), "with what")?;
    // One that is pushed to, item by item, at the same moment.
    let pushed = bed.store.create(begin("b", vec![])).await?.id;
    for (number, push) in [(1, item("1", "hello")), (2, item("2", "and this"))] {
        same("a push", bed.store.push(&pushed, push).await?, Pushed::Accepted(number))?;
    }
    same("its items", bed.store.inbox(&row.id).await?, bed.store.inbox(&pushed).await?)?;
    same("its notice", bed.store.notice(&row.id).await?, bed.store.notice(&pushed).await?)?;
    same("the next item", bed.other.push(&row.id, item("3", "last")).await?, Pushed::Accepted(3))?;
    same("one that is known", bed.other.push(&row.id, item("1", "hello")).await?, Pushed::Same(1))?;
    same("another content", bed.other.push(&row.id, item("1", "other")).await?, Pushed::Conflict(1))?;
    let withdrawn = bed.other.withdraw(&row.id, 2).await?;
    must("one that waits comes back", matches!(withdrawn, Withdrawn::Item(_)))?;
    let lease = bed.take(&row.id, 1).await?;
    bed.append(&lease, vec![Write::TakeItem(1), Write::RemoveItem(1)]).await?;
    let left: Vec<u64> = bed.other.inbox(&row.id).await?.iter().map(|item| item.number).collect();
    same("what is left", left, vec![3])
}

async fn created_with_records(bed: &Bed) -> Result<(), BrokenStore> {
    let records = vec![record("first"), record("second")];
    let begin = |items: Vec<_>| NewSession { items, records: records.clone(), ..NewSession::of("a") };
    let full = bed.store.create(begin(vec![NewItem { capacity: 0, ..item("1", "no room") }])).await;
    refused("records with an item that is refused", full, |error| matches!(error, Error::ItemRefused(1)))?;
    let row = bed.store.create(begin(vec![item("1", "hello")])).await?;
    same("the head of a session that begins with records", row.head, 2)?;
    same("that session found by another process", bed.other.open(&row.id).await?, row.clone())?;
    let read = bed.other.read(&row.id, 0, 10).await?;
    let read: Vec<Record> = read.entries.into_iter().filter_map(|entry| entry.record.ok()).collect();
    same("the records that it begins with", read, records)?;
    let checked = bed.store.check(&row.id).await?;
    must("its chain is intact", matches!(&checked, ChainCheck::Intact(found) if found.records == 2))?;
    let lease = bed.take(&row.id, 1).await?;
    let appended = bed.append(&lease, vec![Write::Record(record("third"))]).await?;
    same("the place of the next record", appended.first, 2)?;
    let checked = bed.other.check(&row.id).await?;
    must("its chain continues", matches!(&checked, ChainCheck::Intact(found) if found.records == 3))
}

async fn created_as_a_whole_or_not(bed: &Bed) -> Result<(), BrokenStore> {
    let begin = |items: Vec<_>| bed.store.create(NewSession { items, ..NewSession::of("a") });
    let first = item("1", "hello");
    let twice = begin(vec![first.clone(), item("2", "hello"), first.clone()]).await;
    refused("the same item twice", twice, |error| matches!(error, Error::ItemRefused(3)))?;
    let conflict = begin(vec![first.clone(), item("1", "other")]).await;
    refused("an id of two items", conflict, |error| matches!(error, Error::ItemRefused(2)))?;
    let full = begin(vec![first.clone(), NewItem { capacity: 1, ..item("2", "one too many") }]).await;
    refused("more items than may wait", full, |error| matches!(error, Error::ItemRefused(2)))?;
    same("a list after refusals", names(&bed.other.list(10, None).await?), vec![])?;
    let none = bed.other.push(&"a".into(), first.clone()).await;
    refused("a push to what was refused", none, |error| matches!(error, Error::NoSession(_)))?;
    let row = begin(vec![first]).await?;
    let again = begin(vec![item("2", "for a session that exists")]).await;
    refused("a session created twice", again, |error| matches!(error, Error::SessionExists(_)))?;
    same("a session whose name was wanted again", bed.other.open(&row.id).await?, row.clone())?;
    same("its items", bed.other.inbox(&row.id).await?.len(), 1)
}

fn names(rows: &[SessionRow]) -> Vec<&str> {
    rows.iter().map(|row| row.id.as_str()).collect()
}

async fn newest_first(bed: &Bed) -> Result<(), BrokenStore> {
    const SECOND: Duration = Duration::from_secs(1);
    same("a list of nothing", names(&bed.store.list(10, None).await?), vec![])?;
    for id in ["a", "b", "c", "d", "e"] {
        bed.session(id).await?;
        if id != "c" {
            // The third and the fourth are of the same moment: their names order them.
            bed.time.pass(SECOND);
        }
    }
    same("the newest", names(&bed.store.list(3, None).await?), vec!["e", "d", "c"])?;
    same("none of them", names(&bed.store.list(0, None).await?), vec![])?;
    let mut seen = Vec::new();
    let mut older = None;
    loop {
        let page = bed.other.list(2, older).await?;
        let Some(last) = page.last() else { break };
        older = Some(last.older());
        seen.extend(page.iter().map(|row| row.id.as_str().to_owned()));
    }
    same("all of them, by pages", seen.join(" "), "e d c b a".into())?;
    bed.other.push(&"b".into(), item("1", "hello")).await?;
    same("one that was pushed to", names(&bed.store.list(1, None).await?), vec!["b"])?;
    bed.time.pass(SECOND);
    let lease = bed.take(&"a".into(), 1).await?;
    same("one that is only held", names(&bed.store.list(1, None).await?), vec!["b"])?;
    let said = [Write::Label("runs".into()), Write::Title("words".into()), Write::Setup("with what".into())];
    bed.append(&lease, said.into()).await?;
    let newest = bed.store.list(2, None).await?;
    same("one that was written", names(&newest), vec!["a", "b"])?;
    let words = |row: &SessionRow| [row.label.clone(), row.title.clone(), row.setup.clone()].join(", ");
    same("what is shown of it", newest.first().map(words), Some("runs, words, with what".into()))?;
    same("that it is held", newest.first().map(|row| row.holder.is_some()), Some(true))?;
    bed.time.pass(SECOND);
    bed.other.push(&"b".into(), item("2", "hello")).await?;
    bed.time.pass(SECOND);
    let again = Record { kind: Record::CHECKPOINT.into(), ..record("what was said before") };
    let appended = bed.append(&lease, vec![Write::Record(again.clone())]).await?;
    let row = bed.store.open(&"a".into()).await?;
    same("one that says nothing new", names(&bed.store.list(2, None).await?), vec!["b", "a"])?;
    same("its record", (row.head, row.chain), (appended.next, appended.chain))?;
    bed.append(&lease, vec![Write::Record(again), Write::Record(record("news"))]).await?;
    same("one that also says something new", names(&bed.store.list(1, None).await?), vec!["a"])
}

async fn removed_entirely(bed: &Bed) -> Result<(), BrokenStore> {
    let (session, lease) = bed.held("a").await?;
    bed.append(&lease, a_record("one")).await?;
    bed.store.push(&session, item("1", "hello")).await?;
    bed.store.ask_stop(&session, wish("stop")).await?;
    bed.give_back(&lease).await?;
    bed.session("b").await?;
    bed.other.remove(&session).await?;
    same("a list after a removal", names(&bed.store.list(10, None).await?), vec!["b"])?;
    for gone in [bed.store.open(&session).await.map(drop), bed.store.remove(&session).await] {
        refused("what was removed", gone, |error| matches!(error, Error::NoSession(_)))?;
    }
    bed.session("a").await?;
    same("its records", bed.store.read(&session, 0, 10).await?.entries.len(), 0)?;
    same("its items", bed.store.inbox(&session).await?.len(), 0)?;
    same("its stops", bed.store.stops(&session, 0).await?.len(), 0)?;
    bed.take(&session, 2).await?;
    let late = bed.append(&lease, a_record("late")).await;
    refused("a lease on what was removed and made again", late, |error| matches!(error, Error::Fenced { .. }))
}

async fn not_removed_while_held(bed: &Bed) -> Result<(), BrokenStore> {
    let (session, _) = bed.held("a").await?;
    let removed = bed.other.remove(&session).await;
    let named = |error: &Error| matches!(error, Error::Held(_, held) if held.owner == owner(1));
    refused("a session that is held", removed, named)?;
    must("it is still there", bed.store.open(&session).await.is_ok())?;
    bed.lives.say(1, Liveness::Dead);
    Ok(bed.other.remove(&session).await?)
}

async fn removed_at_rest_alone(bed: &Bed) -> Result<(), BrokenStore> {
    let at_rest = async |id: &SessionId| bed.other.remove_if_at_rest(id).await;
    let (session, lease) = bed.held("a").await?;
    bed.append(&lease, vec![ask(bed, "q")]).await?;
    let named = |error: &Error| matches!(error, Error::Held(_, held) if held.owner == owner(1));
    refused("a session that is held, and asks", at_rest(&session).await, named)?;
    bed.give_back(&lease).await?;
    same("one that asks", at_rest(&session).await?, false)?;
    bed.other.decide(&session, answer("q", "ann")).await?;
    same("one with a decision that nothing has used", at_rest(&session).await?, false)?;
    let lease = bed.take(&session, 1).await?;
    refused("a session that is held", at_rest(&session).await, named)?;
    bed.append(&lease, vec![Write::CloseApproval("q".into(), ApprovalClose::Used)]).await?;
    bed.give_back(&lease).await?;
    bed.other.push(&session, item("1", "waits")).await?;
    same("one in which an item waits", at_rest(&session).await?, false)?;
    same("its items", bed.store.inbox(&session).await?.len(), 1)?;
    bed.other.withdraw(&session, 1).await?;
    same("one at rest", at_rest(&session).await?, true)?;
    not_there(at_rest(&session).await)
}
