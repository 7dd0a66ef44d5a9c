//! The standard input and output of a process that speaks JSON-RPC, one message a line: blocking, so that no
//! scheduler decides what comes first.

use std::{
    io::{BufRead as _, Write as _},
    // Exit: an agent over pipes is a program for itself: its manners choose when and with which code it ends.
    process::exit,
};

use serde::de::DeserializeOwned;

/// More than any pipe holds.
const FLOOD_BYTES: usize = 4 << 20;

/// The manners that this process was started with in this variable, if it was.
pub(crate) fn asked<M: DeserializeOwned>(variable: &str) -> Option<M> {
    let manners = std::env::var(variable).ok()?;
    Some(serde_json::from_str(&manners).expect("the variable holds manners"))
}

/// The lines of the input, to its end.
pub(crate) fn lines() -> impl Iterator<Item = String> {
    std::io::stdin().lock().lines().map_while(Result::ok)
}

/// Writes a line. The process ends when its output is closed.
pub(crate) fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    if writeln!(out, "{line}").and_then(|()| out.flush()).is_err() {
        exit(0);
    }
}

/// Writes many megabytes of this line to standard error.
pub(crate) fn flood(line: &str) {
    let words = line.repeat(FLOOD_BYTES / line.len());
    if std::io::stderr().lock().write_all(words.as_bytes()).is_err() {
        exit(0);
    }
}

/// Says why on standard error, and ends with this code.
pub(crate) fn die(words: &str, code: i32) -> ! {
    eprintln!("{words}");
    exit(code)
}

/// Keeps this thread until the process is killed.
pub(crate) fn park() -> ! {
    loop {
        std::thread::park();
    }
}
