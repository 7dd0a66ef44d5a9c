//! What a machine of a simulation does to what runs on it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime},
};

use tokio::time::{Instant, sleep};

use super::*;
use crate::{
    Scope, clock,
    scope::task::{Task, TaskEnd},
};

const SECOND: Duration = Duration::from_secs(1);

fn machine(drift: i32) -> SimulatedMachine {
    SimulatedMachine::new(SystemTime::UNIX_EPOCH, drift)
}

/// S7.63: the clocks of two machines drift apart, also in the tasks that were spawned there, and timers do not.
#[tokio::test(start_paused = true)]
async fn each_machine_has_its_own_clocks() {
    let (fast, slow) = (machine(20_000), machine(-20_000));
    let looks = || async {
        let spawned = Task::unscoped("looks", async {
            sleep(50 * SECOND).await;
            (clock::time_of_day(), clock::monotonic())
        });
        spawned.await.unwrap()
    };
    let began = Instant::now();
    let (in_fast, in_slow) = tokio::join!(fast.run(looks()), slow.run(looks()));
    assert_eq!(in_fast.unwrap(), (SystemTime::UNIX_EPOCH + 51 * SECOND, began + 51 * SECOND));
    assert_eq!(in_slow.unwrap(), (SystemTime::UNIX_EPOCH + 49 * SECOND, began + 49 * SECOND));
    assert_eq!(began.elapsed(), 50 * SECOND);
    assert!(SimulatedMachine::uptime_here().is_none(), "this test runs on none");
}

/// S7.63: a machine that is paused does nothing, and continues where it was.
#[tokio::test(start_paused = true)]
async fn a_paused_machine_polls_nothing() {
    let (machine, counted) = (machine(0), Arc::new(AtomicUsize::new(0)));
    let counts = Arc::clone(&counted);
    let work = machine.run(async move {
        let ticks = Scope::root().0.spawn("ticks", async move {
            for _ in 0..10 {
                sleep(SECOND).await;
                // SeqCst for simplicity.
                counts.fetch_add(1, Ordering::SeqCst);
            }
        });
        ticks.await
    });
    let work = tokio::spawn(work);
    sleep(SECOND * 7 / 2).await;
    machine.pause();
    sleep(100 * SECOND).await;
    assert_eq!(counted.load(Ordering::SeqCst), 3);
    machine.resume();
    assert!(matches!(work.await.unwrap(), Some(Ok(()))));
    assert_eq!(counted.load(Ordering::SeqCst), 10);
}

/// S7.63: what runs on a machine that crashes is dropped, and does nothing more.
#[tokio::test(start_paused = true)]
async fn a_machine_that_crashes_drops_its_tasks() {
    let machine = machine(0);
    let (held, dropped) = tokio::sync::oneshot::channel::<()>();
    let (first, inner) = tokio::sync::oneshot::channel();
    let work = tokio::spawn(machine.run(async move {
        let task = Task::unscoped("waits", async move {
            sleep(100 * SECOND).await;
            drop(held);
        });
        drop(first.send(task));
        std::future::pending::<()>().await
    }));
    let task = inner.await.unwrap();
    machine.pause();
    machine.crash();
    machine.resume();
    assert!(machine.has_crashed());
    let began = Instant::now();
    assert!(dropped.await.is_err());
    assert_eq!(task.await, Err(TaskEnd::Dropped));
    assert_eq!(began.elapsed(), 100 * SECOND, "dropped when it would have been polled");
    assert!(!work.is_finished(), "it waits for nothing, so nothing polls it");
    assert!(machine.run(async { 1 }).await.is_none(), "nothing new begins");
}
