//! An agent over standard input and output: one thread, blocking, so that nothing of it happens by chance.

use std::{
    io::{BufRead as _, Write as _},
    path::Path,
    process::{Child, Command, Stdio, exit},
    sync::{
        Mutex, PoisonError,
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::Duration,
};

use super::{
    AcpManners, AgentStart,
    brain::{Brain, Step},
    hub, turn,
};

/// How often it looks whether it may end.
const LOOK: Duration = Duration::from_millis(5);

/// More than any pipe holds.
const FLOOD_BYTES: usize = 4 << 20;

pub(super) fn serve(manners: AcpManners) -> ! {
    match manners.start {
        AgentStart::Die => die("I will not start", 7),
        AgentStart::Flood => flood(),
        AgentStart::Well | AgentStart::Hang | AgentStart::Stubborn | AgentStart::Newer => {}
    }
    let start = manners.start;
    let mut brain = Brain::new(manners);
    match brain.manners.until.clone() {
        None => {
            for line in std::io::stdin().lock().lines().map_while(Result::ok) {
                hear(&mut brain, &line);
            }
        }
        Some(until) => hear_and_watch(&mut brain, &until),
    }
    brain.manners.note(&serde_json::json!({"end": "of input"}));
    for step in brain.end_of_input() {
        act(step, start);
    }
    if start == AgentStart::Stubborn {
        wait_for_ever();
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
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        std::io::stdin().lock().lines().map_while(Result::ok).try_for_each(|line| tell.send(line))
    });
    loop {
        match told.recv_timeout(LOOK) {
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

fn act(step: Step, start: AgentStart) {
    match step {
        Step::Say(message) => say(&message.to_string()),
        Step::Raw(line) => say(&line),
        Step::Die(words, code) => die(words, code),
        Step::Flood => flood(),
        Step::Gush(message) => gush(&message.to_string()),
        Step::Wedge => wait_for_ever(),
        Step::Spawn => spawn_far(),
        Step::Command => spawn_near(),
        Step::EndCommands => end_commands(),
        Step::HandOver(to) => match hub::hand_over(&to) {
            Ok(line) => LINES.lock().unwrap_or_else(PoisonError::into_inner).push(line),
            Err(error) => die(&format!("no hub: {error}"), 8),
        },
    }
    if start == AgentStart::Flood {
        flood();
    }
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    if writeln!(out, "{line}").and_then(|()| out.flush()).is_err() {
        exit(0);
    }
}

fn gush(line: &str) -> ! {
    loop {
        say(line);
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

/// Lines to a hub, held until the agent ends.
static LINES: Mutex<Vec<Box<dyn hub::Held>>> = Mutex::new(Vec::new());

static COMMANDS: Mutex<Vec<Child>> = Mutex::new(Vec::new());

/// A command as agents run them: it ends when it is told to by a signal.
fn spawn_near() {
    match Command::new("sleep").arg("1000").stdin(Stdio::null()).stdout(Stdio::null()).spawn() {
        Ok(command) => COMMANDS.lock().unwrap_or_else(PoisonError::into_inner).push(command),
        Err(error) => die(&format!("no command: {error}"), 9),
    }
}

fn end_commands() {
    for mut command in COMMANDS.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
        if let Err(error) = command.kill().and_then(|()| command.wait()) {
            eprintln!("the command does not end: {error}");
        }
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
