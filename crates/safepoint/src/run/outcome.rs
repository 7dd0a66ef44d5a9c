//! How a run ended, with everything needed to continue from there (S3.1).

use std::{
    borrow::Cow,
    fmt,
    sync::{Arc, OnceLock},
};

use crate::{
    contract::log::Log,
    definition::Definition,
    run::attempt::AttemptLock,
    value::{
        approval::ApprovalRequest,
        event::ErrorReport,
        history::History,
        message::AssistantMessage,
        receipt::{Ending, Receipt},
        usage::Usage,
    },
};

mod failure;
mod not_done;
mod program;
mod save;

pub use failure::RunError;
pub use not_done::NotDone;

/// How a run ended. Exhaustive on purpose: a caller that forgets one does not compile.
///
/// A `main` may return it, alone or in a `Result`: it then prints the answer to stdout, or the receipt or the error to
/// stderr, and ends with the [exit code](Outcome::exit_code) of `safepoint run`.
///
/// ```no_run
/// use safepoint::{Agent, Outcome};
///
/// # async fn my_agent() -> Result<Agent, std::io::Error> { std::future::pending().await }
/// #[tokio::main]
/// async fn main() -> Result<Outcome, Box<dyn std::error::Error>> {
///     let agent = my_agent().await?;
///     Ok(agent.run("What should I wear in Lisbon?").await)
/// }
/// ```
///
/// Where only the answer is of use, [`into_result`](Outcome::into_result) makes a `Result` of it, for `?`.
#[derive(Clone, Debug)]
#[must_use = "an outcome says whether the work was done"]
pub enum Outcome<T = String> {
    /// The model answered and requested nothing more.
    Done(Answer<T>),
    /// A stop ended the run. The receipt reports its calls.
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
    pub(crate) lock: AttemptLock,
    /// The agent with the settings of the run; `None` if the engine did not execute the run.
    pub(crate) def: Option<Arc<Definition>>,
}

impl fmt::Debug for OutcomeContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutcomeContext").field("receipt", &self.receipt).finish_non_exhaustive()
    }
}

/// What was said last. Exhaustive: a message whose text is in one piece, or text that was joined.
#[derive(Clone, Debug)]
pub(crate) enum LastWords {
    Of(Arc<AssistantMessage>),
    /// Shared as it grew: a shared slice would be a second copy.
    PutTogether(Arc<String>),
}

impl LastWords {
    /// The text of a message: the message's own if it is in one piece, so that there is no second copy
    /// (S12.4).
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

/// Whether the outcome is recorded (S3.4). Exhaustive: yes, no, or unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Persisted {
    /// It is recorded.
    Yes,
    /// It is not recorded, and why.
    No(String),
    /// The log did not answer in time.
    Unknown,
}

/// The answer of a run that is done; shows as its text.
///
/// ```
/// use safepoint::Answer;
/// fn show(answer: &Answer) {
///     println!("{answer} ({} tokens)", answer.usage().total());
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Answer<T = String> {
    said: LastWords,
    value: Value<T>,
    ended: Arc<OutcomeContext>,
}

/// Exhaustive: the text itself, copied when it is asked for, or what was read from it.
#[derive(Clone, Debug)]
enum Value<T> {
    Text(OnceLock<T>, fn(&str) -> T),
    Read(T),
}

/// A stopped run; shows as its receipt.
///
/// ```
/// use safepoint::{Agent, outcome::Stopped};
/// /// Shows what the stop did, and continues with something else.
/// async fn instead(agent: &Agent, stopped: &Stopped, input: &str) -> safepoint::Outcome {
///     println!("{stopped}");
///     agent.run_on(stopped.history().clone(), input).await
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Stopped {
    pub(crate) ended: Arc<OutcomeContext>,
}

/// What a suspended run waits for.
///
/// ```
/// use safepoint::outcome::Suspended;
/// fn questions(waiting: &Suspended) {
///     for asked in waiting.approvals() {
///         println!("{}: may {} run with {}?", asked.id, asked.tool, asked.args);
///     }
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Suspended {
    pub(crate) approvals: Vec<ApprovalRequest>,
    pub(crate) ended: Arc<OutcomeContext>,
}

impl Answer {
    pub(crate) fn new(said: LastWords, ended: Arc<OutcomeContext>) -> Self {
        Self { said, value: Value::Text(OnceLock::new(), str::to_owned), ended }
    }

    /// The same text with what was read from it.
    fn with_value<T>(self, value: T) -> Answer<T> {
        Answer { said: self.said, value: Value::Read(value), ended: self.ended }
    }
}

impl<T> Answer<T> {
    /// The text, shared.
    pub(crate) fn said(&self) -> LastWords {
        self.said.clone()
    }

    /// The value: for an agent without a type of answers, the text.
    pub fn value(&self) -> &T {
        match &self.value {
            Value::Text(copied, copy) => copied.get_or_init(|| copy(self.said.as_str())),
            Value::Read(value) => value,
        }
    }

    /// The value, without a copy of it.
    pub fn into_value(self) -> T {
        match self.value {
            Value::Text(copied, copy) => copied.into_inner().unwrap_or_else(|| copy(self.said.as_str())),
            Value::Read(value) => value,
        }
    }

    /// The text as the model wrote it.
    #[must_use]
    pub fn text(&self) -> &str {
        self.said.as_str()
    }

    /// The account of the attempt.
    #[must_use]
    pub fn receipt(&self) -> &Arc<Receipt> {
        &self.ended.receipt
    }

    /// The conversation so far; continue it with [`Agent::run_on`](crate::Agent::run_on).
    #[must_use]
    pub fn history(&self) -> &History {
        &self.ended.history
    }

    /// What the attempt's own model calls used.
    #[must_use]
    pub fn usage(&self) -> &Usage {
        &self.ended.receipt.usage
    }

    /// What [`usage`](Self::usage) costs: see [`Receipt::cost`](Receipt#structfield.cost).
    #[must_use]
    pub fn cost(&self) -> Option<f64> {
        self.ended.receipt.cost
    }
}

impl<T> fmt::Display for Answer<T> {
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

    /// The conversation so far.
    #[must_use]
    pub fn history(&self) -> &History {
        &self.ended.history
    }
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.ended.receipt.fmt(f)
    }
}

impl Suspended {
    /// The open questions.
    #[must_use]
    pub fn approvals(&self) -> &[ApprovalRequest] {
        &self.approvals
    }

    /// The account.
    #[must_use]
    pub fn receipt(&self) -> &Arc<Receipt> {
        &self.ended.receipt
    }

    /// The conversation so far.
    #[must_use]
    pub fn history(&self) -> &History {
        &self.ended.history
    }
}

impl Outcome {
    /// The same with the value that `read` finds in the answer's text; a text that has none fails the run with this code.
    pub(crate) fn read<T>(
        self,
        code: &'static str,
        read: impl FnOnce(&str) -> Result<T, String>,
    ) -> Outcome<T> {
        match self {
            Self::Done(answer) => match read(answer.text()) {
                Ok(value) => Outcome::Done(answer.with_value(value)),
                Err(message) => {
                    let error = ErrorReport::new(code, message, None);
                    Outcome::Failed(RunError { error, ended: answer.ended })
                }
            },
            Self::Stopped(stopped) => Outcome::Stopped(stopped),
            Self::Failed(error) => Outcome::Failed(error),
            Self::Suspended(waiting) => Outcome::Suspended(waiting),
        }
    }
}

impl<T> Outcome<T> {
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

    /// The conversation so far; continue it with [`Agent::run_on`](crate::Agent::run_on).
    #[must_use]
    pub fn history(&self) -> &History {
        &self.ended().history
    }

    /// What the attempt's own model calls used.
    #[must_use]
    pub fn usage(&self) -> &Usage {
        &self.ended().receipt.usage
    }

    /// What [`usage`](Self::usage) costs: see [`Receipt::cost`](Receipt#structfield.cost).
    #[must_use]
    pub fn cost(&self) -> Option<f64> {
        self.ended().receipt.cost
    }

    /// The text of the model's last message, even if it was cut.
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
        match self {
            Self::Done(_) => Ending::Done,
            Self::Stopped(_) => Ending::Stopped,
            Self::Failed(_) => Ending::Failed,
            Self::Suspended(_) => Ending::Suspended,
        }
    }

    /// The answer's text, if the run is done.
    #[must_use]
    pub fn answer(&self) -> Option<&str> {
        if let Self::Done(answer) = self { Some(answer.text()) } else { None }
    }

    /// The answer's value, if it is done.
    #[must_use]
    pub fn into_value(self) -> Option<T> {
        if let Self::Done(answer) = self { Some(answer.into_value()) } else { None }
    }
}
