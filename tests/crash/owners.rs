//! Many processes that want one session: one gets it, the others get an error that names the owner.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use safepoint_testkit::server::ModelServer;
use safepoint_testkit::wait;
use tokio::runtime::Runtime;

use super::{
    judge::{Found, Known, facts, judge, lines},
    plot::Agents,
    process::{Death, Job, Process, Task},
    world::script,
};

const MANY: usize = 8;

fn world(runtime: &Runtime) -> (tempfile::TempDir, ModelServer, Task) {
    let folder = tempfile::tempdir().unwrap();
    let server = runtime.block_on(ModelServer::start(script(Agents::Alone))).unwrap();
    let task = Task::new(folder.path(), server.url());
    (folder, server, task)
}

fn found(runtime: &Runtime, server: &ModelServer, task: &Task) -> Found {
    let asked = server.requests().iter().map(|request| Arc::clone(&request.body)).collect();
    Found { facts: runtime.block_on(facts(&task.store)), lines: lines(&task.ledger), asked }
}

/// A process that is paused in the middle of its payment, which waits besides.
fn asleep_in_a_payment(task: &Task) -> Process {
    std::fs::write(task.waits(), "").unwrap();
    let mut sleeper = Process::start(task);
    assert_eq!(sleeper.hear().as_deref(), Some("open"));
    wait::until("the payment is entered", || {
        lines(&task.ledger).iter().any(|[mark, _, _, tool]| mark == "enter" && tool == "pay")
    });
    sleeper.pause_between_writes(&task.store);
    sleeper
}

/// S7.4 / T10: eight processes resume one session at once: one works, and seven learn which. When that one is
/// killed, the next has the session at once.
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

/// S7.4, S3.4 / T10: an owner that sleeps past its lease and wakes in the middle of an effect records nothing
/// more, and says why it ends; the one that took over tells the model that the effect is unknown.
#[test]
fn an_owner_that_wakes_late_records_nothing() {
    let runtime = Runtime::new().unwrap();
    let (_folder, server, task) = world(&runtime);
    let mut sleeper = asleep_in_a_payment(&task);
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

/// S7.4: a clock that a person sets an hour ahead takes no session from a live process that renewed its lease
/// a moment ago.
#[test]
fn a_clock_that_is_set_ahead_takes_nothing_from_who_is_alive() {
    let runtime = Runtime::new().unwrap();
    let (_folder, _server, task) = world(&runtime);
    let take = Task { job: Job::Take, ..task };
    let mut owner = Process::start(&take);
    assert_eq!(owner.hear().as_deref(), Some("open"));
    let late = Process::start(&Task { set_ahead: 3600, ..take }).hear();
    assert_eq!(late, Some(format!("held by {}", owner.pid())));
}

/// Longer than an append may take.
const SLEEP: Duration = Duration::from_secs(6);

/// S3.4, S7.14: the process is paused in the middle of an append, for longer than an append may take, as when
/// a machine sleeps. It continues without a fault.
#[test]
fn a_process_that_slept_in_an_append_continues() {
    let runtime = Runtime::new().unwrap();
    for pause in [12, 13] {
        let (_folder, server, task) = world(&runtime);
        let mut sleeper = Process::start(&Task { pause: Some(pause), ..task.clone() });
        sleeper.until_paused();
        let began = std::time::Instant::now();
        wait::until("it has slept", || began.elapsed() >= SLEEP);
        sleeper.signal(rustix::process::Signal::CONT);
        assert_eq!(sleeper.hear_all(), ["open", "all"], "paused at {pause}");
        judge("slept in an append", &[], &found(&runtime, &server, &task));
    }
}

/// S7.4, S7.14: a process is paused in the middle of a payment, and nothing says that it will continue.
/// Another one gets the session once lease and margin are over, by the machine's own clock and not before.
/// When the first continues, it writes nothing, its payment is ended and not made, and it says so.
#[test]
fn a_process_that_was_paused_past_its_lease_ends_its_effects() {
    let runtime = Runtime::new().unwrap();
    let (_folder, server, task) = world(&runtime);
    let mut sleeper = asleep_in_a_payment(&task);
    let (paused, known) = (Instant::now(), Known::of(&task.store, &task.ledger, server.requests().len()));
    let known = runtime.block_on(known);
    let held = [format!("held by {}", sleeper.pid())];
    let taken = loop {
        let said = Process::start(&task).hear_all();
        if said != held {
            break said;
        }
        assert!(paused.elapsed() < Duration::from_secs(120), "no process gets what is free");
    };
    assert_eq!(taken, ["open", "all"]);
    assert!(paused.elapsed() > Duration::from_secs(10), "taken after {:?}", paused.elapsed());
    let after = found(&runtime, &server, &task);
    judge("paused", &[known], &after);
    sleeper.signal(rustix::process::Signal::CONT);
    let said = sleeper.hear_all();
    assert!(said.iter().any(|word| word.starts_with("failed: ")), "{said:?}");
    std::fs::remove_file(task.waits()).unwrap();
    let late = found(&runtime, &server, &task);
    assert_eq!((late.facts, late.lines), (after.facts, after.lines), "it went on");
}
