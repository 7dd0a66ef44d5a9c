//! A task of the protocol: one item, which is read where it is kept. Whoever has the store finds it, also after a restart.
//!
//! **Invariants**: a task is cancelled once its turn has settled, or its item was withdrawn, and not before (S13.18).

use rmcp::model::{
    CreateTaskResult, DetailedTask, GetTaskResult, InputResponses, JsonObject, MetaObject, Task, TaskPayload,
    TaskStatus,
};
use safepoint::{
    Reason, StopRequest,
    session::QueueAfterStop,
    stop::{Actor, Code},
};
use serde_json::{Value, json};

use super::{
    answers::{self, TakenAnswers},
    question, reply,
    tool::object,
};
use crate::{
    access::AccessScope,
    answer::{CRASHED, ItemState},
    caller::{Caller, KeptItem, items::ReadItems},
    host::read,
    problem::{Answered, Problem},
    routes::table::Refuses,
};

/// How often a client looks, in milliseconds, unless it has a reason of its own.
const LOOK_MS: u64 = 500;

/// The answer of a call that is a task from here on.
///
/// # Errors
/// The store's.
///
/// # Cancel safety
/// Nothing is lost.
pub(super) async fn begun(by: &Caller, call: &KeptItem) -> Answered<CreateTaskResult> {
    Ok(CreateTaskResult::new(task(by, call).await?))
}

async fn task(by: &Caller, call: &KeptItem) -> Answered<Task> {
    let row = &call.kept.row;
    let since = by.store().accepted(&row.id, call.number).await?.unwrap_or(row.created);
    let (since, updated) = (since.to_string(), row.updated.max(since).to_string());
    let task = Task::new(call.name().to_string(), TaskStatus::Working, since, updated);
    Ok(task.with_poll_interval_ms(LOOK_MS))
}

/// The task as it is now.
///
/// # Errors
/// `no_such_task`, and the store's.
///
/// # Cancel safety
/// Nothing is lost.
pub(super) async fn get(by: &Caller, agent: &str, named: &str) -> Answered<GetTaskResult> {
    by.needs(AccessScope::Read, Refuses::UnderLoad)?;
    let call = KeptItem::find(by, agent, named).await?;
    let read = ReadItems::of(&by.host, call.kept.id()).await?;
    let item = read.answer(call.number);
    let mut task = task(by, &call).await?;
    let stopped_by = item.stopped_by.clone();
    if item.state != ItemState::Rest && stopped_by.is_none() {
        by.wake(&call.kept);
        return Ok(working(by, &call, task, &read));
    }
    let ended = by.ended(&call.kept, item).await?;
    let account = ended.account();
    let word = stopped_by.as_deref().or(ended.stop_code()).unwrap_or(ended.outcome());
    task.status_message = Some(word.to_owned());
    let payload = match ended.outcome() {
        // It stays so while its turn runs again.
        _ if stopped_by.is_some() => TaskPayload::Cancelled,
        "suspended" => {
            let questions = by.questions(call.kept.id()).await?;
            TaskPayload::InputRequired { input_requests: question::forms(&questions)? }
        }
        // A turn that failed or was cut is a result, as the protocol has it: one that says so.
        "completed" | "failed" | CRASHED => {
            TaskPayload::Completed { result: object(json!(reply::of(&ended, &[]))) }
        }
        "interrupted" | "preempted" | "rolled_back" | "withdrawn" | "not_known" => TaskPayload::Cancelled,
        outcome => {
            let code = ended.rest.returned.unwrap_or(outcome);
            let problem = Problem::conflict(code, format!("the item was not taken: {code}"));
            TaskPayload::Failed { error: object(json!(reply::error(&problem))) }
        }
    };
    Ok(with_account(GetTaskResult::new(DetailedTask::new(task, payload)), account))
}

/// One that works, and how far the stop of its turn is, if that is under way.
fn working(by: &Caller, call: &KeptItem, mut task: Task, read: &ReadItems) -> GetTaskResult {
    let turn = read::turn_of(&read.turns, call.number);
    let stop = turn.and_then(|found| Some((found.0, by.stop_under_way(call.kept.id(), found)?)));
    task.status_message = stop.map(|_| "its stop is under way".to_owned());
    let found = GetTaskResult::new(DetailedTask::new(task, TaskPayload::Working));
    match stop {
        None => found,
        Some((turn, state)) => with_account(
            found,
            json!({
                "session": call.kept.id(), "item": format!("item-{}", call.number),
                "turn": turn.to_string(), "stop": state,
            }),
        ),
    }
}

fn with_account(mut found: GetTaskResult, account: Value) -> GetTaskResult {
    let mut meta = JsonObject::new();
    meta.insert("safepoint".to_owned(), account);
    found.meta = Some(MetaObject(meta));
    found
}

/// Takes answers to its questions. What names no question that is open is passed over while the task asks, as the protocol has it.
///
/// # Errors
/// `invalid_answer`, `no_such_task`, `scope_missing`, and the store's; where nothing was taken, `nothing_asked` of a task that asks nothing, and
/// `decided_otherwise`, `withdrawn` or `expired` of questions that are over.
///
/// # Cancel safety
/// Some of them may have been taken.
pub(super) async fn update(by: &Caller, agent: &str, named: &str, given: InputResponses) -> Answered<()> {
    let call = KeptItem::find(by, agent, named).await?;
    match answers::decide(by, &call, &given).await? {
        TakenAnswers::Decided | TakenAnswers::LeftOpen => Ok(()),
        TakenAnswers::Refused(problem) => Err(problem),
    }
}

/// Asks that it stops. The protocol has an acknowledgement without content: how far the stop is, and that it has stopped, is said by
/// [`get`].
///
/// # Errors
/// `no_such_task`, `scope_missing`, and the store's.
///
/// # Cancel safety
/// The stop may be under way.
pub(super) async fn cancel(by: &Caller, agent: &str, named: &str) -> Answered<()> {
    by.needs(AccessScope::Stop, Refuses::Never)?;
    let call = KeptItem::find(by, agent, named).await?;
    let actor = Actor::Remote(by.who.name().to_owned());
    let reason = Reason::new(Code::USER).with_text("the client cancelled the task").with_actor(actor);
    let request = StopRequest::now().with_reason(reason);
    match by.stop_item(&call.kept, call.number, request, QueueAfterStop::Continues).await {
        Ok(_) => Ok(()),
        // It was over: the task says how it ended.
        Err(problem) if problem.code() == "too_late" => Ok(()),
        Err(problem) => Err(problem),
    }
}
