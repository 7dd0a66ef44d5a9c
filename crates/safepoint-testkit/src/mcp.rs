//! MCP servers that behave badly, over pipes and over HTTP: for testing what an agent does with tools of
//! strangers.
//!
//! A server over pipes is a process, so a test program is its own server: it calls [`serve_if_asked`] before
//! anything else, and is started again with [`ASKED`] set to a [`McpManners`] as JSON. A [`HttpServer`] lives
//! in the test itself.
//!
//! Its tools are named for what they do when they are called; [`TOOLS`] says what that is.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{notes::note, stdio::asked};

mod brain;
mod http;
mod stdio;

pub use crate::notes::{now_ns, read_log};
pub use brain::TOOLS;
pub use http::{HttpServer, McpSeen};

/// The variable that makes a server of a process that calls [`serve_if_asked`].
pub const ASKED: &str = "SAFEPOINT_TEST_MCP";

/// How a server behaves.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct McpManners {
    /// From its start on.
    pub start: ServerStart,
    /// In the list of its tools.
    pub list: List,
    /// Which handshake it knows.
    pub speaks: Speaks,
    /// Which version it names in the older handshake; none: 2025-11-25.
    pub version: Option<String>,
    /// Where it writes down what it received, a JSON object a line: `{at_ns, got}`.
    pub log: Option<PathBuf>,
}

/// What it does from its start on. Exhaustive: the test chooses one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerStart {
    /// It starts as it should.
    #[default]
    Well,
    /// It takes requests and never answers.
    Hang,
    /// It says why on standard error and ends with code 7.
    Die,
    /// It writes many megabytes to standard error, before and between its answers.
    Flood,
    /// It reads nothing more after its first list of tools, but keeps running; over HTTP no call gets an
    /// answer, not even a head.
    Wedge,
    /// It ignores the end of its input and every polite signal.
    Stubborn,
}

/// What its list of tools is like. Exhaustive: the test chooses one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum List {
    /// [`TOOLS`], and nothing is wrong with them.
    #[default]
    Plain,
    /// `echo`, and others that no agent should be given.
    Odd,
    /// A list that has always one page more.
    Endless,
    /// [`TOOLS`], and `deep`, whose schema is nested 400 levels deep.
    Deep,
}

/// Which handshake it knows. Exhaustive: the two that there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Speaks {
    /// `initialize`, of 2025-11-25.
    #[default]
    Older,
    /// `server/discover`, of 2026-07-28.
    Newest,
}

/// Serves over standard input and output until the input ends, and then ends the process, if [`ASKED`] is
/// set; else returns at once.
///
/// # Panics
/// If what is asked is no [`McpManners`].
pub fn serve_if_asked() {
    if let Some(manners) = asked(ASKED) {
        stdio::serve(manners);
    }
}

impl McpManners {
    /// What [`ASKED`] is to be set to.
    ///
    /// # Panics
    /// Never: manners can be written as JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("manners can be written as JSON")
    }

    /// Writes down what was received.
    fn note(&self, got: &Value) {
        note(self.log.as_deref(), got);
    }
}
