//! One session of the list: what its row says, what its process says, and how it stands by both.

use std::{collections::HashMap, sync::Arc};

use jiff::Timestamp;
use safepoint::{
    ids::SessionId,
    raw::store::{ApprovalRow, ApprovalState, DecisionUse, Liveness},
    store::{SessionRow, Store},
};
use serde_json::{Value, json};

use super::{offline::is_free, state::State};
use crate::{
    control::client::{Running, running},
    exit::Usage,
    render::{reply_json::ReplyLines, text::one_line},
    settings::{remembered::Setup, store::row_of},
};

/// One session of the list.
pub(crate) struct Listed {
    pub(crate) id: String,
    /// In the store; none if it lives in memory alone.
    pub(crate) row: Option<SessionRow>,
    /// What its own process says, if it runs and answers.
    pub(crate) running: Option<Running>,
    /// Whether a decision is open, or made and not used; looked at of a suspended session only.
    waits: bool,
}

/// How the store names a session that waits for a decision.
const SUSPENDED: &str = "suspended";

impl Listed {
    /// One that lives in its own process alone.
    pub(crate) fn unkept(running: Running) -> Self {
        Self { id: running.session.clone(), row: None, running: Some(running), waits: true }
    }

    /// One that the store keeps; what lives of it is taken out of `live`.
    pub(crate) async fn kept(
        store: Option<&Arc<dyn Store>>,
        row: SessionRow,
        live: &mut HashMap<String, Running>,
    ) -> anyhow::Result<Self> {
        let (id, waits) = (row.id.as_str().to_owned(), waits(store, &row).await?);
        Ok(Self { running: live.remove(&id), row: Some(row), id, waits })
    }

    /// Whether it is in the store.
    pub(crate) fn is_kept(&self) -> bool {
        self.row.is_some()
    }

    /// Whether a process that is known to be alive owns the session.
    fn is_held(&self) -> bool {
        self.running.is_some() || self.row.as_ref().is_some_and(|row| !is_free(row))
    }

    pub(crate) fn state(&self) -> State {
        // A chat names its turn, a run its run.
        let is_running = self.running.as_ref().is_some_and(|running| {
            let detail = &running.detail;
            !detail["turn"].is_null() || detail["kind"] == "run" && !detail["run"].is_null()
        });
        let label = self.row.as_ref().map_or("", |row| row.label.as_str());
        if self.running.as_ref().is_some_and(|running| !running.is_answering) {
            return State::NotAnswering;
        }
        match (label, self.is_held()) {
            ("running", true) => State::Running,
            ("running", false) => State::Crashed,
            ("cut", _) if !is_running => State::Crashed,
            (SUSPENDED, false) if !self.waits => State::Stopped,
            (SUSPENDED, _) => State::Suspended,
            (_, true) if is_running => State::Running,
            ("stopped", _) => State::Stopped,
            ("failed", _) => State::Failed,
            (_, true) => State::Open,
            (_, false) => State::Idle,
        }
    }

    /// Who has it, as far as that can be known.
    pub(crate) fn owner(&self) -> Option<String> {
        let held = self.row.as_ref().and_then(|row| row.holder.as_ref())?;
        // A process that holds one session alone is a node without a name for people.
        let named = if held.name == held.node.as_str() { String::new() } else { format!("{}, ", held.name) };
        match held.owner.life() {
            Liveness::Alive => Some(format!("{named}{}", held.owner)),
            Liveness::Dead => None,
            Liveness::Unknown => Some(format!("{named}{}, perhaps", held.owner)),
        }
    }

    /// In one line.
    pub(crate) fn line(&self) -> String {
        const ID: usize = 36;
        self.line_of(&self.id, ID)
    }

    /// In one line, with this name for it, padded to this width.
    pub(crate) fn line_of(&self, id: &str, columns: usize) -> String {
        let when = self.row.as_ref().map_or_else(|| "in memory".to_owned(), |row| ago(row.updated));
        let more = match (&self.running, self.owner(), &self.row) {
            (Some(running), ..) => one_line(&running.said),
            (None, Some(owner), _) => owner,
            (None, None, Some(row)) => {
                let title = one_line(&row.title);
                if title.is_empty() { "nothing was said".to_owned() } else { title }
            }
            (None, None, None) => String::new(),
        };
        row((id, columns), self.state(), &when, &more)
    }

    pub(crate) fn json(&self, lines: &mut ReplyLines) -> Value {
        let row = self.row.as_ref();
        let holder = row.and_then(|row| row.holder.as_ref());
        let fields = json!({
            "state": self.state(), "kept": self.is_kept(),
            "created_at": row.map(|row| row.created), "updated_at": row.map(|row| row.updated),
            "title": row.map(|row| &row.title), "records": row.map(|row| row.head),
            "setup": row.map(Setup::read),
            "owner": holder.map(|held| json!({
                "pid": held.owner.pid, "host": held.owner.host, "since": held.since,
                "node": held.node, "node_name": held.name,
                "life": match held.owner.life() {
                    Liveness::Alive => "alive", Liveness::Dead => "dead", Liveness::Unknown => "unknown",
                },
            })),
            "message": self.running.as_ref().map(|running| &running.said),
            "detail": self.running.as_ref().map(|running| &running.detail),
        });
        lines.line("session", Some(&self.id), fields)
    }
}

/// The line of a session: its name, padded to this width, how it stands, when it changed, and what else is to be said.
pub(crate) fn row((id, columns): (&str, usize), state: State, when: &str, more: &str) -> String {
    const STATE: usize = 13;
    format!("{:<columns$}  {:<STATE$}  {when:<10}  {more}", one_line(id), state.shown())
}

/// Whether a suspended session waits for a decision: a stop may have withdrawn its approvals.
async fn waits(store: Option<&Arc<dyn Store>>, row: &SessionRow) -> anyhow::Result<bool> {
    let Some(store) = store.filter(|_| row.label == SUSPENDED) else { return Ok(true) };
    let rows = store.approvals(&row.id).await?;
    let is_left = |row: &ApprovalRow| {
        matches!(row.state, ApprovalState::Open | ApprovalState::Decided { used: DecisionUse::Waiting, .. })
    };
    Ok(rows.iter().any(is_left))
}

/// How long ago, in one unit.
pub(crate) fn ago(at: Timestamp) -> String {
    const MINUTE: i64 = 60;
    const HOUR: i64 = 60 * MINUTE;
    const DAY: i64 = 24 * HOUR;
    match Timestamp::now().duration_since(at).as_secs() {
        days @ DAY.. => format!("{} d ago", days / DAY),
        hours @ HOUR.. => format!("{} h ago", hours / HOUR),
        minutes @ MINUTE.. => format!("{} min ago", minutes / MINUTE),
        seconds => format!("{} s ago", seconds.max(0)),
    }
}

/// The newest stored sessions, and all that run: newest first.
///
/// # Errors
/// If the store or the directory of the sockets cannot be used.
///
/// # Cancel safety
/// Nothing is lost.
pub(crate) async fn recent(store: Option<&Arc<dyn Store>>, most: usize) -> anyhow::Result<Vec<Listed>> {
    let mut live: HashMap<String, Running> =
        running().await?.into_iter().map(|running| (running.session.clone(), running)).collect();
    let mut rows = Vec::new();
    if let Some(store) = store {
        rows = store.list(most, None).await?;
        // One that runs is listed, however old it is.
        let is_new = |id: &&String| rows.iter().all(|row| row.id.as_str() != **id);
        let unlisted: Vec<_> = live.keys().filter(is_new).map(|id| SessionId::from(id.as_str())).collect();
        for id in unlisted {
            rows.extend(row_of(&**store, &id).await?);
        }
    }
    let mut kept = Vec::with_capacity(rows.len());
    for row in rows {
        kept.push(Listed::kept(store, row, &mut live).await?);
    }
    let mut listed: Vec<Listed> = live.into_values().map(Listed::unkept).collect();
    listed.sort_by(|one, other| other.id.cmp(&one.id));
    listed.extend(kept);
    Ok(listed)
}

/// The session that is meant: its id, or an end of it that no other of the newest has.
pub(crate) async fn meant(store: Option<&Arc<dyn Store>>, named: &str) -> anyhow::Result<Option<Listed>> {
    /// Less of an id says too little.
    const LEAST: usize = 4;
    const LOOKED_AT: usize = 1024;
    let mut listed = recent(store, LOOKED_AT).await?;
    if let Some(at) = listed.iter().position(|one| one.id == named) {
        return Ok(Some(listed.swap_remove(at)));
    }
    if let Some(store) = store
        && let Some(row) = row_of(&**store, &SessionId::from(named)).await?
    {
        return Listed::kept(Some(store), row, &mut HashMap::new()).await.map(Some);
    }
    listed.retain(|one| named.len() >= LEAST && one.id.ends_with(named));
    match listed.len() {
        0 | 1 => Ok(listed.pop()),
        _ => Err(Usage(format!("more than one session ends in {named}: write more of it")).into()),
    }
}
