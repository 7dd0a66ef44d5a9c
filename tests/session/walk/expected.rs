//! The reference: what the specification says of each step, where nothing is under way between two of them.
//!
//! **Invariants**: an item is in the turn, waiting, on its way as a steer, or has a fate.

use safepoint::session::{ItemOutcome, PreemptOutcome, RejectReason};

use super::steps::Step;
use crate::desk::turn;

/// What the reference believes. Exhaustive: all that is so, or one rule is wrong, to see that the walk finds
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Belief {
    Sound,
    RejectsAreQueued,
}

/// What is known of an item.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) fate: Option<ItemOutcome>,
    pub(super) preempted: Option<PreemptOutcome>,
    /// It came to take a turn's place.
    preempting: bool,
}

/// Whose request takes effect on the turn. Exhaustive: a preempt's, or another caller's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Preempt,
    Other,
}

/// How a turn's end is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Now,
    AtAny,
}

/// One preempt, and how far it is.
#[derive(Clone, Copy, Debug)]
struct Preempt {
    item: usize,
    due: Option<u64>,
    grace: Option<u64>,
    rollback: bool,
}

#[expect(clippy::struct_excessive_bools, reason = "a reference says plainly what is so")]
#[derive(Clone, Debug, Default)]
struct Turn {
    number: u64,
    items: Vec<usize>,
    /// Those that may go back to their sender are so marked.
    steers: Vec<(usize, bool)>,
    /// Who asked first for the first safe point.
    pending: Option<By>,
    stopped_at: Option<usize>,
    protected: bool,
    session_stop: bool,
    rollback: bool,
    asks: bool,
}

/// A turn that ended early.
#[derive(Clone, Debug)]
struct Left {
    number: u64,
    items: Vec<usize>,
    suspended: bool,
    /// What its next model request has; those that may go back to their sender are so marked.
    steers: Vec<(usize, bool)>,
    /// Whether it asks a person as soon as it continues.
    asks: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Expected {
    belief: Belief,
    pub(super) items: Vec<Known>,
    pub(super) over: bool,
    waiting: Vec<usize>,
    turn: Option<Turn>,
    left: Option<Left>,
    preempts: Vec<Preempt>,
    barrier: usize,
    turns: u64,
    streak: u32,
    stopping: bool,
    /// When it was asked, and since when it is idle.
    idle_asked: Option<u64>,
    idle_since: u64,
    now: u64,
}

/// Milliseconds.
pub(super) const HOUR: u64 = 3_600_000;
/// How many turns in a row are preempted before one is protected.
const PATIENCE: u32 = 3;

impl Expected {
    pub(super) fn new(belief: Belief) -> Self {
        Self {
            belief,
            items: Vec::new(),
            over: false,
            waiting: Vec::new(),
            turn: None,
            left: None,
            preempts: Vec::new(),
            barrier: 0,
            turns: 0,
            streak: 0,
            stopping: false,
            idle_asked: None,
            idle_since: 0,
            now: 0,
        }
    }

    /// The active turn, and its items.
    pub(super) fn running(&self) -> Option<(u64, Vec<usize>)> {
        self.turn.as_ref().map(|turn| (turn.number, turn.items.clone()))
    }

    pub(super) fn unhandled(&self) -> Vec<usize> {
        (0..self.items.len()).filter(|item| self.items[*item].fate == Some(ItemOutcome::Unhandled)).collect()
    }

    fn is_suspended(&self) -> bool {
        self.left.as_ref().is_some_and(|left| left.suspended)
    }

    /// Takes a step that happened at `now`, and all that follows from it.
    pub(super) fn take(&mut self, step: Step, now: u64) {
        self.pass_to(now);
        if self.over {
            return;
        }
        match step {
            Step::Enqueue
            | Step::Reject
            | Step::SteerOrQueue
            | Step::SteerOrReturn
            | Step::PreemptNow
            | Step::PreemptAtAny
            | Step::PreemptWithin
            | Step::PreemptLater
            | Step::PreemptOther
            | Step::Rollback => self.push(step),
            Step::Withdraw(wanted) => self.withdraw(wanted),
            Step::StopTurnNow => self.stop_turn(Asked::Now),
            Step::StopTurnAtAny => self.stop_turn(Asked::AtAny),
            Step::Resume => self.resume(),
            Step::Approve => self.approve(),
            Step::Answer => self.answer(),
            Step::Fail => self.end_if_running(|number| ItemOutcome::Failed(turn(number))),
            Step::Round => self.round(),
            Step::Ask => self.ask(),
            Step::StopAtTurnEnd => self.stop(None),
            Step::StopGraceful => self.stop(Some(Asked::AtAny)),
            Step::StopNow => self.stop(Some(Asked::Now)),
            Step::StopWhenIdle if !self.stopping => {
                self.idle_asked.get_or_insert(self.now);
            }
            Step::KeepOpen => self.idle_asked = None,
            Step::StopWhenIdle | Step::StopTurnOther | Step::Wait => {}
        }
        self.proceed();
    }

    /// Between turns: the end, or the next turn, or nothing.
    fn proceed(&mut self) {
        if self.over || self.turn.is_some() {
            return;
        }
        if self.stopping {
            return self.end();
        }
        let fresh = self.waiting.iter().any(|item| *item >= self.barrier);
        if fresh && !self.is_suspended() {
            let first = self.waiting.iter().position(|item| self.items[*item].preempting);
            let item = self.waiting.remove(first.unwrap_or(0));
            self.turns += 1;
            self.left = None;
            self.begin(self.turns, vec![item]);
        }
    }

    fn begin(&mut self, number: u64, items: Vec<usize>) {
        self.barrier = 0;
        self.turn = Some(Turn { number, items, protected: self.streak >= PATIENCE, ..Turn::default() });
    }

    fn end(&mut self) {
        self.over = true;
        for preempt in std::mem::take(&mut self.preempts) {
            self.items[preempt.item].preempted = Some(PreemptOutcome::SupersededByStop);
        }
        let held = self.left.as_mut().map(|left| std::mem::take(&mut left.steers));
        self.return_steers(held.unwrap_or_default());
        for item in std::mem::take(&mut self.waiting) {
            self.items[item].fate = Some(ItemOutcome::Unhandled);
        }
    }

    fn back(&mut self, item: usize, why: RejectReason) {
        self.items[item].fate = Some(ItemOutcome::Returned(why));
    }

    fn wait(&mut self, item: usize) {
        let place = self.waiting.partition_point(|waiting| *waiting < item);
        self.waiting.insert(place, item);
    }

    fn push(&mut self, step: Step) {
        let item = self.items.len();
        self.items.push(Known::default());
        self.idle_since = self.now;
        let busy = self.turn.is_some() || self.is_suspended();
        match step {
            Step::Reject if busy && self.belief == Belief::Sound => {
                let running = self.turn.as_ref().map(|turn| turn.number);
                let waits = self.left.as_ref().map(|left| left.number);
                self.back(item, RejectReason::Busy(running.or(waits).map(turn)));
            }
            Step::PreemptOther => self.back(item, RejectReason::TurnMismatch),
            Step::SteerOrQueue | Step::SteerOrReturn => self.steer(item, step == Step::SteerOrReturn),
            Step::Enqueue | Step::Reject => self.wait(item),
            preempt => {
                self.items[item].preempting = true;
                self.wait(item);
                if busy {
                    self.preempt(item, preempt)
                } else {
                    self.items[item].preempted = Some(PreemptOutcome::NoTurn);
                }
            }
        }
    }

    fn steer(&mut self, item: usize, returns: bool) {
        let suspended = self.left.as_mut().filter(|left| left.suspended);
        match (&mut self.turn, suspended, returns) {
            (Some(turn), ..) => turn.steers.push((item, returns)),
            (None, Some(left), false) => left.steers.push((item, returns)),
            (None, None, false) => self.wait(item),
            (None, _, true) => self.back(item, RejectReason::NoActiveTurn),
        }
    }

    fn preempt(&mut self, item: usize, step: Step) {
        let rollback = step == Step::Rollback;
        let due = (step == Step::PreemptLater).then_some(self.now + HOUR);
        let grace = (step == Step::PreemptWithin).then_some(self.now + HOUR);
        self.preempts.push(Preempt { item, due, grace, rollback });
        if due.is_none() {
            let points = matches!(step, Step::PreemptAtAny | Step::PreemptWithin);
            self.fire(if points { Asked::AtAny } else { Asked::Now }, rollback);
        }
    }

    /// A preempt asks: a suspended turn ends at once, a protected one not at all.
    fn fire(&mut self, asked: Asked, rollback: bool) {
        match &mut self.turn {
            // No grace either: it may run to its end, or until it waits for a decision.
            Some(turn) if turn.protected => self.preempts.iter_mut().for_each(|preempt| preempt.grace = None),
            Some(turn) => {
                turn.rollback |= rollback;
                if asked == Asked::Now {
                    self.stopped(By::Preempt);
                } else {
                    turn.pending.get_or_insert(By::Preempt);
                }
            }
            None => self.end_suspended(By::Preempt),
        }
    }

    /// The suspended turn is ended: its question is closed.
    fn end_suspended(&mut self, by: By) {
        let Some(left) = self.left.take() else { return };
        let asked = |preempt: &Preempt| preempt.due.is_none();
        let rollback = self.preempts.iter().any(|preempt| asked(preempt) && preempt.rollback);
        let Left { number, items, steers, .. } = left;
        self.turn = Some(Turn { number, items, steers, rollback, asks: true, ..Turn::default() });
        if by == By::Other
            && let Some(turn) = &mut self.turn
        {
            turn.stopped_at = Some(self.items.len());
        }
        self.stopped(by);
    }

    /// The active turn stops, by the request of `by`.
    fn stopped(&mut self, by: By) {
        let Some(running) = &self.turn else { return };
        let number = turn(running.number);
        let asked = self.preempts.iter().any(|preempt| preempt.due.is_none());
        let fate = match by {
            By::Preempt if running.session_stop || !asked => ItemOutcome::Interrupted(number),
            By::Preempt if running.rollback => ItemOutcome::RolledBack(number),
            By::Preempt => ItemOutcome::Preempted(number),
            By::Other => ItemOutcome::Interrupted(number),
        };
        self.close(fate);
    }

    fn end_if_running(&mut self, fate: impl Fn(u64) -> ItemOutcome) {
        if let Some(turn) = &self.turn {
            self.close(fate(turn.number));
        }
    }

    /// A natural end, unless a steer is still to be delivered: the turn is asked again with it.
    fn answer(&mut self) {
        match &self.turn {
            Some(turn) if turn.pending.is_none() && !turn.steers.is_empty() => self.round(),
            Some(turn) => self.close(ItemOutcome::Completed(crate::desk::turn(turn.number))),
            None => {}
        }
    }

    fn close(&mut self, fate: ItemOutcome) {
        let Some(turn) = self.turn.take() else { return };
        self.return_steers(turn.steers.clone());
        let came_to = match fate {
            ItemOutcome::Preempted(number) | ItemOutcome::RolledBack(number) => {
                PreemptOutcome::StoppedTurn(number)
            }
            ItemOutcome::Interrupted(_) if turn.session_stop => PreemptOutcome::SupersededByStop,
            _ => PreemptOutcome::TurnEndedFirst,
        };
        let wanted = !self.preempts.is_empty();
        for preempt in std::mem::take(&mut self.preempts) {
            self.items[preempt.item].preempted = Some(came_to);
        }
        for item in &turn.items {
            self.items[*item].fate = Some(fate);
        }
        self.barrier = match fate {
            ItemOutcome::Interrupted(_) if !wanted => turn.stopped_at.unwrap_or(self.items.len()),
            ItemOutcome::Failed(_) if !wanted => self.items.len(),
            _ => 0,
        };
        let preempted = matches!(fate, ItemOutcome::Preempted(_) | ItemOutcome::RolledBack(_));
        self.streak = if preempted && !turn.protected { self.streak + 1 } else { 0 };
        let is_open =
            matches!(fate, ItemOutcome::Interrupted(_) | ItemOutcome::Failed(_) | ItemOutcome::Preempted(_));
        let Turn { number, items, asks, .. } = turn;
        self.left = is_open.then_some(Left { number, items, suspended: false, steers: Vec::new(), asks });
        self.idle_since = self.now;
    }

    fn return_steers(&mut self, steers: Vec<(usize, bool)>) {
        for (item, returns) in steers {
            if returns { self.back(item, RejectReason::NotDelivered) } else { self.wait(item) }
        }
    }

    fn withdraw(&mut self, wanted: usize) {
        if self.items.is_empty() {
            return;
        }
        let wanted = wanted % self.items.len();
        if let Some(place) = self.waiting.iter().position(|item| *item == wanted) {
            self.waiting.remove(place);
            self.items[wanted].fate = Some(ItemOutcome::Withdrawn);
        }
        let steers = match (&mut self.turn, &mut self.left) {
            (Some(turn), _) => &mut turn.steers,
            (None, Some(left)) => &mut left.steers,
            (None, None) => return,
        };
        if let Some(place) = steers.iter().position(|(item, _)| *item == wanted) {
            steers.remove(place);
            self.items[wanted].fate = Some(ItemOutcome::Withdrawn);
        }
    }

    fn stop_turn(&mut self, asked: Asked) {
        let (count, suspended) = (self.items.len(), self.is_suspended());
        match &mut self.turn {
            Some(turn) => {
                turn.stopped_at.get_or_insert(count);
                if asked == Asked::Now {
                    self.stopped(By::Other);
                } else {
                    turn.pending.get_or_insert(By::Other);
                }
            }
            None if suspended => self.end_suspended(By::Other),
            None => {}
        }
    }

    fn resume(&mut self) {
        if self.stopping || self.turn.is_some() {
            return;
        }
        if let Some(left) = self.left.take_if(|left| !left.suspended) {
            self.begin(left.number, left.items);
            if left.asks {
                self.ask();
            }
        }
    }

    fn approve(&mut self) {
        if let Some(mut left) = self.left.take_if(|left| left.suspended) {
            // The next request is made as soon as the call has run, and has what steered the turn.
            left.items.extend(left.steers.iter().map(|(item, _)| *item));
            self.begin(left.number, left.items);
        }
    }

    /// The model asks for a call: a stop that was asked finds its safe point, or the next request takes the
    /// steers.
    fn round(&mut self) {
        let Some(turn) = &mut self.turn else { return };
        if let Some(by) = turn.pending {
            return self.stopped(by);
        }
        let steers = std::mem::take(&mut turn.steers);
        turn.items.extend(steers.iter().map(|(item, _)| *item));
    }

    fn ask(&mut self) {
        let Some(turn) = &mut self.turn else { return };
        turn.asks = true;
        if let Some(by) = turn.pending {
            return self.stopped(by);
        }
        let Some(Turn { number, items, steers, .. }) = self.turn.take() else { return };
        for item in &items {
            self.items[*item].fate = Some(ItemOutcome::Suspended(crate::desk::turn(number)));
        }
        self.left = Some(Left { number, items, suspended: true, steers, asks: true });
        // What it was protected from finds it waiting, which is a safe point for every set. The end of the
        // session comes first, and leaves it waiting.
        if !self.stopping && self.preempts.iter().any(|preempt| preempt.due.is_none()) {
            self.end_suspended(By::Preempt);
        }
    }

    fn stop(&mut self, asked: Option<Asked>) {
        self.stopping = true;
        self.idle_asked = None;
        let Some(turn) = &mut self.turn else { return };
        if let Some(asked) = asked {
            turn.session_stop = true;
            if asked == Asked::Now {
                self.stopped(By::Other);
            } else {
                turn.pending.get_or_insert(By::Other);
            }
        }
    }

    /// Lets time pass: preempts come due one after the other, and idleness ends the session.
    fn pass_to(&mut self, now: u64) {
        loop {
            let due = self.preempts.iter().filter_map(|preempt| preempt.due.or(preempt.grace)).min();
            let idle = self.turn.is_none() && !self.is_suspended() && self.waiting.is_empty();
            let over = self.idle_asked.filter(|_| idle).map(|asked| asked.max(self.idle_since) + HOUR);
            let next = due.into_iter().chain(over).min().filter(|next| *next <= now && !self.over);
            let Some(next) = next else { break };
            self.now = next;
            if Some(next) == over {
                self.over = true;
                self.end();
            } else {
                self.pass_preempts(next);
                self.proceed();
            }
        }
        self.now = now;
    }

    fn pass_preempts(&mut self, now: u64) {
        let Some(place) = self
            .preempts
            .iter()
            .position(|preempt| preempt.due.or(preempt.grace).is_some_and(|due| due <= now))
        else {
            return;
        };
        let Preempt { due, rollback, .. } = self.preempts[place];
        self.preempts[place].due = None;
        self.preempts[place].grace = None;
        if due.is_some() || self.turn.is_some() {
            self.fire(Asked::Now, rollback);
        }
    }
}
