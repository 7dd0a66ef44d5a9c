//! What others do to the sessions of a node, as it learns it: by a notice, and by a look every while, since a notice may be lost.

use std::{
    collections::{HashMap, VecDeque},
    future::pending,
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::{
    StreamExt as _,
    future::{Either, select},
    stream,
};
use safepoint::{
    ids::{NodeId, SessionId},
    raw::store::{Change, ChangeStream, Changes},
    store::Error,
};
use tokio::{
    sync::{oneshot, watch},
    time::{sleep, timeout},
};
use tokio_postgres::AsyncMessage;

use super::{
    column::{in_micros, stored, text},
    core::Core,
    nodes::{state, unreadable},
    sessions,
    worker::{PgWorker, WeakWorker},
};

/// How often it is looked whether another process wrote (S1.5, S7.44).
const LOOK: Duration = Duration::from_millis(200);

/// What was touched so long before the last look is looked at again: it may have been committed after it.
const AGAIN: Duration = Duration::from_secs(10);

/// A node that listens.
struct PgListening {
    core: Arc<Core>,
    worker: WeakWorker,
    node: NodeId,
    nudges: watch::Receiver<u64>,
    /// When the last look began that went well.
    looked: Instant,
    known: HashMap<SessionId, Changes>,
    found: VecDeque<Change>,
    is_over: bool,
    /// Ends the listening for notices when it is dropped.
    _listens: oneshot::Sender<()>,
}

pub(super) fn changes(core: &Arc<Core>, worker: &PgWorker, node: NodeId) -> ChangeStream {
    let (listens, is_over) = oneshot::channel();
    let nudges = core.nudges.subscribe();
    worker.begin(Arc::clone(core).listen(node.clone(), is_over));
    let listening = PgListening {
        core: Arc::clone(core),
        worker: worker.downgrade(),
        node,
        nudges,
        looked: Instant::now(),
        known: HashMap::new(),
        found: VecDeque::new(),
        is_over: false,
        _listens: listens,
    };
    Box::pin(stream::unfold(listening, |mut listening| async move {
        let next = listening.next().await?;
        Some((next, listening))
    }))
}

impl PgListening {
    async fn next(&mut self) -> Option<Result<Change, Error>> {
        if self.is_over {
            return None;
        }
        loop {
            if let Some(change) = self.found.pop_front() {
                return Some(Ok(change));
            }
            if let Err(error) = self.look().await {
                self.is_over = matches!(error, Error::Buried(_) | Error::Gone);
                return Some(Err(error));
            }
            if self.found.is_empty() {
                self.wait().await;
            }
        }
    }

    async fn look(&mut self) -> Result<(), Error> {
        let worker = self.worker.upgrade().ok_or(Error::Gone)?;
        let (core, node, now) = (Arc::clone(&self.core), self.node.clone(), Instant::now());
        let since = now.saturating_duration_since(self.looked) + AGAIN;
        // This look finds what caused a nudge until now.
        self.nudges.mark_unchanged();
        let touched = worker.ask(async move { core.touched(&node, since).await }).await?;
        self.looked = now;
        // What was not touched for so long is known no more: if it is again, it has changed.
        let mut known = HashMap::with_capacity(touched.len());
        for change in touched {
            if self.known.get(&change.session) != Some(&change.changes) {
                self.found.push_back(change.clone());
            }
            known.insert(change.session, change.changes);
        }
        self.known = known;
        Ok(())
    }

    async fn wait(&mut self) {
        let nudged = Box::pin(self.nudges.changed());
        let soon = Box::pin(sleep(LOOK));
        // Either leads to the same look.
        if let Either::Left((Err(_closed), soon)) = select(nudged, soon).await {
            soon.await;
        }
    }
}

impl Core {
    /// The node's sessions that others have touched in this time; an error once it is not present any more.
    async fn touched(&self, node: &NodeId, since: Duration) -> Result<Vec<Change>, Error> {
        const SELECT: &str = "SELECT (SELECT state FROM nodes WHERE id = $1), s.id, s.items, s.stops, s.decisions, s.epoch \
             FROM (SELECT 1) one LEFT JOIN sessions s \
             ON s.holder = $1 AND s.touched > clock_timestamp() - $2::bigint * interval '1 microsecond'";
        let (id, since) = (stored(node.as_str()), in_micros(since));
        let rows = self.look(SELECT, &[&id, &since]).await?;
        let mut touched = Vec::new();
        for row in &rows {
            let found: Option<i16> = row.try_get(0).map_err(unreadable)?;
            if !found.is_some_and(|found| state(found).is_present()) {
                return Err(Error::Buried(node.clone()));
            }
            let Some(session) = row.try_get::<_, Option<String>>(1).map_err(unreadable)? else { continue };
            let changes = sessions::changes(row, 2).map_err(unreadable)?;
            touched.push(Change { session: text(session).into(), changes });
        }
        Ok(touched)
    }

    /// Listens for notices until the stream is dropped, over a connection for that alone.
    async fn listen(self: Arc<Self>, node: NodeId, is_over: oneshot::Receiver<()>) {
        const SHORTEST: Duration = Duration::from_millis(50);
        const LONGEST: Duration = Duration::from_secs(1);
        let listen = async {
            let mut pause = SHORTEST;
            loop {
                let began = Instant::now();
                self.listen_once(&node).await;
                // One that has held for a while is tried again at once.
                pause = if began.elapsed() > LONGEST { SHORTEST } else { (pause * 2).min(LONGEST) };
                sleep(pause).await;
            }
        };
        // The other one never ends by itself; nothing needs what it would still receive.
        select(is_over, Box::pin(listen)).await;
    }

    /// Listens until the connection is lost. What was missed before it is looked for.
    async fn listen_once(&self, node: &NodeId) {
        const CONNECT: Duration = Duration::from_secs(4);
        const CHANNEL: &str = "SELECT quote_ident('sp_' || md5(current_schema() || ' ' || $1))";
        let settings = self.rooms.settings();
        let Ok(Ok((client, mut connection))) = timeout(CONNECT, settings.connect()).await else { return };
        let begin = async {
            client.batch_execute(&format!("SET search_path TO {}", settings.search_path())).await?;
            let row = client.query_one(CHANNEL, &[&stored(node.as_str())]).await?;
            let channel: String = row.try_get(0)?;
            client.batch_execute(&format!("LISTEN {channel}")).await?;
            self.nudge();
            pending::<Result<(), tokio_postgres::Error>>().await
        };
        let mut messages = stream::poll_fn(move |cx| connection.poll_message(cx));
        let hear = async {
            while let Some(Ok(message)) = messages.next().await {
                if matches!(message, AsyncMessage::Notification(_)) {
                    self.nudge();
                }
            }
        };
        // The connection works while its messages are read: it ends with the one that ends first.
        select(Box::pin(begin), Box::pin(hear)).await;
    }

    fn nudge(&self) {
        self.nudges.send_modify(|nudges| *nudges += 1);
    }
}
