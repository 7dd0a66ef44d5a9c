//! A response is created: an item of a new session, the next item of one, or what follows the answers to its questions.

use axum::{http::StatusCode, response::Response};
use safepoint::{
    raw::store::{ApprovalRow, ApprovalState, ItemState},
    session::{Policy, QueueAfterStop},
};
use serde_json::{Map, Value};

use super::{
    agent, alone,
    id::{self, ResponseId, ResponsePart},
    input::{Input, QuestionAnswer},
    kept::KeptResponse,
    lists::no_conversation,
    offers,
    request::{AnswerForm, Behind, Wanted, unsupported, wrong},
    stream,
};
use crate::{
    access::AccessScope,
    ask::StopAsk,
    caller::{Caller, Kept, SessionMake, items::ItemPush},
    host::{open::Seen, read, setup::EarlierMessage},
    load::ReaderPlace,
    problem::{Answered, Problem},
    routes::{Call, json, table::Refuses},
};

pub(super) async fn create(call: Call) -> Answered<Response> {
    let body: Map<String, Value> = call.body()?;
    let wanted = Wanted::read(body)?;
    let by = &call.by;
    match wanted.input {
        Input::Answers(_) => by.needs(AccessScope::Approve, Refuses::Never)?,
        Input::Said { .. } => by.needs(AccessScope::Talk, Refuses::UnderLoad)?,
    }
    let Wanted { model, input, behind, answer, is_kept } = wanted;
    let before = match behind {
        Behind::Nothing => None,
        Behind::Response(id) => {
            let before = KeptResponse::find(by, &id)
                .await
                .map_err(|problem| problem.with("param", "previous_response_id"))?;
            Some((before.kept, Some(before.number)))
        }
        Behind::Conversation(id) => Some((conversation(by, &id).await?, None)),
    };
    if let (Some((kept, _)), Some(model)) = (&before, &model)
        && kept.setup.agent != *model
    {
        return Err(wrong("model", &format!("the conversation is one of `{}`", kept.setup.agent)));
    }
    // First: without a place to read it nothing is begun.
    let place = match answer {
        AnswerForm::Stream if is_kept => Some(ReaderPlace::take(&by.load, by.who.name())?),
        _ => None,
    };
    let response = match (input, before) {
        (Input::Answers(answers), Some((kept, _))) => answered(by, kept, answers).await?,
        (Input::Answers(_), None) => {
            return Err(wrong("previous_response_id", "it names the response whose questions are answered"));
        }
        (Input::Said { earlier, text }, None) => {
            let agent = agent(by, model.as_deref())?;
            if !is_kept {
                if call.key()?.is_some() {
                    let why = "what is not kept cannot be sent again: leave `store` out, or the key";
                    return Err(unsupported("Idempotency-Key", why));
                }
                return alone::create(&call, &agent, (earlier, text), answer).await;
            }
            begun(&call, agent, (earlier, text)).await?
        }
        (Input::Said { earlier, .. }, Some(_)) if !earlier.is_empty() => {
            return Err(unsupported("input", "a conversation that is kept is continued with one message"));
        }
        (Input::Said { text, .. }, Some((kept, before))) => pushed(&call, kept, (before, text)).await?,
    };
    match (answer, place) {
        (AnswerForm::Begun, _) => json(StatusCode::OK, &response.object().await?),
        (_, Some(place)) => stream::response(place, response, None).await,
        (_, None) => json(StatusCode::OK, &response.over().await?),
    }
}

async fn conversation(by: &Caller, id: &str) -> Answered<Kept> {
    let kept = by.session(id::session_of(id)).await.map_err(no_conversation);
    let kept = kept.map_err(|problem| problem.with("param", "conversation"))?;
    if offers(by, &kept.setup.agent) { Ok(kept) } else { Err(Problem::no_such("conversation")) }
}

/// The first response of a new session.
async fn begun(
    call: &Call,
    agent: String,
    (earlier, text): (Vec<EarlierMessage>, String),
) -> Answered<KeptResponse> {
    let key = call.key()?;
    let item = Some(ItemPush { text, policy: Policy::Enqueue, key: key.clone() });
    let make = SessionMake { agent: Some(agent), item, key, earlier, ..SessionMake::default() };
    let (kept, _) = call.by.make(make).await?;
    of_item(&call.by, kept, 1).await
}

async fn of_item(by: &Caller, kept: Kept, number: u64) -> Answered<KeptResponse> {
    let id = ResponseId::of_item(kept.id().as_str(), number);
    KeptResponse::of(by, kept, (id, number)).await
}

/// The next response of a session that has nothing else to do; behind the item `before`, if that is said.
async fn pushed(call: &Call, kept: Kept, (before, text): (Option<u64>, String)) -> Answered<KeptResponse> {
    let by = &call.by;
    let item = ItemPush { text, policy: Policy::Reject, key: call.key()? };
    if let Some(number) = by.known(&kept, &item).await? {
        return of_item(by, kept, number).await;
    }
    if let Some(before) = before {
        is_newest(by, &kept, before).await?;
    }
    let owner = by.owner(&kept).await?;
    let pushed = by.push(&kept, &owner, &item).await?;
    if let (Some(before), Seen::First) = (before, pushed.seen)
        && newest(by, &kept, pushed.number).await?.is_some_and(|newest| newest != before)
    {
        // Another request came between the look and the push.
        let request = StopAsk::default().request(by.who.name())?;
        drop(by.stop_item(&kept, pushed.number, request, QueueAfterStop::Continues).await?);
        return Err(not_latest());
    }
    of_item(by, kept, pushed.number).await
}

/// # Errors
/// `not_latest`, and the store's.
async fn is_newest(by: &Caller, kept: &Kept, before: u64) -> Answered<()> {
    match newest(by, kept, u64::MAX).await? {
        Some(newest) if newest != before => Err(not_latest()),
        _ => Ok(()),
    }
}

/// The newest item of the session below this number, which a turn has or had, or which waits.
async fn newest(by: &Caller, kept: &Kept, below: u64) -> Answered<Option<u64>> {
    let inbox = by.store().inbox(kept.id()).await?;
    let waits = inbox.iter().filter(|row| row.state != ItemState::Removed).map(|row| row.number);
    let turns = read::turns(by.store(), kept.id()).await?;
    let had = turns.values().flat_map(|turn| turn.items.iter().copied());
    Ok(waits.chain(had).filter(|number| *number < below).max())
}

fn not_latest() -> Problem {
    let detail = "the response is not the newest of its conversation, which does not branch";
    Problem::conflict("not_latest", detail).with("param", "previous_response_id")
}

/// What follows the answers to all open questions of the session.
async fn answered(by: &Caller, kept: Kept, answers: Vec<QuestionAnswer>) -> Answered<KeptResponse> {
    let rows = by.store().approvals(kept.id()).await?;
    let is_answered =
        |row: &ApprovalRow| answers.iter().any(|answer| row.asked.id.as_str() == answer.approval);
    if let Some(open) = rows.iter().find(|row| row.state == ApprovalState::Open && !is_answered(row)) {
        let detail = format!("`{}` is open too: answer all questions at once", open.asked.id);
        return Err(wrong("input", &detail));
    }
    let mut found = Vec::new();
    for answer in &answers {
        let row = rows.iter().find(|row| row.asked.id.as_str() == answer.approval);
        found.push((answer, row.ok_or_else(|| Problem::no_such("approval"))?.asked.digest.clone()));
    }
    for (answer, digest) in found {
        drop(by.decide(&kept, &answer.approval, digest, &answer.decision).await?);
    }
    let first = answers.first().map(|answer| answer.approval.clone()).unwrap_or_default();
    let id = ResponseId { session: kept.id().to_string(), part: ResponsePart::After(first) };
    KeptResponse::find(by, &id.to_string()).await
}
