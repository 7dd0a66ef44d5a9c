//! `kill -9` before and after every write to the store, and before, in and after every effect, enumerated.

use std::sync::atomic::{AtomicUsize, Ordering};

use safepoint_testkit::server::ModelServer;
use tokio::runtime::Runtime;

use super::{
    judge::{Known, facts, is_sound, judge},
    process::{Death, Job, Process, Task},
    world::script,
};

/// How many worlds are tried at once: most of their time they wait for each other's processes.
const AT_ONCE: usize = 6;

/// What came of one kill.
enum Came {
    /// It died, and an unsafe call was in doubt, or not.
    Died { doubts: usize },
    /// It was done before.
    Outlived,
}

fn kill_at(runtime: &Runtime, death: Death) -> Came {
    let folder = tempfile::tempdir().unwrap();
    let server = runtime.block_on(ModelServer::start(script())).unwrap();
    let (store, ledger) = (folder.path().join("s.db"), folder.path().join("ledger"));
    let task = Task { store, ledger, url: server.url(), job: Job::Work, death: Some(death), ahead: 0 };
    let said = Process::start(&task).hear_all();
    let outlived = said.last().is_some_and(|word| word == "all");
    let at = format!("{death:?}");
    let known = Known::of(&runtime.block_on(facts(&task.store)), &task.ledger);
    let again = Process::start(&Task { death: None, ..task.clone() }).hear_all();
    assert_eq!(again, ["open", "all"], "{at}");
    let facts = runtime.block_on(facts(&task.store));
    let requests = server.requests();
    for request in &requests {
        assert!(request.fate_now().status != 400, "{at}: refused {}", request.body);
    }
    judge(&at, &known, &facts, &task.ledger, &requests.last().unwrap().body);
    assert!(runtime.block_on(is_sound(&task.store)), "{at}");
    if outlived { Came::Outlived } else { Came::Died { doubts: known.doubts() } }
}

/// Kills at every point of a kind; how many there were, and after how many an unsafe call was in doubt.
fn kill_everywhere(death: fn(usize) -> Death) -> (usize, usize) {
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
                    match kill_at(&runtime, death(at)) {
                        Came::Died { doubts } => doubtful.fetch_add(doubts, Ordering::SeqCst),
                        Came::Outlived => last.fetch_min(at, Ordering::SeqCst),
                    };
                }
            });
        }
    });
    (last.into_inner(), doubtful.into_inner())
}

/// S7.1, S7.2, S7.3, S8.4, S5.1, S6.2 / T2, T10: whatever write to the store the process dies before or after: calls
/// whose end is recorded are not run again, keyed ones get the same key, of unsafe ones in doubt the model is told so,
/// no item is lost or said twice, nobody is asked twice, and the history is valid.
#[test]
fn a_kill_at_any_write_loses_nothing_and_does_nothing_twice() {
    let (points, doubtful) = kill_everywhere(Death::Moment);
    assert!(points > 60 && doubtful > 2, "{points} points, {doubtful} in doubt");
}

/// S7.2, S7.3 / T10: the same before, in and after every effect.
#[test]
fn a_kill_in_any_effect_does_nothing_twice() {
    let (points, doubtful) = kill_everywhere(Death::Effect);
    assert!(points >= 15 && doubtful >= 4, "{points} points, {doubtful} in doubt");
}
