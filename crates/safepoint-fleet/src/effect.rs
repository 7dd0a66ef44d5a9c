//! An effect of a scripted owner: a process on its machine, which its owner can end, and a guard that ends it with the lease (S7.14).

use std::{sync::Arc, time::Duration};

use safepoint::{
    ids::SessionId,
    raw::{simulation::SimulatedMachine, store::NodeLease},
};
use tokio::{
    sync::oneshot,
    time::{Instant, sleep},
};

use super::{dice::Dice, judge::Judge};

/// How often the guard looks. It needs no runtime that runs: it looks whether the node is paused or not.
const LOOK: Duration = Duration::from_millis(50);
/// How long a process may take to die, once it is to.
const DIES: (Duration, Duration) = (Duration::ZERO, Duration::from_millis(900));

/// What an effect is for, and under which lease it runs.
#[derive(Clone, Debug)]
pub(super) struct EffectOf {
    pub(super) session: SessionId,
    pub(super) item: u64,
    pub(super) epoch: u64,
    pub(super) lease: NodeLease,
}

/// An effect that runs. Dropping it ends it at once.
#[derive(Debug)]
#[must_use = "dropping it ends the effect"]
pub(super) struct Effect {
    judge: Arc<Judge>,
    machine: SimulatedMachine,
    of: EffectOf,
    /// Closed by its drop, for the process to see.
    owner: Option<oneshot::Sender<()>>,
    done: oneshot::Receiver<()>,
}

impl Effect {
    /// Begins one, for this long. `left` is what its owner knows of its lease.
    pub(super) fn begin(
        judge: &Arc<Judge>,
        machine: &SimulatedMachine,
        of: EffectOf,
        (dice, left, takes): (&Dice, Duration, Duration),
    ) -> Self {
        judge.begins(&of.session, of.item, of.epoch, left);
        let (owner, ended) = oneshot::channel();
        let (finishes, done) = oneshot::channel();
        let process = Process {
            judge: Arc::clone(judge),
            machine: machine.clone(),
            of: of.clone(),
            ends: Instant::now() + takes,
            dies: dice.time(DIES),
        };
        drop(tokio::spawn(process.run(ended, finishes)));
        Self { judge: Arc::clone(judge), machine: machine.clone(), of, owner: Some(owner), done }
    }

    /// Waits until it is over: whether it has done what it is for, or its guard has ended it. To be awaited to its end once.
    pub(super) async fn is_done(&mut self) -> bool {
        (&mut self.done).await.is_ok()
    }
}

impl Drop for Effect {
    fn drop(&mut self) {
        drop(self.owner.take());
        // One whose machine has crashed ended nothing: what is left of it dies by its guard.
        if !self.machine.has_crashed() {
            self.judge.ends(&self.of.session, self.of.item, "ended");
        }
    }
}

/// What is on the machine beside the node.
struct Process {
    judge: Arc<Judge>,
    machine: SimulatedMachine,
    of: EffectOf,
    ends: Instant,
    dies: Duration,
}

impl Process {
    async fn run(self, mut owner: oneshot::Receiver<()>, finishes: oneshot::Sender<()>) {
        loop {
            let left = self.ends.saturating_duration_since(Instant::now());
            // Biased: an owner that ends it at this moment has ended it. A look that is lost is made again.
            tokio::select! {
                biased;
                _ended = &mut owner => return self.dies().await,
                () = sleep(left.min(LOOK)) => {}
            }
            if Instant::now() >= self.ends {
                self.judge.ends(&self.of.session, self.of.item, "finishes");
                if finishes.send(()).is_err() {
                    // Its owner is gone.
                }
                return;
            }
            let is_over = self.machine.on_its_clocks(|| self.of.lease.left()).is_zero();
            if is_over || self.machine.has_crashed() {
                return self.dies().await;
            }
        }
    }

    /// Its guard kills it, unless its owner has ended it.
    async fn dies(self) {
        sleep(self.dies).await;
        self.judge.ends(&self.of.session, self.of.item, "killed");
    }
}
