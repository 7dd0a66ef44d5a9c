//! The states and the open questions of all sessions, as they change: one look at the store for all readers.
//!
//! **Invariants**: without a reader nothing is looked at; a reader that is too far behind gets the list again, and no more is kept
//! for it.

use std::{
    collections::HashMap,
    pin::pin,
    sync::{Arc, Weak},
    time::Duration,
};

use bytes::Bytes;
use futures_util::future::{Either, select};
use jiff::Timestamp;
use safepoint::{
    ids::{ApprovalId, SessionId},
    raw::store::ApprovalState,
    store::SessionRow,
};
use serde_json::{Value, json};
use tokio::{
    sync::{broadcast, watch},
    time::{sleep, timeout},
};

use crate::{
    answer::{ApprovalAnswer, SessionAnswer, SessionState},
    caller::{Caller, decisions::shown, sessions::view},
    host::{
        HostState,
        board::{BoardChange, BoardWatch},
        setup::Setup,
    },
    lines::frame,
    load::ReaderPlace,
    problem::{Answered, Problem},
};

/// How often the store is looked at.
const LOOK: Duration = Duration::from_millis(250);
/// How often a stream without changes shows that it is there.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// How many sessions are listed at the beginning, and read at a time.
const PAGE: usize = 200;

/// A reader of the board.
pub(crate) struct BoardReader {
    by: Caller,
    changes: broadcast::Receiver<BoardChange>,
    draining: watch::Receiver<bool>,
    stage: BoardStage,
    _place: ReaderPlace,
}

/// Exhaustive: it has yet to get the list, follows the changes, or has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BoardStage {
    List,
    Changes,
    Over,
}

impl BoardReader {
    /// # Errors
    /// `too_many_readers`, and `draining`.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(crate) async fn start(by: &Caller) -> Answered<Self> {
        let place = ReaderPlace::take(&by.load, by.who.name())?;
        let mut draining = by.host.draining();
        let (changes, mut looked, watch) = by.host.board.subscribe();
        if watch == BoardWatch::Begins {
            by.host.spawn("board", watch_sessions(Arc::downgrade(&by.host)));
        }
        // The list comes after the first look: what changes between the two is a change.
        let is_draining = {
            let looked = pin!(looked.wait_for(|looked| *looked));
            let drains = pin!(draining.wait_for(|is_draining| *is_draining));
            // Whichever is first; both are states.
            matches!(select(looked, drains).await, Either::Right(_))
        };
        if is_draining {
            return Err(Problem::draining());
        }
        Ok(Self { by: by.clone(), changes, draining, stage: BoardStage::List, _place: place })
    }

    /// What comes next; `None` at the end.
    ///
    /// # Cancel safety
    /// A change may be lost with the stream.
    pub(crate) async fn next(&mut self) -> Option<Bytes> {
        loop {
            match self.stage {
                BoardStage::Over => return None,
                BoardStage::List => match self.list().await {
                    Ok(list) => {
                        self.stage = BoardStage::Changes;
                        return Some(list);
                    }
                    Err(_store) => return Some(self.bye("store")),
                },
                BoardStage::Changes => {}
            }
            let received = {
                let drains = pin!(self.draining.wait_for(|is_draining| *is_draining));
                let received = pin!(timeout(KEEP_ALIVE, self.changes.recv()));
                // A change first: it is in the channel until it is taken.
                match select(received, drains).await {
                    Either::Left((received, _)) => Some(received),
                    Either::Right(_) => None,
                }
            };
            let Some(received) = received else { return Some(self.bye("drain")) };
            match received {
                Ok(Ok(BoardChange { setup, frame })) => {
                    if self.by.who.sees(&setup.principal, &setup.agent) {
                        return Some(frame);
                    }
                }
                Ok(Err(broadcast::error::RecvError::Lagged(_))) => self.stage = BoardStage::List,
                Ok(Err(broadcast::error::RecvError::Closed)) => return Some(self.bye("drain")),
                Err(_elapsed) => return Some(Bytes::from_static(b": keep-alive\n\n")),
            }
        }
    }

    fn bye(&mut self, reason: &str) -> Bytes {
        self.stage = BoardStage::Over;
        frame(None, "bye", &json!({"type": "bye", "reason": reason}))
    }

    /// The sessions that changed last, and the open questions among them.
    async fn list(&self) -> Answered<Bytes> {
        let (mut sessions, mut approvals) = (Vec::new(), Vec::new());
        for row in self.by.store().list(PAGE, None).await? {
            let setup = Setup::of(&row);
            if self.by.who.sees(&setup.principal, &setup.agent) {
                let answer = view(&self.by.host, &row, &setup).await?;
                if answer.approvals > 0 {
                    approvals.extend(questions(&self.by.host, &row.id).await?.into_values());
                }
                sessions.push(answer);
            }
        }
        let data = json!({"type": "sessions", "data": sessions, "approvals": approvals});
        Ok(frame(None, "sessions", &data))
    }
}

/// The open questions of a session.
async fn questions(host: &HostState, id: &SessionId) -> Answered<HashMap<ApprovalId, ApprovalAnswer>> {
    let rows = host.store.approvals(id).await?;
    let open = rows.iter().filter(|row| row.state == ApprovalState::Open);
    let shown = open.filter_map(|row| Some((row.asked.id.clone(), shown(id, row)?)));
    Ok(shown.collect())
}

/// What was last shown of a session.
struct ShownSession {
    /// Without what changes with every record.
    state: Value,
    questions: Vec<ApprovalId>,
    is_at_rest: bool,
    updated: Timestamp,
}

/// Looks at the sessions while there is a reader.
async fn watch_sessions(host: Weak<HostState>) {
    let mut known: HashMap<SessionId, ShownSession> = HashMap::new();
    let mut since = Timestamp::UNIX_EPOCH;
    let mut is_first = true;
    loop {
        let Some(host) = host.upgrade() else { return };
        if host.board.ends_unread() || host.is_draining() {
            return;
        }
        // A store that does not answer is asked again.
        drop(look(&host, &mut known, &mut since, is_first).await);
        is_first = false;
        host.board.looked();
        drop(host);
        sleep(LOOK).await;
    }
}

async fn look(
    host: &Arc<HostState>,
    known: &mut HashMap<SessionId, ShownSession>,
    since: &mut Timestamp,
    is_first: bool,
) -> Answered<()> {
    let mut changed: Vec<SessionRow> = Vec::new();
    let mut older = None;
    loop {
        let rows = host.store.list(PAGE, older).await?;
        let is_last = rows.len() < PAGE || rows.last().is_none_or(|row| row.updated < *since) || is_first;
        older = rows.last().map(SessionRow::older);
        // Two may have changed at the same time, of which one was seen.
        changed.extend(rows.into_iter().filter(|row| row.updated >= *since));
        if is_last {
            break;
        }
    }
    if let Some(newest) = changed.first() {
        *since = newest.updated;
    }
    // What is not at rest changes without a record too.
    let live: Vec<SessionId> = known
        .iter()
        .filter(|(id, shown)| !shown.is_at_rest && !changed.iter().any(|row| row.id == **id))
        .map(|(id, _)| id.clone())
        .collect();
    for id in live {
        match host.store.open(&id).await {
            Ok(row) => changed.push(row),
            Err(_removed) => drop(known.remove(&id)),
        }
    }
    for row in changed {
        show(host, known, &row, is_first).await?;
    }
    // One that is at rest is shown again when it changes.
    known.retain(|_, shown| !shown.is_at_rest || shown.updated >= *since);
    Ok(())
}

async fn show(
    host: &Arc<HostState>,
    known: &mut HashMap<SessionId, ShownSession>,
    row: &SessionRow,
    is_first: bool,
) -> Answered<()> {
    let setup = Arc::new(Setup::of(row));
    let answer = view(host, row, &setup).await?;
    let is_at_rest = at_rest(&answer);
    let asked = if answer.approvals > 0 { questions(host, &row.id).await? } else { HashMap::new() };
    let mut data = serde_json::to_value(&answer)?;
    let mut state = data.clone();
    if let Some(fields) = state.as_object_mut() {
        fields.retain(|name, _| name != "updated" && name != "cursor");
    }
    let questions = asked.keys().cloned().collect();
    let now = ShownSession { state: state.clone(), questions, is_at_rest, updated: row.updated };
    let before = known.insert(row.id.clone(), now);
    if is_first || before.as_ref().is_some_and(|before| before.state == state) {
        return Ok(());
    }
    let send = |frame| host.board.send(BoardChange { setup: Arc::clone(&setup), frame });
    data["type"] = json!("session");
    send(frame(None, "session", &data));
    let before = before.map(|before| before.questions).unwrap_or_default();
    for (id, question) in &asked {
        if !before.contains(id) {
            let mut data = serde_json::to_value(question)?;
            data["type"] = json!("approval");
            send(frame(None, "approval", &data));
        }
    }
    Ok(())
}

fn at_rest(answer: &SessionAnswer) -> bool {
    matches!(
        answer.state,
        SessionState::Idle | SessionState::Stopped | SessionState::Failed | SessionState::Crashed
    )
}
