//! Facts about approvals: the first answer decides, once, and only about the arguments that were shown
//! (S8.1-S8.3).

use std::{sync::Arc, time::Duration};

use futures_util::future::try_join_all;
use safepoint::{
    ids::{ApprovalId, SessionId},
    raw::store::{
        ApprovalClose, ApprovalRow, ApprovalState, ApprovalsToWithdraw, DecisionResult, DecisionUse, Lease,
        NewApproval, NewDecision, SessionApproval, StopIntent, Write,
    },
    store::{Error, Store},
};

use super::{Bed, BrokenStore, Fresh, must, refused, same, wish};

/// How long a question stays open here.
const OPEN_FOR: Duration = Duration::from_secs(60);

/// Approvals are decided once, in time, about the arguments that were shown; what a stop took back is not
/// revived.
///
/// # Errors
/// The first fact that does not hold.
///
/// # Cancel safety
/// Nothing is lost but the check.
pub async fn approvals(fresh: Fresh<'_>) -> Result<(), BrokenStore> {
    a_question_is_kept_whole(&Bed::make(fresh)).await?;
    the_first_decision_counts(&Bed::make(fresh)).await?;
    one_of_many_deciders_is_taken(&Bed::make(fresh)).await?;
    a_decision_is_about_the_arguments_shown(&Bed::make(fresh)).await?;
    a_question_ends_in_time(&Bed::make(fresh)).await?;
    what_a_stop_took_back_is_not_revived(&Bed::make(fresh)).await?;
    a_stop_takes_back_what_it_means_alone(&Bed::make(fresh)).await?;
    a_decision_that_came_first_stands(&Bed::make(fresh)).await?;
    the_open_ones_of_all_sessions_are_listed(&Bed::make(fresh)).await
}

fn question(bed: &Bed, id: &str) -> NewApproval {
    let now = bed.time.now();
    NewApproval {
        id: id.into(),
        run: "run".into(),
        call: "call".into(),
        digest: format!("digest of {id}"),
        expires: now.saturating_add(OPEN_FOR).unwrap_or(now),
        bytes: b"may it run?".to_vec(),
    }
}

pub(super) fn ask(bed: &Bed, id: &str) -> Write {
    Write::OpenApproval(question(bed, id))
}

pub(super) fn answer(id: &str, principal: &str) -> NewDecision {
    NewDecision {
        id: id.into(),
        digest: format!("digest of {id}"),
        principal: principal.into(),
        bytes: format!("{principal} says yes").into_bytes(),
    }
}

fn close(id: &str, how: ApprovalClose) -> Write {
    Write::CloseApproval(id.into(), how)
}

/// A session in which these questions are open.
pub(super) async fn asked(bed: &Bed, ids: &[&str]) -> Result<(SessionId, Lease), BrokenStore> {
    let (session, lease) = bed.held("a").await?;
    bed.append(&lease, ids.iter().map(|id| ask(bed, id)).collect()).await?;
    Ok((session, lease))
}

/// What the session's question comes to when this principal decides.
async fn decide(store: &Arc<dyn Store>, id: &str, principal: &str) -> Result<DecisionResult, Error> {
    store.decide(&"a".into(), answer(id, principal)).await
}

async fn state(bed: &Bed, id: &str) -> Result<Option<ApprovalState>, BrokenStore> {
    let row = bed.other.approval(&"a".into(), &ApprovalId::from(id)).await?;
    Ok(row.map(|row| row.state))
}

async fn a_question_is_kept_whole(bed: &Bed) -> Result<(), BrokenStore> {
    let (session, lease) = asked(bed, &["q", "r"]).await?;
    let wanted =
        |id: &str| ApprovalRow { asked: question(bed, id), at: bed.time.now(), state: ApprovalState::Open };
    same("both", bed.other.approvals(&session).await?, vec![wanted("q"), wanted("r")])?;
    same("one", bed.other.approval(&session, &"r".into()).await?, Some(wanted("r")))?;
    same("none", bed.other.approval(&session, &"s".into()).await?, None)?;
    let again = bed.append(&lease, vec![ask(bed, "q")]).await;
    refused("a question asked twice", again, |error| matches!(error, Error::ApprovalExists(_)))?;
    let elsewhere = bed.held("b").await?.1;
    bed.append(&elsewhere, vec![ask(bed, "q")]).await?;
    let decided = bed.other.decide(&"b".into(), answer("q", "ann")).await?;
    same("another session's answer", decided, DecisionResult::Taken)?;
    same("does not reach this one", state(bed, "q").await?, Some(ApprovalState::Open))
}

async fn the_first_decision_counts(bed: &Bed) -> Result<(), BrokenStore> {
    let (_, lease) = asked(bed, &["q", "r"]).await?;
    let early = bed.append(&lease, vec![close("q", ApprovalClose::Used)]).await;
    refused("a decision acted on before there is one", early, |error| matches!(error, Error::NoApproval(_)))?;
    same("the first", decide(&bed.other, "q", "ann").await?, DecisionResult::Taken)?;
    let (principal, at, bytes) = ("ann".to_owned(), bed.time.now(), b"ann says yes".to_vec());
    bed.time.pass(Duration::from_secs(1));
    let first = DecisionResult::AlreadyDecided { principal: principal.clone(), at, bytes: bytes.clone() };
    same("the second gets the first decision", decide(&bed.store, "q", "bob").await?, first.clone())?;
    same("so is the first, again", decide(&bed.store, "q", "ann").await?, first.clone())?;
    let decided =
        |used| ApprovalState::Decided { principal: principal.clone(), at, bytes: bytes.clone(), used };
    same("it waits for the holder", state(bed, "q").await?, Some(decided(DecisionUse::Waiting)))?;
    same("the other question is open", state(bed, "r").await?, Some(ApprovalState::Open))?;
    for _ in 0..2 {
        bed.append(&lease, vec![close("q", ApprovalClose::Used)]).await?;
        same("it is acted on", state(bed, "q").await?, Some(decided(DecisionUse::Used)))?;
    }
    same("it stays decided", decide(&bed.store, "q", "bob").await?, first)?;
    same("a question never asked", decide(&bed.store, "s", "bob").await?, DecisionResult::Unknown)
}

async fn one_of_many_deciders_is_taken(bed: &Bed) -> Result<(), BrokenStore> {
    const MANY: usize = 16;
    asked(bed, &["q"]).await?;
    let decisions = (0..MANY).map(|number| async move {
        let store = if number % 2 == 0 { &bed.store } else { &bed.other };
        let who = format!("principal {number}");
        let came = decide(store, "q", &who).await?;
        Ok::<_, BrokenStore>((who, came))
    });
    let decided = try_join_all(decisions).await?;
    let taken: Vec<&String> =
        decided.iter().filter(|(_, came)| *came == DecisionResult::Taken).map(|(who, _)| who).collect();
    same("how many were taken", taken.len(), 1)?;
    let names_the_first = |came: &DecisionResult| match came {
        DecisionResult::AlreadyDecided { principal, .. } => *principal == *taken[0],
        _ => false,
    };
    let others = decided.iter().filter(|(_, came)| names_the_first(came)).count();
    same("how many got the first decision", others, MANY - 1)
}

async fn a_decision_is_about_the_arguments_shown(bed: &Bed) -> Result<(), BrokenStore> {
    let (session, _) = asked(bed, &["q"]).await?;
    let other = NewDecision { digest: "digest of what was shown before".into(), ..answer("q", "ann") };
    let wanted = DecisionResult::OtherArguments { digest: "digest of q".into() };
    same("an answer about other arguments", bed.other.decide(&session, other).await?, wanted)?;
    same("the question is open", state(bed, "q").await?, Some(ApprovalState::Open))?;
    same("the right answer", decide(&bed.other, "q", "ann").await?, DecisionResult::Taken)
}

async fn a_question_ends_in_time(bed: &Bed) -> Result<(), BrokenStore> {
    let (_, lease) = asked(bed, &["q", "r"]).await?;
    bed.time.pass(OPEN_FOR - Duration::from_micros(1));
    same("just in time", decide(&bed.other, "q", "ann").await?, DecisionResult::Taken)?;
    bed.time.pass(Duration::from_micros(1));
    same("just too late", decide(&bed.other, "r", "ann").await?, DecisionResult::Expired)?;
    bed.append(&lease, vec![close("r", ApprovalClose::Expired)]).await?;
    same("it has expired", state(bed, "r").await?, Some(ApprovalState::Expired))?;
    same("and stays so", decide(&bed.other, "r", "ann").await?, DecisionResult::Expired)
}

async fn what_a_stop_took_back_is_not_revived(bed: &Bed) -> Result<(), BrokenStore> {
    let (session, lease) = asked(bed, &["q", "r"]).await?;
    let closed = bed.append(&lease, vec![close("q", ApprovalClose::Withdrawn)]).await?;
    same("nothing was decided before", closed.decided, vec![])?;
    bed.give_back(&lease).await?;
    let run = StopIntent { approvals: ApprovalsToWithdraw::Withdrawn, ..wish("the run") };
    bed.other.ask_stop(&session, run).await?;
    for id in ["q", "r"] {
        same("an answer after the stop", decide(&bed.other, id, "ann").await?, DecisionResult::Withdrawn)?;
        same("the question after it", state(bed, id).await?, Some(ApprovalState::Withdrawn))?;
    }
    let lease = bed.take(&session, 2).await?;
    let used = bed.append(&lease, vec![close("q", ApprovalClose::Used)]).await;
    refused("a decision that never was", used, |error| matches!(error, Error::NoApproval(_)))?;
    let none = bed.append(&lease, vec![close("s", ApprovalClose::Withdrawn)]).await;
    refused("a question that never was", none, |error| matches!(error, Error::NoApproval(_)))
}

async fn a_stop_takes_back_what_it_means_alone(bed: &Bed) -> Result<(), BrokenStore> {
    let (session, _) = asked(bed, &["q", "r", "s"]).await?;
    decide(&bed.other, "s", "ann").await?;
    let before = bed.store.notice(&session).await?.decisions;
    let only = ApprovalsToWithdraw::Only(vec!["q".into(), "s".into(), "never".into()]);
    bed.other.ask_stop(&session, StopIntent { approvals: only, ..wish("one run") }).await?;
    same("the one that is meant", state(bed, "q").await?, Some(ApprovalState::Withdrawn))?;
    same("another", state(bed, "r").await?, Some(ApprovalState::Open))?;
    let decided = state(bed, "s").await?;
    must("what was decided stands", matches!(decided, Some(ApprovalState::Decided { .. })))?;
    must("the holder sees it", bed.store.notice(&session).await?.decisions > before)
}

async fn a_decision_that_came_first_stands(bed: &Bed) -> Result<(), BrokenStore> {
    let (_, lease) = asked(bed, &["q", "r"]).await?;
    decide(&bed.other, "q", "ann").await?;
    let writes = vec![
        close("q", ApprovalClose::Withdrawn),
        close("r", ApprovalClose::Withdrawn),
        close("q", ApprovalClose::Expired),
    ];
    let closed = bed.append(&lease, writes).await?;
    same("the holder sees it", closed.decided, vec!["q".into(), "q".into()])?;
    let q = state(bed, "q").await?;
    let stands = matches!(q, Some(ApprovalState::Decided { used: DecisionUse::Waiting, .. }));
    must("the decision stands", stands)?;
    same("the other is withdrawn", state(bed, "r").await?, Some(ApprovalState::Withdrawn))
}

/// The names of what is open, by pages of this size.
async fn open_by(bed: &Bed, most: usize) -> Result<Vec<String>, BrokenStore> {
    let (mut names, mut after) = (Vec::new(), None);
    loop {
        let page = bed.other.open_approvals(most, after).await?;
        must("no page is larger than was asked for", page.len() <= most)?;
        after = page.last().map(SessionApproval::after);
        if after.is_none() {
            return Ok(names);
        }
        for SessionApproval { session, row } in page {
            let same_row = bed.store.approval(&session, &row.asked.id).await?;
            same("what is listed is what is there", Some(&row), same_row.as_ref())?;
            names.push(format!("{session}:{}", row.asked.id));
        }
    }
}

async fn the_open_ones_of_all_sessions_are_listed(bed: &Bed) -> Result<(), BrokenStore> {
    let (_, a) = asked(bed, &["q", "d"]).await?;
    let b = bed.held("b").await?.1;
    // The order is that in which they were asked, and of what was asked at one time that of the names.
    bed.append(&b, vec![ask(bed, "q"), ask(bed, "p")]).await?;
    bed.time.pass(Duration::from_secs(1));
    bed.append(&b, vec![ask(bed, "first of all names"), ask(bed, "w")]).await?;
    bed.time.pass(Duration::from_secs(1));
    bed.append(&a, vec![ask(bed, "e"), ask(bed, "x")]).await?;
    let all = ["a:d", "a:q", "b:p", "b:q", "b:first of all names", "b:w", "a:e", "a:x"];
    for most in [1, 2, 3, 100] {
        same("those that are open", open_by(bed, most).await?, all.map(str::to_owned).to_vec())?;
    }
    same("none where none is wanted", bed.other.open_approvals(0, None).await?, vec![])?;
    decide(&bed.other, "d", "ann").await?;
    bed.append(&a, vec![close("d", ApprovalClose::Used)]).await?;
    let only = ApprovalsToWithdraw::Only(vec!["w".into()]);
    bed.other.ask_stop(&"b".into(), StopIntent { approvals: only, ..wish("one run") }).await?;
    bed.append(&a, vec![close("e", ApprovalClose::Expired), close("x", ApprovalClose::Withdrawn)]).await?;
    let left = ["a:q", "b:p", "b:q", "b:first of all names"];
    same("those that are open still", open_by(bed, 2).await?, left.map(str::to_owned).to_vec())?;
    let refused_write =
        bed.append(&b, vec![close("p", ApprovalClose::Withdrawn), close("never", ApprovalClose::Used)]).await;
    refused("a write that fails", refused_write, |error| matches!(error, Error::NoApproval(_)))?;
    same("has closed nothing", open_by(bed, 3).await?, left.map(str::to_owned).to_vec())?;
    bed.give_back(&b).await?;
    bed.other.remove(&"b".into()).await?;
    same("those of a session that is gone are gone", open_by(bed, 3).await?, vec!["a:q".to_owned()])
}
