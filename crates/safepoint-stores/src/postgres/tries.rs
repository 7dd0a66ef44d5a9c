//! How often a request is asked, and what is said in the end.

use std::time::{Duration, Instant};

use safepoint::{raw::store::Cause, store::Error};
use tokio::time::sleep;

use super::failure::Failure;

/// Whether a request that may have been done is asked again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Again {
    /// It is, and never says that anything is unknown: it changes nothing at all.
    Look,
    /// It is, since it changes nothing the second time.
    Always,
    /// It is not: whether it was done is said to be unknown.
    Never,
}

/// The tries of one request.
#[derive(Debug)]
pub(super) struct Tries {
    again: Again,
    until: Instant,
    answer: Option<Duration>,
    pause: Duration,
    /// What was lost, if anything.
    doubt: Option<Error>,
}

const SHORTEST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(1);

impl Tries {
    pub(super) fn new(again: Again, until: Instant) -> Self {
        Self { again, until, answer: None, pause: SHORTEST, doubt: None }
    }

    /// With this time for the answer of each try.
    pub(super) fn answered_within(self, answer: Duration) -> Self {
        Self { answer: Some(answer), ..self }
    }

    /// With an earlier try that may have been done, if there was one.
    pub(super) fn after_one(self, is_lost: bool) -> Self {
        let doubt = is_lost.then(|| Error::Unknown(Cause::new("an answer of the database was lost")));
        Self { doubt, ..self }
    }

    pub(super) fn left(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }

    pub(super) fn answer(&self) -> Option<Duration> {
        self.answer
    }

    /// Whether an earlier try may have been done.
    pub(super) fn is_again(&self) -> bool {
        self.doubt.is_some()
    }

    /// Waits before the next try.
    ///
    /// # Errors
    /// What is said of the request, where there is none.
    pub(super) async fn after(&mut self, failure: Failure) -> Result<(), Error> {
        let (error, pause) = match failure {
            Failure::Lost(error) => {
                let error = match (self.again, error) {
                    (Again::Never, error) => return Err(error),
                    (Again::Look, Error::Unknown(cause)) => Error::Failed(cause),
                    (Again::Look | Again::Always, error) => error,
                };
                self.doubt = (self.again == Again::Always).then(|| error.clone());
                (error, self.longer())
            }
            Failure::Unreachable(error) => (error, self.longer()),
            Failure::Contended(error) => (error, Duration::from_millis(1)),
            over @ (Failure::Refused(_) | Failure::Corrupt(_) | Failure::Write { .. }) => {
                // What is refused now may have been done by an earlier try.
                return Err(self.doubt.take().unwrap_or_else(|| over.into_error()));
            }
        };
        if self.left() <= pause {
            return Err(self.doubt.take().unwrap_or(error));
        }
        sleep(pause).await;
        Ok(())
    }

    fn longer(&mut self) -> Duration {
        let pause = self.pause;
        self.pause = (pause * 2).min(LONGEST);
        pause
    }
}
