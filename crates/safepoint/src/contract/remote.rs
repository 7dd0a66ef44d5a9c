//! A remote agent behind a protocol: what an adapter implements.

use std::{sync::Arc, time::Duration};

use futures_core::future::BoxFuture;
use safepoint_scope::Failure;
use serde_json::Value;

use crate::{
    contract::tool::ToolContext,
    sync::clock,
    value::{
        approval::Decision,
        effect::EffectClass,
        history::Earlier,
        json,
        receipt::{Outside, RemoteReport, RemoteStopState, StopSupport},
    },
};

mod term;

pub use term::Term;

/// How long a remote agent has to confirm that its work has ended, unless its declaration sets a time.
pub const DEFAULT_STOP_WITHIN: Duration = Duration::from_secs(2);

/// How long this side keeps listening after that, unless the declaration sets a time.
pub const DEFAULT_LISTEN: Duration = Duration::from_secs(2);

/// How long a remote agent that acknowledged a stop is read before the caller gets the result: an answer that
/// exists already is not lost.
pub const LAST_WORDS: Duration = Duration::from_millis(150);

/// How long a remote agent that refused a stop is read before the caller gets the result: the state of the
/// work is looked up, and an answer that it has is not lost.
pub const LAST_LOOK: Duration = Duration::from_secs(1);

/// How long to wait after an acknowledgement where the processes are ours but other named processes may
/// continue the work: its end will not be confirmed.
pub const LAST_PROCESSES: Duration = Duration::from_millis(250);

/// A remote agent. Shared by all calls to it.
pub trait Remote: Send + Sync + 'static {
    /// What it is; the same for its whole life.
    fn spec(&self) -> &RemoteSpec;

    /// Opens a call about one task. Nothing is sent before [`RemoteCall::next`] is first polled, and nothing
    /// blocks.
    ///
    /// `cx` belongs to the call: for guards, clean-ups, and processes that belong in its row.
    fn open(&self, brief: RemoteTask, cx: &ToolContext) -> Box<dyn RemoteCall>;
}

/// The exchange with a remote agent about one task. Dropping it releases this side, whatever the agent then
/// does.
pub trait RemoteCall: Send + 'static {
    /// The next event from the remote agent. Not called again after [`RemoteEvent::Done`],
    /// [`RemoteEvent::Reordered`], [`RemoteEvent::Ended`], [`RemoteEvent::Failed`] and [`RemoteEvent::Lost`].
    ///
    /// # Cancel safety
    /// The future is dropped whenever something else comes first, such as an answer or a stop, and `next` is
    /// called again. Nothing that was received or half sent may be lost by that.
    fn next(&mut self) -> BoxFuture<'_, RemoteEvent>;

    /// Sends the answer to the question of this id. An answer that the remote agent no longer accepts is
    /// dropped.
    ///
    /// # Cancel safety
    /// Dropped by a stop; [`RemoteCall::stop`] follows then.
    fn answer(&mut self, question: String, decision: Decision) -> BoxFuture<'_, ()>;

    /// Asks the remote agent to end the work, and returns its reply. Called at most once, also before
    /// anything was sent: then nothing needs to be sent, and the work has ended
    /// ([`RemoteStopReply::confirmed`]). Open questions are answered with the protocol's own value for that
    /// (such as `cancelled`).
    ///
    /// It need not wait for the end of the work: [`RemoteCall::next`] is still polled, and
    /// [`RemoteEvent::Ended`] confirms the end. Nor need it wait for the reply:
    /// [`RemoteStopReply::requested`] says that the request is on its way, and the reply arrives as
    /// [`RemoteEvent::StopReply`]. If the remote agent has not named the work yet and needs the name for a stop,
    /// the result is [`RemoteStopReply::unreachable`]; once [`RemoteCall::next`] yields
    /// [`RemoteEvent::Begun`], the adapter sends the stop, and the reply is [`RemoteEvent::StopReply`].
    ///
    /// # Cancel safety
    /// Dropped when the remote agent's time for the stop is over.
    fn stop(&mut self) -> BoxFuture<'_, RemoteStopReply>;
}

/// The task, as the remote agent gets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteTask {
    /// What is asked.
    pub text: String,
    /// Names the conversation that the task belongs to: the same for each message of a session, also after a
    /// restart. A remote agent that keeps conversations gets it, or its own name for it.
    pub conversation: String,
    /// The same for every try of this task, also after a restart: for agents that accept an idempotency key.
    pub key: String,
    /// The remote agent's name for this task, if an earlier attempt began it, received the name, and did not
    /// see the end. A call with a name asks for that task and begins none. Set only if [`RemoteSpec::rejoin`]
    /// says so.
    pub task: Option<String>,
    /// The earlier conversation, as it is kept here: for a remote agent that has lost it.
    pub earlier: Vec<Earlier>,
    /// How large an answer may be: a larger one ends the run, so no more of it needs to be kept.
    pub most_bytes: usize,
}

/// What a remote agent reports.
#[derive(Debug)]
#[non_exhaustive]
pub enum RemoteEvent {
    /// The work has begun, under this name.
    Begun {
        /// The peer's name for the work.
        task: String,
    },
    /// More of the answer.
    Text(String),
    /// What the agent is doing; not part of its answer.
    Progress(String),
    /// Reasoning of the agent; not part of its answer, and not shown. It counts against the limit, as a
    /// model's reasoning does (S12.4).
    Thought(String),
    /// What a person should know, such as that the agent has lost the conversation; not part of its answer.
    Notice(String),
    /// The agent asks whether it may do something, and waits.
    Question(RemoteQuestion),
    /// The agent no longer wants an answer to that question.
    Withdrawn {
        /// The question's id.
        question: String,
    },
    /// The reply to a stop, later than [`RemoteCall::stop`] returned.
    /// [`Requested`](RemoteStopState::Requested) means that no reply will come. A refusal may be sent again
    /// once it is known what became of the work, or that this stays unknown: the caller waits for that, no
    /// longer than [`LAST_LOOK`].
    StopReply(RemoteStopReply),
    /// What is finally known of a stop, beyond the reply of [`RemoteCall::stop`]: no more events of the work
    /// follow.
    Parted(RemoteStopReply),
    /// The work has ended with this answer; `None`: with the text so far.
    Done(Option<String>, RemoteEnd),
    /// The work has ended, and all of the answer was sent as text, but not in order: it is not shown again.
    Reordered(String, RemoteEnd),
    /// The work has ended without an answer, because it was stopped: by this side, or at the remote end.
    Ended {
        /// The agent's own words.
        word: String,
    },
    /// The work failed and has ended; or the agent cannot be reached and nothing was sent
    /// ([`Failure::unreachable`]).
    Failed(Failure),
    /// The connection broke for good: it is unknown what becomes of the work.
    Lost(Failure),
}

impl RemoteEvent {
    /// How many bytes the event brings: what counts against [`Limits::model_output_bytes`](crate::Limits).
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self {
            Self::Text(text) | Self::Progress(text) | Self::Thought(text) | Self::Notice(text) => text.len(),
            Self::Begun { task } => task.len(),
            Self::Question(question) => question.id.len() + question.tool.len() + json::bytes(&question.args),
            Self::Withdrawn { question } => question.len(),
            Self::Done(answer, _) => answer.as_ref().map_or(0, String::len),
            Self::Reordered(answer, _) => answer.len(),
            Self::Ended { word }
            | Self::StopReply(RemoteStopReply { word, .. })
            | Self::Parted(RemoteStopReply { word, .. }) => word.len(),
            Self::Failed(_) | Self::Lost(_) => 0,
        }
    }

    /// Whether no more events of the work follow.
    pub(crate) fn is_last(&self) -> bool {
        match self {
            Self::Done(..) | Self::Reordered(..) | Self::Ended { .. } => true,
            Self::Failed(_) | Self::Lost(_) | Self::Parted(_) => true,
            Self::Begun { .. } | Self::Text(_) | Self::Progress(_) | Self::Thought(_) => false,
            Self::Notice(_) | Self::Question(_) | Self::Withdrawn { .. } | Self::StopReply(_) => false,
        }
    }
}

/// How the end of work with an answer is known (S10.3). Exhaustive: the peer reported it, or only claims it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemoteEnd {
    /// The peer reported it where it reports the work, or is known to end its work before it says so: the work has ended.
    Reported,
    /// The peer said so in answer to a stop, and its stops are not hard: the work may continue.
    Claimed,
}

impl RemoteEnd {
    /// What an end is worth that a peer of this grade names in answer to a stop.
    #[must_use]
    pub fn in_answer_to_a_stop(grade: StopSupport) -> Self {
        match grade {
            StopSupport::Hard => Self::Reported,
            StopSupport::CallerSide | StopSupport::None => Self::Claimed,
        }
    }

    /// Writes it into the row: only an end that was reported is one.
    pub(crate) fn write_into(self, row: &mut RemoteReport) {
        let at = Some(clock::now());
        match self {
            Self::Reported => row.ended_at = at,
            Self::Claimed => row.claimed_at = at,
        }
    }
}

/// A question of a remote agent to a person.
#[derive(Clone, Debug, PartialEq)]
pub struct RemoteQuestion {
    /// Unique among the open questions of its call.
    pub id: String,
    /// What it would do: rules know it as `NAME/TOOL`, where `NAME` is the remote's.
    pub tool: String,
    /// Everything that a person needs to decide.
    pub args: Value,
}

/// The reply of a remote agent to a stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteStopReply {
    /// What is known by it.
    pub stop: RemoteStopState,
    /// The agent's own words; may be empty.
    pub word: String,
    /// Outside parties that it worked with, if it is a process of ours.
    pub outside: Outside,
}

impl RemoteStopReply {
    /// The stop was sent, and there was no reply.
    #[must_use]
    pub fn requested() -> Self {
        Self::of(RemoteStopState::Requested, String::new())
    }

    /// The agent acknowledged the stop.
    #[must_use]
    pub fn acknowledged(word: impl Into<String>) -> Self {
        Self::of(RemoteStopState::Acknowledged, word.into())
    }

    /// The agent confirmed that the work has ended, or its process is gone.
    #[must_use]
    pub fn confirmed(word: impl Into<String>) -> Self {
        Self::of(RemoteStopState::Confirmed, word.into())
    }

    /// The agent will not stop, or cannot.
    #[must_use]
    pub fn refused(word: impl Into<String>) -> Self {
        Self::of(RemoteStopState::Refused, word.into())
    }

    /// The stop could not be delivered.
    #[must_use]
    pub fn unreachable(word: impl Into<String>) -> Self {
        Self::of(RemoteStopState::Unreachable, word.into())
    }

    /// Sets the outside parties that it worked with.
    #[must_use]
    pub fn outside(self, outside: Outside) -> Self {
        Self { outside, ..self }
    }

    fn of(stop: RemoteStopState, word: String) -> Self {
        Self { stop, word, outside: Outside::Unasked }
    }
}

/// Whether work outlives its connection and can be reattached. Exhaustive: it can or it cannot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reattach {
    /// It cannot: after a crash the effect of running work is unknown (S7.3).
    Never,
    /// By the agent's name for the work: after a crash the work is asked for, and nothing is begun twice.
    ByTaskId,
}

/// Where the work lives. Exhaustive: in processes of ours, or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lives {
    /// Elsewhere: it may continue if this process ends without stopping it.
    Elsewhere,
    /// In processes that this one started and that end with it, however it ends. What they pass on to others
    /// does not end.
    InOurProcesses,
}

/// Whether this side keeps listening once a remote agent has replied to a stop. Exhaustive: it does, or it
/// does not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AfterWord {
    /// For the audit: what becomes of the work is reported as late.
    #[default]
    Listens,
    /// The reply is the final report: for programs that end with the run.
    Leaves,
}

/// What a remote agent is. Built with [`RemoteSpec::new`] and the setters; the defaults are the careful ones.
#[derive(Clone, Debug)]
pub struct RemoteSpec {
    /// The name that models and rules use.
    pub name: String,
    /// What it does, for models.
    pub description: String,
    /// Where it is, for people, such as `a2a:http://localhost:9000`.
    pub peer: String,
    /// What a stop does there. Default: [`StopSupport::Hard`], which believes an agent that reports its work
    /// as stopped. For an agent that is known to continue after that, use [`StopSupport::CallerSide`]; for
    /// one that refuses, [`StopSupport::None`].
    pub grade: StopSupport,
    /// What its work may change. Default: [`EffectClass::Unsafe`].
    pub effect: EffectClass,
    /// Whether running work can be reattached by its name. Default: [`Reattach::Never`].
    pub rejoin: Reattach,
    /// Where its work lives. Default: [`Lives::Elsewhere`].
    pub lives: Lives,
    /// How long it has, after a stop, to confirm that its work has ended. Default [`DEFAULT_STOP_WITHIN`].
    pub stop_within: Duration,
    /// How long this side keeps listening after that, before the run reports that it is not quiet. Default
    /// [`DEFAULT_LISTEN`].
    pub listen: Duration,
    /// Whether it keeps listening once the agent has replied. Default: [`AfterWord::Listens`].
    pub after_word: AfterWord,
}

impl RemoteSpec {
    /// A remote agent of this name, at `peer`.
    #[must_use]
    pub fn new(name: impl Into<String>, description: impl Into<String>, peer: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            peer: peer.into(),
            grade: StopSupport::Hard,
            effect: EffectClass::Unsafe,
            rejoin: Reattach::Never,
            lives: Lives::Elsewhere,
            stop_within: DEFAULT_STOP_WITHIN,
            listen: DEFAULT_LISTEN,
            after_word: AfterWord::Listens,
        }
    }

    /// Sets what a stop does there.
    #[must_use]
    pub fn grade(mut self, grade: StopSupport) -> Self {
        self.grade = grade;
        self
    }

    /// Sets what its work may change.
    #[must_use]
    pub fn effect(mut self, effect: EffectClass) -> Self {
        self.effect = effect;
        self
    }

    /// Sets whether running work can be reattached by its name.
    #[must_use]
    pub fn rejoin(mut self, rejoin: Reattach) -> Self {
        self.rejoin = rejoin;
        self
    }

    /// Sets where its work lives.
    #[must_use]
    pub fn lives(mut self, lives: Lives) -> Self {
        self.lives = lives;
        self
    }

    /// What is known of the work of a call whose end was not seen, because its process ended while it waited.
    pub(crate) fn unseen(&self) -> RemoteReport {
        let row = RemoteReport::of(self.peer.clone(), self.grade);
        match self.lives {
            Lives::Elsewhere => RemoteReport { lost_at: Some(clock::now()), ..row },
            Lives::InOurProcesses => RemoteReport { outside: Outside::Unseen, ..row },
        }
    }

    /// Sets how long it has, after a stop, to confirm that its work has ended.
    #[must_use]
    pub fn stop_within(mut self, time: Duration) -> Self {
        self.stop_within = time;
        self
    }

    /// Sets how long this side keeps listening after that.
    #[must_use]
    pub fn listen(mut self, time: Duration) -> Self {
        self.listen = time;
        self
    }

    /// Sets whether this side keeps listening once the agent has replied to a stop.
    #[must_use]
    pub fn after_word(mut self, then: AfterWord) -> Self {
        self.after_word = then;
        self
    }
}

/// A remote agent behind a shared pointer is one.
impl<T: Remote + ?Sized> Remote for Arc<T> {
    fn spec(&self) -> &RemoteSpec {
        (**self).spec()
    }
    fn open(&self, brief: RemoteTask, cx: &ToolContext) -> Box<dyn RemoteCall> {
        (**self).open(brief, cx)
    }
}
