//! The options of a store in a file.

use std::{fmt, io, sync::Arc, time::Duration};

use safepoint::raw::store::Environment;

use super::turn::{Until, Who};

/// How a store in a file is opened.
#[derive(Clone)]
#[non_exhaustive]
pub struct SqliteOptions {
    /// The world outside.
    pub outside: Environment,
    /// How long what the holder of a session writes waits for other processes. Default 5 s.
    pub busy: Duration,
    /// How long everything else waits for them: an opening, the taking of a session, what others put into one. Default 60 s.
    pub patience: Duration,
    /// How large the file may become, in bytes: a write that needs more says that the store is full. Default: as large
    /// as the disk allows.
    pub most_bytes: Option<u64>,
    /// For tests: is asked at each moment of the writer's work.
    pub probe: Option<Probe>,
}

/// Is asked at each moment of the writer's work. An error is taken as one of the disk.
pub type Probe = Arc<dyn Fn(Moment) -> io::Result<()> + Send + Sync>;

/// A moment of the writer's work, where a test may let something go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Moment {
    /// A transaction is about to begin.
    Begin,
    /// One request's part of it is done.
    Written,
    /// It is about to be committed.
    Commit,
    /// The transaction is committed, and no caller has an answer yet.
    Committed,
    /// Every caller has an answer.
    Reported,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        const BUSY: Duration = Duration::from_secs(5);
        const PATIENCE: Duration = Duration::from_secs(60);
        Self {
            outside: Environment::default(),
            busy: BUSY,
            patience: PATIENCE,
            most_bytes: None,
            probe: None,
        }
    }
}

impl SqliteOptions {
    /// How long this one waits.
    pub(super) fn until(&self, who: Who) -> Until {
        Until::after(match who {
            Who::Holder => self.busy,
            Who::Comer => self.patience,
        })
    }

    pub(super) fn probe(&self, moment: Moment) -> io::Result<()> {
        self.probe.as_ref().map_or(Ok(()), |probe| probe(moment))
    }
}

impl fmt::Debug for SqliteOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("outside", &self.outside)
            .field("busy", &self.busy)
            .field("patience", &self.patience)
            .field("most_bytes", &self.most_bytes)
            .finish_non_exhaustive()
    }
}
