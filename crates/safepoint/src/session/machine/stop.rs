//! Stops of the session and of its turn alone, and the wait until it has been idle.

use super::{
    Action, ExitKind, Machine, Moment, PendingStart, QueueAfterStop, RequestAnswer, SessionPhase, StopWhy,
    Strength,
};
use crate::value::ids::{ItemId, TurnId};

/// The place of a stop that holds no item back: before every item.
const HOLDS_NOTHING: ItemId = ItemId::new(0);

/// How long the session has been idle, and how long it may be (S6.8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Idleness {
    /// Asked when, and for how many microseconds; the first holds.
    pub(super) allowed: Option<(Moment, u64)>,
    since: Option<Moment>,
    /// Whether it was idle for long enough.
    is_over: bool,
}

impl Idleness {
    pub(super) fn forget(&mut self) {
        self.allowed = None;
    }
    /// Something arrived, or a turn is running.
    pub(super) fn busy(&mut self) {
        self.since = None;
    }
    /// Idle from now on, if it was not already; or not idle.
    pub(super) fn idle(&mut self, now: Option<Moment>) {
        self.since = now.map(|now| self.since.unwrap_or(now));
    }
    pub(super) fn over_at(&self) -> Option<Moment> {
        let (asked, micros) = self.allowed?;
        Some(asked.max(self.since?).after(micros))
    }
    pub(super) fn expire(&mut self) {
        self.allowed = None;
        self.is_over = true;
    }
}

impl Machine {
    pub(super) fn stop(&mut self, strength: Strength, out: &mut Vec<Action>) {
        if self.phase == SessionPhase::Over {
            out.push(Action::RequestAnswer(RequestAnswer::TooLate));
            return;
        }
        let before = self.stop;
        self.stop = before.max(Some(strength));
        out.push(Action::RequestAnswer(match before {
            None => RequestAnswer::First,
            Some(before) if before < strength => RequestAnswer::Strengthened,
            Some(_) => RequestAnswer::NothingAdded,
        }));
        self.idleness.forget();
        self.drop_plan(out);
        if let SessionPhase::Running(running) = &mut self.phase
            && strength > Strength::AtTurnEnd
        {
            running.has_session_stop = true;
            out.push(Action::StopRun(running.turn, StopWhy::Session(strength)));
        }
    }

    pub(super) fn stop_when_idle(&mut self, now: Moment, micros: u64, out: &mut Vec<Action>) {
        let answer = match (self.phase, self.stop, self.idleness.allowed) {
            (SessionPhase::Over, _, _) => RequestAnswer::TooLate,
            (_, None, None) => {
                self.idleness.allowed = Some((now, micros));
                RequestAnswer::First
            }
            (_, Some(_), _) | (_, None, Some(_)) => RequestAnswer::NothingAdded,
        };
        out.push(Action::RequestAnswer(answer));
    }

    pub(super) fn stop_turn(&mut self, turn: Option<TurnId>, out: &mut Vec<Action>) {
        let target = self.target();
        let mismatch = turn.is_some() && turn != target;
        let answer = match target {
            Some(target) if mismatch => RequestAnswer::TurnMismatch(target),
            Some(target) => {
                self.stop_target(target, self.next_item, out);
                RequestAnswer::StoppingTurn(target)
            }
            None if turn.is_none() && matches!(self.phase, SessionPhase::Planning { .. }) => {
                self.barrier = Some(self.next_item);
                self.drop_plan(out);
                RequestAnswer::Held
            }
            None => RequestAnswer::NoTurn,
        };
        out.push(Action::RequestAnswer(answer));
    }

    /// What had come by `held` waits behind the stop. A later stop that holds more holds; what the first one holds stays held.
    fn stop_target(&mut self, target: TurnId, held: ItemId, out: &mut Vec<Action>) {
        let of_both =
            |before: Option<ItemId>| before.filter(|before| *before > HOLDS_NOTHING).unwrap_or(held);
        if let SessionPhase::Running(running) = &mut self.phase {
            running.stopped_at = Some(of_both(running.stopped_at));
            out.push(Action::StopRun(target, StopWhy::Asked));
        } else {
            let before = match self.want {
                PendingStart::Withdrawal(StopWhy::Asked, asked_at) => Some(asked_at),
                PendingStart::Withdrawal(..)
                | PendingStart::Nothing
                | PendingStart::Resume
                | PendingStart::Decision => None,
            };
            self.want = PendingStart::Withdrawal(StopWhy::Asked, of_both(before));
        }
    }

    /// Withdraws an item that no turn has, or stops the turn that has it. A resume of a turn that has it does not happen.
    pub(super) fn stop_item(&mut self, item: ItemId, queue: QueueAfterStop, out: &mut Vec<Action>) {
        let is_steering = self.is_steering(item);
        if self.is_waiting(item) || is_steering && !matches!(self.phase, SessionPhase::Running(_)) {
            return self.withdraw(item, out);
        }
        let is_left = self.left.as_ref().is_some_and(|left| left.items.contains(&item));
        let target = self.target().filter(|_| is_left || is_steering || self.items.contains(&item));
        let answer = if let Some(turn) = target {
            let held = match queue {
                QueueAfterStop::Holds => self.next_item,
                QueueAfterStop::Continues => HOLDS_NOTHING,
            };
            self.stop_target(turn, held, out);
            RequestAnswer::StoppingTurn(turn)
        } else {
            if is_left && self.is_about_to_resume() {
                self.want = PendingStart::Nothing;
                self.drop_plan(out);
            }
            RequestAnswer::TooLate
        };
        out.push(Action::RequestAnswer(answer));
    }

    /// User code failed: the turn ends, and then the session.
    pub(super) fn broke(&mut self, out: &mut Vec<Action>) {
        if self.phase == SessionPhase::Over {
            return;
        }
        self.is_broken = true;
        self.drop_plan(out);
        // Also if a gentler stop was requested before: there is nothing left to wait for.
        if let SessionPhase::Running(running) = &mut self.phase {
            running.has_session_stop = true;
            out.push(Action::StopRun(running.turn, StopWhy::Broken));
        }
    }

    /// Whether, and as what, the session ends between turns.
    pub(super) fn exit(&self) -> Option<ExitKind> {
        if self.is_broken {
            Some(ExitKind::Broken)
        } else if self.is_stopping() {
            Some(ExitKind::Stopped)
        } else {
            self.idleness.is_over.then_some(ExitKind::Idle)
        }
    }

    pub(super) fn resume(&mut self, out: &mut Vec<Action>) {
        let can = self.may_start()
            && self.left.as_ref().is_some_and(|left| !left.is_suspended)
            && matches!(self.want, PendingStart::Nothing | PendingStart::Resume);
        if can && !self.is_about_to_resume() {
            self.want = PendingStart::Resume;
            self.drop_plan(out);
        }
        out.push(Action::RequestAnswer(if can {
            RequestAnswer::Resuming
        } else if self.is_holding() && self.may_start() {
            self.barrier = None;
            RequestAnswer::Released
        } else {
            RequestAnswer::NothingToResume
        }));
    }

    /// Whether something waits that begins with a resume, or with the next item: no turn was left to be resumed instead.
    pub(crate) fn is_holding(&self) -> bool {
        self.phase == SessionPhase::Idle
            && self.left.is_none()
            && self.barrier.is_some()
            && !self.waiting.is_empty()
    }

    pub(super) fn decided(&mut self, out: &mut Vec<Action>) {
        // Several may be decided before it resumes; a turn that is about to end takes none (S8.3).
        let can = self.is_suspended() && matches!(self.want, PendingStart::Nothing | PendingStart::Decision);
        out.push(Action::RequestAnswer(match (self.may_start(), can) {
            (true, true) => {
                self.want = PendingStart::Decision;
                RequestAnswer::Resuming
            }
            (true, false) => RequestAnswer::NothingToResume,
            (false, _) => RequestAnswer::TooLate,
        }));
    }

    /// Whether a turn may still start.
    fn may_start(&self) -> bool {
        self.phase != SessionPhase::Over && self.exit().is_none()
    }
}
