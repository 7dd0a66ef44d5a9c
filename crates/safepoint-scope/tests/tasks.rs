//! How tasks of a scope end, and what waits for them.

use std::{future::pending, time::Duration};

use safepoint_scope::{Scope, Task, TaskEnd};
use tokio::{
    runtime::{Builder, Runtime},
    task::yield_now,
    time::timeout,
};

/// The longest time until an event is reported, on any machine.
const SOON: Duration = Duration::from_secs(20);

async fn soon<F: Future>(what: F) -> F::Output {
    timeout(SOON, what).await.expect("it came to an end")
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}

struct Bomb;
impl Drop for Bomb {
    fn drop(&mut self) {
        std::panic::panic_any("in drop");
    }
}

/// S4.7: a panic is reported in its own words, whatever its payload was.
#[tokio::test]
async fn a_panic_is_reported_in_its_own_words() {
    let (scope, _) = Scope::root();
    let owned: Task<()> = scope.spawn("owned", async { std::panic::panic_any("ouch".to_owned()) });
    assert_eq!(soon(owned).await, Err(TaskEnd::Panicked("ouch".into())));
    let number: Task<()> = scope.spawn_blocking("number", || std::panic::panic_any(7));
    assert_eq!(soon(number).await, Err(TaskEnd::Panicked("a panic without a message".into())));
    assert!(scope.alive().is_empty());
}

/// S4.7, S4.3: a runtime that goes away takes its tasks with it, and each says how it went.
#[test]
fn a_task_tells_that_its_runtime_went_away() {
    let (scope, _) = Scope::root();
    let home = runtime();
    let (plain, bomb) = home.block_on(async {
        let plain = scope.spawn("plain", pending::<()>());
        let bomb = scope.spawn("bomb", async {
            let _bomb = Bomb;
            pending::<()>().await;
        });
        yield_now().await;
        (plain, bomb)
    });
    drop(home);
    runtime().block_on(async {
        assert_eq!(soon(plain).await, Err(TaskEnd::Dropped));
        assert_eq!(soon(bomb).await, Err(TaskEnd::Panicked("in drop".into())));
    });
    assert!(scope.alive().is_empty());
}

/// S4.3: a task says its name, and whether it has ended.
#[tokio::test]
async fn a_task_says_whether_it_has_ended() {
    let (scope, _) = Scope::root();
    let (open, gate) = tokio::sync::oneshot::channel::<()>();
    let task = scope.spawn("gated", gate);
    assert_eq!((task.label().to_string(), task.is_finished()), ("gated".to_owned(), false));
    assert!(format!("{task:?}").contains(r#"label: "gated", finished: false"#));
    open.send(()).expect("it waits");
    for _ in 0..8 {
        yield_now().await;
    }
    assert!(task.is_finished());
    assert_eq!(soon(task).await, Ok(Ok(())));
}

/// S3.6: a wait for the end, for idleness or for quiet ends when that has come, and not before.
#[tokio::test]
async fn what_waits_for_the_end_continues_with_it() {
    let (scope, handle) = Scope::root();
    let hold = scope.hold("socket");
    let of = [handle.clone(), handle.clone(), handle.clone()];
    let [settled, idle, quiet] = of;
    let settled = tokio::spawn(async move { settled.settled().await });
    let idle = tokio::spawn(async move { idle.idle().await });
    let quiet = tokio::spawn(async move { quiet.quiet().await });
    let ended = |expected: [bool; 3]| {
        let now = [&settled, &idle, &quiet].map(tokio::task::JoinHandle::is_finished);
        assert_eq!(now, expected);
    };
    let look = || async {
        for _ in 0..8 {
            yield_now().await;
        }
    };
    look().await;
    ended([false; 3]);
    assert!(!scope.is_settled() && handle.settle() && scope.is_settled());
    look().await;
    ended([true, false, false]);
    assert_eq!(scope.alive(), ["socket"]);
    drop(hold);
    look().await;
    ended([true; 3]);
    for waits in [settled, idle, quiet] {
        soon(waits).await.expect("no panic");
    }
}

/// S3.6: a slot that was left is taken again, and each live holder is named once.
#[test]
fn what_is_alive_is_listed_by_name() {
    let (scope, handle) = Scope::root();
    let (one, two) = (scope.hold("one"), scope.hold("two"));
    assert_eq!(scope.alive(), ["one", "two"]);
    drop(one);
    assert_eq!(handle.alive(), ["two"]);
    let three = scope.hold("three");
    assert_eq!(scope.alive(), ["three", "two"]);
    drop((two, three));
    assert!(scope.alive().is_empty());
}
