//! Conservation under fire: many pushers, with random preempts, steers, stops of turns, withdrawals and slow
//! readers. 1,000 rounds: in most of them eight pushers bring 8 items each, and in one of each kind 500 each,
//! so that all of it takes a few seconds; with `SAFEPOINT_ITEMS=500` each of the thousand brings 500: all of
//! them, four million items, came through unoptimised in nine minutes of CPU, 23 of the clock on two busy
//! cores. A seed that fails is named, and `SAFEPOINT_SEED` repeats it.

use safepoint::{
    Grace, SafePoints, Session, SessionHandle, StopRequest,
    approval::Decision,
    event::{EventKind, Fact},
    session::{
        ChatPlanner, ExitReason, IfUndelivered, Policy, Preempt, Push, PushError, SessionBuilder,
        SessionEvent, SessionStop, Ticket,
    },
    steer::SteerTiming,
};
use safepoint_testkit::script::Reply;

use super::{
    desk::{Desk, Planning, Reading, accounted, asks, one_after_the_other, pays},
    dice::{Dice, seeds},
};

const PUSHERS: u64 = 8;

/// What each pusher brings in a round that has many.
const MANY: u64 = 500;

/// What each pusher brings in this round: few in most, unless `SAFEPOINT_ITEMS` says how many.
fn items(seed: u64) -> u64 {
    let few = std::env::var("SAFEPOINT_ITEMS").ok().and_then(|items| items.parse().ok()).unwrap_or(8);
    if seed < KINDS.len() as u64 { MANY } else { few }
}

/// What a kind of round is like.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Plain,
    SlowReader,
    Requeues,
    SmallInbox,
    /// The planner fails in the midst: the session ends with an error.
    Breaks,
    /// Turns wait for decisions, which come.
    Suspends,
}

const KINDS: [Kind; 6] =
    [Kind::Plain, Kind::SlowReader, Kind::Requeues, Kind::SmallInbox, Kind::Breaks, Kind::Suspends];

fn session(desk: &Desk, kind: Kind) -> Session<String> {
    let chat = || Session::builder(ChatPlanner::new(desk.agent()));
    let builder: SessionBuilder<String> = match kind {
        Kind::Plain | Kind::Suspends => chat(),
        Kind::SlowReader => chat().reader(Reading::Slow),
        Kind::Requeues => desk.planned(Planning::Requeues),
        Kind::SmallInbox => return chat().inbox(4).start(),
        Kind::Breaks => desk.planned(Planning::FailsAt(20)),
    };
    builder.inbox((PUSHERS * MANY) as usize).start()
}

fn policy(dice: &mut Dice) -> Policy {
    match dice.below(12) {
        0 => Policy::steer(),
        1 => Policy::Steer(SteerTiming::AtOnce, IfUndelivered::Return),
        2 => Preempt::now().into(),
        3 => Preempt::at(SafePoints::ANY).into(),
        4 => Preempt::at_within(SafePoints::AFTER_MODEL, Grace::from_millis(1)).into(),
        5 => Preempt::now().after(std::time::Duration::from_micros(dice.below(500))).into(),
        6 => Policy::Reject,
        7 => Policy::Rollback,
        _ => Policy::Enqueue,
    }
}

/// What a pusher got for its items.
async fn pushes(session: SessionHandle<String>, seed: u64, items: u64) -> (Vec<Ticket<String>>, u64) {
    let mut dice = Dice(seed);
    let (mut tickets, mut back) = (Vec::new(), 0);
    for number in 0..items {
        let text = format!("{seed}.{number}");
        match session.push(Push::new(text.clone()).policy(policy(&mut dice))) {
            Ok(ticket) => tickets.push(ticket),
            Err(error) => {
                assert!(matches!(error, PushError::Full(_) | PushError::Closed(_)), "{error:?}");
                assert_eq!(error.into_item(), Some(text), "a refused item is back with its sender");
                back += 1;
            }
        }
        match dice.below(24) {
            0 => drop(session.stop_turn(None, StopRequest::now())),
            1 => drop(session.stop_turn(None, StopRequest::at(SafePoints::AFTER_ALL_CALLS))),
            2 => {
                session.resume().await;
            }
            3 => {
                let mine = tickets.last().map(Ticket::id);
                if let Some(mine) = mine {
                    drop(session.withdraw(mine).await);
                }
            }
            4..=12 => tokio::task::yield_now().await,
            _ => {}
        }
    }
    (tickets, back)
}

/// Decides every question that comes up; a question that closes first does not matter.
async fn decides(session: SessionHandle<String>) {
    let mut events = session.events();
    while let Some(event) = events.next().await {
        if let SessionEvent::Run { event, .. } = &event.kind
            && let EventKind::Fact(fact) = &event.kind
            && let Fact::ApprovalRequested(question) = &**fact
            && session.decide(&question.id, Decision::Approve).await.is_err()
        {
            // A stop or a preempt was first.
        }
    }
}

async fn round(kind: Kind, seed: u64, items: u64) {
    let mut dice = Dice(seed);
    let replies = (0..items).map(|_| match (kind, dice.below(8)) {
        (Kind::Suspends, 0..4) => asks(),
        (_, 0) => pays(),
        (_, 1) => Reply::default().fault(safepoint_testkit::script::ReplyFault::CloseAfter(0)),
        (_, 2) => Reply::text("in pieces").paced(2, std::time::Duration::ZERO),
        _ => Reply::text("done"),
    });
    let desk = Desk::new(replies);
    desk.tools.gate().open_for_all();
    let session = session(&desk, kind);
    let decider = tokio::spawn(decides(session.handle()));
    let pushers: Vec<_> =
        (0..PUSHERS).map(|n| tokio::spawn(pushes(session.handle(), seed * PUSHERS + n, items))).collect();
    if dice.below(3) == 0 {
        tokio::task::yield_now().await;
        session.stop(SessionStop::graceful());
    }
    let (mut tickets, mut back) = (Vec::new(), 0);
    for pusher in pushers {
        let (accepted, refused) = pusher.await.unwrap();
        tickets.extend(accepted);
        back += refused;
    }
    session.stop(
        [SessionStop::at_turn_end(), SessionStop::graceful(), SessionStop::now()][dice.below(3) as usize]
            .clone(),
    );
    assert_eq!(tickets.len() as u64 + back, PUSHERS * items, "an item is neither accepted nor back");
    let exit = accounted(&session, &tickets).await;
    let broke = matches!(exit.reason(), ExitReason::Failed(_));
    assert!(matches!(kind, Kind::Breaks) || !broke, "{exit:?}");
    one_after_the_other(&session).await;
    decider.await.unwrap();
}

/// S6.10, S6.2, S6.9, S6.13: every accepted item is in exactly one place, every refused one is back with its
/// sender.
/// pingdotgg/t3code PR#5795: a push is answered with a turn that never was.
#[test]
fn every_item_is_in_exactly_one_place() {
    for seed in seeds(1_000) {
        let kind = KINDS[(seed % KINDS.len() as u64) as usize];
        let items = items(seed);
        let ended = std::panic::catch_unwind(|| {
            let runtime = if seed % 4 == 0 {
                tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()
            } else {
                tokio::runtime::Builder::new_current_thread().enable_all().build()
            };
            // Only against a round that never ends.
            let limit = std::time::Duration::from_secs(600);
            let round = async { tokio::time::timeout(limit, round(kind, seed, items)).await };
            runtime.unwrap().block_on(round).expect("it ends");
        });
        assert!(ended.is_ok(), "{kind:?}, SAFEPOINT_SEED={seed}");
    }
}
