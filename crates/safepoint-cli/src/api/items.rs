//! Items of a session on a server: pushed, waited for, withdrawn.
//!
//! **Invariants**: an item is pushed under one key, so it is one item however often it had to be sent.

use std::time::Duration;

use safepoint::{
    ids::TurnId,
    session::{ItemOutcome, RejectReason},
};
use serde_json::{Map, Value, json};
use tokio::time::sleep;

use super::{
    client::{ApiRequest, ServerApi},
    failure::ApiError,
    talk::TalkError,
};
use crate::{
    args::control::PolicyArg,
    control::{PushAsk, Replies, Reply, Wait, item_reply, refused},
    exit::{Usage, code},
    render::outcome_word::{outcome, reason},
};

/// How long one request waits for an end.
pub(super) const WAIT: Duration = Duration::from_secs(30);
/// How long to pause between two looks at what has not ended.
pub(super) const PAUSE: Duration = Duration::from_millis(200);

impl ServerApi {
    /// Pushes an item, and waits for its end if that is asked.
    pub(super) async fn push(
        &self,
        named: &str,
        ask: PushAsk,
        replies: &mut Replies<'_>,
    ) -> Result<Reply, TalkError> {
        let is_named = ask.client_id.is_some();
        let key = ask.client_id.clone().unwrap_or_else(|| format!("cli_{}", uuid::Uuid::now_v7().simple()));
        let body = body(&ask);
        let push = async |session: &str| {
            let path = ["sessions", session, "items"];
            let send = async || self.send(ApiRequest::post(&path, body.clone()).key(&key)).await;
            match send().await {
                // Under its key it is the same item, whether the first one arrived or not.
                Err(ApiError::Broken(_)) => send().await,
                answer => answer,
            }
        };
        let (session, answer) = match self.of_session(named, push).await {
            Ok(found) => found,
            Err(error) => return Ok(not_taken(&error).ok_or(error)?),
        };
        let item = text(&answer.body["id"]);
        let reply = match answer.is_replayed && is_named {
            true => Reply::new(code::ACCEPTED, "same", format!("it is in already, as {item}"))
                .detail(json!({ "item": item })),
            false => item_reply::accepted(&item),
        };
        let reply = Reply { session: session.clone(), ..reply };
        if ask.wait == Wait::No {
            return Ok(reply);
        }
        replies.show(&Reply { last: false, ..reply }).map_err(TalkError::Unshown)?;
        Ok(Reply { session: session.clone(), ..self.rest(&session, &item).await })
    }

    /// Waits until the item is at rest.
    async fn rest(&self, session: &str, item: &str) -> Reply {
        loop {
            let waits = self.left(WAIT);
            let ms = waits.as_millis().to_string();
            let path = ["sessions", session, "items", item];
            let query = [("wait", "rest"), ("timeout_ms", &*ms)];
            match self.send(ApiRequest::get(&path).query(&query).waits(waits)).await {
                Ok(answer) if answer.body["state"] == "rest" => return rested(item, &answer.body),
                Ok(_) if !self.left(WAIT).is_zero() => sleep(self.left(PAUSE)).await,
                Ok(_) | Err(ApiError::Over) => {
                    let said = format!("{item} is in; its end was not seen in time");
                    return Reply::new(code::TIMED_OUT, "timed_out", said).detail(json!({ "item": item }));
                }
                Err(error) => {
                    let reply = error.reply(&self.name());
                    let message = format!("{item} is in; its end was not seen: {}", reply.message);
                    return Reply { message, ..reply }.detail(json!({ "item": item }));
                }
            }
        }
    }

    /// Takes an item back.
    pub(super) async fn withdraw(&self, named: &str, item: &str) -> Result<Reply, ApiError> {
        let Some(number) = item_reply::number(item) else {
            let why = format!("`{item}` is no item; write it as item-7 or 7");
            return Err(ApiError::Unusable(Usage(why)));
        };
        let item = item_reply::named(number);
        let withdraw =
            async |session: &str| self.send(ApiRequest::delete(&["sessions", session, "items", &item])).await;
        match self.of_session(named, withdraw).await {
            Ok((session, _)) => Ok(Reply { session, ..item_reply::withdrawn(&item, None) }),
            Err(error) if error.code() == "taken" => Ok(item_reply::not_waiting(&item)),
            Err(error) if error.code() == "no_such_item" => Ok(item_reply::never_was(&item)),
            Err(error) => Err(error),
        }
    }
}

/// What is asked, without what is not said: a server refuses what the policy has no use for.
fn body(ask: &PushAsk) -> Value {
    let PushAsk { text, policy, at, within_ms, delay_ms, turn, client_id: _, or, wait: _ } = ask;
    let mut body = Map::from_iter([("text".to_owned(), json!(text)), ("policy".to_owned(), json!(policy))]);
    if *policy == PolicyArg::Steer {
        body.insert("or".to_owned(), json!(or));
    }
    // Without safe points a preempt is now, as on this machine.
    let within_ms = within_ms.filter(|_| at.is_some());
    let others = [
        ("at", json!(at)),
        ("within_ms", json!(within_ms)),
        ("delay_ms", json!(delay_ms)),
        ("turn", json!(turn)),
    ];
    body.extend(
        others
            .into_iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(name, value)| (name.to_owned(), value)),
    );
    Value::Object(body)
}

/// Why the session does not take the item, in the words of one on this machine; none for any other failure.
fn not_taken(error: &ApiError) -> Option<Reply> {
    let ApiError::Refused(problem) = error else { return None };
    let turn = problem.fields["turn"].as_str().and_then(|turn| turn.parse::<TurnId>().ok());
    let why = match &*problem.code {
        "turn_active" | "turn_suspended" => RejectReason::Busy(turn),
        "inbox_full" => RejectReason::Full,
        // It is said of the key.
        "other_content" => return None,
        code => reason(code)?,
    };
    let number = if why == RejectReason::Full { code::NO_ROOM } else { refused(why) };
    let reply = Reply::new(number, why.code(), format!("it is not taken: {why}"));
    Some(reply.detail(json!({ "fate": ItemOutcome::Returned(why) })))
}

/// What became of the item, as far as the server says it.
fn rested(item: &str, answer: &Value) -> Reply {
    let turn = text(&answer["turn"]).parse::<TurnId>().ok();
    let word = answer["outcome"].as_str().unwrap_or_default();
    match outcome(word, turn, answer["returned"].as_str()) {
        Some(outcome) => item_reply::rested(item, outcome, true),
        None => {
            let said = format!("{item} was withdrawn, dropped or returned: the server does not say which");
            Reply::new(code::TOO_LATE, "gone", said).detail(json!({ "item": item }))
        }
    }
}

/// The text of a field; empty where there is none.
pub(super) fn text(field: &Value) -> String {
    field.as_str().unwrap_or_default().to_owned()
}

/// The texts of a list; none where there is no list.
pub(super) fn names(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(ToOwned::to_owned).collect()
}
