//! The states and the open questions of all sessions, as they change: one look at the store for all readers.
//!
//! **Invariants**: without a reader nothing is looked at; a reader that is too far behind gets the list again, and no more is kept
//! for it.

use std::{
    collections::{HashMap, HashSet},
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
    store::{Error, SessionRow},
};
use serde_json::{Value, json};
use tokio::{
    sync::{broadcast, watch},
    time::{Instant, sleep, timeout},
};

use crate::{
    answer::{ApprovalAnswer, SessionAnswer, SessionState},
    caller::{Caller, decisions::shown, sessions::view},
    host::{
        HostState,
        board::{BoardChange, BoardWatch, ChangeOf},
        setup::Setup,
    },
    lines::frame,
    load::ReaderPlace,
    problem::{Answered, Problem},
    sse::{KEEP_ALIVE, KEPT_ALIVE},
};

/// How often the store is looked at.
const LOOK: Duration = Duration::from_millis(250);
/// How often all sessions that readers were told of are looked for.
const LOOK_FOR_ALL: Duration = Duration::from_secs(5);
/// How many sessions are listed at the beginning, and read at a time.
const PAGE: usize = 200;

/// A reader of the board.
pub(crate) struct BoardReader {
    by: Caller,
    changes: broadcast::Receiver<BoardChange>,
    draining: watch::Receiver<Option<Duration>>,
    stage: BoardStage,
    _place: ReaderPlace,
}

/// What a reader gets. Exhaustive: the list, a session or a question as it is now, that a session was removed, nothing for a while, or the
/// end.
#[derive(Debug)]
pub(crate) enum BoardStep {
    List { sessions: Vec<SessionAnswer>, approvals: Vec<ApprovalAnswer> },
    Session(Value),
    Approval(Value),
    Removal(Value),
    KeepAlive,
    Bye(&'static str),
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
            let drains = pin!(draining.wait_for(Option::is_some));
            // Whichever is first; both are states.
            matches!(select(looked, drains).await, Either::Right(_))
        };
        if is_draining {
            return Err(Problem::draining());
        }
        Ok(Self { by: by.clone(), changes, draining, stage: BoardStage::List, _place: place })
    }

    /// What comes next, as a frame of a stream; `None` at the end.
    ///
    /// # Cancel safety
    /// As for [`step`](Self::step).
    pub(crate) async fn next(&mut self) -> Option<Bytes> {
        let step = self.step().await?;
        Some(match step {
            BoardStep::List { sessions, approvals } => {
                let data = json!({"type": "sessions", "data": sessions, "approvals": approvals});
                frame(None, "sessions", &data)
            }
            BoardStep::Session(data) => frame(None, "session", &data),
            BoardStep::Approval(data) => frame(None, "approval", &data),
            BoardStep::Removal(data) => frame(None, "session_removed", &data),
            BoardStep::KeepAlive => Bytes::from_static(KEPT_ALIVE),
            BoardStep::Bye(reason) => frame(None, "bye", &json!({"type": "bye", "reason": reason})),
        })
    }

    /// What comes next; `None` at the end.
    ///
    /// # Cancel safety
    /// Nothing is lost: a list that was not taken is made again, and a change is in the channel until it is taken.
    pub(crate) async fn step(&mut self) -> Option<BoardStep> {
        loop {
            match self.stage {
                BoardStage::Over => return None,
                BoardStage::List => {
                    let Ok(list) = self.list().await else { return Some(self.bye("store")) };
                    self.stage = BoardStage::Changes;
                    return Some(list);
                }
                BoardStage::Changes => {}
            }
            let received = {
                let drains = pin!(self.draining.wait_for(Option::is_some));
                let received = pin!(timeout(KEEP_ALIVE, self.changes.recv()));
                // A change first: it is in the channel until it is taken.
                match select(received, drains).await {
                    Either::Left((received, _)) => Some(received),
                    Either::Right(_) => None,
                }
            };
            match received {
                Some(Ok(Ok(change))) => {
                    if self.by.who.sees(&change.setup.principal, &change.setup.agent) {
                        return Some(step(change));
                    }
                }
                Some(Ok(Err(broadcast::error::RecvError::Lagged(_)))) => self.stage = BoardStage::List,
                Some(Err(_elapsed)) => return Some(BoardStep::KeepAlive),
                Some(Ok(Err(broadcast::error::RecvError::Closed))) | None => return Some(self.bye("drain")),
            }
        }
    }

    pub(crate) fn host(&self) -> &HostState {
        &self.by.host
    }

    fn bye(&mut self, reason: &'static str) -> BoardStep {
        self.stage = BoardStage::Over;
        BoardStep::Bye(reason)
    }

    /// The sessions that changed last, and the open questions among them.
    async fn list(&self) -> Answered<BoardStep> {
        let (mut sessions, mut approvals) = (Vec::new(), Vec::new());
        for row in self.by.store().list(PAGE, None).await? {
            let setup = Setup::of(&row);
            if self.by.who.sees(&setup.principal, &setup.agent)
                && let Some(answer) = there(view(&self.by.host, &row, &setup).await)?
            {
                self.by.host.board.tell(&row, &setup);
                if answer.approvals > 0 {
                    let asked = there(questions(&self.by.host, &row.id).await)?;
                    approvals.extend(asked.into_iter().flat_map(HashMap::into_values));
                }
                sessions.push(answer);
            }
        }
        Ok(BoardStep::List { sessions, approvals })
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
    /// While it is not at rest, without what changes with every record.
    state: Value,
    questions: Vec<ApprovalId>,
    is_at_rest: bool,
    updated: Timestamp,
}

/// What the watch of the board knows.
struct BoardWatcher {
    known: HashMap<SessionId, ShownSession>,
    /// When the session changed that was the last one to change.
    since: Timestamp,
    is_first: bool,
    /// When it last looked for all sessions that readers were told of.
    looked_for_all: Instant,
}

/// Looks at the sessions while there is a reader.
async fn watch_sessions(host: Weak<HostState>) {
    let mut watcher = BoardWatcher {
        known: HashMap::new(),
        since: Timestamp::UNIX_EPOCH,
        is_first: true,
        looked_for_all: Instant::now(),
    };
    loop {
        let Some(host) = host.upgrade() else { return };
        if host.board.ends_unread() || host.is_draining() {
            return;
        }
        // A store that does not answer is asked again.
        if watcher.look(&host).await.is_ok() {
            watcher.is_first = false;
        }
        host.board.looked();
        drop(host);
        sleep(LOOK).await;
    }
}

impl BoardWatcher {
    async fn look(&mut self, host: &Arc<HostState>) -> Answered<()> {
        let mut changed = self.changed(host).await?;
        let newest = changed.first().map_or(self.since, |row| row.updated);
        // What is not at rest changes without a record too.
        let is_live = |(id, shown): &(&SessionId, &ShownSession)| {
            !shown.is_at_rest && !changed.iter().any(|row| row.id == **id)
        };
        let live: Vec<SessionId> = self.known.iter().filter(is_live).map(|(id, _)| id.clone()).collect();
        for id in live {
            match host.store.open(&id).await {
                Ok(row) => changed.push(row),
                Err(Error::NoSession(_)) => self.removed(host, &id),
                // It is asked again.
                Err(_) => {}
            }
        }
        for row in changed {
            there(self.show(host, &row).await)?;
        }
        self.since = newest;
        // One that is at rest is shown again when it changes.
        self.known.retain(|_, shown| !shown.is_at_rest || shown.updated >= newest);
        Ok(())
    }

    /// The sessions that have changed, the last one first. What readers were told of, and is not there any more, was removed: of those
    /// that changed last at once, and of all now and then, or where one was removed here.
    async fn changed(&mut self, host: &Arc<HostState>) -> Answered<Vec<SessionRow>> {
        let is_of_all = host.board.takes_removal() || self.looked_for_all.elapsed() >= LOOK_FOR_ALL;
        let told_since = host.board.told_since().filter(|_| is_of_all);
        let until = told_since.map_or(self.since, |told| told.min(self.since));
        let (mut changed, mut found) = (Vec::new(), HashSet::new());
        let mut older = None;
        let behind = loop {
            let rows = host.store.list(PAGE, older).await?;
            older = rows.last().map(SessionRow::older);
            let (is_last, oldest) = (rows.len() < PAGE, rows.last().map(|row| row.updated));
            found.extend(rows.iter().map(|row| row.id.clone()));
            // Two may have changed at the same time, of which one was seen.
            changed.extend(rows.into_iter().filter(|row| row.updated >= self.since));
            match oldest {
                Some(oldest) if !is_last && (oldest < until || self.is_first) => break oldest,
                Some(_) if !is_last => {}
                _ => break Timestamp::MIN,
            }
        };
        if is_of_all {
            self.looked_for_all = Instant::now();
        }
        for id in host.board.missing(&found, behind) {
            // One that changed between two pages is on neither.
            if let Err(Error::NoSession(_)) = host.store.open(&id).await {
                self.removed(host, &id);
            }
        }
        Ok(changed)
    }

    /// The session is not there any more.
    fn removed(&mut self, host: &HostState, id: &SessionId) {
        self.known.remove(id);
        let Some(setup) = host.board.forget(id) else { return };
        let data = json!({"type": "session_removed", "id": id.to_string()});
        host.board.send(BoardChange { setup, data, what: ChangeOf::Removal });
    }

    async fn show(&mut self, host: &Arc<HostState>, row: &SessionRow) -> Answered<()> {
        let setup = Arc::new(Setup::of(row));
        let answer = view(host, row, &setup).await?;
        host.board.tell(row, &setup);
        let is_at_rest = at_rest(&answer);
        let asked = if answer.approvals > 0 { questions(host, &row.id).await? } else { HashMap::new() };
        let mut data = serde_json::to_value(&answer)?;
        let mut state = data.clone();
        if let Some(fields) = state.as_object_mut() {
            // At rest a new record is news: a whole turn may lie between two looks.
            fields.retain(|name, _| is_at_rest || name != "updated" && name != "cursor");
        }
        let questions = asked.keys().cloned().collect();
        let now = ShownSession { state: state.clone(), questions, is_at_rest, updated: row.updated };
        let before = self.known.insert(row.id.clone(), now);
        if self.is_first || before.as_ref().is_some_and(|before| before.state == state) {
            return Ok(());
        }
        let send = |data, what| host.board.send(BoardChange { setup: Arc::clone(&setup), data, what });
        data["type"] = json!("session");
        send(data, ChangeOf::Session);
        let before = before.map(|before| before.questions).unwrap_or_default();
        for (id, question) in &asked {
            if !before.contains(id) {
                let mut data = serde_json::to_value(question)?;
                data["type"] = json!("approval");
                send(data, ChangeOf::Approval);
            }
        }
        Ok(())
    }
}

/// What was read of a session; `None`: it was removed meanwhile.
fn there<T>(read: Answered<T>) -> Answered<Option<T>> {
    match read {
        Err(problem) if problem.code() == "no_such_session" => Ok(None),
        read => read.map(Some),
    }
}

fn at_rest(answer: &SessionAnswer) -> bool {
    let is_live = matches!(answer.state, SessionState::Running | SessionState::Queued);
    !is_live && answer.turn.is_none() && answer.waiting.is_empty()
}

fn step(change: BoardChange) -> BoardStep {
    match change.what {
        ChangeOf::Session => BoardStep::Session(change.data),
        ChangeOf::Approval => BoardStep::Approval(change.data),
        ChangeOf::Removal => BoardStep::Removal(change.data),
    }
}
