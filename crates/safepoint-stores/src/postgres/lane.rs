//! A lane of writes: what changes one session is asked in order, and appends of many share a statement.
//!
//! **Invariants:** a session has one lane, which asks one request at a time. What waits while a statement runs shares the next one, if it
//! is an append that may.

use std::{
    collections::HashSet,
    future::Future,
    hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};

use futures_util::future::BoxFuture;
use safepoint::{
    ids::SessionId,
    raw::store::{Cause, StoreFuture},
    store::Error,
};
use tokio::sync::{
    mpsc::{self, UnboundedReceiver, UnboundedSender},
    oneshot,
};

use super::{
    append::AppendJob,
    core::Core,
    plan::size,
    rooms::LANES,
    shared::may_share,
    worker::{PgWorker, answer_of, tell},
};

/// Appends that wait in one lane before the next one is refused.
const MOST_WAITING: usize = 1_024;
/// Appends that share a statement.
const MOST_SHARED: usize = 256;
/// Their bytes.
const MOST_BYTES: usize = 8 << 20;

/// What a lane does.
enum LaneJob {
    Append(Box<AppendJob>),
    Other(OtherJob),
}

/// A change that is no append.
struct OtherJob {
    asked: Instant,
    /// Does it, or says this error.
    work: Box<dyn FnOnce(Option<Error>) -> BoxFuture<'static, ()> + Send>,
}

/// One lane.
#[derive(Debug)]
pub(super) struct WriteLane {
    jobs: UnboundedSender<LaneJob>,
    /// Appends that wait.
    waiting: Arc<AtomicUsize>,
}

/// All lanes of a store.
#[derive(Debug)]
pub(super) struct Lanes(Vec<WriteLane>);

impl Lanes {
    pub(super) fn start(worker: &PgWorker, core: &Arc<Core>) -> Self {
        Self((0..LANES).map(|_| WriteLane::start(worker, core)).collect())
    }

    /// The lane of this session.
    pub(super) fn of(&self, session: &SessionId) -> &WriteLane {
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(session.as_str());
        let place = (hash % self.0.len() as u64) as usize;
        &self.0[place]
    }
}

impl WriteLane {
    fn start(worker: &PgWorker, core: &Arc<Core>) -> Self {
        let (jobs, asked) = mpsc::unbounded_channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let lane = RunningLane { core: Arc::clone(core), asked, waiting: Arc::clone(&waiting), next: None };
        worker.begin(lane.run());
        Self { jobs, waiting }
    }

    /// Asks this after what was asked before.
    pub(super) fn ask<T: Send + 'static>(
        &self,
        question: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> StoreFuture<'static, T> {
        let (reply, answer) = oneshot::channel();
        let work = Box::new(move |error: Option<Error>| -> BoxFuture<'static, ()> {
            Box::pin(async move {
                match error {
                    Some(error) => tell(reply, Err(error)),
                    None => tell(reply, question.await),
                }
            })
        });
        self.send(LaneJob::Other(OtherJob { asked: Instant::now(), work }));
        answer_of(answer)
    }

    /// Asks an append.
    pub(super) fn append(
        &self,
        job: AppendJob,
        answer: oneshot::Receiver<Result<safepoint::raw::store::Appended, Error>>,
    ) -> StoreFuture<'static, safepoint::raw::store::Appended> {
        // Relaxed: the count guards nothing; one too many or too few is no harm.
        let waiting = self.waiting.fetch_add(1, Ordering::Relaxed);
        if waiting >= MOST_WAITING {
            // Relaxed: as above.
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            let why = format!("{waiting} appends wait already; the database does not keep up");
            return Box::pin(std::future::ready(Err(Error::Busy(Cause::new(why)))));
        }
        self.send(LaneJob::Append(Box::new(job)));
        answer_of(answer)
    }

    fn send(&self, job: LaneJob) {
        if self.jobs.send(job).is_err() {
            // The thread is gone: the answer says so.
        }
    }
}

struct RunningLane {
    core: Arc<Core>,
    asked: UnboundedReceiver<LaneJob>,
    waiting: Arc<AtomicUsize>,
    /// What was looked at, and is not shared.
    next: Option<LaneJob>,
}

impl RunningLane {
    async fn run(mut self) {
        while let Some(job) = self.job().await {
            match job {
                LaneJob::Other(job) => (job.work)(self.too_late(job.asked)).await,
                LaneJob::Append(first) => {
                    let shared = self.share(*first);
                    // Relaxed: see where it is counted up.
                    self.waiting.fetch_sub(shared.len(), Ordering::Relaxed);
                    self.core.append_all(shared).await;
                }
            }
        }
    }

    /// While the database is away, what has waited for its turn so long already is not asked any more.
    fn too_late(&self, asked: Instant) -> Option<Error> {
        let is_late = self.core.rooms.identity.is_away() && asked.elapsed() > self.core.options.patience;
        let why = "the database cannot be reached: those who asked before have waited in vain";
        is_late.then(|| Error::Failed(Cause::new(why)))
    }

    async fn job(&mut self) -> Option<LaneJob> {
        match self.next.take() {
            Some(job) => Some(job),
            None => self.asked.recv().await,
        }
    }

    /// The append, and those that wait behind it and may share its statement.
    fn share(&mut self, first: AppendJob) -> Vec<AppendJob> {
        if !may_share(&first.writes) {
            return vec![first];
        }
        let mut bytes = size(&first.writes);
        let mut sessions = HashSet::from([first.lease.session().clone()]);
        let mut shared = vec![first];
        while shared.len() < MOST_SHARED {
            let Ok(job) = self.asked.try_recv() else { break };
            match job {
                LaneJob::Append(job)
                    if may_share(&job.writes)
                        && bytes + size(&job.writes) <= MOST_BYTES
                        && sessions.insert(job.lease.session().clone()) =>
                {
                    bytes += size(&job.writes);
                    shared.push(*job);
                }
                other => {
                    self.next = Some(other);
                    break;
                }
            }
        }
        shared
    }
}
