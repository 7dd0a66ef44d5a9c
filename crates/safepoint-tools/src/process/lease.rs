//! Until when commands may live though their runtime sleeps: the end of the lease under which a session is held (S4.15, S7.4).
//!
//! One timer for all commands of one [`Processes`](super::Processes), by the clock that also counts while the machine
//! sleeps. Keepers share it by descriptor, so that it is set without a word to them, and fires without the runtime.
//!
//! **Invariants** The timer stands at the earliest moment among the leases that have commands; without one it is not set.

use std::{
    collections::BTreeMap,
    io,
    os::fd::{AsFd, OwnedFd},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    time::{
        ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, clock_gettime, timerfd_create,
        timerfd_settime,
    },
};

/// Now, by the clock that also counts while the machine sleeps: the time since the machine started.
#[must_use]
pub fn boot_time() -> Duration {
    let now = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
    Duration::new(seconds, u32::try_from(now.tv_nsec).unwrap_or_default())
}

/// Until when the commands of one session may live. Made by [`Processes::under_lease`](super::Processes::under_lease).
///
/// Dropping it says that there is no lease any more, and no moment at which they end by themselves.
#[derive(Debug)]
#[must_use = "dropping it lifts the moment at which the commands are killed"]
pub struct Deadline {
    term: Arc<Term>,
}

impl Deadline {
    pub(super) fn new(term: Arc<Term>) -> Self {
        Self { term }
    }

    /// The session's commands may live until then, by [`boot_time`]. If that passes without being extended, their
    /// keepers kill them within a moment, also while the runtime is suspended, and no other command is started.
    pub fn extend(&self, until: Duration) {
        self.term.timer.change(self.term.number, |slot| slot.until = Some(until));
    }
}

impl Drop for Deadline {
    fn drop(&mut self) {
        self.term.timer.change(self.term.number, |slot| slot.until = None);
    }
}

/// One lease among those of a timer.
#[derive(Debug)]
pub(super) struct Term {
    timer: Arc<Timer>,
    number: u64,
}

/// A command that lives under a lease, until this is dropped.
#[derive(Debug)]
pub(super) struct Under(Arc<Term>);

impl Term {
    pub(super) fn command(self: &Arc<Self>) -> Under {
        self.timer.change(self.number, |slot| slot.commands += 1);
        Under(Arc::clone(self))
    }
}

impl Drop for Under {
    fn drop(&mut self) {
        self.0.timer.change(self.0.number, |slot| slot.commands -= 1);
    }
}

impl Drop for Term {
    fn drop(&mut self) {
        self.timer.slots().remove(&self.number);
    }
}

/// The timer, and what it is set for.
#[derive(Debug)]
pub(super) struct Timer {
    fd: io::Result<OwnedFd>,
    /// Held for one change and the setting of the timer that follows from it. No other lock is taken under it, and
    /// nothing is awaited: setting a timer does not block.
    slots: Mutex<BTreeMap<u64, Slot>>,
}

#[derive(Debug, Default)]
struct Slot {
    until: Option<Duration>,
    commands: usize,
}

impl Timer {
    pub(super) fn new() -> Self {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let fd = timerfd_create(TimerfdClockId::Boottime, flags).map_err(io::Error::from);
        Self { fd, slots: Mutex::default() }
    }

    pub(super) fn term(self: &Arc<Self>) -> Arc<Term> {
        let mut slots = self.slots();
        let number = slots.last_key_value().map_or(0, |(last, _)| last + 1);
        slots.insert(number, Slot::default());
        drop(slots);
        Arc::new(Term { timer: Arc::clone(self), number })
    }

    /// The descriptor for a guard.
    pub(super) fn share(&self) -> io::Result<OwnedFd> {
        match &self.fd {
            Ok(fd) => fd.try_clone(),
            Err(error) => Err(io::Error::new(error.kind(), format!("there is no timer for leases: {error}"))),
        }
    }

    fn change(&self, number: u64, change: impl FnOnce(&mut Slot)) {
        let mut slots = self.slots();
        change(slots.entry(number).or_default());
        // Set under the lock, so that of two changes the later one counts.
        self.set(slots.values().filter(|slot| slot.commands > 0).filter_map(|slot| slot.until).min());
    }

    /// Nothing is set where there is no timer: then no guard was launched, and no command is held by one.
    fn set(&self, until: Option<Duration>) {
        let Ok(fd) = &self.fd else { return };
        let value = match until {
            // Zero would be "not set", and no moment that a lease names is the start of the machine.
            Some(until) => timespec(until.max(Duration::from_nanos(1))),
            None => timespec(Duration::ZERO),
        };
        let once = Itimerspec { it_interval: timespec(Duration::ZERO), it_value: value };
        if timerfd_settime(fd, TimerfdTimerFlags::ABSTIME, &once).is_err() {
            // It cannot be: the descriptor is a timer's, and the time is a valid one.
        }
    }

    fn slots(&self) -> MutexGuard<'_, BTreeMap<u64, Slot>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the moment has passed.
pub(super) fn is_over(timer: impl AsFd) -> bool {
    let mut fds = [PollFd::new(&timer, PollFlags::IN)];
    poll(&mut fds, Some(&timespec(Duration::ZERO))).is_ok_and(|ready| ready > 0)
}

pub(super) fn timespec(time: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(time.subsec_nanos()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAST: Duration = Duration::from_nanos(1);

    /// S7.4
    #[test]
    fn the_timer_stands_at_the_earliest_lease_that_has_commands() {
        let timer = Arc::new(Timer::new());
        let over = || is_over(timer.fd.as_ref().unwrap());
        let (with, without) = (timer.term(), timer.term());
        let (lease, other) = (Deadline::new(Arc::clone(&with)), Deadline::new(without));
        let command = with.command();
        assert!(!over(), "no lease, no timer");
        other.extend(PAST);
        lease.extend(boot_time() + Duration::from_secs(600));
        assert!(!over(), "the lease that is over has no commands");
        lease.extend(PAST);
        assert!(over());
        lease.extend(boot_time() + Duration::from_secs(600));
        assert!(!over(), "it was extended");
        lease.extend(PAST);
        drop(command);
        assert!(!over(), "nothing lives under it");
        let _command = with.command();
        assert!(over());
        drop(lease);
        assert!(!over(), "there is no lease any more");
    }
}
