//! The object of a response, as clients read it.

use serde_json::{Map, Value, json};

use super::{
    event::ResponseStatus,
    fold::Fold,
    id::{ResponseId, conversation},
};

/// What an error says that has no code of the protocol's own.
const SERVER_ERROR: &str = "server_error";

/// What of a response does not change.
#[derive(Clone, Debug)]
pub(super) struct ResponseHead {
    /// Its id, as the client has it.
    pub(super) id: String,
    pub(super) agent: String,
    /// In seconds since 1970.
    pub(super) created: i64,
    /// Where it is kept; none: it is not.
    pub(super) kept: Option<KeptHead>,
}

/// What is known of a response that is kept.
#[derive(Clone, Debug)]
pub(super) struct KeptHead {
    pub(super) session: String,
    pub(super) item: u64,
    /// The item whose response is the one before it.
    pub(super) previous: Option<u64>,
}

/// Why a turn failed: a stable code, and a text.
#[derive(Clone, Debug)]
pub(super) struct ResponseError {
    pub(super) code: String,
    pub(super) message: String,
}

impl ResponseHead {
    /// The response as it is.
    pub(super) fn object(&self, fold: &Fold, error: Option<&ResponseError>) -> Value {
        let facts = &fold.facts;
        let settled = facts.receipt.as_ref().and_then(|receipt| receipt["settled_at"].as_str());
        let settled =
            settled.and_then(|at| at.parse::<jiff::Timestamp>().ok()).map(jiff::Timestamp::as_second);
        let completed = settled.filter(|_| facts.status == ResponseStatus::Completed);
        let failed = (facts.status == ResponseStatus::Failed).then(|| {
            let text = |error: &ResponseError| format!("{}: {}", error.code, error.message);
            let message = error.map_or_else(|| "the run failed".to_owned(), text);
            json!({"code": SERVER_ERROR, "message": message})
        });
        let is_kept = self.kept.is_some();
        let (previous, session) = match &self.kept {
            Some(kept) => (kept.previous_id(), Some(json!({"id": conversation(&kept.session)}))),
            None => (None, None),
        };
        json!({
            "id": self.id, "object": "response", "created_at": self.created, "completed_at": completed,
            "status": facts.status.as_str(), "background": is_kept, "store": is_kept, "model": self.agent,
            "previous_response_id": previous, "conversation": session, "output": fold.output(),
            "error": failed, "incomplete_details": null, "usage": usage(facts.receipt.as_ref()),
            "metadata": self.metadata(fold), "instructions": null, "tools": [], "tool_choice": "auto",
            "parallel_tool_calls": true, "truncation": "disabled", "text": {"format": {"type": "text"}},
            "reasoning": null, "temperature": 1.0, "top_p": 1.0, "presence_penalty": 0.0,
            "frequency_penalty": 0.0, "top_logprobs": 0, "max_output_tokens": null, "max_tool_calls": null,
            "service_tier": "default", "safety_identifier": null, "prompt_cache_key": null,
        })
    }

    /// What of our own a client may want: texts, as the protocol has them.
    fn metadata(&self, fold: &Fold) -> Map<String, Value> {
        let facts = &fold.facts;
        let mut all = Map::new();
        let mut say = |name: &str, value: String| {
            all.insert(format!("safepoint_{name}"), json!(value));
        };
        if let Some(KeptHead { session, item, .. }) = &self.kept {
            say("session", session.clone());
            say("item", format!("item-{item}"));
            if let Some(turn) = facts.turn {
                say("receipt", format!("/v1/sessions/{session}/turns/turn-{turn}"));
            }
        }
        if let Some(outcome) = &facts.outcome {
            say("outcome", outcome.clone());
        } else if facts.is_stop_requested {
            say("stop", "requested".to_owned());
        }
        if facts.status.is_over() && facts.receipt.is_some() {
            let quiet = facts.survivors.as_ref().map(|names| names.is_empty().to_string());
            say("quiet", quiet.unwrap_or_else(|| "unknown".to_owned()));
            if let Some(names) = facts.survivors.as_ref().filter(|names| !names.is_empty()) {
                say("survivors", shortened(&names.join(", ")));
            }
        }
        all
    }
}

impl KeptHead {
    fn previous_id(&self) -> Option<String> {
        self.previous.map(|item| ResponseId::of_item(&self.session, item).to_string())
    }
}

/// A text as long as the protocol's metadata may be.
fn shortened(text: &str) -> String {
    const MOST: usize = 512;
    text.chars().take(MOST).collect()
}

fn usage(receipt: Option<&Value>) -> Value {
    let Some(usage) = receipt.map(|receipt| &receipt["usage_total"]) else { return Value::Null };
    let count = |name: &str| usage[name].as_u64().unwrap_or_default();
    json!({
        "input_tokens": count("input"), "output_tokens": count("output"),
        "total_tokens": count("input") + count("output"),
        "input_tokens_details": {"cached_tokens": count("cached_input")},
        "output_tokens_details": {"reasoning_tokens": count("reasoning")},
    })
}
