//! Facts about stop intents: any client may ask, and they hold until the owner has handled them (S7.5).

use safepoint::{
    raw::store::{ApprovalState, ApprovalsToWithdraw, StopIntent, Write},
    store::Error,
};

use super::{Bed, BrokenStore, Fresh, approvals::asked, not_there, refused, same, wish};

/// Stop intents are numbered, hold until the holder has seen to them, and reach approvals if they are to.
///
/// # Errors
/// The first fact that does not hold.
///
/// # Cancel safety
/// Nothing is lost but the check.
pub async fn stops(fresh: Fresh<'_>) -> Result<(), BrokenStore> {
    a_wish_holds_until_it_is_seen_to(&Bed::make(fresh)).await?;
    an_earlier_wish_holds_when_a_later_one_is_seen_to(&Bed::make(fresh)).await?;
    a_wish_reaches_approvals_if_it_is_to(&Bed::make(fresh)).await
}

async fn shown(bed: &Bed, after: u64) -> Result<Vec<(u64, bool, String)>, BrokenStore> {
    let stops = bed.store.stops(&"a".into(), after).await?;
    let show = |stop: safepoint::raw::store::StopRow| {
        (stop.number, stop.seen, String::from_utf8_lossy(&stop.bytes).into_owned())
    };
    Ok(stops.into_iter().map(show).collect())
}

async fn a_wish_holds_until_it_is_seen_to(bed: &Bed) -> Result<(), BrokenStore> {
    let session = bed.session("a").await?;
    same("a wish before any owner", bed.other.ask_stop(&session, wish("one")).await?, 1)?;
    let lease = bed.take(&session, 1).await?;
    same("a wish while there is one", bed.other.ask_stop(&session, wish("two")).await?, 2)?;
    let (first, second) = ((1, false, "one".to_owned()), (2, false, "two".to_owned()));
    same("both", shown(bed, 0).await?, vec![first.clone(), second.clone()])?;
    same("those after the first", shown(bed, 1).await?, vec![second.clone()])?;
    same("those after the last", shown(bed, 2).await?, vec![])?;
    let at = bed.store.stops(&session, 0).await?.first().map(|stop| stop.at);
    same("when it was asked", at, Some(bed.time.now()))?;
    bed.append(&lease, vec![Write::StopSeen(1)]).await?;
    let first = (1, true, first.2);
    same("one is seen to", shown(bed, 0).await?, vec![first.clone(), second.clone()])?;
    for wrong in [0, 3] {
        let beyond = bed.append(&lease, vec![Write::Label("x".into()), Write::StopSeen(wrong)]).await;
        let is_named = |error: &Error| matches!(error, Error::NoStop(it) if *it == wrong);
        refused("one that was not asked", beyond, is_named)?;
    }
    same("nothing seen to is forgotten", shown(bed, 0).await?, vec![first.clone(), second.clone()])?;
    bed.give_back(&lease).await?;
    same("a wish after the owner", bed.other.ask_stop(&session, wish("three")).await?, 3)?;
    same("it holds for the next owner", shown(bed, 2).await?, vec![(3, false, "three".into())])?;
    not_there(bed.store.ask_stop(&"none".into(), wish("x")).await)
}

async fn an_earlier_wish_holds_when_a_later_one_is_seen_to(bed: &Bed) -> Result<(), BrokenStore> {
    let (session, lease) = bed.held("a").await?;
    for says in ["one", "two", "three"] {
        bed.other.ask_stop(&session, wish(says)).await?;
    }
    let seen = || async {
        let stops = bed.other.stops(&session, 0).await?;
        Ok::<_, BrokenStore>(stops.into_iter().map(|stop| stop.seen).collect::<Vec<_>>())
    };
    bed.append(&lease, vec![Write::StopSeen(2)]).await?;
    same("the one that was seen to, alone", seen().await?, vec![false, true, false])?;
    bed.append(&lease, vec![Write::StopSeen(2), Write::StopSeen(1)]).await?;
    same("the first too, and one of them twice", seen().await?, vec![true, true, false])
}

async fn a_wish_reaches_approvals_if_it_is_to(bed: &Bed) -> Result<(), BrokenStore> {
    let (session, _) = asked(bed, &["q", "r"]).await?;
    let states = || async {
        let rows = bed.store.approvals(&session).await?;
        Ok::<_, BrokenStore>(rows.into_iter().map(|row| row.state).collect::<Vec<_>>())
    };
    bed.other.ask_stop(&session, wish("the loop")).await?;
    same("they stay", states().await?, vec![ApprovalState::Open, ApprovalState::Open])?;
    let run = StopIntent { approvals: ApprovalsToWithdraw::Withdrawn, ..wish("the run") };
    bed.other.ask_stop(&session, run).await?;
    same("they are withdrawn", states().await?, vec![ApprovalState::Withdrawn, ApprovalState::Withdrawn])
}
