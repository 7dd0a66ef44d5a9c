//! A server's connections: its card, JSON-RPC, and streams of events.

use std::{io, sync::Arc};

use serde_json::{Value, json};
use tokio::task::yield_now;

use super::{
    A2aSeen, A2aWire, Looks, Mind, OnCancel, Streams, card,
    task::{Task, TaskEvent, TaskState},
    wire,
};
use crate::{http::Connection, sync::lock};

mod stream;

const NOT_FOUND: i64 = -32001;
const NOT_CANCELABLE: i64 = -32002;
const NO_METHOD: i64 = -32601;
const INVALID: i64 = -32602;
const INTERNAL: i64 = -32603;

const ANYTHING: &str = "*/*";
const EVENTS: &str = "text/event-stream";
const JSON: &str = "application/json";

/// How often others have their turn before it is.
const LAG: usize = 64;
/// What is said last by work that came to its end as it was asked to stop.
const TOO_LATE: &str = " done";

/// Serves one connection to its end.
pub(super) async fn serve(mut connection: Connection, mind: Arc<Mind>) -> io::Result<()> {
    while let Some(request) = connection.request().await? {
        let authorization = request.header("authorization").map(ToOwned::to_owned);
        lock(&mind.bearers).extend(authorization);
        lock(&mind.traces).extend(request.header("traceparent").map(ToOwned::to_owned));
        if request.method == "GET" {
            card::show(&mut connection, &mind, &request.path).await?;
            continue;
        }
        let Ok(asked) = serde_json::from_slice::<Value>(&request.body) else {
            connection.respond("400 Bad Request", "text/plain", "no JSON").await?;
            continue;
        };
        lock(&mind.ids).push(asked["id"].clone());
        let accept = request.header("accept").unwrap_or(ANYTHING).to_owned();
        RpcExchange { connection: &mut connection, mind: &mind, id: asked["id"].clone(), accept }
            .answer(&asked)
            .await?;
    }
    Ok(())
}

/// A request that is being answered.
struct RpcExchange<'a> {
    connection: &'a mut Connection,
    mind: &'a Arc<Mind>,
    id: Value,
    /// What the client takes for an answer.
    accept: String,
}

impl RpcExchange<'_> {
    async fn answer(mut self, asked: &Value) -> io::Result<()> {
        let name = asked["method"].as_str().unwrap_or_default();
        let method = wire::method(name);
        self.mind.note(A2aSeen::Asked(method.to_owned(), asked["params"].clone()));
        if !wire::knows(self.mind.manners.wire, name) {
            return self.error(NO_METHOD, "no such method").await;
        }
        let kind = if wire::streams(method) { EVENTS } else { JSON };
        if !self.accept.contains(ANYTHING) && !self.accept.contains(kind) {
            return self.page("406 Not Acceptable").await;
        }
        if self.mind.manners.streams == Streams::CutAndGone && method != "SendStreamingMessage" {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        match method {
            "SendMessage" | "SendStreamingMessage" if self.is_misfit(&asked["params"]) => {
                self.error(INVALID, "Invalid params").await
            }
            "SendMessage" if matches!(self.mind.manners.streams, Streams::Status(_)) => {
                self.send(&asked["params"]).await
            }
            "SendMessage" => {
                let task = self.take(&asked["params"]);
                let first = self.mind.manners.wire.first(&task);
                self.result(&first).await
            }
            "SendStreamingMessage" => self.send(&asked["params"]).await,
            "GetTask" if self.is_busy() => {
                self.connection.respond("429 Too Many Requests", "text/plain", "later").await
            }
            "GetTask" => self.look(asked).await,
            "SubscribeToTask" => self.subscribe(asked).await,
            "CancelTask" => match self.named(asked) {
                Some(task) => self.cancel(&task).await,
                None => self.error(NOT_FOUND, "no such task").await,
            },
            _ => self.error(NO_METHOD, "no such method").await,
        }
    }

    /// Whether the client must come again later. Counts the request first.
    fn is_busy(&self) -> bool {
        self.looks() <= self.mind.manners.busy
    }

    /// How often tasks were looked at so far.
    fn looks(&self) -> usize {
        let seen = lock(&self.mind.seen);
        seen.iter().filter(|seen| matches!(seen, A2aSeen::Asked(name, _) if name == "GetTask")).count()
    }

    /// Whether a message lacks what its wire wants of it.
    fn is_misfit(&self, params: &Value) -> bool {
        self.mind.manners.wire == A2aWire::V02 && !params["configuration"]["acceptedOutputModes"].is_array()
    }

    async fn look(&mut self, asked: &Value) -> io::Result<()> {
        match (self.mind.manners.looks, self.named(asked)) {
            (Looks::Status(status), _) => self.page(&format!("{status} Odd")).await,
            (Looks::Silent, _) => self.mind.gave_up(self.connection, "GetTask").await,
            (Looks::FailFirst(looks), _) if self.looks() <= looks => self.unwritten().await,
            (Looks::NoMethod, _) => self.error(NO_METHOD, "Method not found").await,
            (Looks::Well, _) if self.mind.manners.on_cancel == OnCancel::Unwritten => self.unwritten().await,
            (Looks::Behind(looks), Some(task)) if self.looks() <= looks => {
                let begun = Task::new(task.id.clone(), task.context.clone());
                let begun = self.mind.manners.wire.task_as(&begun, TaskState::Working);
                self.result(&begun).await
            }
            (Looks::Well | Looks::FailFirst(_) | Looks::Behind(_), Some(task)) => self.show(&task).await,
            (Looks::Well | Looks::FailFirst(_) | Looks::Behind(_), None) => {
                self.error(NOT_FOUND, "no such task").await
            }
        }
    }

    fn named(&self, asked: &Value) -> Option<Arc<Task>> {
        self.mind.task(asked["params"]["id"].as_str()?)
    }

    /// A message: a new task, or the answer to what one asked.
    fn take(&self, params: &Value) -> Arc<Task> {
        let message = &params["message"];
        let named = message["taskId"].as_str().and_then(|id| self.mind.task(id));
        match named {
            Some(task) => {
                task.answer(wire::text_of(message));
                task
            }
            None => self.mind.begin(message["contextId"].as_str()),
        }
    }

    async fn cancel(&mut self, task: &Arc<Task>) -> io::Result<()> {
        let on_cancel = self.mind.manners.on_cancel;
        if task.state().is_terminal() && on_cancel != OnCancel::Unwritten {
            return self.error(NOT_CANCELABLE, "the task is over").await;
        }
        let canceled = TaskEvent::Status(TaskState::Canceled, None);
        match on_cancel {
            OnCancel::Ends => {
                task.tear_down();
                self.mind.yard.idle().await;
                task.tell(canceled);
                self.show(task).await
            }
            OnCancel::Says | OnCancel::SaysAndCompletes => {
                task.tell(canceled);
                self.show(task).await
            }
            OnCancel::Nods => self.show(task).await,
            OnCancel::Refuses => self.error(NOT_CANCELABLE, "Cancellation is not supported").await,
            OnCancel::RefusesAndSays => {
                task.tell(canceled);
                self.error(NOT_CANCELABLE, "Cancellation is not supported").await
            }
            OnCancel::SaysOfAnother => {
                let another = Task::new("task-of-another".into(), task.context.clone());
                another.tell(canceled);
                self.show(&another).await
            }
            OnCancel::SaysNothingOfIt => self.result(&json!({"noted": true})).await,
            OnCancel::SaysTwice => self.canceled_twice(task).await,
            OnCancel::AnswersAnother => {
                let said = self.mind.manners.wire.task_as(task, TaskState::Canceled);
                self.id = json!("of another");
                self.result(&said).await
            }
            OnCancel::SaysTooLate => self.says_too_late(task).await,
            OnCancel::Completes => {
                task.tear_down();
                self.mind.yard.idle().await;
                task.tell(TaskEvent::part(TOO_LATE));
                task.tell(TaskEvent::Status(TaskState::Completed, None));
                self.show(task).await
            }
            OnCancel::ClaimsAnEnd => {
                task.tell(TaskEvent::Status(TaskState::Completed, None));
                self.show(task).await
            }
            OnCancel::Unwritten => self.unwritten().await,
            OnCancel::EndsWithAnError => self.ends_with_an_error(task).await,
            OnCancel::Deaf => self.mind.gave_up(self.connection, "CancelTask").await,
            OnCancel::HangsUp => Err(io::ErrorKind::ConnectionReset.into()),
        }
    }

    /// Answers that the task was canceled, and completes it after that.
    async fn says_too_late(&mut self, task: &Task) -> io::Result<()> {
        task.tear_down();
        self.mind.yard.idle().await;
        let said = self.mind.manners.wire.task_as(task, TaskState::Canceled);
        self.result(&said).await?;
        for _ in 0..LAG {
            yield_now().await;
        }
        task.tell(TaskEvent::part(TOO_LATE));
        task.tell(TaskEvent::Status(TaskState::Completed, None));
        Ok(())
    }

    async fn ends_with_an_error(&mut self, task: &Task) -> io::Result<()> {
        task.tear_down();
        self.mind.yard.idle().await;
        task.tell(TaskEvent::Status(TaskState::Failed, None));
        self.error(INTERNAL, "cancellation is not supported").await
    }

    /// What a framework answers where its method was left unwritten.
    async fn unwritten(&mut self) -> io::Result<()> {
        self.page("500 Internal Server Error").await
    }

    /// A framework's own page about a status.
    async fn page(&mut self, status: &str) -> io::Result<()> {
        let (code, error) = status.split_once(' ').unwrap_or((status, ""));
        let page = json!({"status": code, "error": error, "path": "/a2a"}).to_string();
        self.connection.respond(status, JSON, &page).await
    }

    /// Answers with the task as canceled, twice in one body.
    async fn canceled_twice(&mut self, task: &Task) -> io::Result<()> {
        let said = self.mind.manners.wire.task_as(task, TaskState::Canceled);
        let body = json!({"jsonrpc": "2.0", "id": self.id, "result": said}).to_string();
        self.connection.respond("200 OK", JSON, &body.repeat(2)).await
    }

    /// Answers with the task as it stands.
    async fn show(&mut self, task: &Task) -> io::Result<()> {
        let task = self.mind.manners.wire.task(task);
        self.result(&task).await
    }

    async fn result(&mut self, result: &Value) -> io::Result<()> {
        let body = json!({"jsonrpc": "2.0", "id": self.id, "result": result}).to_string();
        self.connection.respond("200 OK", JSON, &body).await
    }

    async fn error(&mut self, code: i64, message: &str) -> io::Result<()> {
        let message = self.mind.manners.word.as_deref().unwrap_or(message);
        let error = json!({"code": code, "message": message});
        let body = json!({"jsonrpc": "2.0", "id": self.id, "error": error}).to_string();
        self.connection.respond("200 OK", JSON, &body).await
    }
}
