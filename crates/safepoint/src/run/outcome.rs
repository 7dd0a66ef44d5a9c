//! How a run ended, with everything needed to go on from there (S3.1).

use std::{borrow::Cow, error::Error as StdError, fmt, sync::Arc};

use crate::{
    contract::log::Log,
    run::attempt::AttemptLock,
    value::{
        approval::ApprovalRequest,
        history::History,
        message::AssistantMessage,
        receipt::{Ending, Receipt},
        usage::Usage,
    },
};

/// How a run ended. Exhaustive on purpose: a caller that forgets one does not compile.
#[derive(Clone, Debug)]
#[must_use = "an outcome says whether the work was done"]
pub enum Outcome {
    /// The model answered and asked for nothing more.
    Done(Answer),
    /// A stop ended the run. Of its calls the receipt speaks.
    Stopped(Stopped),
    /// The run itself failed.
    Failed(RunError),
    /// Nothing runs; the run waits for decisions.
    Suspended(Suspended),
}

/// What every outcome carries.
#[derive(Clone)]
pub(crate) struct OutcomeContext {
    pub(crate) receipt: Arc<Receipt>,
    pub(crate) history: History,
    pub(crate) said: LastWords,
    pub(crate) persisted: Persisted,
    pub(crate) log: Arc<dyn Log>,
    pub(crate) desk: AttemptLock,
}

impl fmt::Debug for OutcomeContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ended").field("receipt", &self.receipt).finish_non_exhaustive()
    }
}

/// What was said last. Exhaustive: a message of which it is all the text in one piece, or words that were put together.
#[derive(Clone, Debug)]
pub(crate) enum LastWords {
    Of(Arc<AssistantMessage>),
    /// Shared as it grew: a shared slice would be a second one.
    PutTogether(Arc<String>),
}

impl LastWords {
    /// The text of a message: the message's own, where it is in one piece, so that there is no second one (S12.4).
    pub(crate) fn of(message: &Arc<AssistantMessage>) -> Self {
        match message.text() {
            Cow::Borrowed(_) => Self::Of(Arc::clone(message)),
            Cow::Owned(text) => Self::from(text),
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::Of(message) => message.texts().next().unwrap_or_default(),
            Self::PutTogether(text) => text,
        }
    }
}

impl From<Arc<String>> for LastWords {
    fn from(text: Arc<String>) -> Self {
        Self::PutTogether(text)
    }
}

impl From<String> for LastWords {
    fn from(text: String) -> Self {
        Self::PutTogether(text.into())
    }
}

impl Default for LastWords {
    fn default() -> Self {
        Self::from(String::new())
    }
}

/// Whether the outcome is recorded (S3.4). Exhaustive: yes, no, or nobody knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Persisted {
    /// It is.
    Yes,
    /// It is not, and why.
    No(String),
    /// The log did not answer in time.
    Unknown,
}

/// The answer of a run that is done; shows as its text.
#[derive(Clone, Debug)]
pub struct Answer {
    pub(crate) said: LastWords,
    pub(crate) ended: Arc<OutcomeContext>,
}

/// A stopped run; shows as its receipt.
#[derive(Clone, Debug)]
pub struct Stopped {
    pub(crate) ended: Arc<OutcomeContext>,
}

/// Why a run failed.
#[derive(Clone, Debug)]
pub struct RunError {
    pub(crate) code: String,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    pub(crate) ended: Arc<OutcomeContext>,
}

/// What a suspended run waits for.
#[derive(Clone, Debug)]
pub struct Suspended {
    pub(crate) approvals: Vec<ApprovalRequest>,
    pub(crate) ended: Arc<OutcomeContext>,
}

impl Answer {
    /// The text.
    #[must_use]
    pub fn text(&self) -> &str {
        self.said.as_str()
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.said.as_str())
    }
}

impl Stopped {
    /// The account.
    #[must_use]
    pub fn receipt(&self) -> &Arc<Receipt> {
        &self.ended.receipt
    }
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.ended.receipt.fmt(f)
    }
}

impl RunError {
    /// The code of S1.10, such as `provider`.
    #[must_use]
    pub fn code(&self) -> &str {
        &self.code
    }

    /// What to do about it, if known.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl StdError for RunError {}

impl Suspended {
    /// The open questions.
    #[must_use]
    pub fn approvals(&self) -> &[ApprovalRequest] {
        &self.approvals
    }
}

impl Outcome {
    pub(crate) fn ended(&self) -> &Arc<OutcomeContext> {
        match self {
            Self::Done(answer) => &answer.ended,
            Self::Stopped(stopped) => &stopped.ended,
            Self::Failed(error) => &error.ended,
            Self::Suspended(waiting) => &waiting.ended,
        }
    }

    /// The account of the attempt.
    #[must_use]
    pub fn receipt(&self) -> &Arc<Receipt> {
        &self.ended().receipt
    }

    /// The conversation so far, to go on from with [`Agent::run_on`](crate::Agent::run_on).
    #[must_use]
    pub fn history(&self) -> &History {
        &self.ended().history
    }

    /// What it used.
    #[must_use]
    pub fn usage(&self) -> &Usage {
        &self.ended().receipt.usage
    }

    /// The text of the model's last message, also where it was cut.
    #[must_use]
    pub fn partial_text(&self) -> &str {
        self.ended().said.as_str()
    }

    /// Whether the outcome is recorded.
    #[must_use]
    pub fn persisted(&self) -> &Persisted {
        &self.ended().persisted
    }

    /// How it ended, in one word.
    #[must_use]
    pub fn ending(&self) -> Ending {
        self.ended().receipt.ending
    }

    /// The answer's text, if it is done.
    #[must_use]
    pub fn answer(&self) -> Option<&str> {
        match self {
            Self::Done(answer) => Some(answer.text()),
            Self::Stopped(_) | Self::Failed(_) | Self::Suspended(_) => None,
        }
    }
}
