//! A run between two attempts as one value, to be kept anywhere and resumed in any process (S7.18).
//!
//! **Invariants**: a value that exists is whole: its version is known, its digest fits, and its records are those of one
//! run from its start to the end of an attempt. What was read is written again byte for byte.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};

use crate::{
    contract::log::RunRecord,
    definition::identity::AgentIdentity,
    value::{
        approval::{ApprovalRequest, Decision, hashed},
        event::Fact,
        ids::{ApprovalId, RunId},
    },
};

mod error;

pub use error::{RunStateError, RunStateErrorKind};

/// The version that is written.
const VERSION: u32 = 1;

/// A stopped, failed or suspended run as one value: made by [`Outcome::state`](crate::Outcome::state), resumed by
/// [`Agent::resume_state`](crate::Agent::resume_state) in any process that has the same agent.
///
/// It has everything that was recorded of the run and of its child runs, and a digest of it, so that a value that was
/// damaged or changed is refused. The digest is no signature: any program that may write where the value is kept can make
/// another one. It holds the whole conversation; keep it as you keep that.
///
/// As JSON it is one object; [`to_bytes`](Self::to_bytes) gives that, and any format of `serde` takes it.
///
/// ```
/// # use safepoint::{Agent, Outcome, approval::Decision, state::{RunState, RunStateError}};
/// # async fn example(agent: Agent, outcome: Outcome) -> Result<(), RunStateError> {
/// let bytes = outcome.state().await?.to_bytes(); // into your database, beside its digest
///
/// let mut state = RunState::from_bytes(&bytes)?; // days later, elsewhere
/// for request in state.approvals() {
///     println!("{} {}", request.tool, request.args);
///     state = state.with_decision(request.id, Decision::Approve);
/// }
/// let run = agent.resume_state(state, |run, digest| async move {
///     // UPDATE runs SET is_claimed = true WHERE id = $run AND digest = $digest AND NOT is_claimed
///     # drop((run, digest)); let rows = 1;
///     Ok(rows == 1)
/// });
/// println!("{:?}", run.await?.await.answer());
/// # Ok(()) }
/// ```
#[derive(Clone, Serialize, Deserialize)]
#[serde(try_from = "StoredRunState", into = "StoredRunState")]
#[must_use = "keep it, or resume it"]
pub struct RunState {
    stored: StoredRunState,
    records: Vec<RunRecord>,
    decisions: Vec<(ApprovalId, Decision)>,
}

/// What is written. The records are text, so that a store that orders members or writes numbers anew changes nothing in
/// them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct StoredRunState {
    version: u32,
    run: RunId,
    /// The agent that began it.
    agent: String,
    /// That agent's tools.
    tools: BTreeMap<String, String>,
    /// The records as JSON, one a line.
    records: String,
    /// Of all that stands above.
    digest: String,
}

/// The one member that every version has.
#[derive(Deserialize)]
struct VersionOnly {
    version: u32,
}

impl StoredRunState {
    /// The digest of what it says.
    fn digest(&self) -> String {
        let Self { version, run, agent, tools, records, digest: _ } = self;
        let mut parts = vec![version.to_string(), run.to_string(), agent.clone(), tools.len().to_string()];
        parts.extend(tools.iter().flat_map(|(name, digest)| [name.clone(), digest.clone()]));
        let parts: Vec<&str> = parts.iter().map(String::as_str).chain([records.as_str()]).collect();
        hashed("sha256:", &parts)
    }
}

impl RunState {
    /// The state of a run with these records.
    pub(crate) fn of(
        run: RunId,
        agent: AgentIdentity,
        records: Vec<RunRecord>,
    ) -> Result<Self, RunStateError> {
        let AgentIdentity { agent, tools } = agent;
        let mut lines = String::new();
        for record in &records {
            let line = serde_json::to_string(record).map_err(RunStateError::damaged)?;
            lines.push_str(&line);
            lines.push('\n');
        }
        let mut stored =
            StoredRunState { version: VERSION, run, agent, tools, records: lines, digest: String::new() };
        stored.digest = stored.digest();
        let state = Self { stored, records, decisions: Vec::new() };
        state.check_records()?;
        Ok(state)
    }

    /// Reads what [`to_bytes`](Self::to_bytes) wrote, in this release or an older one.
    ///
    /// # Errors
    /// If it is no such value, was damaged or changed, or was written by a newer release.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, RunStateError> {
        let VersionOnly { version } = serde_json::from_slice(bytes).map_err(RunStateError::damaged)?;
        check_version(version)?;
        let stored: StoredRunState = serde_json::from_slice(bytes).map_err(RunStateError::damaged)?;
        Self::try_from(stored)
    }

    /// The value as JSON.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(&self.stored).expect("names, texts and numbers are always JSON")
    }

    /// The run.
    #[must_use]
    pub fn run(&self) -> &RunId {
        &self.stored.run
    }

    /// The digest of the value: what a claim names, so that it is a claim of this very state of the run.
    #[must_use]
    pub fn digest(&self) -> &str {
        &self.stored.digest
    }

    /// The open questions of the run and of its child runs, oldest first.
    #[must_use]
    pub fn approvals(&self) -> Vec<ApprovalRequest> {
        let mut open: Vec<ApprovalRequest> = Vec::new();
        for record in &self.records {
            match &*record.fact {
                Fact::ApprovalRequested(request) => open.push(request.clone()),
                Fact::ApprovalResolved { id, .. } => open.retain(|request| request.id != *id),
                _ => {}
            }
        }
        open
    }

    /// Adds a decision, which the resume applies first. It is not written with the value.
    pub fn with_decision(mut self, id: ApprovalId, decision: Decision) -> Self {
        self.decisions.push((id, decision));
        self
    }

    /// The same run for another agent. What was approved and has not run is asked again where the tool differs.
    pub(crate) fn bound_to(self, agent: AgentIdentity) -> Result<Self, RunStateError> {
        let bound = Self::of(self.stored.run, agent, self.records)?;
        Ok(Self { decisions: self.decisions, ..bound })
    }

    /// That this agent began it, with the tools that it has now.
    pub(crate) fn check_agent(&self, now: &AgentIdentity) -> Result<(), RunStateError> {
        let changed = changes(&self.stored.tools, &now.tools);
        if !changed.is_empty() {
            return Err(RunStateError::other_tools(&changed));
        }
        if self.stored.agent != now.agent {
            return Err(RunStateError::other_agent());
        }
        Ok(())
    }

    pub(crate) fn has_decisions(&self) -> bool {
        !self.decisions.is_empty()
    }

    /// The run, its records, and the decisions to begin with.
    pub(crate) fn into_parts(self) -> (RunId, Vec<RunRecord>, Vec<(ApprovalId, Decision)>) {
        (self.stored.run, self.records, self.decisions)
    }

    /// That these are the records of the run, up to the end of an attempt.
    fn check_records(&self) -> Result<(), RunStateError> {
        let mut root = self.records.iter().filter(|record| record.path.is_root()).map(|record| &*record.fact);
        let is_begun =
            matches!(root.next(), Some(Fact::AttemptOpened { run, .. }) if *run == self.stored.run);
        if !is_begun || !matches!(root.next_back(), Some(Fact::Settled { .. })) {
            return Err(RunStateError::damaged("its records are not those of a run that has ended"));
        }
        Ok(())
    }
}

/// What differs between the tools of two agents, in words.
fn changes(then: &BTreeMap<String, String>, now: &BTreeMap<String, String>) -> Vec<String> {
    let gone = then.iter().filter_map(|(name, digest)| match now.get(name) {
        None => Some(format!("`{name}` is gone")),
        Some(other) if other != digest => Some(format!("`{name}` has changed")),
        Some(_) => None,
    });
    let added = now.keys().filter(|name| !then.contains_key(*name)).map(|name| format!("`{name}` is new"));
    gone.chain(added).collect()
}

fn check_version(version: u32) -> Result<(), RunStateError> {
    match version {
        VERSION => Ok(()),
        0 => Err(RunStateError::damaged("it has the version 0")),
        newer => Err(RunStateError::newer(newer, VERSION)),
    }
}

impl TryFrom<StoredRunState> for RunState {
    type Error = RunStateError;

    fn try_from(stored: StoredRunState) -> Result<Self, RunStateError> {
        check_version(stored.version)?;
        if stored.digest() != stored.digest {
            return Err(RunStateError::damaged("its digest is not that of its content"));
        }
        let lines = stored.records.lines().enumerate();
        let records = lines
            .map(|(index, line)| {
                let record: RunRecord = serde_json::from_str(line)
                    .map_err(|why| RunStateError::damaged(format!("record {index}: {why}")))?;
                Ok(record)
            })
            .collect::<Result<_, RunStateError>>()?;
        let state = Self { stored, records, decisions: Vec::new() };
        state.check_records()?;
        Ok(state)
    }
}

impl From<RunState> for StoredRunState {
    fn from(state: RunState) -> Self {
        state.stored
    }
}

impl fmt::Debug for RunState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunState")
            .field("run", &self.stored.run)
            .field("digest", &self.stored.digest)
            .finish_non_exhaustive()
    }
}
