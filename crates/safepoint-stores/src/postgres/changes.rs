//! What others do to the sessions of a node, as it learns it: by a notice, and by a look every while, since a notice may be lost.

use std::{
    collections::VecDeque,
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
    ids::NodeId,
    raw::store::{Change, ChangeStream},
    store::Error,
};
use tokio::{
    sync::{oneshot, watch},
    time::{sleep, timeout},
};
use tokio_postgres::AsyncMessage;

use super::{
    column::{stored, text},
    core::{Core, no_row},
    nodes::{state, unreadable},
    sessions,
    worker::{PgWorker, WeakWorker},
};

/// How often it is looked whether another process wrote (S1.5, S7.44).
const LOOK: Duration = Duration::from_millis(200);

/// What a look has seen.
///
/// It is compared by transactions and not by times: one that takes long is committed after a look that began later than it.
struct LastLook {
    /// The transactions that were committed.
    snapshot: String,
    /// How many connections there had been. A server that has crashed, or another one after a failover, may give the number of a
    /// transaction again whose commit it has lost; none of its connections is one from before.
    connections: u64,
}

/// A node that listens.
struct PgListening {
    core: Arc<Core>,
    worker: WeakWorker,
    node: NodeId,
    nudges: watch::Receiver<u64>,
    /// The last look that went well.
    last: Option<LastLook>,
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
        last: None,
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
        // This look finds what caused a nudge until now.
        self.nudges.mark_unchanged();
        let connections = self.core.rooms.identity.connections();
        let last = self.last.take().filter(|last| last.connections == connections);
        let (core, node) = (Arc::clone(&self.core), self.node.clone());
        let seen = last.map(|last| last.snapshot);
        let (snapshot, touched) = worker.ask(async move { core.touched(&node, seen).await }).await?;
        // If a connection was made meanwhile, it may have asked another server than the last one: then the next look asks for all.
        self.last = Some(LastLook { snapshot, connections });
        self.found.extend(touched);
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
    /// What is seen now, and the node's sessions that others have touched by what is not in `seen`, or at all; an error once it is not
    /// present any more.
    async fn touched(&self, node: &NodeId, seen: Option<String>) -> Result<(String, Vec<Change>), Error> {
        const SELECT: &str = "WITH last AS MATERIALIZED (SELECT $2::text::pg_snapshot AS seen) \
             SELECT (SELECT state FROM nodes WHERE id = $1), pg_current_snapshot()::text, s.id, s.items, s.stops, s.decisions, s.epoch \
             FROM last LEFT JOIN sessions s ON s.holder = $1 AND s.touched IS NOT NULL \
             AND (last.seen IS NULL OR NOT pg_visible_in_snapshot(s.touched, last.seen))";
        let rows = self.look(SELECT, &[&stored(node.as_str()), &seen]).await?;
        let first = rows.first().ok_or_else(no_row)?;
        let found: Option<i16> = first.try_get(0).map_err(unreadable)?;
        if !found.is_some_and(|found| state(found).is_present()) {
            return Err(Error::Buried(node.clone()));
        }
        let snapshot = first.try_get(1).map_err(unreadable)?;
        let mut touched = Vec::new();
        for row in &rows {
            let Some(session) = row.try_get::<_, Option<String>>(2).map_err(unreadable)? else { continue };
            let changes = sessions::changes(row, 3).map_err(unreadable)?;
            touched.push(Change { session: text(session).into(), changes });
        }
        Ok((snapshot, touched))
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
