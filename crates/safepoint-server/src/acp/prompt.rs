//! One prompt: its item is pushed, its turn is shown, and one answer says how it ended.

use std::{pin::pin, sync::Arc, time::Duration};

use futures_core::future::BoxFuture;
use futures_util::future::{Either, select};
use safepoint::{
    session::{IfUndelivered, Policy},
    steer::SteerTiming,
};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{asking::Questions, content, desk::Desk, message::Refusal, update::Updates};
use crate::{
    answer::{CRASHED, ItemAnswer, ItemState},
    caller::{Kept, items::ItemPush},
    follow::{ItemEvent, ItemEvents},
    problem::{Answered, Problem},
};

/// How long the answer waits for a question that is over to be taken back.
const TAKEN_BACK: Duration = Duration::from_secs(2);

/// A prompt whose item is recorded.
pub(super) struct Prompt {
    desk: Arc<Desk>,
    /// The editor's id of it.
    request: Value,
    kept: Kept,
    number: u64,
    events: ItemEvents,
}

impl Prompt {
    /// Answers it. What is held here is dropped once it is recorded, or refused.
    ///
    /// # Cancel safety
    /// It is not answered; its item may have been pushed, and runs on.
    pub(super) async fn answer(desk: Arc<Desk>, (request, params): (Value, Value), held: impl Send) {
        let pushed = Self::push(&desk, &request, &params).await;
        drop(held);
        match pushed {
            Ok(prompt) => prompt.follow().await,
            Err(refusal) => desk.outbox.answer(&request, Err(refusal)).await,
        }
    }

    async fn push(desk: &Arc<Desk>, request: &Value, params: &Value) -> Result<Self, Refusal> {
        let text = content::text(&params["prompt"])?;
        let policy = policy(&params["_meta"]["safepoint"]["policy"])?;
        let session =
            params["sessionId"].as_str().ok_or_else(|| Refusal::params("`sessionId` is missing"))?;
        let item = ItemPush { text, policy, key: None };
        drop(item.encoded()?);
        let by = &desk.by;
        let kept = by.session(session).await?;
        let owner = by.owner(&kept).await?;
        desk.opened(request.clone(), kept.clone());
        let pushed = ItemEvents::push(by, &kept, &owner, &item).await;
        let (number, events) = pushed.inspect_err(|_refused| desk.closed(request))?;
        desk.pushed(request, number).await;
        Ok(Self { desk: Arc::clone(desk), request: request.clone(), kept, number, events })
    }

    /// Shows its turn, and answers when that is over.
    async fn follow(mut self) {
        let answered = match self.rest().await {
            Ok(rest) => self.ended(rest).await,
            Err(problem) => Err(problem.into()),
        };
        self.desk.closed(&self.request);
        self.desk.outbox.answer(&self.request, answered).await;
    }

    /// Where it rests. A question of its turn is the editor's as soon as it is asked, and the same turn continues.
    async fn rest(&mut self) -> Answered<ItemAnswer> {
        let mut updates = Updates::default();
        // What waits from an earlier turn holds this one up.
        let mut asking = self.desk.is_first(&self.request).then(|| self.ask());
        let mut stays_open = false;
        let rest = loop {
            let event = match asking.take() {
                None => self.events.next().await?,
                // Whichever is first; the other is waited for in the next round, and loses nothing.
                Some(asks) => match select(pin!(self.events.next()), asks).await {
                    Either::Left((event, asks)) => {
                        asking = Some(asks);
                        event?
                    }
                    Either::Right((is_answered, _)) => {
                        stays_open |= !is_answered?;
                        continue;
                    }
                },
            };
            match event {
                ItemEvent::Shown(event) => {
                    if let Some(update) = updates.of(&event) {
                        self.desk.outbox.update(self.kept.id().as_str(), &update).await;
                    }
                    if event.kind == "approval_asked" && asking.is_none() && !stays_open {
                        asking = Some(self.ask());
                    }
                }
                ItemEvent::KeepAlive => {}
                ItemEvent::Rest(rest) if rest.outcome == Some("suspended") && !self.desk.has_left() => {
                    let asks = asking.take();
                    if stays_open || !asks.unwrap_or_else(|| self.ask()).await? {
                        return Ok(rest);
                    }
                    self.events = ItemEvents::of(&self.desk.by, &self.kept, self.number).await?;
                }
                ItemEvent::Rest(rest) if rest.state == ItemState::Rest => break rest,
                // It was suspended, and has continued since.
                ItemEvent::Rest(_) => {
                    self.events = ItemEvents::of(&self.desk.by, &self.kept, self.number).await?;
                }
                ItemEvent::Bye => return Err(Problem::draining()),
            }
        };
        if let Some(asks) = asking {
            // The turn is over, and its question with it: that is seen soon, and the editor learns it before the answer.
            drop(timeout(TAKEN_BACK, asks).await);
        }
        Ok(rest)
    }

    fn ask(&self) -> BoxFuture<'static, Answered<bool>> {
        let questions = Questions::of(&self.desk, &self.kept);
        Box::pin(async move { questions.ask().await })
    }

    async fn ended(&self, rest: ItemAnswer) -> Result<Value, Refusal> {
        let ended = self.desk.by.ended(&self.kept, rest).await?;
        let meta = json!({"safepoint": ended.account()});
        let stop_reason = match ended.outcome() {
            // Suspended: the answer to a question is not here.
            "completed" | "suspended" => "end_turn",
            "interrupted" | "preempted" | "rolled_back" | "withdrawn" | "dropped" => {
                match ended.stop_code() {
                    Some("max_rounds") => "max_turn_requests",
                    Some("max_tokens") => "max_tokens",
                    _ if self.desk.is_request_cancelled(&self.request) => {
                        return Err(Refusal::cancelled(meta));
                    }
                    _ => "cancelled",
                }
            }
            "failed" => match ended.failure() {
                ("truncated", _) => "max_tokens",
                (code, message) => {
                    let data = json!({"code": code, "_meta": meta});
                    return Err(Refusal::failed(format!("the turn failed: {message}"), data));
                }
            },
            CRASHED => {
                let data = json!({"code": CRASHED, "_meta": meta});
                let said = "the end of a process has cut the turn; it can be resumed";
                return Err(Refusal::failed(said.to_owned(), data));
            }
            other => {
                let data = json!({"code": ended.rest.returned.unwrap_or(other)});
                return Err(Refusal::failed(format!("the prompt was not taken: {other}"), data));
            }
        };
        Ok(json!({"stopReason": stop_reason, "_meta": meta}))
    }
}

/// How a prompt is taken while another one runs.
fn policy(named: &Value) -> Result<Policy, Refusal> {
    match named.as_str() {
        None if named.is_null() => Ok(Policy::Enqueue),
        Some("enqueue") => Ok(Policy::Enqueue),
        Some("steer") => Ok(Policy::Steer(SteerTiming::NextRequest, IfUndelivered::Queue)),
        _ => Err(Refusal::params("`_meta.safepoint.policy` is `enqueue` or `steer`")),
    }
}
