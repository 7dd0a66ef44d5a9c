//! One prompt: its item is pushed, its turn is shown, and one answer says how it ended.

use std::{sync::Arc, time::Duration};

use safepoint::{
    session::{IfUndelivered, Policy},
    steer::SteerTiming,
};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::{asking::Questions, content, desk::Desk, message::Refusal, update::Updates};
use crate::{
    answer::ItemAnswer,
    caller::{Kept, Owner, items::ItemPush},
    follow::{ItemEvent, ItemEvents, ReadyReader},
    host::read::{self, TurnRead},
    problem::{Answered, Problem},
};

/// How long the answer of a stopped turn waits until it is known whether anything of it is alive.
const QUIET: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(20);

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
    /// Pushes it.
    ///
    /// # Errors
    /// Why it is refused.
    ///
    /// # Cancel safety
    /// The item may have been pushed.
    pub(super) async fn push(desk: &Arc<Desk>, request: &Value, params: &Value) -> Result<Self, Refusal> {
        let text = content::text(&params["prompt"])?;
        let policy = policy(&params["_meta"]["safepoint"]["policy"])?;
        let session =
            params["sessionId"].as_str().ok_or_else(|| Refusal::params("`sessionId` is missing"))?;
        let item = ItemPush { text, policy, key: None };
        drop(item.encoded()?);
        let by = &desk.by;
        let kept = by.session(session).await?;
        let owner = by.owner(&kept).await?;
        // The reader is there before the item, so that it misses nothing of it.
        let ready = match &owner {
            Owner::Here(_) => Some(ReadyReader::of(by, &kept).await?),
            Owner::Elsewhere => None,
        };
        let number = by.push(&kept, &owner, &item).await?.number;
        desk.opened(request.clone(), kept.clone(), number);
        let events = match ready {
            Some(ready) => ItemEvents::behind(ready, by, &kept, number),
            None => ItemEvents::of(by, &kept, number).await?,
        };
        Ok(Self { desk: Arc::clone(desk), request: request.clone(), kept, number, events })
    }

    /// Shows its turn, and answers when that is over.
    ///
    /// # Cancel safety
    /// It is not answered; its item runs on.
    pub(super) async fn follow(mut self) {
        let answered = match self.rest().await {
            Ok(rest) => self.ended(rest).await,
            Err(problem) => Err(problem.into()),
        };
        self.desk.closed(&self.request);
        self.desk.outbox.answer(&self.request, answered).await;
    }

    /// Where it rests. A question that the turn waits for is the editor's, and then the same turn continues.
    async fn rest(&mut self) -> Answered<ItemAnswer> {
        let mut updates = Updates::default();
        let questions = Questions::of(&self.desk, &self.kept);
        // What waits from an earlier turn holds this one up.
        if self.desk.is_first(&self.request) {
            questions.ask().await?;
        }
        loop {
            match self.events.next().await? {
                ItemEvent::Shown(event) => {
                    if let Some(update) = updates.of(&event) {
                        self.desk.outbox.update(self.kept.id().as_str(), &update).await;
                    }
                }
                ItemEvent::KeepAlive => {}
                ItemEvent::Rest(rest) if rest.outcome == Some("suspended") && !self.desk.has_left() => {
                    if !questions.ask().await? {
                        return Ok(rest);
                    }
                    self.events = ItemEvents::of(&self.desk.by, &self.kept, self.number).await?;
                }
                ItemEvent::Rest(rest) => return Ok(rest),
                ItemEvent::Bye => return Err(Problem::draining()),
            }
        }
    }

    async fn ended(&self, rest: ItemAnswer) -> Result<Value, Refusal> {
        let turn = self.turn(&rest).await?;
        let outcome = rest.outcome.unwrap_or("not_known");
        let meta = json!({"safepoint": self.meta(&rest, turn.as_ref())});
        let is_cancelled = self.desk.cancels(&self.request).is_of_request;
        let stop_reason = match outcome {
            "completed" => "end_turn",
            // It waits: the answer of a question is not here.
            "suspended" => "end_turn",
            "interrupted" | "preempted" | "rolled_back" | "withdrawn" | "dropped" => {
                match turn.as_ref().and_then(TurnRead::stop_code) {
                    Some("max_rounds") => "max_turn_requests",
                    Some("max_tokens") => "max_tokens",
                    _ if is_cancelled => return Err(Refusal::cancelled(meta)),
                    _ => "cancelled",
                }
            }
            "failed" => {
                let (code, message) = turn.as_ref().and_then(TurnRead::failure).unwrap_or(("not_known", ""));
                if code != "truncated" {
                    let mut data = json!({"code": code});
                    data["_meta"] = meta;
                    return Err(Refusal::failed(format!("the turn failed: {message}"), data));
                }
                "max_tokens"
            }
            other => {
                let data = json!({"code": rest.returned.unwrap_or(other)});
                return Err(Refusal::failed(format!("the prompt was not taken: {other}"), data));
            }
        };
        Ok(json!({"stopReason": stop_reason, "_meta": meta}))
    }

    /// What is recorded of its turn; if it was stopped, with what is alive.
    async fn turn(&self, rest: &ItemAnswer) -> Answered<Option<TurnRead>> {
        let Some(name) = &rest.turn else { return Ok(None) };
        let over = Instant::now() + QUIET;
        loop {
            let turns = read::turns(self.desk.by.store(), self.kept.id()).await?;
            let found = turns.into_iter().find(|(number, _)| format!("turn-{number}") == *name);
            let found = found.map(|(_, turn)| turn);
            let waits =
                found.as_ref().is_some_and(|turn| turn.stop_code().is_some() && !turn.is_quiet_known());
            if !waits || Instant::now() >= over {
                return Ok(found);
            }
            sleep(LOOK).await;
        }
    }

    fn meta(&self, rest: &ItemAnswer, turn: Option<&TurnRead>) -> Value {
        let session = self.kept.id();
        let stop = turn.map(TurnRead::stop);
        let url = rest.turn.as_ref().map(|turn| format!("/v1/sessions/{session}/turns/{turn}"));
        json!({
            "session": session.as_str(), "item": rest.id, "turn": rest.turn, "outcome": rest.outcome,
            "quiet": stop.as_ref().and_then(|stop| stop.quiet),
            "survivors": stop.map(|stop| stop.survivors).unwrap_or_default(),
            "receipt": url,
        })
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
