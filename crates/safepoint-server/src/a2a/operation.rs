//! The operations, the same over each binding.

use axum::http::HeaderMap;
use serde_json::{Value, json};

use super::{
    cancel, list,
    message::{HistoryLength, SentMessage, missing, text},
    refusal,
    send::{self, IsRead},
    stream::{AtQuestion, TaskStream},
    task::TaskView,
};
use crate::{
    access::AccessScope,
    caller::{Caller, KeptItem, named::hidden},
    problem::{Answered, Problem},
    routes::table::Refuses,
};

/// What a client asks for. Exhaustive: what A2A has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Send,
    Stream,
    Get,
    List,
    Cancel,
    Subscribe,
    PushConfig,
    ExtendedCard,
}

/// What it gets. Exhaustive: one value, or a stream of them.
pub(super) enum OperationAnswer {
    Value(Value),
    Stream(Box<TaskStream>),
}

impl Operation {
    /// The operation of this name.
    pub(super) fn named(method: &str) -> Option<Self> {
        Some(match method {
            "SendMessage" => Self::Send,
            "SendStreamingMessage" => Self::Stream,
            "GetTask" => Self::Get,
            "ListTasks" => Self::List,
            "CancelTask" => Self::Cancel,
            "SubscribeToTask" => Self::Subscribe,
            "CreateTaskPushNotificationConfig"
            | "GetTaskPushNotificationConfig"
            | "ListTaskPushNotificationConfigs"
            | "DeleteTaskPushNotificationConfig" => Self::PushConfig,
            "GetExtendedAgentCard" => Self::ExtendedCard,
            _ => return None,
        })
    }

    /// Does it for the agent.
    ///
    /// # Errors
    /// Why it is refused.
    ///
    /// # Cancel safety
    /// It may have been done.
    pub(super) async fn run(self, by: &Caller, agent: &str, params: &Value) -> Answered<OperationAnswer> {
        let agent = super::agent(by, agent)?;
        match self {
            Self::Send => sent(by, &agent, params).await,
            Self::Stream => streamed(by, &agent, params).await,
            Self::Get => {
                by.needs(AccessScope::Read, Refuses::UnderLoad)?;
                let history = HistoryLength::read(params)?;
                let task = KeptItem::find(by, &agent, &task_id(params)?).await?;
                Ok(OperationAnswer::Value(TaskView::of(by, &task).await?.value(history)))
            }
            Self::List => {
                by.needs(AccessScope::Read, Refuses::UnderLoad)?;
                Ok(OperationAnswer::Value(list::list(by, &agent, params).await?))
            }
            Self::Cancel => {
                let view = cancel::cancel(by, &agent, &task_id(params)?).await?;
                Ok(OperationAnswer::Value(view.value(HistoryLength::All)))
            }
            Self::Subscribe => subscribed(by, &agent, params).await,
            Self::PushConfig => Err(refusal::no_push()),
            Self::ExtendedCard => {
                Err(refusal::unsupported("the card that this server shows is the whole card"))
            }
        }
    }
}

/// Whether the version is spoken that the client names: in a header, or as a parameter. One that names none speaks 0.3.
///
/// # Errors
/// `version`.
pub(super) fn spoken(headers: &HeaderMap, query: Option<String>) -> Answered<()> {
    let named = headers.get("a2a-version").map(|named| named.to_str().unwrap_or_default().to_owned());
    let named = named.or(query).filter(|named| !named.trim().is_empty()).unwrap_or_else(|| "0.3".to_owned());
    // Of a version only its first two numbers count.
    let is_ours = named.trim() == super::VERSION
        || named.trim().strip_prefix(super::VERSION).is_some_and(|patch| patch.starts_with('.'));
    if is_ours { Ok(()) } else { Err(refusal::version(&named)) }
}

fn task_id(params: &Value) -> Answered<String> {
    text(params, "id").ok_or_else(|| missing("id"))
}

async fn sent(by: &Caller, agent: &str, params: &Value) -> Answered<OperationAnswer> {
    let sent = SentMessage::read(params)?;
    let taken = send::take(by, agent, &sent, IsRead::No).await?;
    if !sent.is_answered_at_once {
        drop(by.rested_or_left(&taken.task.kept, taken.task.number).await.map_err(hidden)?);
        if let Some(steer) = taken.steer {
            send::delivered(by, &taken.task, steer).await?;
        }
    }
    let task = TaskView::of(by, &taken.task).await?.value(sent.history);
    Ok(OperationAnswer::Value(json!({"task": task})))
}

async fn streamed(by: &Caller, agent: &str, params: &Value) -> Answered<OperationAnswer> {
    let sent = SentMessage::read(params)?;
    let taken = send::take(by, agent, &sent, IsRead::Yes).await?;
    let how = (AtQuestion::Ends, sent.history);
    let stream = TaskStream::of(by, taken.task, taken.events, how).await?;
    Ok(OperationAnswer::Stream(Box::new(stream)))
}

async fn subscribed(by: &Caller, agent: &str, params: &Value) -> Answered<OperationAnswer> {
    by.needs(AccessScope::Read, Refuses::UnderLoad)?;
    let task = KeptItem::find(by, agent, &task_id(params)?).await?;
    let state = TaskView::of(by, &task).await?.state;
    if state.is_terminal() {
        let problem: Problem = refusal::unsupported(format!("the task is over: {}", state.as_str()));
        return Err(problem);
    }
    let how = (AtQuestion::Waits, HistoryLength::All);
    Ok(OperationAnswer::Stream(Box::new(TaskStream::of(by, task, None, how).await?)))
}
