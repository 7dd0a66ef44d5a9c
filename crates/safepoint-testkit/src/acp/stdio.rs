//! An agent over standard input and output: one thread, blocking, so that nothing of it happens by chance.

use std::{
    path::Path,
    // Exit: this agent is a program for itself: its manners choose when and with which code it ends.
    process::{Child, Command, Stdio, exit},
    sync::{
        Mutex,
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::Duration,
};

use super::{AcpManners, AgentStart, brain::Brain, hub, say::AcpStep, turn};
use crate::{
    stdio::{self, die, park, say},
    sync::lock,
};

/// How often it looks whether it may end.
const LOOK: Duration = Duration::from_millis(5);

const NOISE: &str = "all work and no play makes a dull agent\n";

pub(super) fn serve(manners: AcpManners) -> ! {
    match manners.start {
        AgentStart::Die => die("I will not start", 7),
        AgentStart::Flood => stdio::flood(NOISE),
        AgentStart::Well | AgentStart::Hang | AgentStart::Stubborn | AgentStart::Newer => {}
    }
    let start = manners.start;
    let mut brain = Brain::new(manners);
    match brain.manners.until.clone() {
        None => {
            stdio::lines().for_each(|line| hear(&mut brain, &line));
        }
        Some(until) => hear_and_watch(&mut brain, &until),
    }
    brain.manners.note(&serde_json::json!({"end": "of input"}));
    for step in brain.end_of_input() {
        act(step, start);
    }
    if start == AgentStart::Stubborn {
        park();
    }
    exit(0)
}

fn hear(brain: &mut Brain, line: &str) {
    let Ok(message) = serde_json::from_str(line) else { return };
    brain.manners.note(&message);
    for step in brain.hear(&message) {
        act(step, brain.manners.start);
    }
}

/// The same, while it watches for a file that lets its turn end.
fn hear_and_watch(brain: &mut Brain, until: &Path) {
    let (tell, lines) = mpsc::channel();
    thread::spawn(move || stdio::lines().try_for_each(|line| tell.send(line)));
    loop {
        match lines.recv_timeout(LOOK) {
            Ok(line) => hear(brain, &line),
            Err(RecvTimeoutError::Timeout) if until.exists() => {
                for step in turn::finish(brain) {
                    act(step, brain.manners.start);
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

fn act(step: AcpStep, start: AgentStart) {
    match step {
        AcpStep::Say(message) => say(&message.to_string()),
        AcpStep::Raw(line) => say(&line),
        AcpStep::Die(words, code) => die(words, code),
        AcpStep::Flood => stdio::flood(NOISE),
        AcpStep::Gush(step) => loop {
            act(AcpStep::clone(&step), start);
        },
        AcpStep::Wedge => park(),
        AcpStep::Spawn => spawn_far(),
        AcpStep::Command => spawn_near(),
        AcpStep::EndCommands => end_commands(),
        AcpStep::HandOver(to) => match hub::hand_over(&to) {
            Ok(line) => lock(&LINES).push(line),
            Err(error) => die(&format!("no hub: {error}"), 8),
        },
    }
    if start == AgentStart::Flood {
        stdio::flood(NOISE);
    }
}

/// A grandchild in its own session that ignores polite signals and keeps our pipes open.
fn spawn_far() {
    let line = "trap '' INT TERM HUP; exec sleep 1000";
    let spawned = Command::new("setsid").args(["sh", "-c", line]).stdin(Stdio::null()).spawn();
    if let Err(error) = spawned {
        die(&format!("no grandchild: {error}"), 9);
    }
}

/// Lines to a hub, held until the agent ends. One thread uses this and the next: a lock makes them a `static`.
static LINES: Mutex<Vec<hub::HubLine>> = Mutex::new(Vec::new());

/// Commands that the agent started. Held while they are ended, by the one thread.
static COMMANDS: Mutex<Vec<Child>> = Mutex::new(Vec::new());

/// A command as agents run them: a signal ends it.
fn spawn_near() {
    match Command::new("sleep").arg("1000").stdin(Stdio::null()).stdout(Stdio::null()).spawn() {
        Ok(command) => lock(&COMMANDS).push(command),
        Err(error) => die(&format!("no command: {error}"), 9),
    }
}

fn end_commands() {
    for mut command in lock(&COMMANDS).drain(..) {
        if let Err(error) = command.kill().and_then(|()| command.wait()) {
            eprintln!("the command does not end: {error}");
        }
    }
}
