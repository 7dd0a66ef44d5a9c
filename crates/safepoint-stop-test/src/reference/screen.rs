//! A prompt in a terminal, and its keys: a letter is typed, Enter begins a turn, Esc and Ctrl-C stop it, Ctrl-D stops it and ends.

use std::{
    io::{self, Read as _, Write as _},
    process,
    sync::Arc,
    thread,
};

use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};

use crate::{Manner, agent::Agent, stop};

const CTRL_C: u8 = 3;
const CTRL_D: u8 = 4;
const ESC: u8 = 27;

/// Shows a prompt, and hears keys until there are no more.
pub(crate) fn screen(agent: &Arc<Agent>, manner: Manner) {
    by_key();
    prompt();
    let mut line = String::new();
    for key in io::stdin().lock().bytes().map_while(Result::ok) {
        match key {
            b'\r' | b'\n' => begin(agent, &std::mem::take(&mut line)),
            ESC => stop(agent, manner, &told),
            CTRL_C if agent.is_busy() => stop(agent, manner, &told),
            // Exit: as a shell says it of a signal.
            CTRL_C => process::exit(130),
            CTRL_D => {
                stop(agent, manner, &told);
                // Exit: it is left, and nothing more is wanted.
                process::exit(0);
            }
            b'y' if agent.allow() => {}
            key => {
                line.push(char::from(key));
                show(&char::from(key).to_string());
            }
        }
    }
}

/// Has the terminal hand on each key at once, and show none.
fn by_key() {
    let Ok(mut modes) = tcgetattr(io::stdin()) else { return };
    modes.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG;
    modes.input_modes -= rustix::termios::InputModes::ICRNL;
    if tcsetattr(io::stdin(), OptionalActions::Now, &modes).is_err() {
        // It is no terminal: then lines are keys, too.
    }
}

fn begin(agent: &Arc<Agent>, text: &str) {
    show("\n");
    let (agent, turn) = (Arc::clone(agent), agent.begin(text));
    drop(thread::spawn(move || {
        let words = match agent.finish(turn) {
            Some(true) => agent.last_words(),
            Some(false) => "failed".to_owned(),
            None => return,
        };
        show(&format!("{words}\n"));
        prompt();
    }));
}

fn told(says: &str, running: &[String]) {
    if says != "nothing" {
        show(&format!("{says}\n"));
    }
    if !running.is_empty() {
        show(&format!("still running: {}\n", running.join(", ")));
    }
    prompt();
}

fn prompt() {
    show("ready> ");
}

fn show(text: &str) {
    let mut out = io::stdout().lock();
    if out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_err() {
        // The terminal is closed.
    }
}
