//! A small agent whose stop has a known verdict: `stop-test-reference adapter MANNER`, `terminal MANNER`, `serve MANNER`, `tools MANNER`,
//! or `program MANNER PROMPT`.
//!
//! It proves that the judge can say each word: an instrument that cannot say *lies* proves nothing by saying *ends*.

use std::{
    env,
    io::{self, Write as _},
    process::{self, ExitCode},
    sync::Arc,
    thread,
    time::Duration,
};

use rustix::process::{Pid, set_child_subreaper};
use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};

use agent::{Agent, Settled};

mod agent;
mod processes;
mod screen;
mod serve;
mod tools;

/// How it stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    Ends,
    EndsLate,
    SaysSo,
    LetsGo,
    GoesOn,
    Lies,
    /// It ends all, and its caller never has control.
    Hangs,
    /// It dies.
    Crashes,
    /// It ends all, and its history has a call without a result.
    Forgets,
    /// It writes without end to its output, and does not stop.
    Floods,
    /// It writes what is no protocol.
    Garbles,
    /// It ends all, and asks before each command whether it may run.
    Asks,
    /// It ends all, and asks its model for a title once its turn is over.
    Titles,
}

/// Each manner by its name.
const MANNERS: [(&str, Manner); 13] = [
    ("ends", Manner::Ends),
    ("ends-late", Manner::EndsLate),
    ("says-so", Manner::SaysSo),
    ("lets-go", Manner::LetsGo),
    ("goes-on", Manner::GoesOn),
    ("lies", Manner::Lies),
    ("hangs", Manner::Hangs),
    ("crashes", Manner::Crashes),
    ("forgets", Manner::Forgets),
    ("floods", Manner::Floods),
    ("garbles", Manner::Garbles),
    ("asks", Manner::Asks),
    ("titles", Manner::Titles),
];

/// How much later than its caller is told the work of one that ends late does end.
const LATE: Duration = Duration::from_millis(400);

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let [mode, manner, prompt @ ..] = &args[..] else { return usage() };
    let Some((_, manner)) = MANNERS.into_iter().find(|(name, _)| name == manner) else { return usage() };
    // What its commands leave becomes its child, so that it can find it.
    if set_child_subreaper(Pid::from_raw(1)).is_err() {
        // Then it ends what it has started itself.
    }
    let agent = Arc::new(Agent::new(manner == Manner::Asks));
    match (mode.as_str(), prompt.last()) {
        ("adapter", _) => adapter(&agent, manner),
        ("tools", _) => tools::tools(&agent, manner),
        ("serve", _) => serve::serve(&agent, manner),
        ("terminal", _) => screen::screen(&agent, manner),
        ("program", Some(prompt)) => program(&agent, manner, prompt),
        _ => return usage(),
    }
    ExitCode::SUCCESS
}

fn usage() -> ExitCode {
    let manners = MANNERS.map(|(name, _)| name).join(", ");
    eprintln!(
        "usage: stop-test-reference adapter MANNER | terminal MANNER | serve MANNER | tools MANNER | program MANNER PROMPT; the manners: {manners}"
    );
    // Exit: 2 is the usual code of a command that cannot be read.
    ExitCode::from(2)
}

/// Writes a line, also while others do.
fn say(value: &Value) {
    if writeln!(io::stdout().lock(), "{value}").is_err() {
        // Its reader is gone: the end of the input says so, too.
    }
}

fn told(says: &str, running: &[String]) {
    say(&json!({"at": "told", "says": says, "running": running}));
}

/// Lines in, lines out: see the door for adapters.
fn adapter(agent: &Arc<Agent>, manner: Manner) {
    match manner {
        Manner::Floods => flood(),
        Manner::Garbles => println!("hello, I am no protocol"),
        _ => {}
    }
    say(&json!({"at": "ready", "stops": ["stop"]}));
    for line in io::stdin().lines().map_while(Result::ok) {
        let wish: Value = serde_json::from_str(&line).unwrap_or_default();
        match wish["do"].as_str() {
            Some("start" | "next") => {
                let (agent, turn) =
                    (Arc::clone(agent), agent.begin(wish["text"].as_str().unwrap_or_default()));
                drop(thread::spawn(move || match agent.finish(turn) {
                    Some(true) => {
                        told("done", &[]);
                        if manner == Manner::Titles {
                            thread::sleep(LATE / 4);
                            agent.title(turn);
                        }
                    }
                    Some(false) => told("failed", &[]),
                    None => {}
                }));
            }
            Some("stop") => stop(agent, manner, &told),
            _ => {}
        }
    }
    // Exit: its input is closed, and nothing more is wanted.
    process::exit(0);
}

/// Stops in this manner, and tells the caller what that says and what is named as still running.
fn stop(agent: &Agent, manner: Manner, told: &dyn Fn(&str, &[String])) {
    if manner == Manner::GoesOn {
        return;
    }
    if !agent.settle(if manner == Manner::Forgets { Settled::WithoutResults } else { Settled::Whole }) {
        // There was nothing to stop, or it was stopped before.
        return;
    }
    match manner {
        Manner::Ends | Manner::Forgets | Manner::Asks | Manner::Titles => {
            agent.end_all();
            told("stopped", &[]);
        }
        Manner::EndsLate => {
            told("stopped", &[]);
            thread::sleep(LATE);
            agent.end_all();
        }
        Manner::SaysSo => told("stopped", &agent.names()),
        Manner::Lies | Manner::Floods | Manner::Garbles => told("stopped", &[]),
        Manner::LetsGo => told("nothing", &[]),
        Manner::Hangs => agent.end_all(),
        Manner::Crashes => process::abort(),
        Manner::GoesOn => {}
    }
}

fn flood() {
    let line = [b'x'; 1 << 16];
    while io::stdout().lock().write_all(&line).is_ok() {}
}

/// One prompt, and signals.
fn program(agent: &Arc<Agent>, manner: Manner, prompt: &str) {
    // One that lets go does what signals do by themselves.
    if manner != Manner::LetsGo {
        let agent = Arc::clone(agent);
        drop(thread::spawn(move || on_signals(&agent, manner)));
    }
    let turn = agent.begin(prompt);
    if agent.finish(turn).is_none() {
        // It was stopped: what hears the signal ends the process.
        loop {
            thread::park();
        }
    }
}

fn on_signals(agent: &Agent, manner: Manner) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime of one thread needs little");
    runtime.block_on(async {
        let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        let [mut interrupts, mut ends, mut hangups] =
            kinds.map(|kind| signal(kind).expect("each can be heard"));
        loop {
            // Any of them says the same.
            tokio::select! {
                biased;
                _ = interrupts.recv() => {}
                _ = ends.recv() => {}
                _ = hangups.recv() => {}
            }
            if !agent.settle(Settled::Whole) {
                // It was asked before, or is done.
            }
            match manner {
                Manner::Ends | Manner::Forgets | Manner::Asks | Manner::Titles => {
                    agent.end_all();
                    // Exit: as a shell says it of a signal.
                    process::exit(130);
                }
                Manner::Hangs => agent.end_all(),
                Manner::Crashes => process::abort(),
                Manner::GoesOn => {}
                Manner::SaysSo => {
                    println!("still running: {}", agent.names().join(", "));
                    // Exit: the same; what it has started is left alive and named.
                    process::exit(130);
                }
                // Exit: the same, with all that it has started left alive.
                _ => process::exit(130),
            }
        }
    });
}
