//! Lists tasks: those of a context, or of all sessions of the agent that the caller sees.
//!
//! **Invariants**: of each part of the sessions the task that changed last is first; a page continues behind the last task of the page
//! before, whatever has changed since; one request looks at one part, which is bounded.

use std::collections::BTreeSet;

use jiff::Timestamp;
use safepoint::raw::store::{ItemState as RowState, PageCursor};
use serde_json::{Value, json};

use super::{
    message::{HistoryLength, count, field, text, wrong},
    page::{PageStart, SessionPart, TaskPlace},
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
/// How many of the caller's sessions one request looks at, and how many sessions for that.
const SESSIONS: usize = 500;
const ROWS: usize = 5_000;
/// How many of them are read at once.
const READ: usize = 500;

/// What of all tasks is meant.
struct TaskFilter {
    context: Option<String>,
    state: Option<TaskState>,
    since: Option<Timestamp>,
    size: usize,
    start: PageStart,
    history: HistoryLength,
    has_artifacts: bool,
}

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
    let PageStart { part, after } = &filter.start;
    let (sessions, end) = sessions(by, agent, filter.context.as_deref(), part).await?;
    for kept in sessions {
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
    let behind = found.into_iter().filter(|(place, _)| after.as_ref().is_none_or(|after| place < after));
    let mut page: Vec<_> = behind.take(filter.size + 1).collect();
    let is_more = page.len() > filter.size;
    page.truncate(filter.size);
    let next = match (page.last().filter(|_| is_more), end) {
        (Some((place, _)), to) => {
            let part = SessionPart { to, ..part.clone() };
            PageStart { part, after: Some(place.clone()) }.token()
        }
        (None, Some(end)) => {
            let part = SessionPart { after: Some(end), to: None };
            PageStart { part, after: None }.token()
        }
        (None, None) => String::new(),
    };
    let tasks: Vec<Value> = page.iter().map(|(_, view)| filter.shown(view)).collect();
    Ok(json!({"tasks": tasks, "nextPageToken": next, "pageSize": filter.size, "totalSize": total}))
}

/// The sessions in question of this part, those that changed last first, and the last session of the part, if others may be behind it.
async fn sessions(
    by: &Caller,
    agent: &str,
    context: Option<&str>,
    part: &SessionPart,
) -> Answered<(Vec<Kept>, Option<PageCursor>)> {
    if let Some(context) = context {
        let keyed = by.session_of(&context_key(agent, context));
        for id in [context, keyed.as_str()] {
            if let Some(kept) = session_named(by, agent, id).await? {
                return Ok((vec![kept], None));
            }
        }
    }
    let is_meant = |kept: &Kept| {
        kept.setup.agent == agent
            && by.who.sees(&kept.setup.principal, &kept.setup.agent)
            // One of another principal's, for a caller that sees them.
            && context.is_none_or(|context| super::task::context(kept) == context)
    };
    let (mut found, mut older, mut looked) = (Vec::new(), part.after.clone(), 0);
    loop {
        let rows = by.store().list(READ, older.take()).await?;
        let is_last = rows.len() < READ;
        for row in rows {
            let place = row.older();
            if part.to.as_ref().is_some_and(|to| place.updated < to.updated) {
                return Ok((found, part.to.clone()));
            }
            let kept = Kept { setup: Setup::of(&row), row };
            found.extend(Some(kept).filter(is_meant));
            looked += 1;
            if found.len() == SESSIONS || looked == ROWS || part.to.as_ref() == Some(&place) {
                return Ok((found, Some(place)));
            }
            older = Some(place);
        }
        if is_last {
            return Ok((found, None));
        }
    }
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
        let start = match text(params, "pageToken") {
            Some(token) => PageStart::parse(&token).ok_or_else(|| wrong("pageToken"))?,
            None => PageStart::default(),
        };
        let artifacts = field(params, "includeArtifacts");
        Ok(Self {
            context: text(params, "contextId"),
            state,
            since,
            size,
            start,
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
