//! The input of a response: what is said, with what was said before it; or answers to questions.

use safepoint::approval::Decision;
use serde_json::Value;

use super::request::{unsupported, wrong};
use crate::{host::setup::EarlierMessage, problem::Answered};

/// The text between two messages of one person that follow one another.
const BETWEEN: &str = "\n\n";

/// Exhaustive: a message behind earlier ones, or answers to questions.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Input {
    Said { earlier: Vec<EarlierMessage>, text: String },
    Answers(Vec<QuestionAnswer>),
}

/// An answer to a question.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct QuestionAnswer {
    pub(super) approval: String,
    pub(super) decision: Decision,
}

impl Input {
    /// # Errors
    /// `unsupported_parameter` with the place of what is not supported, and `bad_request`.
    pub(super) fn read(input: &Value) -> Answered<Self> {
        let items = match input {
            Value::String(text) => return Ok(Self::Said { earlier: Vec::new(), text: text.clone() }),
            Value::Array(items) => items,
            _ => return Err(wrong("input", "it is a text or a list")),
        };
        let (mut said, mut answers) = (Vec::new(), Vec::new());
        for (place, item) in items.iter().enumerate() {
            let place = format!("input[{place}]");
            match item["type"].as_str() {
                Some("mcp_approval_response") => answers.push(answer(&place, item)?),
                None | Some("message") => join(&mut said, message(&place, item)?),
                Some(other) => {
                    let detail =
                        format!("the server takes messages and answers to questions, and no `{other}`");
                    return Err(unsupported(&format!("{place}.type"), &detail));
                }
            }
        }
        match (said.pop(), answers.is_empty()) {
            (Some(EarlierMessage::User(text)), true) => Ok(Self::Said { earlier: said, text }),
            (Some(EarlierMessage::Assistant(_)), true) => Err(wrong("input", "its last message is a user's")),
            (None, true) => Err(wrong("input", "it is empty")),
            (None, false) => Ok(Self::Answers(answers)),
            (Some(_), false) => Err(unsupported("input", "answers to questions come without a message")),
        }
    }
}

/// Adds a message to those before; what one person says in several messages is one.
fn join(all: &mut Vec<EarlierMessage>, next: EarlierMessage) {
    match (all.last_mut(), next) {
        (Some(EarlierMessage::User(last)), EarlierMessage::User(next))
        | (Some(EarlierMessage::Assistant(last)), EarlierMessage::Assistant(next)) => {
            last.push_str(BETWEEN);
            last.push_str(&next);
        }
        (_, next) => all.push(next),
    }
}

fn message(place: &str, item: &Value) -> Answered<EarlierMessage> {
    let text = content(place, &item["content"])?;
    match item["role"].as_str() {
        Some("user") => Ok(EarlierMessage::User(text)),
        Some("assistant") => Ok(EarlierMessage::Assistant(text)),
        Some(_) => Err(unsupported(&format!("{place}.role"), "the agent has its own instructions")),
        None => Err(wrong(&format!("{place}.role"), "it is missing")),
    }
}

fn content(place: &str, content: &Value) -> Answered<String> {
    let parts = match content {
        Value::String(text) => return Ok(text.clone()),
        Value::Array(parts) => parts,
        _ => return Err(wrong(&format!("{place}.content"), "it is a text or a list")),
    };
    let mut all = String::new();
    for (number, part) in parts.iter().enumerate() {
        let place = format!("{place}.content[{number}]");
        match (part["type"].as_str(), part["text"].as_str()) {
            (Some("input_text" | "output_text" | "text"), Some(text)) => all.push_str(text),
            (Some("input_text" | "output_text" | "text"), None) => {
                return Err(wrong(&format!("{place}.text"), "it is a text"));
            }
            _ => return Err(unsupported(&format!("{place}.type"), "an item of a session is a text")),
        }
    }
    Ok(all)
}

fn answer(place: &str, item: &Value) -> Answered<QuestionAnswer> {
    let id = item["approval_request_id"].as_str();
    let approval =
        id.ok_or_else(|| wrong(&format!("{place}.approval_request_id"), "it is a text"))?.to_owned();
    let reason = item["reason"].as_str().unwrap_or_default();
    let decision = match item["approve"].as_bool() {
        Some(true) => Decision::Approve,
        Some(false) => Decision::deny(reason),
        None => return Err(wrong(&format!("{place}.approve"), "it is true or false")),
    };
    Ok(QuestionAnswer { approval, decision })
}
