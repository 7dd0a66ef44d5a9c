//! A message: it begins a task, steers the one that runs, or answers the question of one that waits.

use safepoint::{
    approval::{ApprovalRequest, Decision},
    ids::TurnId,
    raw::store::{ApprovalRow, ApprovalState},
    session::{IfUndelivered, Policy},
    steer::SteerTiming,
};

use super::{
    message::{AnswerWords, SentMessage, code},
    refusal,
    task::{TaskState, context, context_key, session_named},
};
use crate::{
    access::AccessScope,
    caller::{Caller, Kept, KeptItem, SessionMake, items::ItemPush},
    follow::ItemEvents,
    problem::{Answered, Problem},
    routes::table::Refuses,
};

/// Where a message went.
pub(super) struct TakenMessage {
    pub(super) task: KeptItem,
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
            let task = KeptItem::find(by, agent, task).await?;
            if sent.context.as_ref().is_some_and(|named| *named != context(&task.kept)) {
                return Err(Problem::bad_request("`message.contextId` is not the context of the task"));
            }
            // First: without a reader nothing is decided, and nothing steers.
            let events = match is_read {
                IsRead::Yes => Some(ItemEvents::of(by, &task.kept, task.number).await?),
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
    Ok(TakenMessage { task: KeptItem { kept, number: item }, events, steer: None })
}

/// The session of the context that the message names, or of the message itself.
async fn session(by: &Caller, agent: &str, sent: &SentMessage) -> Answered<Kept> {
    let key = match &sent.context {
        Some(context) => match session_named(by, agent, context).await? {
            Some(kept) => return Ok(kept),
            None => context_key(agent, context),
        },
        None => format!("a2a:message:{agent}:{}", sent.id),
    };
    let named = sent.context.clone();
    let make = SessionMake { agent: Some(agent.to_owned()), key: Some(key), named, ..SessionMake::default() };
    Ok(by.make(make).await?.0)
}

/// Takes a message for the task; gives the item of one that steers. One that is sent again is what it was before, whatever the task is
/// by now.
async fn to_task(by: &Caller, task: &KeptItem, sent: &SentMessage) -> Answered<Option<u64>> {
    if !sent.decisions.is_empty() {
        return decided(by, task, sent).await.map(|()| None);
    }
    let item = task.item(by).await?;
    let state = TaskState::of(&item);
    let rows = by.store().approvals(task.kept.id()).await?;
    if is_answer(by, sent, &rows) {
        return answer(by, task, sent, &rows).await.map(|()| None);
    }
    let turn = item.turn.as_deref().and_then(|turn| turn.parse::<TurnId>().ok());
    let steer = turn.map(|turn| ItemPush {
        text: sent.text.clone(),
        policy: Policy::SteerTurn(turn, SteerTiming::NextRequest, IfUndelivered::Return),
        key: Some(sent.id.clone()),
    });
    if let Some(steer) = steer.as_ref().filter(|steer| !steer.text.trim().is_empty())
        && let Some(number) = by.known(&task.kept, steer).await?
    {
        by.needs(AccessScope::Talk, Refuses::UnderLoad)?;
        return Ok(Some(number));
    }
    if state == TaskState::InputRequired {
        return answer(by, task, sent, &rows).await.map(|()| None);
    }
    by.needs(AccessScope::Talk, Refuses::UnderLoad)?;
    match (state, steer) {
        (TaskState::Working, Some(steer)) => {
            let owner = by.owner(&task.kept).await?;
            let pushed = by.push(&task.kept, &owner, &steer).await.map_err(undelivered)?;
            Ok(Some(pushed.number))
        }
        (TaskState::Working | TaskState::Submitted, _) => {
            Err(refusal::unsupported("the task has not begun: send the message again, or in its context"))
        }
        (state, _) => Err(over(state)),
    }
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
pub(super) async fn delivered(by: &Caller, task: &KeptItem, steer: u64) -> Answered<()> {
    let item = KeptItem { number: steer, ..task.clone() }.item(by).await?;
    match item.outcome {
        Some("returned") => Err(refusal::unsupported("the task ended before the message reached it")),
        _ => Ok(()),
    }
}

/// Takes the decisions as data.
async fn decided(by: &Caller, task: &KeptItem, sent: &SentMessage) -> Answered<()> {
    by.needs(AccessScope::Approve, Refuses::Never)?;
    for sent in &sent.decisions {
        drop(by.decide(&task.kept, &sent.approval, sent.digest.clone(), &sent.decision).await?);
    }
    Ok(())
}

/// Whether a text can be nothing but an answer: a yes that names one of these questions, or a no that answered one of them before.
fn is_answer(by: &Caller, sent: &SentMessage, rows: &[ApprovalRow]) -> bool {
    match sent.words() {
        AnswerWords::Yes(to) => named(rows, to).is_some(),
        AnswerWords::No(_) => by.has_denied(rows, &sent.id),
    }
}

/// The question of this code; one that is open first.
fn named<'a>(rows: &'a [ApprovalRow], to: &str) -> Option<&'a ApprovalRow> {
    let all = || rows.iter().filter(|row| code(&row.asked.id) == to);
    all().find(|row| row.state == ApprovalState::Open).or_else(|| all().next_back())
}

/// Answers questions of the task by a text: the one that a yes names, or with a no all that are open.
async fn answer(by: &Caller, task: &KeptItem, sent: &SentMessage, rows: &[ApprovalRow]) -> Answered<()> {
    by.needs(AccessScope::Approve, Refuses::Never)?;
    if sent.text.trim().is_empty() {
        return Err(Problem::bad_request("an answer says something"));
    }
    if !is_answer(by, sent, rows) && rows.iter().all(|row| row.state != ApprovalState::Open) {
        return Err(refusal::unsupported("the question was answered before"));
    }
    match sent.words() {
        AnswerWords::Yes(to) => {
            let asked = &named(rows, to).ok_or_else(|| unclear(rows))?.asked;
            drop(by.decide(&task.kept, asked.id.as_str(), asked.digest.clone(), &Decision::Approve).await?);
        }
        AnswerWords::No(words) => by.deny(&task.kept, rows, (words, &sent.id)).await?,
    }
    Ok(())
}

/// A yes that names no question which is open: nothing is decided.
fn unclear(rows: &[ApprovalRow]) -> Problem {
    let open = rows.iter().filter(|row| row.state == ApprovalState::Open);
    let asked = open.filter_map(|row| serde_json::from_slice::<ApprovalRequest>(&row.asked.bytes).ok());
    let all: Vec<String> =
        asked.map(|asked| format!("`approve {}` for {}", code(&asked.id), asked.tool)).collect();
    Problem::bad_request(format!("say which question you approve: {}", all.join(", ")))
}
