//! A server over standard input and output: one thread, blocking.

use std::{
    io::{BufRead as _, Write as _},
    process::exit,
};

use super::{
    McpManners, ServerStart,
    brain::{Brain, Step},
};

/// More than any pipe holds.
const FLOOD_BYTES: usize = 4 << 20;

pub(super) fn serve(manners: McpManners) -> ! {
    match manners.start {
        ServerStart::Die => die("I will not start", 7),
        ServerStart::Flood => flood(),
        _ => {}
    }
    let mut brain = Brain::new(manners);
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        let Ok(message) = serde_json::from_str(&line) else { continue };
        for step in brain.hear(&message) {
            act(step, brain.manners.start);
        }
        if brain.manners.start == ServerStart::Wedge && brain.lists > 0 {
            wait_for_ever();
        }
    }
    if brain.manners.start == ServerStart::Stubborn {
        wait_for_ever();
    }
    exit(0)
}

fn act(step: Step, start: ServerStart) {
    match step {
        Step::Say(message) | Step::Tell(message) => say(&message.to_string()),
        Step::Raw(line) => say(&line),
        Step::Status(_) => {}
        Step::Die(words, code) => die(words, code),
    }
    if start == ServerStart::Flood {
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
    let words = b"all work and no play makes a dull server\n".repeat(FLOOD_BYTES / 41);
    if std::io::stderr().lock().write_all(&words).is_err() {
        exit(0);
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
