//! Looks of sessions at what others did: those that wait while others are answered share the next statement.
//!
//! When all sessions of a node are stopped at once, each of them looks: one by one they would wait for the database longer than for the
//! stop.
//!
//! **Invariants:** a look shows at least what was committed before it was asked. What one session has stored changes the answer of no
//! other one.

use std::{future::Future, sync::Arc};

use safepoint::{ids::SessionId, raw::store::StoreFuture, store::Error};
use tokio::sync::{
    mpsc::{self, UnboundedReceiver, UnboundedSender},
    oneshot,
};
use tokio_postgres::Row;

use super::{
    column::count,
    core::Core,
    inbox::InboxOf,
    nodes::unreadable,
    sessions::NoticeOf,
    stops::StopsOf,
    worker::{PgWorker, answer_of, tell},
};

/// What many sessions may ask at once.
pub(super) trait Look: Send + Sync + Sized + 'static {
    type Answer: Send + 'static;

    /// How many share a statement.
    const MOST_SHARED: usize = 256;

    fn session(&self) -> &SessionId;

    /// Asks all of these by one statement: for each, what there is of it.
    ///
    /// # Errors
    /// Why none of them can be answered.
    fn ask(core: &Core, all: &[Self]) -> impl Future<Output = Answers<Self>> + Send;
}

/// The answer of each look, in order: none where there is no such session.
pub(super) type Answers<L> = Result<Vec<Answered<<L as Look>::Answer>>, Error>;

/// The answer of one look: none where there is no such session.
pub(super) type Answered<T> = Option<Result<T, Error>>;

/// Asks looks of one kind.
#[derive(Debug)]
struct LookLane<L: Look>(UnboundedSender<LookJob<L>>);

/// A look that waits for its answer.
struct LookJob<L: Look> {
    look: L,
    reply: oneshot::Sender<Result<L::Answer, Error>>,
}

/// The looks of a store that many sessions take at once.
#[derive(Debug)]
pub(super) struct Looks {
    notices: LookLane<NoticeOf>,
    stops: LookLane<StopsOf>,
    inboxes: LookLane<InboxOf>,
}

impl Looks {
    pub(super) fn start(worker: &PgWorker, core: &Arc<Core>) -> Self {
        Self {
            notices: LookLane::start(worker, core),
            stops: LookLane::start(worker, core),
            inboxes: LookLane::start(worker, core),
        }
    }

    pub(super) fn notice(&self, look: NoticeOf) -> StoreFuture<'static, <NoticeOf as Look>::Answer> {
        self.notices.ask(look)
    }

    pub(super) fn stops(&self, look: StopsOf) -> StoreFuture<'static, <StopsOf as Look>::Answer> {
        self.stops.ask(look)
    }

    pub(super) fn inbox(&self, look: InboxOf) -> StoreFuture<'static, <InboxOf as Look>::Answer> {
        self.inboxes.ask(look)
    }
}

impl<L: Look> LookLane<L> {
    fn start(worker: &PgWorker, core: &Arc<Core>) -> Self {
        let (looks, asked) = mpsc::unbounded_channel();
        worker.begin(answer_all(Arc::clone(core), asked));
        Self(looks)
    }

    fn ask(&self, look: L) -> StoreFuture<'static, L::Answer> {
        let (reply, answer) = oneshot::channel();
        if self.0.send(LookJob { look, reply }).is_err() {
            // The thread is gone: the answer says so.
        }
        answer_of(answer)
    }
}

/// Answers that are lists, from rows that each begin with the place of their look, counted from 1: one of nulls is of a session without
/// any.
pub(super) fn lists<T>(
    rows: &[Row],
    looks: usize,
    read: fn(&Row) -> Result<Option<T>, tokio_postgres::Error>,
) -> Result<Vec<Answered<Vec<T>>>, Error> {
    let mut answers: Vec<Answered<Vec<T>>> = (0..looks).map(|_| None).collect();
    for row in rows {
        let place = row.try_get(0).map(count).map_err(unreadable)? - 1;
        match (answers[place as usize].get_or_insert_with(|| Ok(Vec::new())), read(row).map_err(unreadable)) {
            (Ok(list), Ok(one)) => list.extend(one),
            (answer @ Ok(_), Err(error)) => *answer = Err(error),
            (Err(_), _) => {}
        }
    }
    Ok(answers)
}

/// One look, without others.
pub(super) async fn alone<L: Look>(core: &Core, look: L) -> Result<L::Answer, Error> {
    let answer = L::ask(core, std::slice::from_ref(&look)).await?.pop().flatten();
    answer.unwrap_or_else(|| Err(Error::NoSession(look.session().clone())))
}

/// Answers until the store is dropped.
async fn answer_all<L: Look>(core: Arc<Core>, mut asked: UnboundedReceiver<LookJob<L>>) {
    let mut jobs = Vec::new();
    while asked.recv_many(&mut jobs, L::MOST_SHARED).await > 0 {
        let (looks, replies): (Vec<L>, Vec<_>) = jobs.drain(..).map(|job| (job.look, job.reply)).unzip();
        match L::ask(&core, &looks).await {
            Ok(answers) => {
                for ((look, reply), answer) in looks.iter().zip(replies).zip(answers) {
                    tell(reply, answer.unwrap_or_else(|| Err(Error::NoSession(look.session().clone()))));
                }
            }
            Err(error) => replies.into_iter().for_each(|reply| tell(reply, Err(error.clone()))),
        }
    }
}
