//! Many processes that want one session: one has it, the others are told who.

use std::sync::Arc;

use safepoint_testkit::server::ModelServer;
use tokio::runtime::Runtime;

use super::{
    judge::{Found, Known, facts, judge, lines},
    plot::Kin,
    process::{Death, Job, Process, Task},
    world::script,
};

const MANY: usize = 8;

fn world(runtime: &Runtime) -> (tempfile::TempDir, ModelServer, Task) {
    let folder = tempfile::tempdir().unwrap();
    let server = runtime.block_on(ModelServer::start(script(Kin::Alone))).unwrap();
    let task = Task::new(folder.path(), server.url());
    (folder, server, task)
}

fn found(runtime: &Runtime, server: &ModelServer, task: &Task) -> Found {
    let asked = server.requests().iter().map(|request| Arc::clone(&request.body)).collect();
    Found { facts: runtime.block_on(facts(&task.store)), lines: lines(&task.ledger), asked }
}

/// S7.4 / T10: eight processes resume one session at once: one works, seven are told which; when that one is killed, the
/// next has it at once.
/// NousResearch/hermes-agent#80921, agentscope-ai/agentscope#2227: k resumes at once fire k effects.
#[test]
fn of_many_resumes_one_works_and_the_others_hear_who() {
    let runtime = Runtime::new().unwrap();
    let (_folder, server, task) = world(&runtime);
    drop(Process::start(&Task { death: Some(Death::Effect(11)), ..task.clone() }).hear_all());
    let known = runtime.block_on(Known::of(&task.store, &task.ledger, server.requests().len()));
    let take = Task { job: Job::Take, ..task.clone() };
    let mut all: Vec<Process> = (0..MANY).map(|_| Process::start(&take)).collect();
    let words: Vec<String> = all.iter_mut().map(|process| process.hear().unwrap()).collect();
    let owner = words.iter().position(|word| word == "open").unwrap();
    let held = format!("held by {}", all[owner].pid());
    assert_eq!(words.iter().filter(|word| **word == held).count(), MANY - 1, "{words:?}");
    all[owner].kill();
    assert_eq!(Process::start(&task).hear_all(), ["open", "all"]);
    judge("one of many", &[known], &found(&runtime, &server, &task));
}

/// S7.4, S3.4 / T10: an owner that sleeps past its lease and wakes in the middle of an effect records nothing more, and
/// says why it ends; the one that took over tells the model that the effect is unknown.
#[test]
fn an_owner_that_wakes_late_records_nothing() {
    let runtime = Runtime::new().unwrap();
    let (_folder, server, task) = world(&runtime);
    std::fs::write(task.waits(), "").unwrap();
    let mut sleeper = Process::start(&task);
    assert_eq!(sleeper.hear().as_deref(), Some("open"));
    while !lines(&task.ledger).iter().any(|[mark, _, _, tool]| mark == "enter" && tool == "pay") {
        std::thread::yield_now();
    }
    sleeper.signal(rustix::process::Signal::STOP);
    let known = runtime.block_on(Known::of(&task.store, &task.ledger, server.requests().len()));
    assert_eq!(known.doubts(), 1);
    assert_eq!(Process::start(&task).hear_all(), [format!("held by {}", sleeper.pid())]);
    assert_eq!(Process::start(&Task { ahead: 3600, ..task.clone() }).hear_all(), ["open", "all"]);
    let after = found(&runtime, &server, &task);
    judge("slept", &[known], &after);
    std::fs::remove_file(task.waits()).unwrap();
    sleeper.signal(rustix::process::Signal::CONT);
    let said = sleeper.hear_all();
    assert!(said.iter().any(|word| word.starts_with("failed: ")), "{said:?}");
    assert_eq!(runtime.block_on(facts(&task.store)), after.facts);
}
