//! An agent over standard input and output: one thread, blocking, so that nothing of it happens by chance.

use std::{
    io::{BufRead as _, Write as _},
    process::{Command, Stdio, exit},
};

use super::{
    Manners, Start,
    brain::{Brain, Step},
};

/// More than any pipe holds.
const FLOOD_BYTES: usize = 4 << 20;

pub(super) fn serve(manners: Manners) -> ! {
    match manners.start {
        Start::Die => die("I will not start", 7),
        Start::Flood => flood(),
        Start::Well | Start::Hang | Start::Stubborn | Start::Newer => {}
    }
    let start = manners.start;
    let mut brain = Brain::new(manners);
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        let Ok(message) = serde_json::from_str(&line) else { continue };
        brain.manners.note(&message);
        for step in brain.hear(&message) {
            act(step, start);
        }
    }
    brain.manners.note(&serde_json::json!({"end": "of input"}));
    for step in brain.end_of_input() {
        act(step, start);
    }
    if start == Start::Stubborn {
        wait_for_ever();
    }
    exit(0)
}

fn act(step: Step, start: Start) {
    match step {
        Step::Say(message) => say(&message.to_string()),
        Step::Raw(line) => say(&line),
        Step::Die(words, code) => die(words, code),
        Step::Flood => flood(),
        Step::Wedge => wait_for_ever(),
        Step::Spawn => spawn_far(),
    }
    if start == Start::Flood {
        flood();
    }
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    if writeln!(out, "{line}").and_then(|()| out.flush()).is_err() {
        exit(0);
    }
}

fn flood() {
    let words = b"all work and no play makes a dull agent\n".repeat(FLOOD_BYTES / 40);
    if std::io::stderr().lock().write_all(&words).is_err() {
        exit(0);
    }
}

/// A grandchild in a session of its own that hears no polite signal and holds our pipes.
fn spawn_far() {
    let line = "trap '' INT TERM HUP; exec sleep 1000";
    let spawned = Command::new("setsid").args(["sh", "-c", line]).stdin(Stdio::null()).spawn();
    if let Err(error) = spawned {
        die(&format!("no grandchild: {error}"), 9);
    }
}

fn die(words: &str, code: i32) -> ! {
    eprintln!("{words}");
    exit(code)
}

fn wait_for_ever() -> ! {
    loop {
        std::thread::park();
    }
}
