//! Where facts are recorded. Only a recorded fact changes state, and only a log creates one.

use std::{collections::HashMap, error::Error as StdError, iter::repeat, sync::Arc, time::Duration};

use futures_core::future::BoxFuture;
use serde::{Deserialize, Serialize};

use crate::{
    sync::{
        Mutex,
        callback::{self, Panicked},
    },
    value::{
        event::Fact,
        ids::{Path, SteerId},
    },
};

/// One line of a journal: a fact, and the run of the tree that it belongs to. As JSON it is read by later releases too.
///
/// ```
/// use safepoint::log::RunRecord;
/// fn to_row(record: &RunRecord) -> serde_json::Result<String> {
///     serde_json::to_string(record) // `from_str` reads it, also in later releases
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// Which run: the root, or a child run.
    pub path: Path,
    /// What is so.
    pub fact: Arc<Fact>,
}

/// A journal of one run and of all its child runs. The one in memory is [`MemoryLog`].
///
/// A log of your own makes runs survive their process: see [`Agent::run_recorded`](crate::Agent::run_recorded). Three things
/// are its promise (S7.20):
///
/// - A record whose append was confirmed is in every later [`read`](Log::read), in its place. Effects begin after that
///   confirmation, so confirm nothing that a crash could take back.
/// - At most one owner appends (S7.4). Give each record its place, the number of records before it, and make the place
///   unique where it is kept: of two owners that read the same records one inserts the next place, and the other gets an
///   error, with which its run ends.
/// - What the log does not know it says: [`LogError::unknown`].
///
/// ```
/// use std::sync::{Arc, Mutex};
/// use safepoint::log::{Log, LogError, RunRecord};
/// # type BoxFuture<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;
///
/// /// The rows of a table that all owners share, and how many of them this owner knows.
/// struct Rows { table: Arc<Mutex<Vec<String>>>, known: Mutex<usize> }
///
/// impl Log for Rows {
///     fn append(&self, record: RunRecord) -> BoxFuture<'_, Result<u64, LogError>> {
///         Box::pin(async move {
///             let row = serde_json::to_string(&record).map_err(LogError::new)?;
///             let (mut table, mut known) = (self.table.lock().unwrap(), self.known.lock().unwrap());
///             if table.len() != *known {
///                 return Err(LogError::new("another owner has this run")); // the unique place is taken
///             }
///             table.push(row);
///             *known += 1;
///             Ok(*known as u64 - 1)
///         })
///     }
///
///     fn read(&self) -> BoxFuture<'_, Result<Vec<RunRecord>, LogError>> {
///         Box::pin(async move {
///             let table = self.table.lock().unwrap();
///             *self.known.lock().unwrap() = table.len();
///             table.iter().map(|row| serde_json::from_str(row).map_err(LogError::new)).collect()
///         })
///     }
/// }
/// ```
pub trait Log: Send + Sync + 'static {
    /// Appends a record; resolves to its position once it is recorded.
    ///
    /// # Cancel safety
    /// Dropping the future leaves open whether the fact was recorded.
    fn append(&self, record: RunRecord) -> BoxFuture<'_, Result<u64, LogError>>;

    /// Like [`append`](Self::append), for a caller that waits no longer than `limit`. A log that can be
    /// queried makes sure before it reports that the result is unknown (S3.4); this default does not query.
    ///
    /// # Errors
    /// [`LogError::is_uncertain`] if there was no answer in time.
    ///
    /// # Cancel safety
    /// As of [`append`](Self::append).
    fn append_within(&self, record: RunRecord, limit: Duration) -> BoxFuture<'_, Result<u64, LogError>> {
        Box::pin(async move {
            let appended = tokio::time::timeout(limit, self.append(record)).await;
            appended.unwrap_or_else(|_elapsed| Err(LogError::unknown(LATE)))
        })
    }

    /// Appends several records in order, for a caller that waits no longer than `limit`; resolves to the
    /// position of each once all are recorded. A log that can record them in one write does so; this
    /// default appends each, and records of other runs of the tree may come between them.
    ///
    /// # Errors
    /// As of [`append_within`](Self::append_within). Records before the one that failed may be recorded.
    ///
    /// # Cancel safety
    /// As of [`append`](Self::append), for each.
    fn append_all(
        &self,
        records: Vec<RunRecord>,
        limit: Duration,
    ) -> BoxFuture<'_, Result<Vec<u64>, LogError>> {
        Box::pin(async move {
            let mut positions = Vec::with_capacity(records.len());
            for record in records {
                positions.push(self.append_within(record, limit).await?);
            }
            Ok(positions)
        })
    }

    /// Whether each append is over at its first poll, and blocks nothing. The run may then record a stop before it releases
    /// what was stopped, with no wait in between.
    #[doc(hidden)]
    fn is_instant(&self) -> bool {
        false
    }

    /// All records of the tree, oldest first.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    fn read(&self) -> BoxFuture<'_, Result<Vec<RunRecord>, LogError>>;

    /// Whether it ends with this process, so that a copy of its records may continue elsewhere.
    #[doc(hidden)]
    fn lasts_only_here(&self) -> bool {
        false
    }
}

/// Why the result is unknown.
const LATE: &str = "the log did not answer in time";

/// Why a log failed.
///
/// ```
/// use std::io;
/// use safepoint::log::LogError;
/// /// A connection that breaks leaves open whether the row was written.
/// fn why(error: io::Error) -> LogError {
///     match error.kind() {
///         io::ErrorKind::ConnectionReset | io::ErrorKind::TimedOut => LogError::unknown(error),
///         _ => LogError::new(error),
///     }
/// }
/// # assert!(why(io::ErrorKind::TimedOut.into()).is_uncertain());
/// ```
#[derive(Debug, thiserror::Error)]
#[error("the log could not be used: {cause}")]
pub struct LogError {
    #[source]
    cause: Box<dyn StdError + Send + Sync>,
    is_uncertain: bool,
    gone: Option<SteerId>,
}

impl LogError {
    /// Wraps the cause.
    pub fn new(cause: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self { cause: cause.into(), is_uncertain: false, gone: None }
    }

    /// Like [`new`](Self::new), for a record that may exist anyway (S3.4).
    pub fn unknown(cause: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self { cause: cause.into(), is_uncertain: true, gone: None }
    }

    /// Nothing was recorded, because the sender withdrew a steer of the record. Without that steer it can be
    /// recorded.
    pub fn steer_gone(steer: SteerId, cause: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self { gone: Some(steer), ..Self::new(cause) }
    }

    /// The steer that was withdrawn, if that is why nothing was recorded.
    #[must_use]
    pub fn gone_steer(&self) -> Option<&SteerId> {
        self.gone.as_ref()
    }

    /// Whether the record may exist anyway.
    #[must_use]
    pub fn is_uncertain(&self) -> bool {
        self.is_uncertain
    }
}

/// A recorded fact. Created only here, after the log has confirmed it.
#[derive(Clone, Debug)]
pub(crate) struct Recorded {
    fact: Arc<Fact>,
    /// Where the log has it. `None`: it was read back, and is shown to no reader.
    position: Option<u64>,
}

impl Recorded {
    /// The fact.
    #[must_use]
    pub(crate) fn fact(&self) -> &Arc<Fact> {
        &self.fact
    }

    /// Where its log has it, if this process appended it.
    #[must_use]
    pub(crate) fn position(&self) -> Option<u64> {
        self.position
    }
}

/// Records one fact of the run at `path`, which waits no longer than `limit`.
pub(crate) async fn record(
    log: &dyn Log,
    path: &Path,
    fact: Arc<Fact>,
    limit: Duration,
) -> Result<Recorded, LogError> {
    let position = append(log, RunRecord { path: path.clone(), fact: Arc::clone(&fact) }, limit).await?;
    Ok(Recorded { fact, position: Some(position) })
}

/// Records facts of the run at `path`, in order.
pub(crate) async fn record_all(
    log: &dyn Log,
    path: &Path,
    facts: Vec<Arc<Fact>>,
    limit: Duration,
) -> Result<Vec<Recorded>, LogError> {
    let record = |fact: &Arc<Fact>| RunRecord { path: path.clone(), fact: Arc::clone(fact) };
    let records = facts.iter().map(record).collect();
    let appended = callback::run_boxed(|| log.append_all(records, limit)).await;
    let positions = appended.unwrap_or_else(|Panicked(why)| Err(panicked(&why)))?;
    // A log that names fewer has recorded them all the same; where is then not known.
    let positions = positions.into_iter().map(Some).chain(repeat(None));
    Ok(facts.into_iter().zip(positions).map(|(fact, position)| Recorded { fact, position }).collect())
}

/// Appends a record. If the log panics, it is unknown what it has recorded.
pub(crate) async fn append(log: &dyn Log, record: RunRecord, limit: Duration) -> Result<u64, LogError> {
    let appended = callback::run_boxed(|| log.append_within(record, limit)).await;
    appended.unwrap_or_else(|Panicked(why)| Err(panicked(&why)))
}

fn panicked(why: &str) -> LogError {
    LogError::unknown(format!("the log panicked: {why}"))
}

pub(crate) async fn read(log: &dyn Log) -> Result<Vec<RunRecord>, LogError> {
    let read = callback::run_boxed(|| log.read()).await;
    read.unwrap_or_else(|Panicked(why)| Err(LogError::new(format!("the log panicked: {why}"))))
}

/// Everything that was recorded of the tree below `path`, by run, each oldest first.
pub(crate) async fn replay(log: &dyn Log, path: &Path) -> Result<HashMap<Path, Vec<Recorded>>, LogError> {
    let mut runs: HashMap<Path, Vec<Recorded>> = HashMap::new();
    for RunRecord { path: of, fact } in read(log).await? {
        if of.is_within(path) {
            runs.entry(of).or_default().push(read_back(fact));
        }
    }
    Ok(runs)
}

/// A fact that a store returned: it was recorded by its writer.
pub(crate) fn read_back(fact: Arc<Fact>) -> Recorded {
    Recorded { fact, position: None }
}

/// A log that lasts as long as its process.
#[derive(Debug, Default)]
pub struct MemoryLog {
    /// Held for one push or one copy: a record and its position are one step. No other lock is taken under
    /// it, and nothing is awaited.
    records: Mutex<Vec<RunRecord>>,
}

impl MemoryLog {
    /// A log that has these records.
    pub(crate) fn of(records: Vec<RunRecord>) -> Self {
        Self { records: Mutex::new(records) }
    }
}

impl Log for MemoryLog {
    fn append(&self, record: RunRecord) -> BoxFuture<'_, Result<u64, LogError>> {
        let mut records = self.records.lock();
        records.push(record);
        let place = records.len() as u64 - 1;
        drop(records);
        Box::pin(std::future::ready(Ok(place)))
    }

    fn is_instant(&self) -> bool {
        true
    }

    /// It answers at once, so no limit is watched.
    fn append_within(&self, record: RunRecord, _limit: Duration) -> BoxFuture<'_, Result<u64, LogError>> {
        self.append(record)
    }

    fn append_all(
        &self,
        more: Vec<RunRecord>,
        _limit: Duration,
    ) -> BoxFuture<'_, Result<Vec<u64>, LogError>> {
        let mut records = self.records.lock();
        let first = records.len() as u64;
        records.extend(more);
        let positions = (first..records.len() as u64).collect();
        drop(records);
        Box::pin(std::future::ready(Ok(positions)))
    }

    fn read(&self) -> BoxFuture<'_, Result<Vec<RunRecord>, LogError>> {
        let records = self.records.lock().clone();
        Box::pin(std::future::ready(Ok(records)))
    }

    fn lasts_only_here(&self) -> bool {
        true
    }
}
