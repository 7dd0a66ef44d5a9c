//! A queue of wakes in the database of the store: Graphile Worker's tables, by the crate `graphile_worker`.
//!
//! ```text
//! wake ─▶ a job with the session as its key ─▶ LISTEN ─▶ a node that names its pool and has room ─▶ Here ─▶ Taker::take
//! ```
//!
//! **Invariants**: a job is a message and no lease. It ends as soon as a node has the session in hand. A worker runs only while its node has
//! room: one that is ended gives back the jobs that it has not handed over.

mod database;
mod job;

use std::{fmt, sync::Arc, time::Duration};

use futures_core::future::BoxFuture;
use futures_util::{
    FutureExt as _,
    future::{Either, Shared, select},
};
use graphile_worker::{DbError, Worker, WorkerOptions, WorkerUtils};
use safepoint_stores::postgres::PostgresAccess;
use tokio::{sync::Notify, time::sleep};

use crate::{
    here::Here,
    placement::PlacementError,
    queue::WakeQueue,
    taker::{NodeCapacity, Wake},
};
use database::JobDatabase;
use job::{JobHands, TakeJob, written};

/// The schema of the jobs.
const SCHEMA: &str = "safepoint_work";
/// How many jobs of a node are handed over at once.
const AT_ONCE: usize = 4;
/// How often jobs are looked for where no notice comes.
const LOOK: Duration = Duration::from_millis(500);
/// How long a worker that has ended is not begun again: at a node whose room comes and goes.
const REST: Duration = Duration::from_millis(250);
/// How often a worker says that it lives.
const BEAT: Duration = Duration::from_secs(10);
/// After which silence of a worker its jobs are given back. No session waits for that: it is named again after five seconds.
const SILENCE: Duration = Duration::from_secs(60);

/// Wakes in the tables of Graphile Worker, in the schema `safepoint_work` of the database in which the store is.
///
/// A node has four connections for it. What waits there can be seen and counted by all that knows these tables: a job `safepoint_take`
/// for each session, with its pool as its flag. One database has one such queue.
///
/// ```no_run
/// use std::sync::Arc;
/// use safepoint_nodes::{GraphileQueue, PlacementError, QueuePlacement};
/// async fn placement() -> Result<Arc<QueuePlacement>, PlacementError> {
///     let queue = GraphileQueue::open("postgres://agents@localhost/agents").await?;
///     Ok(Arc::new(QueuePlacement::new(queue)))
/// }
/// ```
pub struct GraphileQueue {
    database: JobDatabase,
    utils: WorkerUtils,
}

impl GraphileQueue {
    /// The queue in the database of this address, which is read as that of a store. Its tables are made, or brought to the release of
    /// `graphile_worker`.
    ///
    /// # Errors
    /// The address cannot be read, the database cannot be reached, or its role may not make or use the tables: the error says what to
    /// do. None shows the password.
    ///
    /// # Cancel safety
    /// Some tables may have been made.
    pub async fn open(address: &str) -> Result<Self, PlacementError> {
        let access = PostgresAccess::read(address).map_err(|error| {
            PlacementError::new("the address of the job queue cannot be read").because(error)
        })?;
        let database = JobDatabase::new(access)?;
        database.must_answer().await?;
        let utils = WorkerUtils::new(database.driver(&Arc::default()), SCHEMA);
        utils.migrate().await.map_err(|error| unusable("make the tables of the job queue", &error))?;
        Ok(Self { database, utils })
    }

    /// A worker that hands jobs of these pools over until `stop`, or until it receives no notices any more.
    async fn worker(
        &self,
        here: Arc<Here>,
        capacity: &NodeCapacity,
        stop: Shared<BoxFuture<'static, ()>>,
    ) -> Result<Worker, PlacementError> {
        let deaf = Arc::<Notify>::default();
        let database = self.database.driver(&deaf);
        let ends = async move {
            // Either ends it, and loses nothing: what was fetched is given back.
            select(stop, Box::pin(deaf.notified())).await;
        };
        let silence = capacity.lease.max(SILENCE);
        WorkerOptions::default()
            .database(database)
            .schema(SCHEMA)
            .concurrency(AT_ONCE)
            .poll_interval(LOOK)
            .job_flag_allowlist(capacity.pools.iter().map(|pool| written(pool)))
            .define_job::<TakeJob>()
            .add_extension(JobHands(here))
            .listen_os_shutdown_signals(false)
            .shutdown_signal(ends)
            .shutdown_grace_period(Duration::ZERO)
            .shutdown_interrupted_job_retry_delay(Duration::ZERO)
            .heartbeat_interval(BEAT)
            .sweep_interval(silence)
            .sweep_threshold(silence)
            .recovery_delay(Duration::ZERO)
            .init()
            .await
            .map_err(|error| unusable("begin to take jobs", &error))
    }
}

impl WakeQueue for GraphileQueue {
    fn send(&self, wakes: Vec<Wake>) -> BoxFuture<'_, Result<(), PlacementError>> {
        async move {
            let jobs: Result<Vec<_>, _> = wakes.iter().map(TakeJob::spec).collect();
            let jobs = jobs.map_err(|error| PlacementError::new("cannot write a job").because(error))?;
            let added = self.utils.add_raw_jobs(&jobs).await;
            added.map(drop).map_err(|error| unusable("add jobs", &error))
        }
        .boxed()
    }

    fn receive(
        &self,
        here: Arc<Here>,
        capacity: NodeCapacity,
        leave: BoxFuture<'static, ()>,
    ) -> BoxFuture<'_, Result<(), PlacementError>> {
        async move {
            let leave = leave.shared();
            loop {
                // Leaving first: who leaves takes nothing, whatever room there is.
                match select(leave.clone(), Box::pin(here.has_room())).await {
                    Either::Left(_) => return Ok(()),
                    Either::Right(_) => {}
                }
                let stop = stopped(leave.clone(), Arc::clone(&here)).boxed().shared();
                let worker = self.worker(Arc::clone(&here), &capacity, stop).await?;
                worker.run().await.map_err(|error| unusable("take jobs", &error))?;
                // Leaving first: no worker is begun then.
                match select(leave.clone(), Box::pin(sleep(REST))).await {
                    Either::Left(_) => return Ok(()),
                    Either::Right(_) => {}
                }
            }
        }
        .boxed()
    }
}

impl fmt::Debug for GraphileQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GraphileQueue").field("database", &self.database).finish_non_exhaustive()
    }
}

async fn stopped(leave: Shared<BoxFuture<'static, ()>>, here: Arc<Here>) {
    // Either ends it: jobs that are fetched then are given back for other nodes.
    select(leave, Box::pin(async move { here.is_full().await })).await;
}

/// An error of the queue, with what to do about one of its role.
fn unusable(attempt: &str, error: &(dyn std::error::Error + 'static)) -> PlacementError {
    const NOT_ALLOWED: &str = "42501";
    let code = std::iter::successors(Some(error), |error| (**error).source())
        .find_map(|error| error.downcast_ref::<DbError>())
        .and_then(DbError::code);
    match code {
        Some(NOT_ALLOWED) => PlacementError::new(format!(
            "cannot {attempt}: the role of this address may not, and has to own the schema {SCHEMA}. Let an administrator run \
             `GRANT CREATE ON DATABASE database TO role`, which may be revoked after the first start, or, where another role has made \
             the schema, `GRANT owner TO role`"
        )),
        Some(code) => PlacementError::new(format!("cannot {attempt}: the database refuses it with {code}")),
        None => PlacementError::new(format!("cannot {attempt}: {error}")),
    }
}
