//! Why a saved run cannot be made, read or resumed.

use std::{borrow::Cow, error::Error as StdError, fmt};

use crate::value::ids::Path;

/// Why a [`RunState`](super::RunState) cannot be made, read or resumed.
#[derive(Debug)]
pub struct RunStateError {
    kind: RunStateErrorKind,
    what: Cow<'static, str>,
    hint: &'static str,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

/// The kinds of failure that callers tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RunStateErrorKind {
    /// The run is done: nothing is left to resume.
    Done,
    /// Not all of the run is recorded, so nothing may continue from it.
    NotRecorded,
    /// The run is recorded elsewhere, in a session or in the program's log, and is resumed from there.
    KeptElsewhere,
    /// Something of the run still runs here, such as a background run.
    StillRunning,
    /// It is no such value, or it was changed.
    Damaged,
    /// A newer release wrote it.
    Newer,
    /// Another agent began it.
    OtherAgent,
    /// The agent that began it had other tools.
    OtherTools,
    /// Another copy was claimed.
    Claimed,
    /// The claim failed, and whether it was made is unknown.
    ClaimFailed,
    /// Something was wanted that only a claimed run does.
    NotClaimed,
}

impl RunStateError {
    fn new(kind: RunStateErrorKind, what: impl Into<Cow<'static, str>>, hint: &'static str) -> Self {
        Self { kind, what: what.into(), hint, source: None }
    }

    pub(crate) fn done() -> Self {
        let hint = "continue the conversation with `run_on` and the outcome's history";
        Self::new(RunStateErrorKind::Done, "the run is done: nothing is left to resume", hint)
    }

    pub(crate) fn not_recorded(source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        let hint = "continue with `run_on` and the outcome's history, which closes what is open";
        let what = "not all of the run is recorded, so nothing may continue from it";
        let error = Self::new(RunStateErrorKind::NotRecorded, what, hint);
        Self { source: Some(source.into()), ..error }
    }

    pub(crate) fn kept_elsewhere() -> Self {
        let hint = "resume it in its session, or from its log with `resume_recorded`";
        Self::new(
            RunStateErrorKind::KeptElsewhere,
            "the run is recorded in a session or in the program's log",
            hint,
        )
    }

    pub(crate) fn still_running(path: &Path) -> Self {
        let which = if path.is_root() { "the run".to_owned() } else { format!("the run {path} below it") };
        let hint = "wait for its `quiet()`, or stop it first";
        Self::new(RunStateErrorKind::StillRunning, format!("{which} is still running"), hint)
    }

    pub(crate) fn damaged(why: impl fmt::Display) -> Self {
        let hint = "read it from a backup: nothing of it was used";
        Self::new(RunStateErrorKind::Damaged, format!("this is no saved run, or it was changed: {why}"), hint)
    }

    pub(crate) fn newer(version: u32, known: u32) -> Self {
        let what =
            format!("a newer release wrote this run: version {version}, and this one reads up to {known}");
        Self::new(RunStateErrorKind::Newer, what, "resume it with that release")
    }

    pub(crate) fn other_agent() -> Self {
        let what = "another agent began this run: its model or its instructions differ";
        Self::new(RunStateErrorKind::OtherAgent, what, ADOPT)
    }

    pub(crate) fn other_tools(changes: &[String]) -> Self {
        let what = format!("the agent that began this run had other tools: {}", changes.join(", "));
        Self::new(RunStateErrorKind::OtherTools, what, ADOPT)
    }

    pub(crate) fn claimed() -> Self {
        let hint = "another copy continues, or its process ended: look for a newer state of the run";
        Self::new(RunStateErrorKind::Claimed, "this state of the run is claimed already", hint)
    }

    pub(crate) fn claim_failed(source: Box<dyn StdError + Send + Sync>) -> Self {
        let hint = "look where the claim is kept whether it was made, before you try again";
        let error = Self::new(RunStateErrorKind::ClaimFailed, "the claim of the run failed", hint);
        Self { source: Some(source), ..error }
    }

    pub(crate) fn not_claimed() -> Self {
        let hint = "resume it with a claim: `resume_state`";
        let what = "a run without a claim takes no decision: another copy could take the same one";
        Self::new(RunStateErrorKind::NotClaimed, what, hint)
    }

    /// What kind of failure it is.
    #[must_use]
    pub fn kind(&self) -> RunStateErrorKind {
        self.kind
    }

    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> &str {
        self.hint
    }
}

/// What to do about an agent that differs.
const ADOPT: &str = "resume it with the agent that began it, or give it to this one with `adopt_state`";

impl fmt::Display for RunStateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        self.source.iter().try_for_each(|source| write!(f, ": {source}"))
    }
}

impl StdError for RunStateError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}
