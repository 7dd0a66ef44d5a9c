//! The connections of a store: some for what others wait for, some for what takes long.

use std::{fmt, sync::Arc, time::Duration};

use deadpool_postgres::{
    Hook, HookError, Manager, ManagerConfig, Object, Pool, RecyclingMethod, Runtime, Timeouts,
};
use safepoint::{raw::store::Cause, store::Error};
use tokio_postgres::{Client, Config};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::{
    address::Address,
    failure::{Failure, of_pool},
    identity::Identity,
    tls,
};

/// Connections for requests of one kind.
pub(super) struct Room {
    pool: Pool,
    /// How long an answer may take.
    pub(super) answer: Duration,
}

impl Room {
    /// A connection, waited for no longer than this while others use them.
    pub(super) async fn connection(&self, wait: Duration) -> Result<Object, Failure> {
        /// For the set-up of a connection, with the look at who the server is.
        const CREATE: Duration = Duration::from_secs(4);
        let waits = Timeouts { wait: Some(wait), create: Some(CREATE), recycle: Some(CREATE) };
        self.pool.timeout_get(&waits).await.map_err(of_pool)
    }
}

/// All connections of a store.
pub(super) struct Rooms {
    /// One for each lane of writes.
    pub(super) lanes: Room,
    /// For what is answered at once.
    pub(super) short: Room,
    /// For walks through journals, and for removals.
    pub(super) long: Room,
    pub(super) identity: Arc<Identity>,
    settings: Settings,
}

/// How a connection is made.
#[derive(Clone)]
pub(super) struct Settings {
    config: Config,
    tls: MakeRustlsConnect,
    search_path: String,
}

/// How many lanes there are for writes: sessions are dealt among them.
pub(super) const LANES: usize = 2;
/// After this the server gives up a statement.
const STATEMENT: Duration = Duration::from_secs(4);
/// The same of one that walks through a journal.
const LONG_STATEMENT: Duration = Duration::from_secs(60);
/// An answer comes this much after that, or does not come.
const SLACK: Duration = Duration::from_secs(1);

impl Rooms {
    pub(super) fn new(address: &Address, schema: &str) -> Result<Self, Error> {
        const SHORT: usize = 2;
        const LONG: usize = 2;
        let settings = Settings {
            config: address.config.clone(),
            tls: tls::connector(address)?,
            search_path: format!("{}, pg_temp", quoted(schema)),
        };
        let identity = Arc::new(Identity::default());
        let room = |most, statement| settings.room(most, statement, &identity);
        Ok(Self {
            lanes: room(LANES, STATEMENT)?,
            short: room(SHORT, STATEMENT)?,
            long: room(LONG, LONG_STATEMENT)?,
            identity: Arc::clone(&identity),
            settings: settings.clone(),
        })
    }

    pub(super) fn settings(&self) -> &Settings {
        &self.settings
    }
}

impl Settings {
    fn room(&self, most: usize, statement: Duration, identity: &Arc<Identity>) -> Result<Room, Error> {
        let manager = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = Manager::from_config(self.config.clone(), self.tls.clone(), manager);
        let (set, identity) = (self.set(statement), Arc::clone(identity));
        let ready = Hook::async_fn(move |client, _| {
            let (set, identity) = (set.clone(), Arc::clone(&identity));
            Box::pin(async move {
                client.batch_execute(&set).await.map_err(HookError::Backend)?;
                identity.must_be_same(client).await
            })
        });
        let pool = Pool::builder(manager).max_size(most).runtime(Runtime::Tokio1).post_create(ready).build();
        Ok(Room { pool: pool.map_err(|why| Error::Failed(Cause::new(why)))?, answer: statement + SLACK })
    }

    /// The first statements of each connection. A commit is durable, unless it says otherwise.
    fn set(&self, statement: Duration) -> String {
        format!(
            "SET search_path TO {}; SET TimeZone TO 'UTC'; SET statement_timeout TO {}; \
             SET idle_in_transaction_session_timeout TO 1000; \
             SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'",
            self.search_path,
            statement.as_millis()
        )
    }

    /// A connection without a room, and its messages.
    pub(super) async fn connect(
        &self,
    ) -> Result<
        (
            Client,
            tokio_postgres::Connection<tokio_postgres::Socket, impl tokio_postgres::tls::TlsStream + Unpin>,
        ),
        tokio_postgres::Error,
    > {
        self.config.connect(self.tls.clone()).await
    }

    pub(super) fn search_path(&self) -> &str {
        &self.search_path
    }
}

/// A name as a part of a statement.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

impl fmt::Debug for Rooms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The settings hold a password.
        f.debug_struct("Rooms").field("identity", &self.identity).finish_non_exhaustive()
    }
}
