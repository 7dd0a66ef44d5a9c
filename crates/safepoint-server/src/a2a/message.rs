//! A message of a client, as it was sent.

use axum::http::StatusCode;
use safepoint::{approval::Decision, ids::ApprovalId};
use serde_json::Value;

use super::refusal;
use crate::problem::{Answered, Problem};

/// The longest id of a message.
const MOST_ID: usize = 256;

/// A message, and how its sender wants to be answered.
#[derive(Clone, Debug)]
pub(super) struct SentMessage {
    pub(super) id: String,
    /// All of its text; data that is no decision is text too, as JSON.
    pub(super) text: String,
    pub(super) decisions: Vec<SentDecision>,
    /// The session that it names.
    pub(super) context: Option<String>,
    /// The task that it is for.
    pub(super) task: Option<String>,
    pub(super) is_answered_at_once: bool,
    pub(super) history: HistoryLength,
}

/// The answer to a question, bound to what was asked.
#[derive(Clone, Debug)]
pub(super) struct SentDecision {
    pub(super) approval: String,
    pub(super) digest: String,
    pub(super) decision: Decision,
}

/// How many messages of a task its reader wants. Exhaustive: all that there are, or at most so many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum HistoryLength {
    #[default]
    All,
    Most(usize),
}

impl SentMessage {
    /// The message in these parameters.
    ///
    /// # Errors
    /// What is missing or wrong, and what is not offered.
    pub(super) fn read(params: &Value) -> Answered<Self> {
        let message = &params["message"];
        if !message.is_object() {
            return Err(missing("message"));
        }
        let id = text(message, "messageId").ok_or_else(|| missing("message.messageId"))?;
        if id.len() > MOST_ID {
            return Err(Problem::bad_request(format!("`message.messageId` has at most {MOST_ID} bytes")));
        }
        if !matches!(message["role"].as_str(), Some("ROLE_USER")) {
            return Err(Problem::bad_request("`message.role` is ROLE_USER"));
        }
        let configuration = &params["configuration"];
        if !field(configuration, "taskPushNotificationConfig").is_null() {
            return Err(refusal::no_push());
        }
        accepted(field(configuration, "acceptedOutputModes"))?;
        let (text_of, decisions) = parts(&message["parts"])?;
        Ok(Self {
            id,
            text: text_of,
            decisions,
            context: text(message, "contextId"),
            task: text(message, "taskId"),
            is_answered_at_once: field(configuration, "returnImmediately").as_bool().unwrap_or(false),
            history: HistoryLength::read(configuration)?,
        })
    }

    /// What is meant by the text of an answer.
    pub(super) fn words(&self) -> AnswerWords<'_> {
        let (first, rest) =
            self.text.trim().split_once(char::is_whitespace).unwrap_or((self.text.trim(), ""));
        if first.eq_ignore_ascii_case("approve") {
            AnswerWords::Yes(rest.trim())
        } else {
            AnswerWords::No(&self.text)
        }
    }
}

/// The text of an answer. Exhaustive: a yes with what stands behind it, or a no.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AnswerWords<'a> {
    Yes(&'a str),
    No(&'a str),
}

/// What a yes in words names a question by: a question that was asked meanwhile has another one.
pub(super) fn code(approval: &ApprovalId) -> &str {
    const LAST: usize = 6;
    let text = approval.as_str();
    text.get(text.len().saturating_sub(LAST)..).unwrap_or(text)
}

impl HistoryLength {
    /// # Errors
    /// If it is no count.
    pub(super) fn read(from: &Value) -> Answered<Self> {
        match field(from, "historyLength") {
            Value::Null => Ok(Self::All),
            length => count(length).map(Self::Most).ok_or_else(|| wrong("historyLength")),
        }
    }
}

/// A count, as a number or, in a query, as text.
pub(super) fn count(value: &Value) -> Option<usize> {
    let number = value.as_u64().or_else(|| value.as_str()?.parse().ok())?;
    usize::try_from(number).ok()
}

pub(super) fn wrong(name: &str) -> Problem {
    Problem::bad_request(format!("`{name}` is not what it should be"))
}

pub(super) fn missing(name: &str) -> Problem {
    Problem::bad_request(format!("`{name}` is missing"))
}

/// A text that is not empty.
pub(super) fn text(from: &Value, name: &str) -> Option<String> {
    field(from, name).as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

/// A field by its name in JSON, or by that of the protocol's definition, which readers of such JSON take too.
pub(super) fn field<'a>(from: &'a Value, name: &str) -> &'a Value {
    if let Some(value) = from.get(name) {
        return value;
    }
    let mut defined = String::with_capacity(name.len() + 1);
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            defined.push('_');
        }
        defined.push(letter.to_ascii_lowercase());
    }
    &from[defined.as_str()]
}

/// The agent answers with text: a client that takes none is refused before anything runs for it.
fn accepted(modes: &Value) -> Answered<()> {
    let modes = modes.as_array().map(Vec::as_slice).unwrap_or_default();
    let is_text = |mode: &Value| {
        let essence = mode.as_str().unwrap_or_default().split(';').next().unwrap_or_default().trim();
        ["text/plain", "text/*", "*/*", "text"].iter().any(|text| essence.eq_ignore_ascii_case(text))
    };
    if modes.is_empty() || modes.iter().any(is_text) {
        return Ok(());
    }
    Err(refusal::content_type("the agent answers with text/plain, which `acceptedOutputModes` has not"))
}

fn parts(parts: &Value) -> Answered<(String, Vec<SentDecision>)> {
    let parts = parts.as_array().filter(|parts| !parts.is_empty()).ok_or_else(|| missing("message.parts"))?;
    let (mut texts, mut decisions) = (Vec::new(), Vec::new());
    for part in parts {
        match (part["text"].as_str(), part.get("data")) {
            (Some(text), None) => texts.push(text.to_owned()),
            (None, Some(data)) if is_decision(data) => decisions.push(decided(data)?),
            (None, Some(data)) => texts.push(data.to_string()),
            _ => {
                let detail = "the agent reads text and data; a part of this message is neither";
                return Err(refusal::content_type(detail));
            }
        }
    }
    Ok((texts.join("\n"), decisions))
}

fn is_decision(data: &Value) -> bool {
    data["approval"].is_string() && data["decision"].is_string()
}

/// A decision as data: the approval and its digest, as the question had them, and the fields of the decision.
fn decided(data: &Value) -> Answered<SentDecision> {
    let approval = text(data, "approval").ok_or_else(|| missing("approval"))?;
    let digest = text(data, "digest").ok_or_else(|| missing("digest"))?;
    let decision = serde_json::from_value(data.clone()).map_err(|error| {
        Problem::new(StatusCode::BAD_REQUEST, "bad_request", format!("this is no decision: {error}"))
    })?;
    Ok(SentDecision { approval, digest, decision })
}
