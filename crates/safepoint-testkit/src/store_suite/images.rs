//! Facts about images: a session that is taken to another store is the same there, and nothing is lost where one takes the place of
//! another (S7.60).

use safepoint::{
    ids::SessionId,
    raw::store::{
        ApprovalClose, ApprovalState, ChainCheck, ItemState, NewSession, OverImage, Pushed, SessionImage,
        Write,
    },
    store::Error,
};

use super::{
    Bed, BrokenStore, Fresh, a_record,
    approvals::{answer, ask},
    item, must, not_there, refused, same, wish,
};

/// A session is the same in another store, is put over an unchanged one alone, and continues there.
///
/// # Errors
/// The first fact that does not hold.
///
/// # Cancel safety
/// Nothing is lost but the check.
pub async fn images(fresh: Fresh<'_>) -> Result<(), BrokenStore> {
    the_same_in_another_store(&Bed::make(fresh), &Bed::make(fresh)).await?;
    continues_in_another_store(&Bed::make(fresh), &Bed::make(fresh)).await?;
    of_what_nobody_holds(&Bed::make(fresh), &Bed::make(fresh)).await?;
    over_what_is_as_it_was(&Bed::make(fresh), &Bed::make(fresh)).await?;
    damaged_is_taken_by_none(&Bed::make(fresh), &Bed::make(fresh)).await?;
    knows_what_it_has_of_another(&Bed::make(fresh)).await
}

/// A session with something of each kind, given back.
async fn whole(bed: &Bed) -> Result<SessionId, BrokenStore> {
    let new = NewSession {
        title: "about".into(),
        label: "new".into(),
        setup: "with \0 what".into(),
        pool: "night".into(),
        priority: 7,
        items: vec![item("1", "first"), item("2", "second")],
        records: vec![super::record("begins")],
        ..NewSession::of("whole")
    };
    let session = bed.store.create(new).await?.id;
    let lease = bed.take(&session, 1).await?;
    let asked = ["open", "decided", "used", "withdrawn"].map(|id| ask(bed, id));
    bed.append(&lease, asked.into()).await?;
    for id in ["decided", "used"] {
        bed.other.decide(&session, answer(id, "anna")).await?;
    }
    bed.other.ask_stop(&session, wish("stop")).await?;
    bed.other.ask_stop(&session, wish("stop again")).await?;
    same("a third item", bed.other.push(&session, item("3", "third")).await?, Pushed::Accepted(3))?;
    bed.other.withdraw(&session, 3).await?;
    let close = |id: &str, how| Write::CloseApproval(id.into(), how);
    let writes = vec![
        Write::TakeItem(1),
        Write::RemoveItem(1),
        Write::TakeItem(2),
        Write::StopSeen(1),
        close("used", ApprovalClose::Used),
        close("withdrawn", ApprovalClose::Withdrawn),
        Write::Label("suspended".into()),
        Write::CloseInbox,
    ];
    bed.append(&lease, [writes, a_record("more")].concat()).await?;
    bed.give_back(&lease).await?;
    Ok(session)
}

async fn the_same_in_another_store(from: &Bed, to: &Bed) -> Result<(), BrokenStore> {
    let session = whole(from).await?;
    let image = from.other.image(&session).await?;
    same("an image's row", image.row.clone(), from.store.open(&session).await?)?;
    same("an image's counters", image.changes, from.store.notice(&session).await?)?;
    same("its items, also those that are gone", image.items.len(), 3)?;
    let states: Vec<ItemState> = image.items.iter().map(|item| item.state).collect();
    same("where they are", states, vec![ItemState::Removed, ItemState::Taken, ItemState::Removed])?;
    same("its approvals", image.approvals.len(), 4)?;
    same("the tenures", image.tenures.len(), 1)?;
    let row = to.store.restore(image.clone(), OverImage::Nothing).await?;
    same("the row of what was restored", row, image.row.clone())?;
    let there = to.other.image(&session).await?;
    same("the image of an image", there, image.clone())?;
    same("what is stored", to.other.open(&session).await?, image.row.clone())?;
    same("its inbox", to.other.inbox(&session).await?, from.store.inbox(&session).await?)?;
    same("its stops", to.other.stops(&session, 0).await?, image.stops.clone())?;
    same("its approvals", to.other.approvals(&session).await?, image.approvals.clone())?;
    same("its tenures", to.other.tenures(&session).await?, image.tenures.clone())?;
    same("its notice", to.other.notice(&session).await?, image.changes)?;
    same("its journal", to.other.read(&session, 0, 9).await?, from.store.read(&session, 0, 9).await?)?;
    let check = to.other.check(&session).await?;
    must("its chain is intact", matches!(check, ChainCheck::Intact(_)))?;
    same("the list", to.other.list(9, None).await?, vec![image.row])
}

async fn continues_in_another_store(from: &Bed, to: &Bed) -> Result<(), BrokenStore> {
    // Its epoch is greater than any of the other store.
    let (busy, session) = (from.session("busy").await?, whole(from).await?);
    for _ in 0..3 {
        let lease = from.take(&busy, 1).await?;
        from.give_back(&lease).await?;
    }
    let last = from.take(&session, 1).await?;
    from.append(&last, vec![Write::OpenInbox]).await?;
    from.give_back(&last).await?;
    let image = from.store.image(&session).await?;
    to.store.restore(image.clone(), OverImage::Nothing).await?;
    same("an item that is known", to.other.push(&session, item("1", "first")).await?, Pushed::Same(1))?;
    same("the next item", to.other.push(&session, item("4", "fourth")).await?, Pushed::Accepted(4))?;
    same("the next stop", to.other.ask_stop(&session, wish("stop")).await?, 3)?;
    to.other.decide(&session, answer("open", "anna")).await?;
    let lease = to.take(&session, 1).await?;
    must("a later lease has a greater epoch", lease.epoch() > image.row.epoch)?;
    let appended = to.append(&lease, a_record("continues")).await?;
    same("where it continues", appended.first, image.row.head)?;
    let check = to.other.check(&session).await?;
    must("its chain continues", matches!(check, ChainCheck::Intact(_)))?;
    to.give_back(&lease).await?;
    to.store.remove(&session).await?;
    not_there(to.other.image(&session).await)
}

async fn of_what_nobody_holds(from: &Bed, to: &Bed) -> Result<(), BrokenStore> {
    let session = whole(from).await?;
    not_there(from.store.image(&"none".into()).await)?;
    let image = from.store.image(&session).await?;
    let held = |error: &Error| matches!(error, Error::Held(id, _) if *id == session);
    let lease = from.take(&session, 1).await?;
    refused("the image of a session that is held", from.other.image(&session).await, held)?;
    to.store.restore(image.clone(), OverImage::Nothing).await?;
    let stamp = to.store.image(&session).await?.stamp();
    let _held = to.take(&session, 1).await?;
    let over = to.other.restore(image, OverImage::Unchanged(stamp)).await;
    refused("an image over a session that is held", over, held)?;
    from.give_back(&lease).await?;
    from.store.image(&session).await.map(drop).map_err(Into::into)
}

async fn over_what_is_as_it_was(from: &Bed, to: &Bed) -> Result<(), BrokenStore> {
    let session = whole(from).await?;
    let old = from.store.image(&session).await?;
    let exists = |error: &Error| matches!(error, Error::SessionExists(id) if *id == session);
    not_there(to.store.restore(old.clone(), OverImage::Unchanged(old.stamp())).await)?;
    to.store.restore(old.clone(), OverImage::Nothing).await?;
    refused("an image over a session", to.other.restore(old.clone(), OverImage::Nothing).await, exists)?;
    let lease = from.take(&session, 1).await?;
    from.append(&lease, [a_record("later"), vec![Write::Title("another".into())]].concat()).await?;
    from.give_back(&lease).await?;
    let new = from.store.image(&session).await?;
    to.other.restore(new.clone(), OverImage::Unchanged(old.stamp())).await?;
    same("what took the place of the older one", to.store.image(&session).await?, new.clone())?;
    same("the list", to.store.list(9, None).await?, vec![new.row.clone()])?;
    // Whatever others do there counts.
    to.other.ask_stop(&session, wish("stop")).await?;
    let here = to.store.image(&session).await?;
    let over = to.store.restore(old, OverImage::Unchanged(new.stamp())).await;
    refused("an image over what has changed", over, exists)?;
    same("which is as it was", to.store.image(&session).await?, here)
}

async fn damaged_is_taken_by_none(from: &Bed, to: &Bed) -> Result<(), BrokenStore> {
    let session = whole(from).await?;
    let image = from.store.image(&session).await?;
    let is_damage = |error: &Error| matches!(error, Error::Damaged(..));
    let mut short = image.clone();
    short.records.pop();
    let mut other = image.clone();
    other.records[0].bytes = b"other".to_vec();
    let mut long = image.clone();
    long.records.push(super::record("more"));
    for damaged in [short, other, long] {
        let taken = to.store.restore(damaged, OverImage::Nothing).await;
        refused("a damaged image", taken, is_damage)?;
        not_there(to.other.open(&session).await)?;
    }
    Ok(())
}

async fn knows_what_it_has_of_another(bed: &Bed) -> Result<(), BrokenStore> {
    let session = whole(bed).await?;
    let old = bed.store.image(&session).await?;
    must("an image is a part of itself", old.is_part_of(&old) && old.is_same(&old))?;
    let lease = bed.take(&session, 1).await?;
    bed.append(&lease, [a_record("later"), vec![Write::OpenInbox, Write::RemoveItem(2)]].concat()).await?;
    bed.give_back(&lease).await?;
    bed.other.push(&session, item("4", "fourth")).await?;
    bed.other.decide(&session, answer("open", "anna")).await?;
    let new = bed.store.image(&session).await?;
    must("an older image is a part of a newer one", old.is_part_of(&new))?;
    must("a newer image is no part of an older one", !new.is_part_of(&old) && !new.is_same(&old))?;
    type Change = fn(&mut SessionImage);
    let changes: [(&str, Change); 6] = [
        ("a record", |image| image.records[0].bytes.push(0)),
        ("an item", |image| image.items[1].digest.push('x')),
        ("an item that was withdrawn", |image| {
            image.items[1].state = ItemState::Removed;
            image.changes.items += 1;
        }),
        ("a stop", |image| image.stops[1].bytes.push(0)),
        ("a decision", |image| image.approvals[0].state = ApprovalState::Withdrawn),
        ("an owner", |image| image.tenures[0].epoch += 1),
    ];
    for (what, change) in changes {
        let mut other = old.clone();
        change(&mut other);
        must(&format!("{what} that the newer one has not would be lost"), !other.is_part_of(&new))?;
    }
    Ok(())
}
