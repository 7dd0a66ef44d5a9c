//! What lines say beside what every line says: one variant a `type`. The published schema is made of these types.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use super::words::{ItemWord, PreemptedLine};
use crate::value::{
    approval::Decision,
    effect::{EffectClass, SideEffect},
    event::{ErrorKind, HookAction},
    history::{OmissionKind, Repair},
    ids::{ApprovalId, CallId, ItemId, Path},
    message::ProviderPart,
    receipt::{CallStatus, Ending, ModelState, Permission, ReasonReport, Receipt, RuledBy},
    usage::Usage,
};

/// A line of a run.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum RunLine<'a> {
    /// An attempt of the run begins.
    RunStarted { attempt: u32 },
    /// A broken history was repaired before use.
    HistoryRepaired { repairs: &'a [Repair] },
    /// The oldest rounds are not sent any more: the history does not fit the model's window.
    HistoryShortened {
        by: OmissionKind,
        entries: usize,
        rounds: u32,
        text: String,
        tokens_before: u64,
        tokens_after: u64,
    },
    /// A model call that summarises the oldest rounds is about to begin.
    SummaryStarted { round: u32 },
    /// It ended.
    SummaryEnded {
        round: u32,
        name: &'a str,
        status: MessageStatus,
        state: ModelState,
        usage: &'a Usage,
        /// What is left out from now on; null if it was stopped or failed, and then nothing has changed.
        shortened: Option<Shortened>,
    },
    /// A model call is about to begin.
    ModelStarted { round: u32 },
    /// Provisional: more text of the message that streams.
    TextDelta { round: u32, text: Slot },
    /// Provisional: more reasoning.
    ReasoningDelta { round: u32, text: Slot },
    /// Provisional: more arguments of a call that arrives. They are JSON once all of them are joined.
    CallDelta {
        round: u32,
        /// The id that the provider gave the call: empty while it has given none, and a call whose id is taken gets another.
        call_id: &'a CallId,
        name: &'a str,
        arguments: Slot,
    },
    /// Provisional: the provider used one of its tools, or said where the text before is from.
    Provider { round: u32, wire: &'a str, part: &'a ProviderPart },
    /// A model call waits before another try.
    ModelRetrying { round: u32, failed: u32, after_ms: u64, error: &'a str },
    /// A model call waits for something that it shares with other runs; nothing of it was sent yet.
    ModelWaiting {
        round: u32,
        /// What it waits for, such as a rate limit.
        what: &'a str,
    },
    /// A model could not begin to answer; another one is asked instead.
    ModelFailedOver { round: u32, from: &'a str, to: &'a str, error: &'a str },
    /// A model call ended, by itself or not.
    ModelEnded {
        round: u32,
        name: &'a str,
        status: MessageStatus,
        state: ModelState,
        usage: &'a Usage,
        text: Slot,
    },
    /// The provider refused a request as too long before anything of a reply came. It is shortened by the policy of the
    /// window, and sent once more.
    ModelTooLong {
        round: u32,
        name: &'a str,
        state: ModelState,
        usage: &'a Usage,
        /// What the provider said.
        error: &'a str,
    },
    /// A hook changed or decided something, or did not answer in time.
    HookActed {
        /// The hook's name.
        hook: &'a str,
        /// What it did, and the digests or sizes of what it did it to. What it took out of a text is in no line.
        action: &'a HookAction,
    },
    /// Messages that went to the model with the request of this round.
    SteerDelivered {
        round: u32,
        #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
        steers: Vec<SteerLine<'a>>,
    },
    /// A call is about to begin.
    CallStarted { call_id: &'a CallId, name: &'a str, round: u32, args: &'a Value, effect: EffectClass },
    /// A call reports its progress.
    CallProgress { call_id: &'a CallId, text: Slot },
    /// What a person should know of a call that runs.
    CallNotice { call_id: &'a CallId, text: &'a str },
    /// A call ended, by itself or not, or will not begin.
    CallEnded {
        call_id: &'a CallId,
        name: &'a str,
        round: u32,
        status: CallStatus,
        effect: SideEffect,
        /// The text that the model gets.
        output: Slot,
        /// Whether the model gets only its head and tail.
        truncated: bool,
        /// Where all of it is.
        file: Option<&'a str>,
        started_at: Option<Timestamp>,
        ended_at: Option<Timestamp>,
    },
    /// The remote agent named a call's work.
    CallNamed {
        call_id: &'a CallId,
        /// What the peer that does the work calls it.
        task: &'a str,
    },
    /// The run that is a call's work waits for decisions, and nothing of it runs.
    CallSuspended {
        call_id: &'a CallId,
        /// The run that waits for decisions.
        child: &'a Path,
    },
    /// A person was asked.
    ApprovalAsked {
        approval_id: &'a ApprovalId,
        call_id: &'a CallId,
        name: &'a str,
        args: &'a Value,
        digest: &'a str,
        expires_at: Timestamp,
    },
    /// A question is closed.
    ApprovalDecided { approval_id: &'a ApprovalId, call_id: &'a CallId, answer: AnswerLine<'a> },
    /// Policy decided about something that a call asked while it runs; no person was asked.
    ApprovalRuled { call_id: &'a CallId, name: &'a str, what: &'a str, permission: Permission, by: RuledBy },
    /// A stop was requested.
    StopRequested {
        mode: ModeName,
        /// The safe points, in mode `at`.
        points: Vec<&'a str>,
        /// How far it reaches.
        #[cfg_attr(feature = "schema", schemars(extend("enum" = ["root", "tree"])))]
        scope: &'a str,
        /// Milliseconds of grace; null waits, or is `now`.
        within_ms: Option<u64>,
        reason: &'a ReasonReport,
        /// What it added to the requests before it.
        #[cfg_attr(
            feature = "schema",
            schemars(extend("enum" = ["first", "strengthened", "nothing_added", "too_late"]))
        )]
        asked: &'a str,
    },
    /// The demand became `now` because its grace was over.
    StopEscalated { by: EscalatedBy },
    /// The demand took effect.
    StopObserved { observed_at: Timestamp },
    /// The outcome is fixed.
    Settled { status: Ending },
    /// Nothing of the run is alive any more, or the deadline for that has passed.
    Quiet { quiet: Option<Timestamp>, survivors: &'a [String] },
    /// Something arrived after the outcome was fixed.
    Late { what: &'a str },
    /// The last line of an attempt.
    Outcome {
        status: Ending,
        reason: Option<ReasonLine<'a>>,
        /// The text, if it is done.
        answer: NullOrSlot,
        partial_text: Slot,
        usage: &'a Usage,
        persisted: PersistedLine<'a>,
        error: Option<ErrorLine<'a>>,
        #[cfg_attr(feature = "schema", schemars(schema_with = "super::schema::receipt_with_quiet"))]
        receipt: ReceiptLine<'a>,
    },
}

/// A line of a session, and of no run.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum SessionLine<'a> {
    /// Provisional lines that this reader did not get, because it was too slow or came too late; what is recorded says
    /// again what they said.
    Missed { count: u64 },
    /// An item was accepted.
    ItemAccepted { item: ItemId },
    /// An item waits again.
    ItemRequeued { item: ItemId },
    /// An item is blocked by the line's turn, which waits for a decision.
    ItemBlocked { item: ItemId },
    /// The line's turn was steered with an item, before its model call of this round.
    ItemSteered { item: ItemId, round: u32 },
    /// The preempt that came with an item was answered.
    ItemPreempted { item: ItemId, preempted: PreemptedLine },
    /// An item came to rest, in the line's turn if it names one.
    ItemSettled {
        item: ItemId,
        outcome: ItemWord,
        /// Why it went back to its sender: the stable code; null if it did not.
        returned: Option<&'static str>,
    },
    /// An item in the store that this release cannot read, or that was altered there.
    ItemUnreadable { number: u64, why: &'a str },
    /// The planner is asked about the line's turn: the one that is to be resumed, or else a new one of this number.
    TurnPlanning {},
    /// A turn started.
    TurnStarted {
        items: &'a [ItemId],
        /// What was said to begin it; absent where an earlier turn continues.
        #[serde(skip_serializing_if = "Option::is_none")]
        text: Option<Slot>,
    },
    /// A turn is settled.
    TurnEnded {
        outcome: ItemWord,
        #[cfg_attr(feature = "schema", schemars(schema_with = "super::schema::receipt_with_quiet"))]
        receipt: ReceiptLine<'a>,
    },
    /// Nothing of the turn is alive, or what is alive is named.
    TurnQuiet { survivors: &'a [String] },
    /// A background run ended with the process that owned the session, and does not continue.
    BackgroundLost {
        /// Which run of the turn's tree.
        path: &'a Path,
        /// Its tools that may have changed something.
        unknown: &'a [String],
    },
    /// The session was asked to stop.
    SessionStopRequested {
        cause: Option<&'a str>,
        /// For how long it is to have been idle before that; null: the stop begins at once.
        once_idle_for_ms: Option<u64>,
    },
    /// The session is over: the last line.
    SessionEnded {},
    /// The first line for a reader that comes back from another stream, such as that of a server before its restart. What it
    /// has shown is no part of this stream, which follows.
    StreamRestarted {},
}

/// Where a text stands that is written apart, without a copy.
#[derive(Serialize)]
#[serde(transparent)]
pub(super) struct Slot(());

/// The same, or null if there is no text.
#[derive(Serialize)]
#[serde(transparent)]
pub(super) struct NullOrSlot(());

pub(super) const TEXT: Slot = Slot(());
pub(super) const TEXT_OR_NULL: NullOrSlot = NullOrSlot(());

/// Whether a model's message is complete.
#[derive(Clone, Copy, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub(super) enum MessageStatus {
    Completed,
    Stopped,
    Steered,
    Failed,
}

/// What is left out of a request, and its size before and after.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct Shortened {
    pub(super) by: OmissionKind,
    pub(super) entries: usize,
    pub(super) rounds: u32,
    pub(super) text: String,
    pub(super) tokens_before: u64,
    pub(super) tokens_after: u64,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct SteerLine<'a> {
    /// The id of the steer, or the item that it was pushed as.
    pub(super) id: &'a str,
    pub(super) text: &'a str,
    /// Whether the session wrote it, and no person.
    pub(super) notice: bool,
}

/// How a question ended.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub(super) enum AnswerLine<'a> {
    Decided(&'a Decision),
    Closed { decision: ClosedBy },
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub(super) enum ClosedBy {
    Expired,
    /// A stop withdrew the question.
    #[serde(rename = "cancelled")]
    Withdrawn,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub(super) enum ModeName {
    Now,
    At,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub(super) enum EscalatedBy {
    Deadline,
}

/// Why a turn ended so.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub(super) enum ReasonLine<'a> {
    Stop(&'a ReasonReport),
    Own { code: &'a str, actor: &'a str, text: &'a str },
}

/// Whether the outcome is stored: `yes`, `no`, `unknown`, or the error because of which it is not.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub(super) enum PersistedLine<'a> {
    Word(&'static str),
    Error { no: &'a str },
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct ErrorLine<'a> {
    pub(super) code: &'a str,
    pub(super) message: String,
    pub(super) hint: Option<&'a str>,
    /// What kind of failure it is, where the code does not say it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) kind: Option<ErrorKind>,
    /// The HTTP status that it came with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) status: Option<u16>,
    /// How long the server asked to wait before another try, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) retry_after_ms: Option<u64>,
}

/// A receipt, with `quiet` beside its own fields: the same as its `quiet_at`, as the contract names it.
#[derive(Serialize)]
pub(super) struct ReceiptLine<'a> {
    #[serde(flatten)]
    receipt: &'a Receipt,
    quiet: Option<Timestamp>,
}

impl<'a> ReceiptLine<'a> {
    pub(super) fn of(receipt: &'a Receipt) -> Self {
        Self { receipt, quiet: receipt.quiet_at }
    }
}
