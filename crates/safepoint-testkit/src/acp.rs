//! ACP agents that behave badly, as processes: for tests of programs that run third-party agents.
//!
//! A test program is its own agent: it calls [`serve_if_asked`] first, and starts itself with [`ASKED`] set
//! to an [`AcpManners`] as JSON. The first word of the prompt's last line selects the turn; [`WORDS`] lists
//! all words.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{notes::note, stdio::asked};

mod brain;
mod hub;
mod say;
mod stdio;
mod turn;
mod work;

pub use crate::notes::{now_ns, read_log};
pub use hub::Hub;
pub use turn::WORDS;
pub use work::{Work, work};

/// The variable that makes an agent of a process that calls [`serve_if_asked`].
pub const ASKED: &str = "SAFEPOINT_TEST_ACP";

/// How an agent behaves, beside what its prompts tell it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct AcpManners {
    /// From its start on.
    pub start: AgentStart,
    /// What it can do with a session of an earlier process.
    pub keeps: Keeps,
    /// Whether it wants to know who asks.
    pub door: Door,
    /// Where it writes down what it received and did, a JSON object a line: `{at_ns, got}`. Of its work it
    /// writes `{"begun": PID}` and `{"ended": PID}`; see [`work`].
    pub log: Option<PathBuf>,
    /// Where the [`Hub`] is that it hands its work to: its path, or its address.
    pub hub: Option<String>,
    /// What every prompt is taken as, whatever it says.
    pub word: Option<String>,
    /// What is under way ends by itself, with the answer `finished`, as soon as there is a file here.
    pub until: Option<PathBuf>,
}

/// What it does from its start on. Exhaustive: the test chooses one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentStart {
    /// It starts as it should.
    #[default]
    Well,
    /// It takes `initialize` and never answers.
    Hang,
    /// It says why on standard error and ends with code 7.
    Die,
    /// It writes many megabytes to standard error, before and between its messages.
    Flood,
    /// It ignores the end of its input.
    Stubborn,
    /// It speaks only a later version of the protocol.
    Newer,
}

/// What it can do with a session of an earlier process, which it finds in its log. Exhaustive: what the
/// protocol has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Keeps {
    /// Nothing.
    #[default]
    Nothing,
    /// `session/load`: it tells all that was said before.
    Load,
    /// `session/resume`: it tells nothing of it.
    Resume,
    /// It offers both, and has only `session/load`.
    OnlyLoad,
    /// It offers both, and has neither.
    Neither,
}

/// Whether it requires authentication. Exhaustive: the test chooses one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Door {
    /// Anybody may come in.
    #[default]
    Open,
    /// No session before `authenticate` with the method `pass`.
    Locked,
}

/// Serves over standard input and output until the input ends, then ends the process, if [`ASKED`] is set.
/// Runs as a [`Hub`] without end if it was started as one; else returns at once.
///
/// # Panics
/// If what is asked is no [`AcpManners`].
pub fn serve_if_asked() {
    if let Some(folder) = std::env::var_os(hub::ASKED) {
        hub::serve(folder.as_ref());
    }
    if let Some(manners) = asked(ASKED) {
        stdio::serve(manners);
    }
}

impl AcpManners {
    /// What [`ASKED`] is to be set to.
    ///
    /// # Panics
    /// Never: manners can be written as JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("manners can be written as JSON")
    }

    /// Writes down what was received or done.
    fn note(&self, got: &Value) {
        note(self.log.as_deref(), got);
    }
}
