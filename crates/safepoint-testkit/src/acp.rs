//! ACP agents that behave badly, as processes: for tests of programs that run third-party agents.
//!
//! A test program is its own agent: it calls [`serve_if_asked`] first, and starts itself with [`ASKED`] set
//! to an [`AcpManners`] as JSON. The first word of the prompt's last line selects the turn:
//!
//! - `say`: says the rest of the line, in chunks of one word, and ends
//! - `think`: thinks, uses its own tool, says `thought about it`, and ends
//! - `work`: says `working`, begins a tool call, and works until it is asked to end, which it confirms
//! - `deaf`: the same, but ignores `session/cancel`
//! - `sly`: the same, but says `end_turn` where it should say that it was cancelled
//! - `fail`: the same, but answers with an error when it is asked to end
//! - `babble`: the same, but says a hundred more things, and that its tool call is done, before it confirms
//! - `late`: ignores `session/cancel`, but says more and answers when its input ends
//! - `unmoved`: answers `session/cancel` with no more than that it is `still working`
//! - `ask`: asks whether it may pay; pays if it may; and ends, or confirms that it was asked to
//! - `nag`: asks the same twice at once, and then as `ask`
//! - `odd-ask`: asks with no answer to choose from that allows anything
//! - `tree`: starts a grandchild in its own session, and then as `deaf`
//! - `command`: runs a command as `work` does, and confirms its end at once, while the command continues
//! - `hand`: hands its work to the hub of its manners, and then as `work`
//! - `clan`: starts a grandchild as `tree` does, and then as `hand`
//! - `serve`: starts a command in the background, says `serving`, and ends; the command ends with the agent
//! - `tidy`: the same, but it ends the command itself when its input ends
//! - `shy`: asks as `ask`, and where it may not, ends without a word
//! - `sulk`: asks as `ask`, and where it may not, ends with `cancelled`
//! - `flood`: writes many megabytes to standard error, and then as `say`
//! - `noise`: writes lines that are no messages, and then as `say`
//! - `big`: writes one line of 50 MB, says `after`, and ends
//! - `gush`: says one thing after the other without end
//! - `brood`: thinks one thing after the other without end
//! - `essay`: says 15 MiB in many pieces, and ends
//! - `die`: says `half`, and why on standard error, and ends the process with code 3
//! - `twice`: answers twice, differently
//! - `file`: asks for a file, says what it was answered, and ends
//! - `wedge`: says `wedged`, and reads and does nothing more
//! - `count`: says how many prompts this session has had, and ends
//! - `refuse`: ends with `refusal`
//! - `tokens`: says `cut`, and ends with `max_tokens`
//! - `new-reason`: ends with an unknown reason
//! - `broken`: answers with neither a result nor an error

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{notes::note, stdio::asked};

mod brain;
mod hub;
mod say;
mod stdio;
mod turn;
#[cfg(feature = "suites")]
mod work;

pub use crate::notes::{now_ns, read_log};
pub use hub::Hub;
#[cfg(feature = "suites")]
pub use work::work;

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
