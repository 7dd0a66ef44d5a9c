//! What every request of a store needs: the connections, the options, and what is known of leases.
//!
//! **Invariants:** a request is one statement. One that may have been done is asked again only where that changes nothing.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
    time::Instant,
};

use deadpool_postgres::Object;
use jiff::Timestamp;
use safepoint::{raw::store::Cause, store::Error};
use tokio::{sync::watch, time::timeout};
use tokio_postgres::{Row, types::ToSql};

use super::{
    address::Address,
    burial::LastSeen,
    column::stored_time,
    failure::Failure,
    lock,
    options::{PostgresOptions, StoreClock},
    owners::Owners,
    rooms::{Room, Rooms},
    seats::Seats,
    tries::{Again, Tries},
    worker::WeakWorker,
};

/// The values of a statement.
pub(super) type Values<'a> = &'a [&'a (dyn ToSql + Sync)];

/// What the requests of one store share.
#[derive(Debug)]
pub(super) struct Core {
    pub(super) address: Address,
    pub(super) options: PostgresOptions,
    pub(super) rooms: Rooms,
    pub(super) seats: Seats,
    pub(super) owners: Owners,
    pub(super) last_seen: LastSeen,
    worker: WeakWorker,
    /// Changes whenever this handle has written for others, or was notified.
    pub(super) nudges: watch::Sender<u64>,
    /// The nodes that are about to be notified: several changes share one notice. Held to look or to change it, and no other lock
    /// is taken under it.
    noticed: Mutex<HashSet<String>>,
}

impl Core {
    pub(super) fn new(address: Address, options: PostgresOptions, rooms: Rooms, worker: WeakWorker) -> Self {
        Self {
            address,
            options,
            rooms,
            seats: Seats::default(),
            owners: Owners::default(),
            last_seen: LastSeen::default(),
            worker,
            nudges: watch::Sender::new(0),
            noticed: Mutex::default(),
        }
    }

    /// The time that is given to a statement: none where the database says it.
    pub(super) fn now(&self) -> Option<Timestamp> {
        match self.options.clock {
            StoreClock::Database => None,
            StoreClock::Environment => Some(stored_time(self.options.outside.now())),
        }
    }

    pub(super) fn tries(&self, again: Again) -> Tries {
        Tries::new(again, Instant::now() + self.options.patience)
    }

    /// Asks one statement, again where that is allowed.
    pub(super) async fn rows(
        &self,
        room: &Room,
        again: Again,
        (sql, values): (&str, Values<'_>),
    ) -> Result<Vec<Row>, Error> {
        let mut tries = self.tries(again);
        loop {
            match self.once(room, &tries, (sql, values)).await {
                Ok(rows) => return Ok(rows),
                Err(failure) => tries.after(failure).await?,
            }
        }
    }

    /// The only row of an answer.
    pub(super) async fn row(
        &self,
        room: &Room,
        again: Again,
        statement: (&str, Values<'_>),
    ) -> Result<Row, Error> {
        let rows = self.rows(room, again, statement).await?;
        rows.into_iter().next().ok_or_else(no_row)
    }

    /// What changes nothing, by a connection for what is answered at once.
    pub(super) async fn look(&self, sql: &str, values: Values<'_>) -> Result<Vec<Row>, Error> {
        self.rows(&self.rooms.short, Again::Look, (sql, values)).await
    }

    /// One try of a statement.
    pub(super) async fn once(
        &self,
        room: &Room,
        tries: &Tries,
        (sql, values): (&str, Values<'_>),
    ) -> Result<Vec<Row>, Failure> {
        let tried = self.try_once(room, tries, (sql, values)).await;
        match &tried {
            Err(Failure::Unreachable(_) | Failure::Lost(_)) => self.rooms.identity.gap(),
            Ok(_) | Err(_) => self.rooms.identity.answers(),
        }
        tried
    }

    async fn try_once(
        &self,
        room: &Room,
        tries: &Tries,
        (sql, values): (&str, Values<'_>),
    ) -> Result<Vec<Row>, Failure> {
        let connection = room.connection(tries.left()).await?;
        let asked = async {
            // A statement that could not be prepared was not done.
            let prepared = connection.prepare_cached(sql).await.map_err(|error| match error.into() {
                Failure::Lost(error) => Failure::Unreachable(error),
                other => other,
            })?;
            connection.query(&prepared, values).await.map_err(Failure::from)
        };
        let within = tries.answer().unwrap_or(room.answer);
        match timeout(within, asked).await {
            Ok(answered) => answered,
            Err(_elapsed) => {
                // Its answer may come yet: the next request must not be behind it.
                drop(Object::take(connection));
                let why = format!("the database did not answer within {} ms", within.as_millis());
                Err(Failure::Lost(Error::Unknown(Cause::new(why))))
            }
        }
    }

    /// Several statements as one message, with their own transaction.
    pub(super) async fn batch(&self, sql: &str) -> Result<(), Failure> {
        let connection = self.rooms.long.connection(self.options.patience).await?;
        let done = connection.batch_execute(sql).await;
        // Whatever became of the transaction, it ends with the connection.
        drop(Object::take(connection));
        Ok(done?)
    }

    /// Notifies the nodes that hold sessions which others have changed; after that has been committed.
    pub(super) fn notify(self: &Arc<Self>, holders: impl IntoIterator<Item = String>) {
        const NOTIFY: &str = "SELECT set_config('synchronous_commit', 'off', true), \
             pg_notify('sp_' || md5(current_schema() || ' ' || $1), '')";
        self.nudges.send_modify(|nudges| *nudges += 1);
        for holder in holders {
            let Some(worker) = self.worker.upgrade() else { return };
            if !lock(&self.noticed).insert(holder.clone()) {
                continue;
            }
            let core = Arc::clone(self);
            worker.begin(async move {
                lock(&core.noticed).remove(&holder);
                let notified = core.rows(&core.rooms.short, Again::Never, (NOTIFY, &[&holder])).await;
                if notified.is_err() {
                    // A notice may be lost: the node looks by itself.
                }
            });
        }
    }
}

pub(super) fn no_row() -> Error {
    Error::Failed(Cause::new("the database gave no answer where there must be one"))
}
