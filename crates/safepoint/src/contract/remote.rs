//! Somebody else's agent, behind a protocol: what an adapter implements.

use std::{sync::Arc, time::Duration};

use futures_core::future::BoxFuture;
use jiff::Timestamp;
use safepoint_scope::Failure;
use serde_json::Value;

use crate::{
    contract::tool::ToolContext,
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

/// How long a peer has to say that its work has ended, where its declaration names no time.
pub const DEFAULT_STOP_WITHIN: Duration = Duration::from_secs(2);

/// How long after that our end still listens, where the declaration names no time.
pub const DEFAULT_LISTEN: Duration = Duration::from_secs(2);

/// How long a peer that took note is heard before the caller is told: an answer that was there already is not lost.
pub const LAST_WORDS: Duration = Duration::from_millis(150);

/// How long a peer that refused is heard before the caller is told: what became of the work is looked up, and an answer that it
/// had come to is not lost.
pub const LAST_LOOK: Duration = Duration::from_secs(1);

/// How long a peer that took note is waited for where its processes are ours, and others are named that may go on with its
/// work: that it has ended will not be confirmed.
pub const LAST_PROCESSES: Duration = Duration::from_millis(250);

/// Somebody else's agent. Shared by all calls to it.
pub trait Remote: Send + Sync + 'static {
    /// What it is; the same for its whole life.
    fn spec(&self) -> &RemoteSpec;

    /// Opens a line about one piece of work. Nothing is sent before [`RemoteCall::next`] is first polled, and nothing blocks.
    ///
    /// `cx` is that of the call: for holds, clean-ups, and processes that belong into its row.
    fn open(&self, brief: RemoteTask, cx: &ToolContext) -> Box<dyn RemoteCall>;
}

/// What is said with a peer about one piece of work. Dropping it releases our end, whatever the peer does then.
pub trait RemoteCall: Send + 'static {
    /// The next thing that the peer says. After [`RemoteEvent::Done`], [`RemoteEvent::Reordered`], [`RemoteEvent::Ended`],
    /// [`RemoteEvent::Failed`] and [`RemoteEvent::Lost`] it is not called again.
    ///
    /// # Cancel safety
    /// It is dropped whenever something else comes first, such as an answer or a stop, and called again: nothing that
    /// was heard, and nothing that was half sent, may be lost by that.
    fn next(&mut self) -> BoxFuture<'_, RemoteEvent>;

    /// Hands the peer the answer to its question of this id. An answer that the peer cannot take any more is dropped.
    ///
    /// # Cancel safety
    /// Dropped by a stop; then [`RemoteCall::stop`] follows.
    fn answer(&mut self, question: String, decision: Decision) -> BoxFuture<'_, ()>;

    /// Asks the peer to end the work, and says what it said to that. Called at most once, also before anything was sent:
    /// then nothing needs to be, and the work has ended ([`RemoteStopReply::confirmed`]). Questions that stand open are answered by
    /// the peer's own word for it (such as `cancelled`).
    ///
    /// It need not wait for the end of the work: [`RemoteCall::next`] goes on to be heard, and [`RemoteEvent::Ended`] confirms it. Nor for
    /// the peer's answer: [`RemoteStopReply::requested`] says that the peer is being told, and its answer is [`RemoteEvent::Told`]. Where
    /// the peer has yet to give the work the name by which it could be told, that is [`RemoteStopReply::unreachable`]; when
    /// [`RemoteCall::next`] then says [`RemoteEvent::Begun`] the peer is told, and what it says to that is [`RemoteEvent::Told`].
    ///
    /// # Cancel safety
    /// Dropped when the time that the peer has for it is over.
    fn stop(&mut self) -> BoxFuture<'_, RemoteStopReply>;
}

/// The work, as the peer is told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteTask {
    /// What is asked.
    pub text: String,
    /// Names the conversation that it is a part of: the same for each message of a session, also after a restart. A
    /// peer that remembers conversations is told it, or told its own name for it.
    pub conversation: String,
    /// The same for every try of this work, also after a restart: for peers that take an idempotency key.
    pub key: String,
    /// The peer's name for this work, where an earlier attempt began it, was told one, and did not see it end. A line
    /// that is given one asks for that work and begins none. Only where [`RemoteSpec::rejoin`] says so.
    pub task: Option<String>,
    /// What was said before in the conversation, as it is kept here: for a peer that has lost it.
    pub earlier: Vec<Earlier>,
    /// How large an answer may be: one that is larger ends the run, and nothing of it needs to be kept for that.
    pub most_bytes: usize,
}

/// What a peer says.
#[derive(Debug)]
#[non_exhaustive]
pub enum RemoteEvent {
    /// It has begun, under this name of its own.
    Begun {
        /// The peer's name for the work.
        task: String,
    },
    /// More of its answer.
    Text(String),
    /// What it is doing; no part of its answer.
    Progress(String),
    /// What it thinks; no part of its answer, and shown to nobody. It counts, as a model's reasoning does (S12.4).
    Thought(String),
    /// What a person should know of it, such as that it has lost the conversation; no part of its answer.
    Notice(String),
    /// It asks whether it may do something, and waits.
    Question(RemoteQuestion),
    /// It does not want an answer to that any more.
    Withdrawn {
        /// The question's id.
        question: String,
    },
    /// What it says to a stop, later than in [`RemoteCall::stop`]. [`Requested`](RemoteStopState::Requested) is that no answer will
    /// come. A refusal is told again, where it is known what became of the work, or that nobody says: the caller waits for that,
    /// no longer than [`LAST_LOOK`].
    Told(RemoteStopReply),
    /// What is known of a stop in the end, beyond what [`RemoteCall::stop`] said of it: nothing more is heard of the work.
    Parted(RemoteStopReply),
    /// It has ended with this answer; with the text so far, where there is none.
    Done(Option<String>),
    /// The same, where all of the answer was told as text, and not in its order: nobody is shown it again.
    Reordered(String),
    /// It has ended without an answer, because it was stopped: by us, or by somebody at its end.
    Ended {
        /// In its words.
        word: String,
    },
    /// It failed, and the work has ended; or it cannot be reached and nothing was sent ([`Failure::unreachable`]).
    Failed(Failure),
    /// The line to it broke for good: nobody knows what becomes of the work.
    Lost(Failure),
}

impl RemoteEvent {
    /// How many bytes the peer says by it: what counts against [`Limits::model_output_bytes`](crate::Limits).
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self {
            Self::Text(text) | Self::Progress(text) | Self::Thought(text) | Self::Notice(text) => text.len(),
            Self::Begun { task } => task.len(),
            Self::Question(question) => question.id.len() + question.tool.len() + json::bytes(&question.args),
            Self::Withdrawn { question } => question.len(),
            Self::Done(answer) => answer.as_ref().map_or(0, String::len),
            Self::Reordered(answer) => answer.len(),
            Self::Ended { word }
            | Self::Told(RemoteStopReply { word, .. })
            | Self::Parted(RemoteStopReply { word, .. }) => word.len(),
            Self::Failed(_) | Self::Lost(_) => 0,
        }
    }

    /// Whether nothing more is heard of the work.
    pub(crate) fn is_last(&self) -> bool {
        match self {
            Self::Done(_) | Self::Reordered(_) | Self::Ended { .. } => true,
            Self::Failed(_) | Self::Lost(_) | Self::Parted(_) => true,
            Self::Begun { .. } | Self::Text(_) | Self::Progress(_) | Self::Thought(_) | Self::Notice(_) => {
                false
            }
            Self::Question(_) | Self::Withdrawn { .. } | Self::Told(_) => false,
        }
    }
}

/// What a peer asks a person.
#[derive(Clone, Debug, PartialEq)]
pub struct RemoteQuestion {
    /// Unique among the open ones of its line.
    pub id: String,
    /// What it would do: rules know it as `NAME/TOOL`, where `NAME` is the remote's.
    pub tool: String,
    /// All that a person should know to decide.
    pub args: Value,
}

/// What a peer said to a stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteStopReply {
    /// What is known by that.
    pub stop: RemoteStopState,
    /// In its words; may be empty.
    pub word: String,
    /// Whom it worked with that is not ours, where it is a process of ours.
    pub outside: Outside,
}

impl RemoteStopReply {
    /// It was told, and nothing was heard of it.
    #[must_use]
    pub fn requested() -> Self {
        Self::of(RemoteStopState::Requested, String::new())
    }

    /// It took note.
    #[must_use]
    pub fn acknowledged(word: impl Into<String>) -> Self {
        Self::of(RemoteStopState::Acknowledged, word.into())
    }

    /// It said that the work has ended, or its process is gone.
    #[must_use]
    pub fn confirmed(word: impl Into<String>) -> Self {
        Self::of(RemoteStopState::Confirmed, word.into())
    }

    /// It will not, or cannot.
    #[must_use]
    pub fn refused(word: impl Into<String>) -> Self {
        Self::of(RemoteStopState::Refused, word.into())
    }

    /// It could not be told.
    #[must_use]
    pub fn unreachable(word: impl Into<String>) -> Self {
        Self::of(RemoteStopState::Unreachable, word.into())
    }

    /// With whom it worked that is not ours.
    #[must_use]
    pub fn outside(self, outside: Outside) -> Self {
        Self { outside, ..self }
    }

    fn of(stop: RemoteStopState, word: String) -> Self {
        Self { stop, word, outside: Outside::Unasked }
    }
}

/// Whether a peer's work outlives the line to it, and can be taken up again. Exhaustive: it can or it cannot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reattach {
    /// It cannot: after a crash the effect of work that was under way is unknown (S7.3).
    Never,
    /// By the name that the peer gave it: after a crash the work is asked for, and nothing is begun twice.
    ByTaskId,
}

/// Where the work lives. Exhaustive: in processes of ours, or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lives {
    /// Somewhere else: it may go on when this process has ended without telling it so.
    Elsewhere,
    /// In processes that this one started and that end with it, whatever ends it; what these hand on to others does not.
    InOurProcesses,
}

/// Whether our end listens on once a peer has answered a stop. Exhaustive: it does, or it does not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AfterWord {
    /// For the audit: what becomes of the work there is told as late.
    #[default]
    Listens,
    /// The account of the work is its answer: for programs that end with the run.
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
    /// What a stop does there. Default: [`StopSupport::Hard`], which believes a peer that says that its work was stopped. Of a
    /// peer that is known to work on after that word, say [`StopSupport::CallerSide`]; of one that refuses, [`StopSupport::None`].
    pub grade: StopSupport,
    /// What its work may change. Default: [`EffectClass::Unsafe`].
    pub effect: EffectClass,
    /// Whether work that is under way can be taken up again by its name. Default: [`Reattach::Never`].
    pub rejoin: Reattach,
    /// Where its work lives. Default: [`Lives::Elsewhere`].
    pub lives: Lives,
    /// How long it has, after a stop, to say that its work has ended. Default [`DEFAULT_STOP_WITHIN`].
    pub stop_within: Duration,
    /// How long after that our end still listens, before the run says that it is not quiet. Default [`DEFAULT_LISTEN`].
    pub listen: Duration,
    /// Whether it also does so once the peer has answered. Default: [`AfterWord::Listens`].
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

    /// Sets whether work that is under way can be taken up again by its name.
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

    /// What is known of its work in a call whose end nobody saw, because the process ended in which it was waited for.
    pub(crate) fn unseen(&self) -> RemoteReport {
        let row = RemoteReport::of(self.peer.clone(), self.grade);
        match self.lives {
            Lives::Elsewhere => RemoteReport { lost_at: Some(Timestamp::now()), ..row },
            Lives::InOurProcesses => RemoteReport { outside: Outside::Unseen, ..row },
        }
    }

    /// Sets how long it has, after a stop, to say that its work has ended.
    #[must_use]
    pub fn stop_within(mut self, time: Duration) -> Self {
        self.stop_within = time;
        self
    }

    /// Sets how long after that our end still listens.
    #[must_use]
    pub fn listen(mut self, time: Duration) -> Self {
        self.listen = time;
        self
    }

    /// Sets whether our end listens on once the peer has answered a stop.
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
