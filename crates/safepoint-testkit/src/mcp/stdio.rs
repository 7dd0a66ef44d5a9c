//! A server over standard input and output.

// Exit: this server is a program for itself: its manners choose when and with which code it ends.
use std::process::exit;

use super::{
    McpManners, ServerStart,
    brain::{Brain, McpStep},
};
use crate::stdio::{self, die, park, say};

const NOISE: &str = "all work and no play makes a dull server\n";

pub(super) fn serve(manners: McpManners) -> ! {
    match manners.start {
        ServerStart::Die => die("I will not start", 7),
        ServerStart::Flood => stdio::flood(NOISE),
        _ => {}
    }
    let mut brain = Brain::new(manners);
    for message in stdio::lines().filter_map(|line| serde_json::from_str(&line).ok()) {
        for step in brain.hear(&message) {
            act(step, brain.manners.start);
        }
        if brain.manners.start == ServerStart::Wedge && brain.lists > 0 {
            park();
        }
    }
    if brain.manners.start == ServerStart::Stubborn {
        park();
    }
    exit(0)
}

fn act(step: McpStep, start: ServerStart) {
    match step {
        McpStep::Say(message) | McpStep::Tell(message) => say(&message.to_string()),
        McpStep::Raw(line) => say(&line),
        McpStep::Status(_) => {}
        McpStep::Die(words, code) => die(words, code),
    }
    if start == ServerStart::Flood {
        stdio::flood(NOISE);
    }
}
