//! The machine on which code runs in a simulation: its clocks, and whether its tasks run.
//!
//! A simulation is one thread with a paused clock, and any number of machines. What runs on a machine sees its clocks, which
//! may be a little fast or slow, is not polled while the machine is paused, and is dropped once it has crashed. Code that runs on none
//! has the clocks of the real machine: for it all this costs one look at a variable of its thread.
//!
//! **Invariants**: a task stays on the machine on which it was spawned. What was dropped by a crash is polled no more.

use std::{
    cell::RefCell,
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::{Duration, SystemTime},
};

use pin_project_lite::pin_project;
use tokio::time::Instant;

use crate::sync::{Mutex, lock};

/// Drift is given in parts of this.
const MILLION: i128 = 1_000_000;

thread_local! {
    /// The machine whose code this thread runs now.
    static HERE: RefCell<Option<SimulatedMachine>> = const { RefCell::new(None) };
}

/// Asks the machine on which the caller runs, if a simulation has given it one.
pub(crate) fn here<T>(ask: impl FnOnce(&SimulatedMachine) -> T) -> Option<T> {
    // A thread that ends has no variable any more, and no simulation.
    HERE.try_with(|machine| machine.borrow().as_ref().map(ask)).ok().flatten()
}

/// A machine of a simulation. Clones are the same machine.
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use safepoint_scope::{clock, simulation::SimulatedMachine};
/// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(async {
/// let fast = SimulatedMachine::new(SystemTime::UNIX_EPOCH, 20_000); // its clocks are 2 % fast
/// let seen = fast.run(async {
///     tokio::time::sleep(Duration::from_secs(100)).await;
///     clock::time_of_day()
/// });
/// assert_eq!(seen.await, Some(SystemTime::UNIX_EPOCH + Duration::from_secs(102)));
/// # });
/// ```
#[derive(Clone)]
pub struct SimulatedMachine(Arc<MachineState>);

struct MachineState {
    /// When it was switched on.
    began: Instant,
    /// The time of day at that moment.
    day: SystemTime,
    /// How fast its clocks are, in millionths.
    drift: i32,
    /// Held for one look or one entry. No other lock is taken under it, and what is woken is woken without it.
    power: Mutex<Power>,
}

enum Power {
    On,
    /// With what is to be polled once it runs again.
    Paused(Vec<Waker>),
    Crashed,
}

impl SimulatedMachine {
    /// A machine that is switched on now, at this time of day. Its clocks are `drift` millionths too fast, or slow where that is
    /// negative. Timers are those of the runtime, and do not drift.
    #[must_use]
    pub fn new(day: SystemTime, drift: i32) -> Self {
        Self(Arc::new(MachineState { began: Instant::now(), day, drift, power: Mutex::new(Power::On) }))
    }

    /// How long it is on, by its own clock.
    #[must_use]
    pub fn uptime(&self) -> Duration {
        let real = self.0.began.elapsed();
        let real = i128::try_from(real.as_nanos()).unwrap_or(i128::MAX / MILLION);
        let own = real + real * i128::from(self.0.drift) / MILLION;
        Duration::from_nanos(u64::try_from(own).unwrap_or_default())
    }

    /// The uptime of the machine on which the caller runs; `None` outside of a simulation.
    #[must_use]
    pub fn uptime_here() -> Option<Duration> {
        here(Self::uptime)
    }

    pub(crate) fn time_of_day(&self) -> SystemTime {
        self.0.day + self.uptime()
    }

    pub(crate) fn monotonic(&self) -> Instant {
        self.0.began + self.uptime()
    }

    /// Nothing on it is polled until it [continues](Self::resume). Its clocks run.
    pub fn pause(&self) {
        let mut power = lock(&self.0.power);
        if matches!(*power, Power::On) {
            *power = Power::Paused(Vec::new());
        }
    }

    /// It runs again, after a pause. One that has crashed does not.
    pub fn resume(&self) {
        let paused = {
            let mut power = lock(&self.0.power);
            match &mut *power {
                Power::Paused(waiting) => {
                    let waiting = std::mem::take(waiting);
                    *power = Power::On;
                    waiting
                }
                Power::On | Power::Crashed => return,
            }
        };
        paused.into_iter().for_each(Waker::wake);
    }

    /// All that runs on it is dropped, without a chance to do anything: each task at the moment in which it would be polled next.
    pub fn crash(&self) {
        let before = std::mem::replace(&mut *lock(&self.0.power), Power::Crashed);
        if let Power::Paused(waiting) = before {
            waiting.into_iter().for_each(Waker::wake);
        }
    }

    /// Whether it has crashed.
    #[must_use]
    pub fn has_crashed(&self) -> bool {
        matches!(*lock(&self.0.power), Power::Crashed)
    }

    /// Runs this on the machine. `None`: the machine has crashed.
    ///
    /// # Cancel safety
    /// As that of the work.
    pub fn run<F: Future>(&self, work: F) -> OnMachine<F> {
        OnMachine { work: Some(work), machine: self.clone() }
    }

    /// What a task of this machine does when it is to be polled: `polls` if the machine runs.
    pub(crate) fn polled<T>(
        &self,
        cx: &mut Context<'_>,
        polls: impl FnOnce(&mut Context<'_>) -> T,
    ) -> TaskTurn<T> {
        match &mut *lock(&self.0.power) {
            Power::On => {}
            Power::Paused(waiting) => {
                waiting.push(cx.waker().clone());
                return TaskTurn::Paused;
            }
            Power::Crashed => return TaskTurn::Crashed,
        }
        TaskTurn::Polled(self.on_its_clocks(|| polls(cx)))
    }

    /// Runs code with the clocks of the machine, whatever its state: for what is on it beside the tasks, such as a process of it.
    pub fn on_its_clocks<T>(&self, runs: impl FnOnce() -> T) -> T {
        let before = HERE.with(|here| here.replace(Some(self.clone())));
        let _back = Back(before);
        runs()
    }
}

/// Puts the machine of before in its place, also after a panic.
struct Back(Option<SimulatedMachine>);

impl Drop for Back {
    fn drop(&mut self) {
        let before = self.0.take();
        let ended = HERE.try_with(|here| here.replace(before));
        // A machine is dropped while no one looks at the variable; a thread that ends has none.
        drop(ended);
    }
}

/// What came of a task's turn. Exhaustive: it was polled, it waits, or it is to be dropped.
pub(crate) enum TaskTurn<T> {
    Polled(T),
    Paused,
    Crashed,
}

impl fmt::Debug for SimulatedMachine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimulatedMachine").field("drift", &self.0.drift).finish_non_exhaustive()
    }
}

pin_project! {
/// Work that runs on a machine: [`SimulatedMachine::run`].
#[must_use = "it runs when it is awaited"]
pub struct OnMachine<F> {
    #[pin]
    work: Option<F>,
    machine: SimulatedMachine,
}
}

impl<F: Future> Future for OnMachine<F> {
    type Output = Option<F::Output>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let machine = this.machine.clone();
        let turn = machine.polled(cx, |cx| this.work.as_mut().as_pin_mut().map(|work| work.poll(cx)));
        let output = match turn {
            TaskTurn::Paused | TaskTurn::Polled(Some(Poll::Pending)) => return Poll::Pending,
            TaskTurn::Polled(Some(Poll::Ready(output))) => Some(output),
            TaskTurn::Polled(None) | TaskTurn::Crashed => None,
        };
        machine.on_its_clocks(|| this.work.set(None));
        Poll::Ready(output)
    }
}

impl<F> fmt::Debug for OnMachine<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnMachine").field("machine", &self.machine).finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
