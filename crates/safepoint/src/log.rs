//! Where facts are recorded. Only a recorded fact changes state, and only a log makes one.

use std::{
    error::Error as StdError,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use futures_core::future::BoxFuture;

use crate::event::Fact;

/// A journal of one run. The one in memory is [`MemoryLog`].
pub trait Log: Send + Sync + 'static {
    /// Appends a fact; resolves when it is recorded, to its place.
    ///
    /// # Cancel safety
    /// Dropping the future leaves open whether the fact was recorded.
    fn append(&self, fact: Arc<Fact>) -> BoxFuture<'_, Result<u64, LogError>>;

    /// All facts, oldest first.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    fn read(&self) -> BoxFuture<'_, Result<Vec<Arc<Fact>>, LogError>>;
}

/// Why a log could not do what it was asked.
#[derive(Debug)]
pub struct LogError(Box<dyn StdError + Send + Sync>);

impl LogError {
    /// Wraps the cause.
    pub fn new(cause: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self(cause.into())
    }
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the log could not be used: {}", self.0)
    }
}

impl StdError for LogError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(&*self.0)
    }
}

/// A fact that is recorded. Made only here, after the log has said so.
#[derive(Clone, Debug)]
pub struct Recorded {
    fact: Arc<Fact>,
}

impl Recorded {
    /// The fact.
    #[must_use]
    pub fn fact(&self) -> &Arc<Fact> {
        &self.fact
    }
}

/// Records one fact.
pub(crate) async fn record(log: &dyn Log, fact: Fact) -> Result<Recorded, LogError> {
    let fact = Arc::new(fact);
    log.append(Arc::clone(&fact)).await?;
    Ok(Recorded { fact })
}

/// Everything that was recorded, oldest first.
pub(crate) async fn replay(log: &dyn Log) -> Result<Vec<Recorded>, LogError> {
    Ok(log.read().await?.into_iter().map(|fact| Recorded { fact }).collect())
}

/// A log that lives and dies with its process.
#[derive(Debug, Default)]
pub struct MemoryLog {
    facts: Mutex<Vec<Arc<Fact>>>,
}

impl Log for MemoryLog {
    fn append(&self, fact: Arc<Fact>) -> BoxFuture<'_, Result<u64, LogError>> {
        let mut facts = self.facts.lock().unwrap_or_else(PoisonError::into_inner);
        facts.push(fact);
        let place = facts.len() as u64 - 1;
        drop(facts);
        Box::pin(std::future::ready(Ok(place)))
    }

    fn read(&self) -> BoxFuture<'_, Result<Vec<Arc<Fact>>, LogError>> {
        let facts = self.facts.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Box::pin(std::future::ready(Ok(facts)))
    }
}
