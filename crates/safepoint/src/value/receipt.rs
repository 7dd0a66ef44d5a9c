//! The report of what a run did and what its stop did: every live thing, with its state and times (S3.7).

use std::sync::Arc;

use jiff::Timestamp;
use safepoint_scope::{Demand, Mode, Reach};
use serde::{Deserialize, Serialize};

use crate::value::{
    ids::{ApprovalId, CallId, Path, RunId},
    is_default,
    usage::Usage,
};

mod child;
mod cleanup;
mod display;
pub mod exit_code;
mod open_approval;
mod process;
mod provider;
mod reason;
mod remote;
mod request;
mod ruled;

pub use super::effect::SideEffect;
pub use child::{CallKind, ChildReport};
pub use cleanup::{CleanupEnd, CleanupReport};
pub use display::lasting;
pub use open_approval::OpenApproval;
pub use process::ProcessReport;
pub use provider::ProviderToolReport;
pub(crate) use provider::provider_uses;
pub use reason::ReasonReport;
pub use remote::{Outside, RemoteReport, RemoteStopState, StopSupport};
pub(crate) use request::TookEffect;
pub use ruled::{Permission, RuledBy, RuledReport};

/// The status of a call (S4.1). Exhaustive: a reader must tell each of them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CallStatus {
    /// It returned a result.
    Completed,
    /// It returned a failure, panicked, or never fitted its schema.
    Failed,
    /// It was not allowed.
    Denied,
    /// Its question expired.
    Expired,
    /// Its time limit passed.
    TimedOut,
    /// The stop came before it began.
    NotStarted,
    /// It ended because of a stop.
    Stopped,
    /// Its processes were killed because of a stop.
    Killed,
    /// It could not be stopped and was left.
    LeftRunning,
    /// Its tool or remote agent cannot be reached.
    Unreachable,
}

impl CallStatus {
    /// The stable name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Denied => "denied",
            Self::Expired => "expired",
            Self::TimedOut => "timed_out",
            Self::NotStarted => "not_started",
            Self::Stopped => "stopped",
            Self::Killed => "killed",
            Self::LeftRunning => "left_running",
            Self::Unreachable => "unreachable",
        }
    }
}

/// One call's row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct CallReport {
    /// The call.
    pub call_id: CallId,
    /// The tool.
    pub name: String,
    /// The round that requested it.
    pub round: u32,
    /// Its status.
    pub status: CallStatus,
    /// Its effect.
    pub effect: SideEffect,
    /// When its body began; none if it never did.
    pub started_at: Option<Timestamp>,
    /// When its end became known.
    pub ended_at: Option<Timestamp>,
    /// The stop that ended it, if one did.
    pub reason: Option<ReasonReport>,
    /// Who was asked to stop: the run, or this call alone.
    pub stopped_by: Option<StopSource>,
    /// Its processes.
    pub processes: Vec<ProcessReport>,
    /// Its clean-ups.
    pub cleanups: Vec<CleanupReport>,
    /// What policy decided about the questions that it asked while it ran.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ruled: Vec<RuledReport>,
    /// The run that was its work, if it was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child: Option<ChildReport>,
    /// The remote agent that did it, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote: Option<Box<RemoteReport>>,
}

impl CallReport {
    /// Whether its end was not seen and it was not stopped: its process ended first.
    fn is_cut_off(&self) -> bool {
        let was_begun_before = self.status == CallStatus::Stopped && self.started_at.is_none();
        was_begun_before && self.effect == SideEffect::Unknown && self.stopped_by.is_none()
    }
}

/// Whose stop ended a call. Exhaustive: a resume runs the first again, never the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum StopSource {
    /// The run's.
    Run,
    /// Its own.
    Call,
}

/// Where the last model call stood. Exhaustive: the four states of S3.7.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ModelState {
    /// Nothing of it left this process.
    NeverSent,
    /// It was sent, and the exchange was released on this side; what the provider does is unknown.
    Closed,
    /// It is read to its end for the bill.
    Draining,
    /// Its message is complete.
    Completed,
}

/// The last model call's row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ModelReport {
    /// The model.
    pub model: String,
    /// Which round it was for.
    pub round: u32,
    /// Where it stood.
    pub state: ModelState,
    /// What it used.
    pub usage: Usage,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Timestamp,
    /// The tries that failed before, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retries: Vec<RetryReport>,
    /// Calls that the model requested beyond the limit of one message: they are not part of it (S12.3).
    #[serde(default, skip_serializing_if = "is_default")]
    pub calls_left_out: u64,
}

impl ModelReport {
    /// Whether anything of it left this process.
    pub(crate) fn was_sent(&self) -> bool {
        self.state != ModelState::NeverSent
    }
}

/// One try of a model call that failed, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct RetryReport {
    /// When it was known to have failed.
    pub at: Timestamp,
    /// What went wrong.
    pub error: String,
    /// How long the next try waited, in milliseconds.
    pub after_ms: u64,
    /// The model that was asked instead; none if it was the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instead: Option<String>,
}

/// One request of the log (S1.4).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct RequestReport {
    /// Its place in the log, from 0.
    pub seq: u64,
    /// When it was made.
    pub at: Timestamp,
    /// Why.
    pub reason: ReasonReport,
    /// `now`, or the safe points.
    pub mode: String,
    /// `root` or `tree`.
    pub reach: String,
    /// Milliseconds of grace; none waits, or is `now`.
    pub within_ms: Option<u64>,
    /// `first`, `strengthened` or `nothing_added`.
    pub asked: String,
}

/// Why the demand became `Now`. Exhaustive: S1.7.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Escalation {
    /// It did not: it fired as requested.
    No,
    /// A later request was `Now`.
    ByRequest,
    /// Its grace was over.
    ByDeadline,
}

/// The report of the stop; `None` if none was requested.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct StopReport {
    /// The reason of the request that took effect, or the first one until then.
    pub reason: ReasonReport,
    /// The mode that was requested first.
    pub asked: String,
    /// The mode that fired; none if the end came first.
    pub fired: Option<String>,
    /// Whether and why it became `Now`.
    pub escalated: Escalation,
    /// When it was requested.
    pub requested_at: Timestamp,
    /// When the run saw it take effect.
    pub observed_at: Option<Timestamp>,
    /// Where the run was at that time.
    pub phase: String,
    /// Every request.
    pub requests: Vec<RequestReport>,
}

/// How a run ended, in one word. Exhaustive: S3.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// With an answer.
    Done,
    /// By a stop.
    Stopped,
    /// By a failure of the run.
    Failed,
    /// Not yet: it waits for a decision.
    Suspended,
}

impl Ending {
    /// The stable name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Stopped => "stopped",
            Self::Failed => "failed",
            Self::Suspended => "suspended",
        }
    }
}

/// The report of one attempt, for people ([`Display`](std::fmt::Display)) and for scripts (`serde`, stable).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Receipt {
    /// The run.
    pub run: RunId,
    /// Its place in its tree; the root's path is empty.
    #[serde(default, skip_serializing_if = "Path::is_root")]
    pub path: Path,
    /// Which attempt of it, from 1.
    pub attempt: u32,
    /// How it ended.
    pub ending: Ending,
    /// The stop, if one was asked.
    pub stop: Option<StopReport>,
    /// Rounds begun.
    pub rounds: u32,
    /// The last model call, if there was one.
    pub model: Option<ModelReport>,
    /// The model calls that summarised the history because it did not fit the model's window.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub summaries: Vec<ModelReport>,
    /// The tools that the model's provider ran itself. What they did outside is not known here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub provider_tools: Vec<ProviderToolReport>,
    /// Every call of this attempt's open or last round, and every earlier call whose effect matters.
    pub calls: Vec<CallReport>,
    /// Approvals that the stop cancelled.
    pub approvals_cancelled: Vec<ApprovalId>,
    /// Questions that are open: the run waits for their answers. Those of child runs are in their own receipts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approvals_open: Vec<OpenApproval>,
    /// Child runs that wait for decisions, as the run does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<ChildReport>,
    /// What the attempt's own model calls used.
    pub usage: Usage,
    /// What [`usage`](Self::usage) costs, in the currency of the agent's [`Price`](crate::usage::Price); `None` without a
    /// price, and never 0 for that. As sure as the usage is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// The usage of the attempt and its child runs, and of attempts that ended with their process and have no
    /// receipt.
    #[serde(default)]
    pub usage_total: Usage,
    /// What [`usage_total`](Self::usage_total) costs, by the prices of the agents that used it; `None` if one of them has
    /// no price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_total: Option<f64>,
    /// How long it worked, in milliseconds, without time during which only a person's decision could continue
    /// it.
    #[serde(default)]
    pub worked_ms: u64,
    /// When it began.
    pub started_at: Timestamp,
    /// When its outcome was fixed.
    pub settled_at: Timestamp,
    /// When nothing of it was alive any more; `None` if that is not so yet.
    pub quiet_at: Option<Timestamp>,
    /// What was alive when the quiet deadline passed.
    pub survivors: Vec<String>,
    /// What arrived after the fence.
    pub late: Vec<String>,
    /// Why the end is not recorded, or why that is unknown; `None`: it is recorded (S3.4).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unrecorded: Option<String>,
}

/// Whether everything is over. Exhaustive: S3.6.
#[derive(Clone, Debug)]
pub enum QuietReport {
    /// Nothing is alive.
    Quiet(Arc<Receipt>),
    /// The deadline passed; the receipt names the survivors.
    NotQuiet(Arc<Receipt>),
}

impl QuietReport {
    /// The final receipt, either way.
    #[must_use]
    pub fn receipt(&self) -> &Arc<Receipt> {
        match self {
            Self::Quiet(receipt) | Self::NotQuiet(receipt) => receipt,
        }
    }
}

/// `now`, or the safe points by name.
#[must_use]
pub fn mode_name(mode: Mode) -> String {
    match mode {
        Mode::Now => "now".into(),
        Mode::At(points) => points.to_string(),
    }
}

/// `root` or `tree`.
#[must_use]
pub fn reach_name(reach: Reach) -> &'static str {
    match reach {
        Reach::Root => "root",
        Reach::Tree => "tree",
    }
}

/// A demand in words.
#[must_use]
pub fn demand_name(demand: &Demand) -> String {
    format!("{} ({})", mode_name(demand.mode), reach_name(demand.reach))
}

/// How what is alive names the background runs of a turn, before where they are.
const BACKGROUND_RUN: &str = "background run at ";

/// How a background run is named among what is alive once its turn is quiet: it belongs to the session.
pub(crate) fn background_run(path: &Path) -> String {
    format!("{BACKGROUND_RUN}{path}")
}

/// Whether this name of what is alive once a turn is quiet is that of a background run, which belongs to the session.
#[must_use]
pub fn is_background_run(survivor: &str) -> bool {
    survivor.starts_with(BACKGROUND_RUN)
}
