//! Streams that are cut, and processes that are: whatever comes, by a stream, by one that was taken up again, or by a look at
//! the task, each piece of the answer is in it once.

use std::time::Duration;

use futures_util::future::join_all;
use safepoint::{Agent, RunHandle, event::EventKind};
use safepoint_remote::a2a::Bounds;
use safepoint_testkit::{
    a2a::{A2aManners, A2aServer, A2aWire, Looks, Streams, WorkStep},
    invariants::Invariants,
    wait::{self, InTime as _},
};
use tokio::task::yield_now;

use super::world::{bounds, peer, server};

/// S10.42: pieces that a stream tells twice cannot be told from two that are alike: the task is asked, where it can be, and what
/// it has is the answer.
#[tokio::test]
async fn an_answer_that_was_told_twice_is_held_against_the_task() {
    let plan = ["one ", "two ", "three"].map(|text| WorkStep::Say(text.into()));
    for (looks, answer) in [(Looks::Well, "one two three"), (Looks::NoMethod, "one two two threethree")] {
        for wire in [A2aWire::V1, A2aWire::V03] {
            let manners =
                A2aManners::honest(wire).plan(plan.clone()).streams(Streams::TellTwice).looks(looks);
            let server = server(manners);
            let outcome = Agent::remote(peer(&server)).build().run("count").await;
            assert_eq!(outcome.answer(), Some(answer), "{wire:?}");
            assert_eq!(server.asked("GetTask"), 1, "it is looked at once");
        }
    }
    // What is not told twice is not asked for.
    let server = server(A2aManners::honest(A2aWire::V1).plan(plan));
    let outcome = Agent::remote(peer(&server)).build().run("count").await;
    assert_eq!((outcome.answer(), server.asked("GetTask")), (Some("one two three"), 0));
}

/// A die that falls the same each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }

    fn count(&mut self, most: u64) -> usize {
        usize::try_from(self.below(most)).unwrap()
    }
}

/// Pieces that repeat each other, so that none is known by what it says.
const PIECES: [&str; 5] = ["ha", "ha", "a", "haha", "! "];

struct Case {
    seed: u64,
    manners: A2aManners,
    answer: String,
    waits: usize,
}

fn case(wire: A2aWire, seed: u64) -> Case {
    let mut dice = Dice(0x9E37_79B9_7F4A_7C15 ^ (seed + 1).wrapping_mul(0xA24B_AED4_963E_E407));
    let (mut plan, mut answer, mut waits) = (Vec::new(), String::new(), 0);
    for _ in 0..=dice.below(14) {
        let piece = PIECES[dice.count(5)];
        answer.push_str(piece);
        plan.push(WorkStep::Say(piece.into()));
        if dice.below(3) == 0 {
            waits += 1;
            plan.push(WorkStep::Wait);
        }
    }
    let mut cuts = vec![1 + dice.count(8)];
    cuts.extend((0..dice.below(4)).map(|_| dice.count(5)));
    let manners = A2aManners::honest(wire).plan(plan).cuts(cuts).repeats(dice.count(4));
    Case { seed, manners, answer, waits }
}

/// Lets the work go on at odd moments.
async fn let_on(server: &A2aServer, waits: usize, mut dice: Dice) {
    for wait in 1..=waits {
        server.came(wait).await;
        for _ in 0..dice.below(200) {
            yield_now().await;
        }
        server.let_on();
    }
}

async fn is_whole(case: Case) {
    let server = server(case.manners.clone());
    let handle = Agent::remote(peer(&server)).build().run("laugh").detach();
    let done = async { tokio::join!(handle.done(), let_on(&server, case.waits, Dice(case.seed + 7))).0 };
    let outcome = done.in_time(format_args!("seed {}: its end", case.seed)).await;
    assert_eq!(outcome.answer(), Some(case.answer.as_str()), "seed {}: {:?}", case.seed, case.manners);
    assert_eq!(server.begun(), 1, "seed {}", case.seed);
    let mut events = handle.events();
    let mut shown = String::new();
    while let Some(event) = events.next().await {
        if let EventKind::Text(text) = &event.kind {
            shown.push_str(text);
        }
    }
    assert_eq!(shown, case.answer, "seed {}: each piece is shown once", case.seed);
}

/// S10.42 / T11: over 200 streams that are cut at random, each up to four times, on both wires: the answer is whole, and each
/// piece was shown once.
#[tokio::test]
async fn an_answer_is_whole_wherever_its_streams_were_cut() {
    const CASES: u64 = 200;
    const AT_ONCE: u64 = 20;
    for wire in [A2aWire::V1, A2aWire::V03] {
        for first in (0..CASES).step_by(20) {
            join_all((first..first + AT_ONCE).map(|seed| is_whole(case(wire, seed)))).await;
        }
    }
}

/// S10.42: what a peer took back while its stream was broken is not in the answer.
#[tokio::test]
async fn what_was_taken_back_meanwhile_is_not_in_the_answer() {
    for wire in [A2aWire::V1, A2aWire::V03] {
        let plan = [
            WorkStep::Say("no".into()),
            WorkStep::Wait,
            WorkStep::Anew("ye".into()),
            WorkStep::Say("s".into()),
        ];
        let server = server(A2aManners::honest(wire).plan(plan).streams(Streams::CutAfter(3)));
        let handle = Agent::remote(peer(&server)).build().run("well?").detach();
        server.came(1).await;
        server.let_on();
        let closed = Invariants::of(&handle).check().await.unwrap();
        assert_eq!(closed.outcome.answer(), Some("yes"), "{wire:?}");
    }
}

/// S10.42: where the stream broke and the task cannot be looked at, the answer says that a part of it may be missing.
#[tokio::test]
async fn an_answer_that_may_be_cut_says_so() {
    let says = |text: &str| WorkStep::Say(text.into());
    let plan = [says("one "), says("two "), WorkStep::Wait, says("three")];
    let manners =
        A2aManners::honest(A2aWire::V03).plan(plan).streams(Streams::CutAfter(3)).looks(Looks::Status(500));
    let server = server(manners);
    let handle = Agent::remote(peer(&server)).build().run("count").detach();
    server.came(1).await;
    wait::so("its stream is taken up", || server.asked("SubscribeToTask") > 0).await;
    server.let_on();
    let closed = Invariants::of(&handle).check().await.unwrap();
    let answer = closed.outcome.answer().unwrap();
    assert!(answer.starts_with("one three\n"), "{answer}");
    assert!(answer.contains("a part of this answer may be missing"), "{answer}");
}

/// All that a run showed as text.
async fn shown(handle: &RunHandle) -> String {
    let mut events = handle.events();
    let mut shown = String::new();
    while let Some(event) = events.next().in_time("its events").await {
        if let EventKind::Text(text) = &event.kind {
            shown.push_str(text);
        }
    }
    shown
}

/// S10.42: artifacts that grow in turn, on a whole stream, on one that was cut, and by looks alone: each piece is shown once, and
/// the answer has them in the order of the artifacts.
#[tokio::test]
async fn artifacts_that_grow_in_turn_are_shown_once() {
    let says = |artifact: &str, text: &str| WorkStep::SayIn(artifact.into(), text.into());
    let plan = [
        says("a", "1 "),
        says("b", "2 "),
        says("a", "3 "),
        WorkStep::Wait,
        says("b", "4 "),
        says("a", "5 "),
        says("b", "6 "),
    ];
    for wire in [A2aWire::V1, A2aWire::V03] {
        for streams in [Streams::Well, Streams::CutAfter(4), Streams::HushAfter(4)] {
            let server = server(A2aManners::honest(wire).plan(plan.clone()).streams(streams));
            let bounds = Bounds { quiet: Duration::from_millis(20), ..bounds() };
            let handle = Agent::remote(peer(&server).bounds(bounds).unwrap()).build().run("count").detach();
            server.came(1).await;
            server.let_on();
            let closed = Invariants::of(&handle).check().await.unwrap();
            assert_eq!(closed.outcome.answer(), Some("1 3 5 2 4 6 "), "{wire:?} {streams:?}");
            let mut pieces: Vec<String> =
                shown(&handle).await.split_whitespace().map(str::to_owned).collect();
            pieces.sort();
            assert_eq!(pieces, ["1", "2", "3", "4", "5", "6"], "{wire:?} {streams:?}");
        }
    }
}

/// S10.42: a stream that was cut and taken up again while the task cannot be looked at, and that tells again what it told: nothing
/// is shown twice, and the answer has each piece once.
#[tokio::test]
async fn what_arrives_again_is_shown_once_also_where_the_task_is_not_shown() {
    let says = |text: &str| WorkStep::Say(text.into());
    let plan = [says("one "), says("two "), says("three "), WorkStep::Wait, says("four")];
    for wire in [A2aWire::V1, A2aWire::V03] {
        // Before 1.0 a stream begins without the task: what it does not tell again of the piece that was cut off is missing.
        for repeats in usize::from(wire != A2aWire::V1)..4 {
            let manners = A2aManners::honest(wire).plan(plan.clone()).streams(Streams::CutAfter(4));
            let server = server(manners.looks(Looks::Status(500)).repeats(repeats));
            let handle = Agent::remote(peer(&server)).build().run("count").detach();
            server.came(1).await;
            wait::so("its stream is taken up", || server.asked("SubscribeToTask") > 0).await;
            server.let_on();
            let closed = Invariants::of(&handle).check().await.unwrap();
            let answer = closed.outcome.answer().unwrap();
            assert!(answer.starts_with("one two three four\n["), "{wire:?} {repeats}: {answer}");
            assert_eq!(shown(&handle).await, answer, "{wire:?} {repeats}");
        }
    }
}

/// S10.42: streams that were cut once and more often, and looks at the task that fail at first: what comes behind a gap is not
/// shown before what is missing, and nothing is shown twice.
#[tokio::test]
async fn what_comes_behind_a_gap_is_shown_in_its_place() {
    let says = |text: &str| WorkStep::Say(text.into());
    let plan =
        [says("1 "), says("2 "), says("3 "), WorkStep::Wait, says("4 "), says("5 "), says("6 "), says("7 ")];
    for wire in [A2aWire::V1, A2aWire::V03] {
        for (cuts, fails) in
            [(vec![3], 2), (vec![4], 2), (vec![3, 1], 2), (vec![3, 2], 3), (vec![3, 1, 1], 4)]
        {
            let manners = A2aManners::honest(wire).plan(plan.clone()).cuts(cuts.clone());
            let server = server(manners.looks(Looks::FailFirst(fails)));
            let handle = Agent::remote(peer(&server)).build().run("count").detach();
            server.came(1).await;
            wait::so("its stream is taken up", || server.asked("SubscribeToTask") > 0).await;
            server.let_on();
            let closed = Invariants::of(&handle).check().await.unwrap();
            let answer = closed.outcome.answer().unwrap();
            assert!(answer.starts_with("1 2 3 ") && answer.ends_with("6 7 "), "{wire:?} {cuts:?}: {answer}");
            assert_eq!(shown(&handle).await, answer, "{wire:?} {cuts:?}");
        }
    }
}

/// S10.42: what comes behind a gap is held for a while only; what was missing is then shown when the task is, once.
#[tokio::test]
async fn what_was_held_for_long_enough_is_shown() {
    let says = |text: &str| WorkStep::Say(text.into());
    let plan = [says("1 "), says("2 "), says("3 "), WorkStep::Wait, says("4 "), WorkStep::Wait, says("5 ")];
    let manners = A2aManners::honest(A2aWire::V03).plan(plan).streams(Streams::CutAfter(3));
    let server = server(manners.looks(Looks::FailFirst(40)));
    let bounds = Bounds { quiet: Duration::from_millis(20), ..bounds() };
    let handle = Agent::remote(peer(&server).bounds(bounds).unwrap()).build().run("count").detach();
    server.came(1).await;
    wait::so("its stream is taken up", || server.asked("SubscribeToTask") > 0).await;
    server.let_on();
    super::world::heard(&handle, "4 ").await;
    server.came(2).await;
    server.let_on();
    let closed = Invariants::of(&handle).check().await.unwrap();
    let shown = shown(&handle).await;
    let sorted = |text: &str| {
        let mut pieces: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        pieces.sort();
        pieces
    };
    assert_eq!(sorted(&shown), sorted(closed.outcome.answer().unwrap()), "{shown}");
}

/// S10.42: a stream whose first event is a task that holds pieces already: its appends continue them, and each piece is in the
/// answer once and is shown once.
#[tokio::test]
async fn a_stream_that_begins_with_a_task_under_way_continues_it() {
    let pieces = ["ha", "ha", "a ", "ho", "haha", "! "];
    let whole = pieces.concat();
    for wire in [A2aWire::V1, A2aWire::V03] {
        for events in 1..=pieces.len() {
            let mut plan: Vec<WorkStep> = pieces.map(|text| WorkStep::Say(text.into())).into();
            plan.insert(events, WorkStep::Wait);
            let server = server(A2aManners::honest(wire).plan(plan).streams(Streams::BeginAfter(events + 1)));
            let handle = Agent::remote(peer(&server)).build().run("laugh").detach();
            super::world::heard(&handle, &pieces[..events].concat()).await;
            server.let_on();
            let closed = Invariants::of(&handle).check().await.unwrap();
            assert_eq!(closed.outcome.answer(), Some(whole.as_str()), "{wire:?} {events}");
            assert_eq!(shown(&handle).await, whole, "{wire:?} {events}");
        }
    }
}
