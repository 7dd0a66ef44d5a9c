//! The processes of a call.

use serde::{Deserialize, Serialize};

/// A process that a call started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ProcessReport {
    /// Its process id.
    pub pid: u32,
    /// What it was, for people.
    pub label: String,
    /// How it ended: `exit 0`, `signal 9`, or what is known.
    pub ended: String,
    /// The signals that its tree was sent, in order.
    pub signals: Vec<String>,
    /// Processes that it had left behind and that were killed with it.
    pub left_behind: Vec<String>,
    /// Background processes that ended with it, whether killed or not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ended_with: Vec<String>,
    /// What may still be alive.
    pub survivors: Vec<String>,
    /// How it was held: `cgroup`, `subreaper`, `process group`.
    pub containment: String,
}

impl ProcessReport {
    /// One that ended so, with no signal, and with nothing beside it.
    pub fn new(
        pid: u32,
        label: impl Into<String>,
        ended: impl Into<String>,
        containment: impl Into<String>,
    ) -> Self {
        Self {
            pid,
            label: label.into(),
            ended: ended.into(),
            signals: Vec::new(),
            left_behind: Vec::new(),
            ended_with: Vec::new(),
            survivors: Vec::new(),
            containment: containment.into(),
        }
    }
}
