//! When which signal is due: a ladder's times, fixed once it is asked for, and only ever made shorter.
//!
//! **Invariants** Rungs only go up. A second order never postpones what the first one made due.

use std::time::{Duration, Instant};

use crate::{
    limits,
    process::{report::Rung, wire::Rungs},
};

/// A ladder being climbed.
#[derive(Clone, Copy, Debug)]
pub(super) struct EscalationTimes {
    terminate_at: Instant,
    kill_at: Instant,
    give_up_at: Instant,
    on: Option<Rung>,
}

impl EscalationTimes {
    pub(super) fn new(now: Instant, rungs: Rungs) -> Self {
        let terminate_at = after(now, rungs.interrupt);
        let kill_at = after(terminate_at, rungs.terminate);
        Self { terminate_at, kill_at, give_up_at: after(kill_at, rungs.kill), on: None }
    }

    /// On the last rung already: for a SIGKILL that is not a stop's.
    pub(super) fn killing(now: Instant, time: Duration) -> Self {
        Self { terminate_at: now, kill_at: now, give_up_at: after(now, time), on: Some(Rung::Kill) }
    }

    /// Joins a later order: whatever is earlier counts.
    pub(super) fn join(&mut self, now: Instant, rungs: Rungs) {
        let other = Self::new(now, rungs);
        self.terminate_at = self.terminate_at.min(other.terminate_at);
        self.kill_at = self.kill_at.min(other.kill_at);
        self.give_up_at = self.give_up_at.min(other.give_up_at);
    }

    /// The rung to be climbed now, if one is due.
    pub(super) fn climb(&mut self, now: Instant) -> Option<Rung> {
        let due = if now >= self.kill_at {
            Rung::Kill
        } else if now >= self.terminate_at {
            Rung::Terminate
        } else {
            Rung::Interrupt
        };
        if self.on.is_some_and(|on| on >= due) {
            return None;
        }
        self.on = Some(due);
        self.on
    }

    /// When to look again.
    pub(super) fn next_at(&self) -> Instant {
        match self.on {
            None | Some(Rung::Interrupt) => self.terminate_at,
            Some(Rung::Terminate) => self.kill_at,
            Some(Rung::Kill) => self.give_up_at,
        }
    }

    /// Whether SIGKILL was sent.
    pub(super) fn kills(&self) -> bool {
        self.on == Some(Rung::Kill)
    }

    /// Whether even SIGKILL has had its time.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        self.kills() && now >= self.give_up_at
    }
}

/// A time that no clock can hold is one that never comes, and a rung may be given such a time.
pub(super) fn after(now: Instant, time: Duration) -> Instant {
    now + time.min(limits::NEVER)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn rungs(interrupt: u64, terminate: u64, kill: u64) -> Rungs {
        Rungs { interrupt: ms(interrupt), terminate: ms(terminate), kill: ms(kill) }
    }

    /// S4.9: each rung has its own time.
    #[test]
    fn rungs_follow_each_other_at_their_times() {
        let start = Instant::now();
        let mut climb = EscalationTimes::new(start, rungs(100, 50, 10));
        assert_eq!(climb.climb(start), Some(Rung::Interrupt));
        assert_eq!(climb.climb(start + ms(99)), None);
        assert_eq!(climb.climb(climb.next_at()), Some(Rung::Terminate));
        assert_eq!(climb.climb(start + ms(149)), None);
        assert_eq!(climb.climb(climb.next_at()), Some(Rung::Kill));
        assert!(!climb.is_over(start + ms(159)) && climb.is_over(start + ms(160)));
    }

    /// S4.9: a rung without time is left out.
    #[test]
    fn rungs_without_time_are_not_climbed() {
        let start = Instant::now();
        assert_eq!(EscalationTimes::new(start, rungs(0, 50, 10)).climb(start), Some(Rung::Terminate));
        assert_eq!(EscalationTimes::new(start, rungs(0, 0, 10)).climb(start), Some(Rung::Kill));
    }

    /// S4.9: "never" is a time that a rung may have.
    #[test]
    fn a_rung_may_last_without_end() {
        let start = Instant::now();
        let never = Duration::MAX;
        let mut climb =
            EscalationTimes::new(start, Rungs { interrupt: never, terminate: never, kill: never });
        assert_eq!(climb.climb(start), Some(Rung::Interrupt));
        assert!(climb.next_at() > start + ms(u64::from(u32::MAX)));
        assert!(!EscalationTimes::killing(start, never).is_over(start));
    }

    /// S1.4: a later request only strengthens.
    #[test]
    fn a_later_order_makes_it_faster_and_never_slower() {
        let start = Instant::now();
        let mut climb = EscalationTimes::new(start, rungs(100, 100, 10));
        assert_eq!(climb.climb(start), Some(Rung::Interrupt));
        climb.join(start + ms(5), rungs(1000, 1000, 1000));
        assert_eq!(climb.next_at(), start + ms(100));
        climb.join(start + ms(10), rungs(0, 0, 10));
        assert_eq!(climb.climb(start + ms(10)), Some(Rung::Kill));
        climb.join(start + ms(11), rungs(1, 1, 1));
        assert_eq!(climb.climb(start + ms(12)), None, "nothing comes after SIGKILL");
    }
}
