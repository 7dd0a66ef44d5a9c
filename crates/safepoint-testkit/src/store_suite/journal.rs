//! Facts about journals: in order, all or nothing, and chained (S7.6, S7.7).

use std::sync::Arc;

use futures_util::future::try_join_all;
use safepoint::{
    raw::store::{
        Chain, ChainCheck, ChainSummary, DamageKind, Durability, JournalEntry, Page, Record, Write,
    },
    store::Error,
};

use super::{Bed, BrokenStore, Fresh, a_record, must, not_there, record, refused, same};

/// Records stand in the order of their coming, as they were written; an append is whole or not at all; the
/// chain holds.
///
/// # Errors
/// The first fact that does not hold.
///
/// # Cancel safety
/// Nothing is lost but the check.
pub async fn journal(fresh: Fresh<'_>) -> Result<(), BrokenStore> {
    records_are_read_as_written(&Bed::make(fresh)).await?;
    a_huge_record_is_read_as_written(&Bed::make(fresh)).await?;
    an_append_is_whole_or_not_at_all(&Bed::make(fresh)).await?;
    the_chain_is_what_it_says(&Bed::make(fresh)).await?;
    journals_do_not_mix(&Bed::make(fresh)).await?;
    a_newer_record_says_so()
}

fn said(page: Page) -> Result<Vec<(u64, Record)>, BrokenStore> {
    let say = |JournalEntry { position, record }: JournalEntry| match record {
        Ok(record) => Ok((position, record)),
        Err(damage) => Err(BrokenStore::new(format!("a sound record is said to be damaged: {damage}"))),
    };
    page.entries.into_iter().map(say).collect()
}

async fn records_are_read_as_written(bed: &Bed) -> Result<(), BrokenStore> {
    const LARGE: usize = 1 << 20;
    let (session, lease) = bed.held("a").await?;
    let records = vec![
        record("one"),
        Record { path: String::new(), kind: String::new(), version: 0, bytes: Vec::new() },
        Record { path: "1/2".into(), kind: "\u{0}'ü✓".into(), version: u32::MAX, bytes: vec![0, 255, 10] },
        Record { bytes: vec![7; LARGE], ..record("") },
        record("last"),
    ];
    let writes = |range: std::ops::Range<usize>| records[range].iter().cloned().map(Write::Record).collect();
    let first = bed.append(&lease, writes(0..2)).await?;
    same("the positions of an append", (first.first, first.next), (0, 2))?;
    let second = bed.store.append(&lease, writes(2..5), Durability::Recorded).await?;
    same("the positions of the next", (second.first, second.next), (2, 5))?;
    let wanted: Vec<(u64, Record)> = (0..).zip(records).collect();
    let all = bed.other.read(&session, 0, 10).await?;
    same("where all of it continues", all.next, None)?;
    must("all of it, as written", said(all)? == wanted)?;
    let (from, most) = (1, 2);
    let page = bed.store.read(&session, from, most).await?;
    same("where a page continues", page.next, Some(3))?;
    must("a page", said(page)? == wanted[1..3])?;
    let rest = bed.store.read(&session, 3, 2).await?;
    same("where the last page continues", rest.next, None)?;
    must("the last page", said(rest)? == wanted[3..])?;
    for beyond in [5, 6, u64::from(u32::MAX)] {
        let nothing = Page { entries: vec![], next: None };
        same("beyond the end", bed.store.read(&session, beyond, 2).await?, nothing)?;
    }
    not_there(bed.store.read(&"none".into(), 0, 1).await)
}

/// A record of any size comes back as it was written, and the chain holds over it.
async fn a_huge_record_is_read_as_written(bed: &Bed) -> Result<(), BrokenStore> {
    const HUGE: usize = 8 << 20;
    let (session, lease) = bed.held("a").await?;
    let bytes: Vec<u8> = (0..HUGE).map(|at| (at % 251) as u8).collect();
    let huge = Record { bytes, ..record("huge") };
    let writes =
        vec![Write::Record(record("before")), Write::Record(huge.clone()), Write::Record(record("after"))];
    bed.append(&lease, writes).await?;
    let read = said(bed.other.read(&session, 0, 8).await?)?;
    must("it is as it was written", read.get(1).is_some_and(|(_, record)| *record == huge))?;
    same("what is around it", read.len(), 3)?;
    must("the chain holds", matches!(bed.other.check(&session).await?, ChainCheck::Intact(_)))
}

async fn an_append_is_whole_or_not_at_all(bed: &Bed) -> Result<(), BrokenStore> {
    let (session, lease) = bed.held("a").await?;
    bed.append(&lease, a_record("one")).await?;
    let before = bed.store.open(&session).await?;
    let writes = vec![
        Write::Record(record("two")),
        Write::Label("changed".into()),
        Write::CloseInbox,
        Write::TakeItem(1),
    ];
    let answer = bed.append(&lease, writes).await;
    refused("an append of which one write cannot be done", answer, |error| {
        matches!(error, Error::ItemElsewhere(1))
    })?;
    same("the session after it", bed.store.open(&session).await?, before)?;
    let pushed = bed.other.push(&session, super::item("1", "hello")).await?;
    same("the inbox after it", pushed, safepoint::raw::store::Pushed::Accepted(1))?;
    let next = bed.append(&lease, a_record("three")).await?;
    same("the position that comes next", next.first, 1)
}

async fn the_chain_is_what_it_says(bed: &Bed) -> Result<(), BrokenStore> {
    let (session, lease) = bed.held("a").await?;
    let mut chain = Chain::of(&session);
    let sound = |records, head| ChainCheck::Intact(ChainSummary { records, head });
    same("a chain of nothing", bed.store.check(&session).await?, sound(0, chain))?;
    for position in 0..20 {
        let next = record(&format!("number {position}"));
        chain = chain.then(position, &next);
        let appended = bed.append(&lease, vec![Write::Record(next)]).await?;
        same("the checksum of the newest record", appended.chain, chain)?;
    }
    same("the session's newest checksum", bed.other.open(&session).await?.chain, chain)?;
    same("a check by another process", bed.other.check(&session).await?, sound(20, chain))
}

async fn journals_do_not_mix(bed: &Bed) -> Result<(), BrokenStore> {
    const SESSIONS: usize = 16;
    const ROUNDS: u64 = 10;
    let write = |number: usize| async move {
        let (session, lease) = bed.held(&format!("session {number}")).await?;
        for round in 0..ROUNDS {
            let says = record(&format!("{number}, {round}"));
            let store = if round % 2 == 0 { &bed.store } else { &bed.other };
            let appended =
                Arc::clone(store).append(&lease, vec![Write::Record(says)], Durability::Durable).await?;
            same("a position among many writers", appended.first, round)?;
        }
        let read = said(bed.store.read(&session, 0, SESSIONS).await?)?;
        let wanted = (0..ROUNDS).map(|round| (round, record(&format!("{number}, {round}"))));
        must("a journal among many", read == wanted.collect::<Vec<_>>())
    };
    try_join_all((0..SESSIONS).map(write)).await.map(drop)
}

fn a_newer_record_says_so() -> Result<(), BrokenStore> {
    let newer = Record { version: 3, ..record("what will be said") };
    same("a version that is known", newer.known(7, 3).ok(), Some(newer.bytes.as_slice()))?;
    let damage = newer.known(7, 2).err();
    let flaw = damage.as_ref().map(|damage| (damage.position, damage.flaw.clone()));
    let wanted = DamageKind::Newer { kind: "said".into(), version: 3, known: 2 };
    same("a version that is not", flaw, Some((7, wanted)))?;
    let message = damage.map(|damage| damage.to_string()).unwrap_or_default();
    must("the message names the place, the kind and both versions", {
        ["7", "said", "3", "2"].iter().all(|part| message.contains(part))
    })
}
