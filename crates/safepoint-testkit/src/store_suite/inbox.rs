//! Facts about the inbox: each item is in exactly one place, whatever client pushes it (S6.2, S6.10, S6.12).

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::future::try_join_all;
use safepoint::{
    raw::store::{InboxRow, ItemState, NewItem, Pushed, Withdrawn, Write},
    store::Error,
};

use super::{Bed, BrokenStore, Fresh, item, must, not_there, refused, same};

/// Any client can push an item. The client's id stays known, and the item is in exactly one place.
///
/// # Errors
/// The first fact that does not hold.
///
/// # Cancel safety
/// Nothing is lost but the check.
pub async fn inbox(fresh: Fresh<'_>) -> Result<(), BrokenStore> {
    an_item_is_known_by_its_client_s_id(&Bed::make(fresh)).await?;
    an_inbox_has_a_bound_and_a_door(&Bed::make(fresh)).await?;
    an_item_is_in_one_place(&Bed::make(fresh)).await?;
    a_withdrawn_item_is_not_taken(&Bed::make(fresh)).await?;
    pushes_at_once_are_each_accepted_once(&Bed::make(fresh)).await
}

/// The cost of an inbox of this many items. A push into it, or a refused one, costs nearly the same as into
/// an empty inbox. Listing and taking the items are one step each.
///
/// # Errors
/// The first fact that does not hold.
///
/// # Cancel safety
/// Nothing is lost but the check.
pub async fn deep_inbox(fresh: Fresh<'_>, items: usize) -> Result<(), BrokenStore> {
    /// How many pushes are measured at once, so that they share a sync, and how often; the fastest counts.
    const PUSHES: usize = 300;
    const TRIES: usize = 3;
    /// How much dearer a push may be: one that looks at each item is so more by far.
    const FACTOR: u32 = 8;
    let bed = &Bed::make(fresh);
    let (session, lease) = bed.held("a").await?;
    let push = |number: usize| {
        let id = number.to_string();
        let session = session.clone();
        async move { bed.other.push(&session, NewItem { capacity: items, ..item(&id, &id) }).await }
    };
    let measure = async |from: usize| {
        let mut best = Duration::MAX;
        for try_ in 0..TRIES {
            let began = Instant::now();
            let first = from + try_ * PUSHES;
            try_join_all((first..first + PUSHES).map(push)).await?;
            best = best.min(began.elapsed());
        }
        Ok::<_, BrokenStore>(best)
    };
    let shallow = measure(0).await?;
    let last = items - TRIES * PUSHES;
    try_join_all((TRIES * PUSHES..last).map(push)).await?;
    let deep = measure(last).await?;
    must(&format!("a push costs {shallow:?} at first, and {deep:?} later"), deep < shallow * FACTOR)?;
    same("a push at the bound", push(items).await?, Pushed::Full)?;
    same("one that is known, at the bound", push(7).await?, Pushed::Same(8))?;
    let all: Vec<u64> = bed.store.inbox(&session).await?.iter().map(|item| item.number).collect();
    must("all are listed, in their order", all == (1..=items as u64).collect::<Vec<_>>())?;
    bed.append(&lease, all.iter().copied().map(Write::TakeItem).collect()).await?;
    same("none waits any more", push(items).await?, Pushed::Accepted(items as u64 + 1))?;
    bed.append(&lease, all.into_iter().map(Write::RemoveItem).collect()).await?;
    same("the one that is left", bed.other.inbox(&session).await?.len(), 1)
}

fn numbers(items: &[InboxRow]) -> Vec<(u64, ItemState)> {
    items.iter().map(|item| (item.number, item.state)).collect()
}

async fn an_item_is_known_by_its_client_s_id(bed: &Bed) -> Result<(), BrokenStore> {
    let session = bed.session("a").await?;
    let push = |push| bed.other.push(&session, push);
    same("a push before any owner", push(item("x", "hello")).await?, Pushed::Accepted(1))?;
    same("the same again", push(item("x", "hello")).await?, Pushed::Same(1))?;
    same("another content under the id", push(item("x", "other")).await?, Pushed::Conflict(1))?;
    let nameless = NewItem { client_id: None, ..item("", "hello") };
    same("one without an id", push(nameless.clone()).await?, Pushed::Accepted(2))?;
    same("another without an id", push(nameless).await?, Pushed::Accepted(3))?;
    same("one that is known, when all is full", push(item("x", "hello")).await?, Pushed::Same(1))?;
    let first = bed.store.inbox(&session).await?.into_iter().next();
    let wanted = InboxRow {
        number: 1,
        client_id: Some("x".into()),
        digest: item("x", "hello").digest,
        state: ItemState::Waiting,
        at: bed.time.now(),
        bytes: b"hello".to_vec(),
    };
    same("the item as it is listed", first, Some(wanted))?;
    let lease = bed.take(&session, 1).await?;
    bed.append(&lease, vec![Write::TakeItem(1), Write::RemoveItem(1)]).await?;
    same("an id whose item is long done", push(item("x", "hello")).await?, Pushed::Same(1))?;
    same("another content, still", push(item("x", "other")).await?, Pushed::Conflict(1))?;
    let elsewhere = bed.session("b").await?;
    let pushed = bed.store.push(&elsewhere, item("x", "x")).await?;
    same("the id in another session", pushed, Pushed::Accepted(1))?;
    not_there(bed.store.push(&"none".into(), item("x", "x")).await)
}

async fn an_inbox_has_a_bound_and_a_door(bed: &Bed) -> Result<(), BrokenStore> {
    let (session, lease) = bed.held("a").await?;
    let push = |id: &'static str| bed.other.push(&session, item(id, id));
    for (id, number) in [("1", 1), ("2", 2), ("3", 3)] {
        same("a push below the bound", push(id).await?, Pushed::Accepted(number))?;
    }
    let before = bed.store.open(&session).await?;
    same("a push at the bound", push("4").await?, Pushed::Full)?;
    bed.time.pass(super::TTL);
    same("a refused push changes nothing", push("4").await?, Pushed::Full)?;
    same("the session after it", bed.store.open(&session).await?, before)?;
    bed.append(&lease, vec![Write::TakeItem(1)]).await?;
    same("a taken item makes room", push("4").await?, Pushed::Accepted(4))?;
    bed.append(&lease, vec![Write::CloseInbox]).await?;
    same("a push at a closed door", push("5").await?, Pushed::Closed)?;
    same("one that is known, at a closed door", push("4").await?, Pushed::Same(4))?;
    bed.append(&lease, vec![Write::OpenInbox, Write::RemoveItem(2)]).await?;
    same("the door is open again", push("5").await?, Pushed::Accepted(5))
}

async fn an_item_is_in_one_place(bed: &Bed) -> Result<(), BrokenStore> {
    use ItemState::{Taken, Waiting};
    let (session, lease) = bed.held("a").await?;
    for id in ["1", "2", "3"] {
        bed.store.push(&session, item(id, id)).await?;
    }
    bed.append(&lease, vec![Write::TakeItem(1), Write::TakeItem(3)]).await?;
    let at = bed.store.inbox(&session).await?.into_iter().map(|row| Some(row.at)).nth(2).flatten();
    let list = bed.other.inbox(&session).await?;
    same("two that are taken", numbers(&list), vec![(1, Taken), (2, Waiting), (3, Taken)])?;
    bed.append(&lease, vec![Write::PutBackItem(1), Write::RemoveItem(3)]).await?;
    let list = bed.other.inbox(&session).await?;
    same("one at its old place, one done", numbers(&list), vec![(1, Waiting), (2, Waiting)])?;
    same("when the one that is done was accepted", bed.other.accepted(&session, 3).await?, at)?;
    for none in [0, 4, u64::MAX] {
        same("when an item was accepted that is none", bed.store.accepted(&session, none).await?, None)?;
    }
    same("its content is still there", list[0].bytes.as_slice(), b"1".as_slice())?;
    for wrong in [
        Write::TakeItem(3),
        Write::PutBackItem(2),
        Write::RemoveItem(3),
        Write::TakeItem(9),
        Write::TakeItem(0),
    ] {
        let answer = bed.append(&lease, vec![wrong]).await;
        refused("an item that is elsewhere", answer, |error| matches!(error, Error::ItemElsewhere(_)))?;
    }
    same("nothing has moved", numbers(&bed.other.inbox(&session).await?), vec![(1, Waiting), (2, Waiting)])
}

async fn a_withdrawn_item_is_not_taken(bed: &Bed) -> Result<(), BrokenStore> {
    let (session, lease) = bed.held("a").await?;
    for id in ["1", "2"] {
        bed.store.push(&session, item(id, id)).await?;
    }
    bed.append(&lease, vec![Write::TakeItem(1)]).await?;
    same("one that is taken", bed.other.withdraw(&session, 1).await?, Withdrawn::Taken)?;
    let withdrawn = bed.other.withdraw(&session, 2).await?;
    must("one that waits comes back whole", {
        matches!(&withdrawn, Withdrawn::Item(item) if item.number == 2 && item.bytes == b"2")
    })?;
    same("the same again", bed.other.withdraw(&session, 2).await?, Withdrawn::Taken)?;
    same("one that never was", bed.other.withdraw(&session, 3).await?, Withdrawn::Unknown)?;
    let taken = bed.append(&lease, vec![Write::TakeItem(2)]).await;
    refused("a withdrawn item", taken, |error| matches!(error, Error::ItemElsewhere(2)))?;
    same("its id stays known", bed.other.push(&session, item("2", "2")).await?, Pushed::Same(2))
}

async fn pushes_at_once_are_each_accepted_once(bed: &Bed) -> Result<(), BrokenStore> {
    const TRIES: usize = 4;
    const ITEMS: usize = 8;
    let session = bed.session("a").await?;
    let pushes = (0..TRIES * ITEMS).map(|number| {
        let store = Arc::clone(if number % 2 == 0 { &bed.store } else { &bed.other });
        let (session, id) = (session.clone(), (number % ITEMS).to_string());
        async move { store.push(&session, NewItem { capacity: ITEMS, ..item(&id, &id) }).await }
    });
    let pushed = try_join_all(pushes).await?;
    let accepted = pushed.iter().filter(|pushed| matches!(pushed, Pushed::Accepted(_))).count();
    let known = pushed.iter().filter(|pushed| matches!(pushed, Pushed::Same(_))).count();
    same("how many were accepted, and how many known", (accepted, known), (ITEMS, (TRIES - 1) * ITEMS))?;
    let numbers: Vec<u64> = bed.store.inbox(&session).await?.iter().map(|item| item.number).collect();
    same("their numbers", numbers, (1..=ITEMS as u64).collect())
}
