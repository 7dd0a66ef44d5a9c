//! What a run records (facts) and what it shows (events): a fact changes state, an event only reports.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::value::{
    approval::{ApprovalRequest, Decision, OnUnknownEffect},
    effect::EffectClass,
    history::{History, Omission, Repair},
    ids::{ApprovalId, CallId, Path, RunId},
    is_default,
    message::{AssistantMessage, CallResult, ProviderBlock},
    receipt::{CallKind, CallReport, ChildReport, ModelReport, Receipt, RequestReport, RuledReport},
    usage::Usage,
};

mod error;
mod feed;
mod hooked;
mod limited;
mod steer;

pub(crate) use error::ErrorSource;
pub use error::{ErrorKind, ErrorReport};
pub use feed::{Events, StreamEvent};
pub(crate) use feed::{Feed, Relay, Took};
pub use hooked::{HookAction, HookReport};
pub use limited::RunLimits;
pub(crate) use steer::NOTICE;
pub use steer::{RecordedSteer, SteerSource};

/// One recorded step of a run: state is the fold of these (S7.1). Exhaustive: the machine must apply each.
///
/// ```
/// use safepoint::event::{EventKind, Fact};
/// /// Each whole message of the model; its text came in pieces before.
/// fn said(kind: &EventKind) -> Option<String> {
///     let EventKind::Fact(fact) = kind else { return None };
///     if let Fact::ModelEnded { message, .. } = &**fact { Some(message.text().into_owned()) } else { None }
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "fact", rename_all = "snake_case")]
pub enum Fact {
    /// An attempt begins: the run's start, or a resume.
    AttemptOpened {
        /// The run.
        run: RunId,
        /// Which attempt, from 1.
        attempt: u32,
        /// What it starts from; only in the first attempt.
        history: Option<History>,
        /// When.
        at: Timestamp,
        /// What becomes of calls whose effect is unknown.
        #[serde(default, skip_serializing_if = "is_default")]
        on_unknown: OnUnknownEffect,
        /// The limits of the run from here on; records of an early release do not say.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limits: Option<RunLimits>,
    },
    /// This much of the run's time belongs to this attempt: recorded in advance, so that it counts even if
    /// the process ends.
    TimeTaken {
        /// Milliseconds of work since the attempt was opened.
        ms: u64,
    },
    /// A broken history was repaired before use.
    HistoryRepaired {
        /// What was done.
        repairs: Vec<Repair>,
    },
    /// A model call is about to begin.
    ModelStarted {
        /// For which round, from 1.
        round: u32,
    },
    /// A model call ended, by itself or not.
    ModelEnded {
        /// What arrived.
        message: Arc<AssistantMessage>,
        /// Whether it is all.
        whole: Completion,
        /// The account.
        report: ModelReport,
    },
    /// The provider refused the request of this round as too long for its model, before anything of a reply came. The
    /// policy of the agent's window is applied next, and the call is made once more.
    ModelTooLong {
        /// The account of the refused call.
        report: ModelReport,
        /// What the provider said.
        error: ErrorReport,
    },
    /// Messages that the run was steered with are part of its history now, before the model call of this round.
    SteerTaken {
        /// The next round, from 1.
        round: u32,
        /// The messages, in the order in which they came.
        steers: Vec<RecordedSteer>,
    },
    /// The oldest rounds are not sent any more: the history does not fit the model's window.
    HistoryShortened(Omission),
    /// A model call that summarises the oldest rounds is about to begin, before the model call of this round.
    SummaryStarted {
        /// The next round, from 1.
        round: u32,
    },
    /// It ended, by itself or not.
    SummaryEnded {
        /// Whether it is all.
        whole: Completion,
        /// The account.
        report: ModelReport,
        /// What is left out from now on; none if it was cut or failed, and then nothing has changed.
        shortened: Option<Omission>,
    },
    /// A hook changed or decided something.
    HookActed(HookReport),
    /// A call is about to begin.
    CallStarted {
        /// The call.
        call_id: CallId,
        /// The tool.
        name: String,
        /// For which round.
        round: u32,
        /// What it is given.
        args: Arc<Value>,
        /// What it may change.
        effect: EffectClass,
        /// The same for every try.
        key: String,
        /// What does it.
        #[serde(default)]
        work: CallKind,
        /// When.
        at: Timestamp,
    },
    /// The remote agent named a call's work; a later attempt can resume the work by this name.
    #[serde(rename = "call_named")]
    RemoteTaskNamed {
        /// The call.
        call_id: CallId,
        /// The peer's name for the work.
        task: String,
    },
    /// A call ended, by itself or not, or will not begin.
    CallEnded {
        /// The account.
        report: Arc<CallReport>,
        /// The result that the model gets.
        result: CallResult,
        /// Whether the model is shown all of it, and where the rest is.
        extent: OutputExtent,
    },
    /// The run that is a call's work waits for decisions, and nothing of it runs.
    ChildSuspended {
        /// The call.
        call_id: CallId,
        /// The run.
        child: ChildReport,
        /// What it, and its own child runs, wait for.
        approvals: Vec<ApprovalRequest>,
    },
    /// A person was asked.
    #[serde(rename = "approval_asked")]
    ApprovalRequested(ApprovalRequest),
    /// A question is closed.
    #[serde(rename = "approval_closed")]
    ApprovalResolved {
        /// The question.
        id: ApprovalId,
        /// The call.
        call_id: CallId,
        /// How.
        answer: Resolution,
    },
    /// A stop was requested.
    #[serde(rename = "stop_asked")]
    StopRequested(RequestReport),
    /// The demand became `Now` because its grace was over.
    StopEscalated,
    /// The demand took effect.
    StopObserved {
        /// When.
        at: Timestamp,
    },
    /// The outcome is fixed: the last event of an attempt.
    Settled {
        /// The account.
        receipt: Arc<Receipt>,
        /// Code and message, if it failed.
        error: Option<ErrorReport>,
    },
}

/// Whether a model's message is complete. Exhaustive: it is, it was cut, or it failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Completion {
    /// It is recorded.
    #[serde(rename = "whole")]
    Complete,
    /// A stop cut it.
    #[serde(rename = "cut")]
    Stopped,
    /// A steer cut it; the run continues with the steer.
    Steered,
    /// It failed.
    Failed(ErrorReport),
}

/// How much of a call's output the model is shown. Exhaustive: all or a part.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputExtent {
    /// All of it.
    #[default]
    All,
    /// Its head and tail.
    Truncated {
        /// How long it was.
        bytes: usize,
        /// Where all of it is, if it could be written.
        file: Option<String>,
    },
}

/// How a question was closed. Exhaustive: answered, expired, or withdrawn by a stop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resolution {
    /// It was decided.
    Decided(Decision),
    /// It expired.
    Expired,
    /// A stop withdrew the question.
    Withdrawn,
}

/// What a reader sees.
///
/// ```
/// use safepoint::{RunHandle, StopRequest};
/// /// Stops the first call of a tool as soon as it begins; the run continues.
/// async fn not_this_one(handle: &RunHandle, tool: &str) {
///     let mut events = handle.events();
///     while let Some(event) = events.next().await {
///         if let Some((call, name)) = event.call_started() && name == tool {
///             handle.stop_call(call, StopRequest::now());
///             break;
///         }
///     }
/// }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Event<K = EventKind> {
    /// Gapless within the stream.
    pub seq: u64,
    /// When it was shown.
    pub at: Timestamp,
    /// What happened.
    pub kind: K,
    /// The name of its stream.
    stream: u64,
    /// Where its record is.
    position: Option<u64>,
}

impl<K> Event<K> {
    /// An event of this number in its stream, shown at this time.
    pub const fn new(seq: u64, at: Timestamp, kind: K) -> Self {
        Self { seq, at, kind, stream: 0, position: None }
    }

    /// Where the record of this event is: in the journal of a session that a store keeps
    /// ([`read_journal`](crate::raw::read_journal) finds the same there), else in the run's [log](crate::log::Log). None: it is
    /// no record, such as text that streams, or it could not be recorded. Runs of one tree record at the same time, so the
    /// event of a child run may be shown before one with a lower position (S7.49).
    #[must_use]
    pub const fn position(&self) -> Option<u64> {
        self.position
    }

    /// Its stream and its number in it, as a text that no other event has: the `id` of a server-sent event. A reader that
    /// comes back with it continues [behind it](crate::event::EventEncoder::catch_up). The stream of a run that is resumed, or
    /// of a session that is opened again, is another one, in the same process or not (S11.10).
    #[must_use]
    pub fn id(&self) -> String {
        format!("{:016x}-{}", self.stream, self.seq)
    }
}

impl Event {
    /// The call that has begun, and its tool, if that is what happened: of the run itself, not of a child run. A call that is
    /// to be stopped alone is named by it ([`RunHandle::stop_call`](crate::RunHandle::stop_call)).
    #[must_use]
    pub fn call_started(&self) -> Option<(&CallId, &str)> {
        let EventKind::Fact(fact) = &self.kind else { return None };
        if let Fact::CallStarted { call_id, name, .. } = &**fact { Some((call_id, name)) } else { None }
    }

    /// The question, if that is what happened: may a call of the run, or of a child run, do this? It is answered by its id
    /// ([`RunHandle::decide`](crate::RunHandle::decide)), whichever run asks. The same as [`Fact::ApprovalRequested`].
    #[must_use]
    pub fn approval_asked(&self) -> Option<&ApprovalRequest> {
        let mut kind = &self.kind;
        while let EventKind::Child { event, .. } = kind {
            kind = event;
        }
        let EventKind::Fact(fact) = kind else { return None };
        if let Fact::ApprovalRequested(asked) = &**fact { Some(asked) } else { None }
    }
}

/// The kinds of event.
///
/// ```
/// use safepoint::event::EventKind;
/// fn show(kind: &EventKind) {
///     match kind {
///         EventKind::Text(text) => print!("{text}"),
///         EventKind::Progress { text, .. } => println!("… {text}"),
///         EventKind::Retrying { failed, .. } => println!("{failed} tries have failed"),
///         EventKind::Fact(fact) => println!("recorded: {fact:?}"),
///         _ => {} // a release may add kinds
///     }
/// }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum EventKind {
    /// Something was recorded.
    Fact(Arc<Fact>),
    /// What a child run showed, at any depth: its own stream has the same.
    Child {
        /// Which run of the tree.
        path: Path,
        /// What it showed.
        event: Arc<EventKind>,
    },
    /// Provisional: more text of the message that streams.
    Text(Arc<str>),
    /// Provisional: more reasoning.
    Reasoning(Arc<str>),
    /// Provisional: a call has begun to arrive.
    CallBegun(String),
    /// Provisional: more of the arguments of a call that arrives. They are JSON once all of them are joined; the call that
    /// begins has them as a whole ([`Fact::CallStarted`]).
    CallDelta {
        /// The id that the provider gave the call, the same for all of its fragments. Empty if it had given none when the first
        /// of them arrived; a call whose id is taken gets another one.
        call_id: CallId,
        /// The tool.
        name: Arc<str>,
        /// The next fragment.
        arguments: Arc<str>,
    },
    /// Provisional: the provider used one of its tools, or said where the text before is from.
    Provider(Arc<ProviderBlock>),
    /// A model call waits before another try.
    Retrying {
        /// How many tries have failed.
        failed: u32,
        /// How long it waits.
        after: std::time::Duration,
        /// What went wrong.
        error: String,
    },
    /// A model call waits for something that it shares with other runs, such as a rate limit; nothing of it was sent yet.
    Waiting {
        /// What it waits for, such as `the rate limit of openai`.
        what: Arc<str>,
    },
    /// A model could not begin to answer; another one is asked instead.
    FailedOver {
        /// The model that could not.
        from: Arc<str>,
        /// The model that is asked now.
        to: Arc<str>,
        /// What went wrong.
        error: String,
    },
    /// A call reports its progress.
    Progress {
        /// The call.
        call_id: CallId,
        /// The agent's own words.
        text: String,
    },
    /// What a person should know of a call that runs.
    Notice {
        /// The call.
        call_id: CallId,
        /// What.
        text: String,
    },
    /// Policy has decided about something that a call asked while it runs; no person was asked.
    Ruled {
        /// The call.
        call_id: CallId,
        /// What was decided, and by what.
        ruled: Box<RuledReport>,
    },
    /// What was used so far.
    Usage(Usage),
    /// This reader lagged behind; the recorded facts have what the missed deltas said.
    Lagged {
        /// How many events.
        count: u64,
    },
    /// Only in the audit stream: nothing is alive any more, or the deadline for that has passed.
    Quiet(Arc<Receipt>),
    /// Only in the audit stream: something arrived after the fence.
    Late(String),
}

impl StreamEvent for EventKind {
    fn is_provisional(&self) -> bool {
        match self {
            Self::Text(_)
            | Self::Reasoning(_)
            | Self::CallBegun(_)
            | Self::CallDelta { .. }
            | Self::Provider(_)
            | Self::Progress { .. }
            | Self::Usage(_) => true,
            Self::Child { event, .. } => event.is_provisional(),
            Self::Fact(_)
            | Self::Retrying { .. }
            | Self::Waiting { .. }
            | Self::FailedOver { .. }
            | Self::Notice { .. }
            | Self::Ruled { .. }
            | Self::Lagged { .. }
            | Self::Quiet(_)
            | Self::Late(_) => false,
        }
    }
    fn weight(&self) -> usize {
        match self {
            Self::Text(text) | Self::Reasoning(text) => text.len(),
            Self::CallBegun(text) | Self::Progress { text, .. } => text.len(),
            Self::CallDelta { name, arguments, .. } => name.len() + arguments.len(),
            Self::Provider(block) => block.weight(),
            Self::Child { event, .. } => event.weight(),
            Self::Fact(_)
            | Self::Usage(_)
            | Self::Retrying { .. }
            | Self::Waiting { .. }
            | Self::FailedOver { .. }
            | Self::Notice { .. }
            | Self::Ruled { .. }
            | Self::Lagged { .. }
            | Self::Quiet(_)
            | Self::Late(_) => 0,
        }
    }
    fn missed(count: u64) -> Self {
        Self::Lagged { count }
    }
}
