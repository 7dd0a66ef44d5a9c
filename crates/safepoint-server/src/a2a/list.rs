//! Lists tasks: those of a context, or of all sessions of the agent that the caller sees.
//!
//! **Invariants**: the task that changed last is first; a page continues behind the last task of the page before, whatever has changed
//! since.

use std::collections::BTreeSet;

use jiff::Timestamp;
use safepoint::raw::store::ItemState as RowState;
use serde_json::{Value, json};

use super::{
    message::{HistoryLength, count, field, text, wrong},
    task::{TaskState, TaskView, context_key, session_named},
};
use crate::{
    caller::{Caller, Kept, KeptItem, items::ReadItems},
    host::setup::Setup,
    problem::Answered,
};

/// How many tasks are listed, unless it is said, and at most.
const PAGE: usize = 50;
const MOST: usize = 100;
/// How many of the caller's sessions are looked at, those that changed last.
const SESSIONS: usize = 500;

/// What of all tasks is meant.
struct TaskFilter {
    context: Option<String>,
    state: Option<TaskState>,
    since: Option<Timestamp>,
    size: usize,
    /// The place of the last task of the page before.
    after: Option<TaskPlace>,
    history: HistoryLength,
    has_artifacts: bool,
}

/// The place of a task among all: when it changed, and its name.
type TaskPlace = (Timestamp, String);

/// The page that is meant.
///
/// # Errors
/// What is wrong with it, and the store's.
///
/// # Cancel safety
/// Nothing is lost.
pub(super) async fn list(by: &Caller, agent: &str, params: &Value) -> Answered<Value> {
    let filter = TaskFilter::read(params)?;
    let mut found: Vec<(TaskPlace, TaskView)> = Vec::new();
    for kept in sessions(by, agent, filter.context.as_deref()).await? {
        let all = ReadItems::of(&by.host, kept.id()).await?;
        for number in tasks(&all) {
            let task = KeptItem { kept: kept.clone(), number };
            let view = TaskView::among(by, &task, &all).await?;
            let place = (view.since().unwrap_or(kept.row.created), task.name().to_string());
            if filter.state.is_none_or(|state| state == view.state)
                && filter.since.is_none_or(|since| since <= place.0)
            {
                found.push((place, view));
            }
        }
    }
    found.sort_by(|one, other| other.0.cmp(&one.0));
    let total = found.len();
    let behind =
        found.into_iter().filter(|(place, _)| filter.after.as_ref().is_none_or(|after| place < after));
    let mut page: Vec<_> = behind.take(filter.size + 1).collect();
    let is_more = page.len() > filter.size;
    page.truncate(filter.size);
    let next = page.last().filter(|_| is_more).map(|(place, _)| token(place)).unwrap_or_default();
    let tasks: Vec<Value> = page.iter().map(|(_, view)| filter.shown(view)).collect();
    Ok(json!({"tasks": tasks, "nextPageToken": next, "pageSize": filter.size, "totalSize": total}))
}

/// The sessions in question, those that changed last first.
async fn sessions(by: &Caller, agent: &str, context: Option<&str>) -> Answered<Vec<Kept>> {
    if let Some(context) = context {
        let keyed = by.session_of(&context_key(agent, context));
        for id in [context, keyed.as_str()] {
            if let Some(kept) = session_named(by, agent, id).await? {
                return Ok(vec![kept]);
            }
        }
    }
    let (mut found, mut older) = (Vec::new(), None);
    while found.len() < SESSIONS {
        let rows = by.store().list(SESSIONS, older).await?;
        let Some(last) = rows.last() else { break };
        older = Some(last.older());
        let kept = rows.into_iter().map(|row| Kept { setup: Setup::of(&row), row });
        found.extend(kept.filter(|kept| {
            kept.setup.agent == agent
                && by.who.sees(&kept.setup.principal, &kept.setup.agent)
                // One of another principal's, for a caller that sees them.
                && context.is_none_or(|context| super::task::context(kept) == context)
        }));
    }
    found.truncate(SESSIONS);
    Ok(found)
}

/// The items of a session that are tasks: those of its turns, and those that wait for one.
fn tasks(all: &ReadItems) -> BTreeSet<u64> {
    let had = all.turns.values().flat_map(|turn| turn.items.iter().copied());
    let waits = all.inbox.iter().filter(|row| row.state == RowState::Waiting).map(|row| row.number);
    had.chain(waits).collect()
}

impl TaskFilter {
    fn read(params: &Value) -> Answered<Self> {
        let state = match text(params, "status").as_deref() {
            None | Some("TASK_STATE_UNSPECIFIED") => None,
            Some(named) => {
                let found = TaskState::ALL.into_iter().find(|state| state.as_str() == named);
                Some(found.ok_or_else(|| wrong("status"))?)
            }
        };
        let size = match field(params, "pageSize") {
            Value::Null => PAGE,
            size => count(size).filter(|size| (1..=MOST).contains(size)).ok_or_else(|| wrong("pageSize"))?,
        };
        let since = text(params, "statusTimestampAfter").map(|text| text.parse());
        let since = since.transpose().map_err(|_no_time| wrong("statusTimestampAfter"))?;
        let after = text(params, "pageToken").map(|text| place(&text).ok_or_else(|| wrong("pageToken")));
        let artifacts = field(params, "includeArtifacts");
        Ok(Self {
            context: text(params, "contextId"),
            state,
            since,
            size,
            after: after.transpose()?,
            history: HistoryLength::read(params)?,
            has_artifacts: artifacts.as_bool().unwrap_or_else(|| artifacts.as_str() == Some("true")),
        })
    }

    fn shown(&self, view: &TaskView) -> Value {
        let mut task = view.value(self.history);
        if let Some(task) = task.as_object_mut() {
            if self.has_artifacts {
                task.entry("artifacts").or_insert_with(|| json!([]));
            } else {
                task.remove("artifacts");
            }
        }
        task
    }
}

fn token(place: &TaskPlace) -> String {
    format!("{}~{}", place.0.as_microsecond(), place.1)
}

fn place(token: &str) -> Option<TaskPlace> {
    let (at, name) = token.split_once('~')?;
    Some((Timestamp::from_microsecond(at.parse().ok()?).ok()?, name.to_owned()))
}
