//! The questions of a session, put to the editor: `session/request_permission`.
//!
//! **Invariants**: a decision is bound to what was asked; a question that is over elsewhere, or withdrawn by a stop, is taken back from
//! the editor; no answer of it is a yes unless it chose one.

use std::{pin::pin, sync::Arc, time::Duration};

use futures_util::future::{Either, select};
use safepoint::{
    approval::{AllowScope, ApprovalKind, ApprovalRequest, Decision},
    ids::ApprovalId,
    raw::store::ApprovalState,
};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::{desk::Desk, update};
use crate::{
    caller::{Kept, decisions::is_over},
    host::read,
    problem::Answered,
};

/// How often it is looked whether a question is still open.
const LOOK: Duration = Duration::from_millis(50);
/// How long a cancel may come behind an answer that says so.
const CANCEL_FOLLOWS: Duration = Duration::from_millis(500);

/// The questions of one session.
pub(super) struct Questions {
    desk: Arc<Desk>,
    kept: Kept,
}

/// How a question ended. Exhaustive: it was decided here, it is over in another way, or it stays open.
enum QuestionEnd {
    Decided(Decision),
    Over,
    StaysOpen,
}

impl Questions {
    pub(super) fn of(desk: &Arc<Desk>, kept: &Kept) -> Self {
        Self { desk: Arc::clone(desk), kept: kept.clone() }
    }

    /// Asks what is open, one question after the other, and returns whether none is open any more.
    ///
    /// # Errors
    /// The store's.
    ///
    /// # Cancel safety
    /// A question may stay with the editor; its answer changes nothing.
    pub(super) async fn ask(&self) -> Answered<bool> {
        let by = &self.desk.by;
        while let Some(asked) = by.questions(self.kept.id()).await?.into_iter().next() {
            match self.put(&asked).await? {
                QuestionEnd::StaysOpen => return Ok(false),
                QuestionEnd::Over => {}
                QuestionEnd::Decided(decision) => {
                    match by.decide(&self.kept, asked.id.as_str(), asked.digest, &decision).await {
                        Ok(_) => {}
                        // Another one decided it, or it is over: the turn says how it continues.
                        Err(problem) if is_over(&problem) => {}
                        Err(problem) => return Err(problem),
                    }
                }
            }
        }
        Ok(true)
    }

    async fn put(&self, asked: &ApprovalRequest) -> Answered<QuestionEnd> {
        let turns = read::turns(self.desk.by.store(), self.kept.id()).await?;
        let turn = turns.keys().last().copied().unwrap_or_default();
        let params = params(self.kept.id().as_str(), turn, asked);
        let question = self.desk.outbox.ask("session/request_permission", &params).await;
        // First: what the editor says. The other: the question is over without it, and is taken back.
        let answer = match select(question.answer, pin!(self.over(&asked.id))).await {
            Either::Left((answer, _)) => answer.ok().flatten(),
            Either::Right((end, _)) => {
                self.desk.outbox.take_back(question.id).await;
                return end;
            }
        };
        let outcome = answer.as_ref().map(|answer| &answer["outcome"]);
        let chosen = outcome.filter(|outcome| outcome["outcome"] == "selected");
        match chosen.and_then(|outcome| decision(outcome["optionId"].as_str()?)) {
            Some(decision) => Ok(QuestionEnd::Decided(decision)),
            // It is no answer to the question. A cancel of the prompt withdraws it, and may come just behind.
            None => timeout(CANCEL_FOLLOWS, self.over(&asked.id)).await.unwrap_or(Ok(QuestionEnd::StaysOpen)),
        }
    }

    /// Waits until the question is open no more, or the editor is gone.
    async fn over(&self, id: &ApprovalId) -> Answered<QuestionEnd> {
        loop {
            let rows = self.desk.by.store().approvals(self.kept.id()).await?;
            let is_open = rows.iter().any(|row| row.asked.id == *id && row.state == ApprovalState::Open);
            if !is_open {
                return Ok(QuestionEnd::Over);
            }
            if self.desk.has_left() {
                return Ok(QuestionEnd::StaysOpen);
            }
            sleep(LOOK).await;
        }
    }
}

fn params(session: &str, turn: u64, asked: &ApprovalRequest) -> Value {
    let option = |id: &str, name: &str, kind: &str| json!({"optionId": id, "name": name, "kind": kind});
    let mut options = vec![option("once", "Allow once", "allow_once")];
    if asked.question == ApprovalKind::BeforeCall {
        let tool = format!("Always allow {}", asked.tool);
        options.push(option("call", "Always allow exactly this", "allow_always"));
        options.push(option("tool", &tool, "allow_always"));
    }
    options.push(option("reject", "Reject", "reject_once"));
    json!({
        "sessionId": session,
        "toolCall": {
            "toolCallId": update::call_id(turn, asked.call_id.as_str()),
            "title": update::title(&asked.tool, &asked.args),
            "rawInput": asked.args, "status": "pending",
        },
        "options": options,
        "_meta": {"safepoint": {
            "approval": asked.id.as_str(), "digest": asked.digest, "question": asked.question,
            "expires_at": asked.expires_at,
        }},
    })
}

/// What an option of ours means.
fn decision(option: &str) -> Option<Decision> {
    match option {
        "once" => Some(Decision::Approve),
        "call" => Some(Decision::ApproveAlways { covers: AllowScope::Call }),
        "tool" => Some(Decision::ApproveAlways { covers: AllowScope::Tool }),
        "reject" => Some(Decision::deny("")),
        _ => None,
    }
}
