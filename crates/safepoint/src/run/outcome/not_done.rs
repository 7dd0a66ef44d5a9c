//! An outcome as a `Result`, for the edge of a program.
//!
//! **Invariant.** Nothing in the engine makes a [`NotDone`], save this conversion that the caller writes: a stop is no
//! error on its way to the caller (ADR 0001).

use std::{error::Error as StdError, fmt, sync::Arc};

use super::{Answer, Outcome, OutcomeContext, Persisted, RunError, Stopped, Suspended};
use crate::value::{
    history::History,
    receipt::{Ending, Receipt, exit_code},
    usage::Usage,
};

/// What an outcome is that is not done: made by [`Outcome::into_result`], for the edge of a program, where only an answer
/// is of use. Exhaustive: the endings of S3.1 but *done*.
///
/// It keeps everything that the outcome has, and [becomes](From) an outcome again, for
/// [`Agent::resume`](crate::Agent::resume).
///
/// It shows as the receipt of a stop or a suspension, and as the message of a failure, also with `{:?}`: a `main` that
/// returns it as its error prints that. Such a `main` prints `Error:` in front, since that is what the standard library
/// does with any `Err`. Return the [`Outcome`] itself where a stop is to end the program as a stop.
///
/// ```
/// use safepoint::{Agent, outcome::NotDone};
/// async fn answer(agent: &Agent) -> Result<String, NotDone> {
///     Ok(agent.run("Hello?").await.into_result()?.into_value())
/// }
/// ```
#[derive(Clone)]
pub enum NotDone {
    /// A stop ended the run.
    Stopped(Stopped),
    /// The run itself failed.
    Failed(RunError),
    /// Nothing runs; the run waits for decisions.
    Suspended(Suspended),
}

impl<T> Outcome<T> {
    /// The answer, or what there is in its place: an explicit conversion at a program's edge, so that `?` works there.
    ///
    /// # Errors
    /// [`NotDone`] if the run was stopped, failed or is suspended. A stop is then an `Err`: match the outcome itself
    /// wherever the program does something else after a stop than after a failure.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn ask(agent: safepoint::Agent) -> Result<(), Box<dyn std::error::Error>> {
    /// let answer = agent.run("Which is the largest city of Europe?").await.into_result()?;
    /// println!("{answer}");
    /// # Ok(()) }
    /// ```
    pub fn into_result(self) -> Result<Answer<T>, NotDone> {
        match self {
            Self::Done(answer) => Ok(answer),
            Self::Stopped(stopped) => Err(NotDone::Stopped(stopped)),
            Self::Failed(error) => Err(NotDone::Failed(error)),
            Self::Suspended(waiting) => Err(NotDone::Suspended(waiting)),
        }
    }
}

impl NotDone {
    fn ended(&self) -> &Arc<OutcomeContext> {
        match self {
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
            Self::Stopped(_) => Ending::Stopped,
            Self::Failed(_) => Ending::Failed,
            Self::Suspended(_) => Ending::Suspended,
        }
    }

    /// The code with which a program ends for it: see [`Receipt::exit_code`].
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Failed(_) => exit_code::FAILED,
            Self::Stopped(_) | Self::Suspended(_) => self.receipt().exit_code(),
        }
    }
}

impl<T> From<NotDone> for Outcome<T> {
    fn from(not_done: NotDone) -> Self {
        match not_done {
            NotDone::Stopped(stopped) => Self::Stopped(stopped),
            NotDone::Failed(error) => Self::Failed(error),
            NotDone::Suspended(waiting) => Self::Suspended(waiting),
        }
    }
}

impl fmt::Display for NotDone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(error) => error.fmt(f),
            Self::Stopped(_) | Self::Suspended(_) => self.receipt().fmt(f),
        }
    }
}

/// The same text: it is what a `main` prints that returns it as an error.
impl fmt::Debug for NotDone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")?;
        match self {
            Self::Failed(error) => error.hint().map_or(Ok(()), |hint| write!(f, "\n  hint: {hint}")),
            Self::Stopped(_) | Self::Suspended(_) => Ok(()),
        }
    }
}

impl StdError for NotDone {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Self::Failed(error) => error.source(),
            Self::Stopped(_) | Self::Suspended(_) => None,
        }
    }
}
