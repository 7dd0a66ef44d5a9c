//! Many processes that want one session: one has it, the others are told who.

use safepoint_testkit::server::ModelServer;
use tokio::runtime::Runtime;

use super::{
    judge::{Known, facts, judge, lines},
    process::{Death, Job, Process, Task},
    world::script,
};

const MANY: usize = 8;

fn world(runtime: &Runtime) -> (tempfile::TempDir, ModelServer, Task) {
    let folder = tempfile::tempdir().unwrap();
    let server = runtime.block_on(ModelServer::start(script())).unwrap();
    let (store, ledger) = (folder.path().join("s.db"), folder.path().join("ledger"));
    let task = Task { store, ledger, url: server.url(), job: Job::Work, death: None, ahead: 0 };
    (folder, server, task)
}

/// S7.4 / T10: eight processes resume one session at once: one works, seven are told which; when that one is killed, the
/// next has it at once.
#[test]
fn of_many_resumes_one_works_and_the_others_hear_who() {
    let runtime = Runtime::new().unwrap();
    let (_folder, server, task) = world(&runtime);
    drop(Process::start(&Task { death: Some(Death::Effect(11)), ..task.clone() }).hear_all());
    let known = Known::of(&runtime.block_on(facts(&task.store)), &task.ledger);
    let take = Task { job: Job::Take, ..task.clone() };
    let mut all: Vec<Process> = (0..MANY).map(|_| Process::start(&take)).collect();
    let words: Vec<String> = all.iter_mut().map(|process| process.hear().unwrap()).collect();
    let owner = words.iter().position(|word| word == "open").unwrap();
    let held = format!("held by {}", all[owner].pid());
    assert_eq!(words.iter().filter(|word| **word == held).count(), MANY - 1, "{words:?}");
    all[owner].kill();
    assert_eq!(Process::start(&task).hear_all(), ["open", "all"]);
    let facts = runtime.block_on(facts(&task.store));
    judge("one of many", &known, &facts, &task.ledger, &server.requests().last().unwrap().body);
}

/// S7.4, S3.4 / T10: an owner that sleeps past its lease and wakes in the middle of an effect records nothing more, and
/// says why it ends; the one that took over tells the model that the effect is unknown.
#[test]
fn an_owner_that_wakes_late_records_nothing() {
    let runtime = Runtime::new().unwrap();
    let (_folder, server, task) = world(&runtime);
    let waits = task.ledger.with_extension("wait");
    std::fs::write(&waits, "").unwrap();
    let mut sleeper = Process::start(&task);
    assert_eq!(sleeper.hear().as_deref(), Some("open"));
    while !lines(&task.ledger).iter().any(|[mark, _, _, tool]| mark == "enter" && tool == "pay") {
        std::thread::yield_now();
    }
    sleeper.signal(rustix::process::Signal::STOP);
    let known = Known::of(&runtime.block_on(facts(&task.store)), &task.ledger);
    assert_eq!(known.doubts(), 1);
    assert_eq!(Process::start(&task).hear_all(), [format!("held by {}", sleeper.pid())]);
    assert_eq!(Process::start(&Task { ahead: 3600, ..task.clone() }).hear_all(), ["open", "all"]);
    let after = runtime.block_on(facts(&task.store));
    judge("slept", &known, &after, &task.ledger, &server.requests().last().unwrap().body);
    std::fs::remove_file(&waits).unwrap();
    sleeper.signal(rustix::process::Signal::CONT);
    let said = sleeper.hear_all();
    assert!(said.iter().any(|word| word.starts_with("failed: ")), "{said:?}");
    assert_eq!(runtime.block_on(facts(&task.store)), after);
}
