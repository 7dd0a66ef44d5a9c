//! `kill -9` before and after every write to the store, and before, in and after every effect, enumerated, in
//! each plot.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use safepoint::{
    approval,
    raw::store::{ApprovalRow, ApprovalState, DecisionResult, NewDecision},
    store::Store as _,
};
use safepoint_stores::SqliteStore;
use safepoint_testkit::server::ModelServer;
use tokio::runtime::Runtime;

use super::{
    judge::{Found, Known, Pending, asked_once, facts, is_sound, judge, lines},
    plot::{Agents, Answers, Plot, Stop, Wish},
    process::{Death, Job, Process, Task},
    world::{script, session},
};

/// How many worlds are tried at once: most of their time they wait for each other's processes.
const AT_ONCE: usize = 6;

/// A running world: its server, and the task of its processes.
struct World<'a> {
    runtime: &'a Runtime,
    _folder: tempfile::TempDir,
    server: ModelServer,
    task: Task,
    at: String,
    lives: Vec<Known>,
}

/// What came of one kill.
enum Came {
    /// It died, and an unsafe call was in doubt, or not.
    Died { doubts: usize },
    /// It was done before.
    Outlived,
}

impl<'a> World<'a> {
    fn make(runtime: &'a Runtime, plot: Plot, death: Death) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let server = runtime.block_on(ModelServer::start(script(plot.agents))).unwrap();
        let task = Task { plot, ..Task::new(folder.path(), server.url()) };
        let at = format!("{plot:?}, {death:?}");
        Self { runtime, _folder: folder, server, task, at, lives: Vec::new() }
    }

    /// A life until this death, and what is known then. Handles first what was asked while the session had no
    /// owner.
    fn live_until(&mut self, death: Death) -> Came {
        let said = Process::start(&Task { death: Some(death), ..self.task.clone() }).hear_all();
        if said.last().is_some_and(|word| word == "all") {
            return Came::Outlived;
        }
        self.has_its_first_item();
        if let Stop::WhileDead(wish) = self.task.plot.stop {
            self.ask(wish);
        }
        if self.task.plot.answers == Answers::WhileDead {
            self.answer();
        }
        let known = self.known();
        let doubts = known.doubts();
        if known.pending != Pending::Nothing {
            self.apply_stop(&known);
        }
        self.lives.push(known);
        Came::Died { doubts }
    }

    /// Whenever the process died, a session that exists has the item that it was created with: in its inbox, or
    /// in a turn.
    fn has_its_first_item(&self) {
        let store = SqliteStore::open(&self.task.store).unwrap();
        let row = match self.runtime.block_on(store.open(&session())) {
            Err(safepoint::store::Error::NoSession(_)) => return,
            found => found.unwrap(),
        };
        let items = self.runtime.block_on(store.inbox(&session())).unwrap();
        assert!(row.head > 0 || !items.is_empty(), "{}: a session, and its prompt is lost", self.at);
    }

    fn known(&self) -> Known {
        let requests = self.server.requests().len();
        self.runtime.block_on(Known::of(&self.task.store, &self.task.ledger, requests))
    }

    /// Asks as `safepoint stop` does: the caller need not know whether the session exists yet.
    fn ask(&self, wish: Wish) {
        let store = SqliteStore::open(&self.task.store).unwrap();
        match self.runtime.block_on(store.ask_stop(&session(), wish.intent())) {
            Ok(_) | Err(safepoint::store::Error::NoSession(_)) => {}
            Err(error) => panic!("{}: {error}", self.at),
        }
    }

    /// Approves every open question, as `safepoint approve` does.
    fn answer(&self) {
        let store = SqliteStore::open(&self.task.store).unwrap();
        let bytes = serde_json::to_vec(&approval::Decision::Approve).unwrap();
        // There may be no such session yet.
        let rows = self.runtime.block_on(store.approvals(&session())).unwrap_or_default();
        for ApprovalRow { asked, .. } in rows.into_iter().filter(|row| row.state == ApprovalState::Open) {
            let yes = NewDecision {
                id: asked.id,
                digest: asked.digest,
                principal: "someone".to_owned(),
                bytes: bytes.clone(),
            };
            assert_eq!(
                self.runtime.block_on(store.decide(&session(), yes)).unwrap(),
                DecisionResult::Taken,
                "{}",
                self.at
            );
        }
    }

    /// The next owner does what was asked before it does anything else.
    fn apply_stop(&self, known: &Known) {
        let (Stop::InThePayment(wish) | Stop::InTheTransfer(wish) | Stop::WhileDead(wish)) =
            self.task.plot.stop
        else {
            panic!("{}: there is no stop", self.at)
        };
        let before = lines(&self.task.ledger).len();
        let said = Process::start(&Task { job: Job::ApplyStops, ..self.task.clone() }).hear_all();
        let last = if wish.ends_the_session() { "stopped" } else { "all" };
        assert_eq!(said, ["open", last], "{}", self.at);
        // What waits, and never began, is not the turn that was meant.
        if wish.ends_the_session() || known.pending == Pending::StopOfACutTurn {
            let after = (self.server.requests().len(), lines(&self.task.ledger).len());
            assert_eq!(after, (known.requests, before), "{}: a stop was asked, and it went on", self.at);
        }
    }

    /// Does all that is left, and holds it against what was known.
    fn end(self) {
        let last = Process::start(&self.task).hear_all();
        assert_eq!(last.last().map(String::as_str), Some("all"), "{}: {last:?}", self.at);
        let facts = self.runtime.block_on(facts(&self.task.store));
        let requests = self.server.requests();
        for request in &requests {
            assert!(request.fate_now().status != 400, "{}: refused {}", self.at, request.body);
        }
        if self.task.plot.stop == Stop::Never {
            asked_once(&self.at, &facts);
        }
        let asked = requests.iter().map(|request| Arc::clone(&request.body)).collect();
        judge(&self.at, &self.lives, &Found { facts, lines: lines(&self.task.ledger), asked });
        assert!(self.runtime.block_on(is_sound(&self.task.store)), "{}", self.at);
    }
}

fn kill_at(runtime: &Runtime, plot: Plot, death: Death) -> Came {
    let mut world = World::make(runtime, plot, death);
    if let Some(before) = plot.before {
        assert!(matches!(world.live_until(before), Came::Died { .. }), "{}", world.at);
    }
    let came = world.live_until(death);
    world.end();
    came
}

/// Kills at every point of a kind; how many there were, and after how many an unsafe call was in doubt.
fn kill_everywhere(plot: Plot, death: fn(usize) -> Death) -> (usize, usize) {
    let (next, last, doubtful) = (AtomicUsize::new(0), AtomicUsize::new(usize::MAX), AtomicUsize::new(0));
    std::thread::scope(|threads| {
        for _ in 0..AT_ONCE {
            threads.spawn(|| {
                let runtime = Runtime::new().unwrap();
                loop {
                    let at = next.fetch_add(1, Ordering::SeqCst);
                    if at >= last.load(Ordering::SeqCst) {
                        return;
                    }
                    match kill_at(&runtime, plot, death(at)) {
                        Came::Died { doubts } => doubtful.fetch_add(doubts, Ordering::SeqCst),
                        Came::Outlived => last.fetch_min(at, Ordering::SeqCst),
                    };
                }
            });
        }
    });
    (last.into_inner(), doubtful.into_inner())
}

/// At every write, and in every effect.
fn everywhere(plot: Plot, (writes, effects): (usize, usize)) {
    let mut in_doubt = 0;
    for (death, least) in [(Death::Moment as fn(usize) -> Death, writes), (Death::Effect, effects)] {
        let (points, doubtful) = kill_everywhere(plot, death);
        println!("{plot:?}: {points} points, {doubtful} in doubt");
        assert!(points >= least, "{plot:?}: {points} points");
        in_doubt += doubtful;
    }
    // The order of arrival decides which write is which; an effect that a kill hits is in doubt in any order.
    assert!(in_doubt > 0, "{plot:?}: no unsafe call was in doubt");
}

/// S7.1, S7.2, S7.3, S7.16, S8.4, S5.1, S6.2 / T2, T10: the process dies before or after any write to the
/// store, and anywhere in an effect. A session that exists has its first item. Calls with a recorded end do not run again; keyed calls get the same key; the model
/// learns that unsafe calls in doubt are unknown. No item is lost or repeated, no question comes twice, and
/// the history is valid.
/// vm0-ai/vm0#23867: killed before the checkpoint, and the session is a new one. openai/openai-agents-js#441:
/// nothing is kept during a run but by hand. GEMISIS/leviath#96: a whole round runs again after a crash.
#[test]
fn a_kill_anywhere_loses_nothing_and_does_nothing_twice() {
    everywhere(Plot::PLAIN, (60, 15));
}

/// S7.2, S7.3, S9.1, S9.3 / T10: the same with the run of another agent: it continues inside, exactly where
/// it was.
#[test]
fn a_kill_anywhere_in_a_tree_of_runs_does_nothing_twice() {
    everywhere(Plot::with(Agents::Attached), (60, 24));
}

/// S7.2, S9.1 / T10: the same with a run in the background: what it did is not done again.
#[test]
fn a_kill_beside_a_run_in_the_background_does_nothing_twice() {
    everywhere(Plot::with(Agents::Background), (60, 24));
}

/// S7.2, S7.8 / T10: a session that died in the run of another agent, killed again wherever its resume is.
#[test]
fn a_kill_anywhere_in_a_resume_does_nothing_twice() {
    const IN_THE_TRANSFER: Death = Death::Effect(13);
    everywhere(Plot::with(Agents::Attached).after(IN_THE_TRANSFER), (40, 8));
}

/// S7.2, S7.5, S7.8, S2.7 / T11: another process stops the turn, or the session, in the middle of a payment,
/// and the work is resumed. Wherever the process dies, the stop holds, and the payment is not made again.
/// mastra-ai/mastra#19869, langgenius/dify PR#39942, aprin-labs/archimedes#1667: a stop works in the process
/// that owns the run, or not at all. dbos-inc/dbos-transact-golang#443: the running step gets no stop.
/// vercel/ai#6502,
/// pydantic/pydantic-ai#7198: a durable run cannot be stopped from outside.
#[test]
fn a_stop_that_was_asked_before_the_kill_holds() {
    everywhere(Plot::PLAIN.stopped(Stop::InThePayment(Wish::Turn)), (60, 15));
    everywhere(Plot::PLAIN.stopped(Stop::InThePayment(Wish::Now)), (60, 15));
    everywhere(Plot::with(Agents::Attached).stopped(Stop::InThePayment(Wish::Graceful)), (60, 24));
}

/// S7.2, S7.3, S7.5, S2.7 / T10, T11: another process stops the turn, or the session, in its second round, in
/// the middle of a transfer, after a payment in the first round. Wherever and however often the process dies,
/// neither is made again, and the model learns that the transfer's effect is unknown.
#[test]
fn a_payment_of_an_earlier_round_is_not_made_again() {
    everywhere(Plot::PLAIN.stopped(Stop::InTheTransfer(Wish::Now)), (60, 12));
    everywhere(Plot::PLAIN.stopped(Stop::InTheTransfer(Wish::Turn)), (60, 12));
}

/// S7.2, S7.5, S8.3 / T10, T11: THU-MAIC/OpenMAIC PR#1226: a stop of a session without an owner holds for the
/// next owner, wherever the one before died: no model call, no tool call.
/// letta-ai/letta-code#2578: a question that was taken back with its session blocks the next one.
#[test]
fn a_stop_that_is_asked_while_no_process_lives_holds() {
    everywhere(Plot::PLAIN.stopped(Stop::WhileDead(Wish::Now)), (60, 15));
    everywhere(Plot::with(Agents::Attached).stopped(Stop::WhileDead(Wish::Turn)), (60, 24));
}

/// S8.4, S8.2, S7.2: a question that was open at the death is answered before the next owner comes. Wherever
/// the process died, the turn continues with the answer, no question comes twice, and each approved call runs
/// once.
#[test]
fn what_is_answered_between_the_kill_and_the_resume_is_used_once() {
    everywhere(Plot::PLAIN.answered(Answers::WhileDead), (60, 15));
    everywhere(Plot::with(Agents::Attached).answered(Answers::WhileDead), (60, 24));
}
