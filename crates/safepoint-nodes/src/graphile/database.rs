//! The connections of the jobs, made as those of the store are.
//!
//! **Invariants**: the password is in the settings of connections alone; nothing here shows it.

use std::{any::Any, fmt, sync::Arc, time::Duration};

use deadpool_postgres::{
    Hook, HookError, Manager, ManagerConfig, Pool, PoolError, RecyclingMethod, Runtime, Timeouts,
};
use futures_util::{
    FutureExt as _, Stream, StreamExt as _,
    future::{Either, select},
    stream,
};
use graphile_worker::{
    BoxFuture, Database, DatabaseDriver, DbError, DbExecutor, DbParams, DbRow, DbTransaction, Notification,
    NotificationStream, escape_identifier, tokio_postgres::TokioPostgresDatabase,
};
use safepoint_stores::postgres::PostgresAccess;
use tokio::sync::Notify;
use tokio_postgres::{AsyncMessage, Client};

use crate::placement::PlacementError;

/// How many connections there are, beside the one that listens.
const CONNECTIONS: usize = 3;
/// How long a connection is waited for.
const CONNECT: Duration = Duration::from_secs(4);
/// The first statement of each connection. A job is a hint: its commit waits for no disk, and its notice delays no other commit.
const SET: &str = "SET TimeZone TO 'UTC'; SET statement_timeout TO 4000; SET idle_in_transaction_session_timeout TO 1000; \
     SET synchronous_commit TO off";

/// Connections for jobs.
#[derive(Clone)]
pub(super) struct JobDatabase {
    access: PostgresAccess,
    pool: Pool,
}

/// The same as `graphile_worker` uses it, for one worker.
struct JobDriver {
    of: JobDatabase,
    queries: TokioPostgresDatabase,
    /// Notified once no notices come any more.
    deaf: Arc<Notify>,
}

impl JobDatabase {
    pub(super) fn new(access: PostgresAccess) -> Result<Self, PlacementError> {
        let manager = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = Manager::from_config(access.config.clone(), access.tls.clone(), manager);
        let ready = Hook::async_fn(|client, _| {
            async move { client.batch_execute(SET).await.map_err(HookError::Backend) }.boxed()
        });
        let waits = Timeouts { wait: Some(CONNECT), create: Some(CONNECT), recycle: Some(CONNECT) };
        let pool = Pool::builder(manager).max_size(CONNECTIONS).runtime(Runtime::Tokio1).timeouts(waits);
        let pool = pool.post_create(ready).build();
        let pool =
            pool.map_err(|error| PlacementError::new("cannot make connections of jobs").because(error))?;
        Ok(Self { access, pool })
    }

    /// Says why it does not, with what the server says.
    pub(super) async fn must_answer(&self) -> Result<(), PlacementError> {
        let asked =
            async { self.pool.get().await?.batch_execute("SELECT 1").await.map_err(PoolError::Backend) };
        asked.await.map_err(|error| {
            let words =
                std::iter::successors(Some(&error as &dyn std::error::Error), |error| (**error).source());
            let words: Vec<String> = words.map(ToString::to_string).collect();
            PlacementError::new(format!(
                "the database of the job queue does not answer: {}",
                words.join(": ")
            ))
        })
    }

    pub(super) fn driver(&self, deaf: &Arc<Notify>) -> Database {
        let (of, queries) = (self.clone(), TokioPostgresDatabase::new(self.pool.clone()));
        Database::new(JobDriver { of, queries, deaf: Arc::clone(deaf) })
    }
}

impl DbExecutor for JobDriver {
    fn execute<'a>(&'a self, sql: &'a str, params: DbParams) -> BoxFuture<'a, Result<u64, DbError>> {
        self.queries.execute(sql, params)
    }

    fn fetch_all<'a>(&'a self, sql: &'a str, params: DbParams) -> BoxFuture<'a, Result<Vec<DbRow>, DbError>> {
        self.queries.fetch_all(sql, params)
    }
}

impl DatabaseDriver for JobDriver {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn begin<'a>(&'a self) -> BoxFuture<'a, Result<DbTransaction, DbError>> {
        self.queries.begin()
    }

    fn listen<'a>(&'a self, channel: &'a str) -> BoxFuture<'a, Result<Option<NotificationStream>, DbError>> {
        async move {
            let access = &self.of.access;
            let (client, mut connection) = access.config.connect(access.tls.clone()).await?;
            let messages = stream::poll_fn(move |cx| connection.poll_message(cx)).boxed();
            let notices = listening(client, messages, channel).await?;
            let deaf = Arc::clone(&self.deaf);
            // A worker that is deaf would look for jobs alone: it is begun again, and listens anew.
            let end = stream::poll_fn(move |_| {
                deaf.notify_one();
                std::task::Poll::Ready(None)
            });
            Ok(Some(notices.chain(end).boxed() as NotificationStream))
        }
        .boxed()
    }
}

type Messages = stream::BoxStream<'static, Result<AsyncMessage, tokio_postgres::Error>>;

/// Listens, and has the notices of that connection until it ends.
async fn listening(
    client: Client,
    mut messages: Messages,
    channel: &str,
) -> Result<impl Stream<Item = Result<Notification, DbError>> + Send + 'static, DbError> {
    let listen = format!("LISTEN {}", escape_identifier(channel));
    {
        let asked = Box::pin(client.batch_execute(&listen));
        let ended = Box::pin(async { while let Some(Ok(_)) = messages.next().await {} });
        // The connection works while its messages are read. A notice that comes meanwhile is found by the first look for jobs.
        match select(asked, ended).await {
            Either::Left((listens, _)) => listens?,
            Either::Right(((), _)) => return Err(DbError::new("the connection that listens has ended")),
        }
    }
    let notices = messages.take_while(|message| std::future::ready(message.is_ok()));
    Ok(notices.filter_map(move |message| {
        // It is listened to for as long as there is a client.
        let _listens = &client;
        std::future::ready(match message {
            Ok(AsyncMessage::Notification(notice)) => Some(Ok(Notification {
                channel: notice.channel().to_owned(),
                payload: notice.payload().to_owned(),
            })),
            Ok(_) | Err(_) => None,
        })
    }))
}

impl fmt::Debug for JobDatabase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.access, f)
    }
}

impl fmt::Debug for JobDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.of, f)
    }
}
