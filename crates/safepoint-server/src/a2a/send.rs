//! A message: it begins a task, steers the one that runs, or answers the question of one that waits.

use safepoint::{
    approval::{ApprovalRequest, Decision},
    ids::TurnId,
    session::{IfUndelivered, Policy},
    steer::SteerTiming,
};

use super::{
    message::{AnswerWords, SentMessage, code},
    refusal,
    task::{KeptTask, TaskState, context, hidden},
};
use crate::{
    access::AccessScope,
    answer::ItemState,
    caller::{Caller, Kept, SessionMake, items::ItemPush},
    follow::ItemEvents,
    problem::{Answered, Problem},
    routes::table::Refuses,
};

/// Where a message went.
pub(super) struct TakenMessage {
    pub(super) task: KeptTask,
    /// What happens with the task, if that is read.
    pub(super) events: Option<ItemEvents>,
    /// The item of a message that steers.
    pub(super) steer: Option<u64>,
}

/// Whether the sender reads what happens. Exhaustive: it does, or it does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IsRead {
    Yes,
    No,
}

/// Takes a message for this agent.
///
/// # Errors
/// Why it is refused.
///
/// # Cancel safety
/// It may have been taken; the same message again is the same task.
pub(super) async fn take(
    by: &Caller,
    agent: &str,
    sent: &SentMessage,
    is_read: IsRead,
) -> Answered<TakenMessage> {
    match &sent.task {
        Some(task) => {
            let task = KeptTask::find(by, agent, task).await?;
            if sent.context.as_ref().is_some_and(|named| *named != context(&task.kept)) {
                return Err(Problem::bad_request("`message.contextId` is not the context of the task"));
            }
            // First: without a reader nothing is decided, and nothing steers.
            let events = match is_read {
                IsRead::Yes => Some(ItemEvents::of(by, &task.kept, task.item).await?),
                IsRead::No => None,
            };
            let steer = to_task(by, &task, sent).await?;
            Ok(TakenMessage { task, events, steer })
        }
        None => begin(by, agent, sent, is_read).await,
    }
}

async fn begin(by: &Caller, agent: &str, sent: &SentMessage, is_read: IsRead) -> Answered<TakenMessage> {
    by.needs(AccessScope::Talk, Refuses::UnderLoad)?;
    if !sent.decisions.is_empty() {
        return Err(Problem::bad_request("a decision goes to its task: `message.taskId`"));
    }
    let item = ItemPush { text: sent.text.clone(), policy: Policy::Enqueue, key: Some(sent.id.clone()) };
    // First: what is no item opens no session.
    drop(item.encoded()?);
    let kept = session(by, agent, sent).await?;
    let owner = by.owner(&kept).await?;
    let (item, events) = match is_read {
        IsRead::No => (by.push(&kept, &owner, &item).await?.number, None),
        IsRead::Yes => {
            let (item, events) = ItemEvents::push(by, &kept, &owner, &item).await?;
            (item, Some(events))
        }
    };
    Ok(TakenMessage { task: KeptTask { kept, item }, events, steer: None })
}

/// The session of the context that the message names, or of the message itself.
async fn session(by: &Caller, agent: &str, sent: &SentMessage) -> Answered<Kept> {
    let (key, named) = match &sent.context {
        Some(context) => {
            match by.session(context).await {
                Ok(kept) if kept.setup.agent == agent => return Ok(kept),
                Ok(_) => {}
                Err(problem) if hidden_is(&problem) => {}
                Err(problem) => return Err(problem),
            }
            (format!("a2a:context:{agent}:{context}"), Some(context.clone()))
        }
        None => (format!("a2a:message:{agent}:{}", sent.id), None),
    };
    let make = SessionMake { agent: Some(agent.to_owned()), key: Some(key), named, ..SessionMake::default() };
    Ok(by.make(make).await?.0)
}

fn hidden_is(problem: &Problem) -> bool {
    problem.code() == "no_such_session"
}

/// Answers with the item of a message that steers.
async fn to_task(by: &Caller, task: &KeptTask, sent: &SentMessage) -> Answered<Option<u64>> {
    let item = task.item(by).await?;
    let state = TaskState::of(&item);
    if state == TaskState::InputRequired || !sent.decisions.is_empty() {
        return answer(by, task, sent, state).await.map(|()| None);
    }
    by.needs(AccessScope::Talk, Refuses::UnderLoad)?;
    let turn = match (state, item.turn.as_deref().map(str::parse::<TurnId>)) {
        (TaskState::Working, Some(Ok(turn))) => turn,
        (TaskState::Working | TaskState::Submitted, _) => {
            return Err(refusal::unsupported(
                "the task has not begun: send the message again, or in its context",
            ));
        }
        (state, _) => return Err(over(state)),
    };
    let policy = Policy::SteerTurn(turn, SteerTiming::NextRequest, IfUndelivered::Return);
    let push = ItemPush { text: sent.text.clone(), policy, key: Some(sent.id.clone()) };
    let owner = by.owner(&task.kept).await?;
    let pushed = by.push(&task.kept, &owner, &push).await.map_err(undelivered)?;
    Ok(Some(pushed.number))
}

fn over(state: TaskState) -> Problem {
    refusal::unsupported(format!("the task is over ({}): begin another one in its context", state.as_str()))
}

/// The turn has ended, or another one runs.
fn undelivered(problem: Problem) -> Problem {
    match problem.code() {
        "turn_mismatch" | "no_active_turn" | "not_delivered" => {
            refusal::unsupported("the task ended before the message reached it")
        }
        _ => problem,
    }
}

/// Whether a message that steers did not reach its turn: known once the task is at rest.
///
/// # Errors
/// `unsupported_operation`: it did not.
///
/// # Cancel safety
/// Nothing is lost.
pub(super) async fn delivered(by: &Caller, task: &KeptTask, steer: u64) -> Answered<()> {
    let item = KeptTask { item: steer, ..task.clone() }.item(by).await?;
    match item.outcome {
        Some("returned") => Err(refusal::unsupported("the task ended before the message reached it")),
        _ => Ok(()),
    }
}

/// Answers the questions of the task: those that the decisions name, or by its text all that there are.
async fn answer(by: &Caller, task: &KeptTask, sent: &SentMessage, state: TaskState) -> Answered<()> {
    by.needs(AccessScope::Approve, Refuses::Never)?;
    if !sent.decisions.is_empty() {
        for sent in &sent.decisions {
            let digest = sent.digest.clone();
            drop(by.decide(&task.kept, &sent.approval, digest, &sent.decision).await?);
        }
        return Ok(());
    }
    if sent.text.trim().is_empty() {
        return Err(Problem::bad_request("an answer says something"));
    }
    let questions = by.questions(task.kept.id()).await?;
    if questions.is_empty() {
        return Err(over(state));
    }
    match sent.words() {
        AnswerWords::Yes(to) => {
            let asked = questions.iter().find(|asked| code(&asked.id) == to);
            let asked = asked.ok_or_else(|| unclear(&questions))?;
            drop(by.decide(&task.kept, asked.id.as_str(), asked.digest.clone(), &Decision::Approve).await?);
        }
        AnswerWords::No(words) => {
            let decision = Decision::deny(words.to_owned());
            for asked in questions {
                drop(by.decide(&task.kept, asked.id.as_str(), asked.digest, &decision).await?);
            }
        }
    }
    Ok(())
}

/// A yes that names no question which is open: nothing is decided.
fn unclear(questions: &[ApprovalRequest]) -> Problem {
    let asked = questions.iter().map(|asked| format!("`approve {}` for {}", code(&asked.id), asked.tool));
    let all: Vec<String> = asked.collect();
    Problem::bad_request(format!("say which question you approve: {}", all.join(", ")))
}

/// Waits until the task is at rest: over, or with a question. It is as it is then, or when the server ends.
///
/// # Errors
/// The store's.
///
/// # Cancel safety
/// Nothing is lost.
pub(super) async fn rested(by: &Caller, task: &KeptTask) -> Answered<()> {
    loop {
        let item = by.rested(&task.kept, task.item, super::operation::LOOK).await.map_err(hidden)?;
        let is_ended = by.host.is_draining() && by.host.opened(task.kept.id()).is_none();
        if item.state == ItemState::Rest || is_ended {
            return Ok(());
        }
    }
}
