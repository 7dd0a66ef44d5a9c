//! The options of a store in PostgreSQL.

use std::{fmt, time::Duration};

use safepoint::raw::store::Environment;

/// How a store in PostgreSQL is opened.
///
/// ```
/// use safepoint_stores::postgres::{Migration, PostgresOptions};
/// let mut options = PostgresOptions::default();
/// options.schema = "agents".into();
/// options.migration = Migration::CheckOnly;
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct PostgresOptions {
    /// The schema of its tables. Default `safepoint`.
    pub schema: String,
    /// What is done where the tables are missing, or of an earlier release. Default [`Migration::Run`].
    pub migration: Migration,
    /// The world outside: who lives, and the margin after which a lease may be taken. Its clock counts only where `clock` says so. The
    /// default margin is 1.25 s: commands of a lost node are dead a second after its lease, and clocks drift.
    pub outside: Environment,
    /// Whose clock ends leases and approvals. Default [`StoreClock::Database`].
    pub clock: StoreClock,
    /// How long a request waits for the database, or for others who use it, before its answer is an error. For an append it is the
    /// time within which it is asked again. Default 5 s.
    pub patience: Duration,
}

/// What is done where the tables are missing, or of an earlier release. Exhaustive: they are made, or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Migration {
    /// They are brought to this release, in one transaction. The role needs the right to create in the database.
    Run,
    /// The store is not opened, and the error says so.
    CheckOnly,
}

/// Whose clock ends leases and approvals. Exhaustive: a store asks the one or the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreClock {
    /// The database's, which all nodes share.
    Database,
    /// For tests: that of [`PostgresOptions::outside`].
    Environment,
}

impl Default for PostgresOptions {
    fn default() -> Self {
        const PATIENCE: Duration = Duration::from_secs(5);
        const MARGIN: Duration = Duration::from_millis(1_250);
        Self {
            schema: "safepoint".into(),
            migration: Migration::Run,
            outside: Environment { margin: MARGIN, ..Environment::default() },
            clock: StoreClock::Database,
            patience: PATIENCE,
        }
    }
}

impl fmt::Debug for PostgresOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresOptions")
            .field("schema", &self.schema)
            .field("migration", &self.migration)
            .field("outside", &self.outside)
            .field("clock", &self.clock)
            .field("patience", &self.patience)
            .finish()
    }
}
