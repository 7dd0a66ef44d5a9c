//! The questions of a turn, as the protocol asks them: a form that is filled in.
//!
//! **Invariants**: only the word `approve` is a yes, and declining is a no; nothing else decides.

use rmcp::model::{
    ClientCapabilities, ElicitRequest, ElicitRequestParams, ElicitationSchema, InputRequest, InputRequests,
};
use safepoint::approval::{ApprovalRequest, Decision};
use serde_json::{Map, Value, json};

use crate::problem::Answered;

/// How many characters of the arguments a question shows.
const SHOWN_CHARS: usize = 2_000;

/// What an answer is.
pub(super) const ACCEPTED: &str = r#"{"action": "accept", "content": {"decision": "approve"}}, the same with "deny", {"action": "decline"}, or {"action": "cancel"}, which leaves it open"#;

/// What a client gave for an answer. Exhaustive: it decided, or it left the question open.
#[derive(Debug, PartialEq)]
pub(super) enum Given {
    Decision(Decision),
    Nothing,
}

impl Given {
    /// Of the protocol's answer to a form; none: it is not valid, see [`ACCEPTED`].
    pub(super) fn of(answer: &Value) -> Option<Self> {
        match (answer["action"].as_str()?, answer["content"]["decision"].as_str()) {
            ("accept", Some("approve")) => Some(Self::Decision(Decision::Approve)),
            ("accept", Some("deny")) | ("decline", _) => Some(Self::Decision(Decision::deny(""))),
            ("cancel", _) => Some(Self::Nothing),
            _ => None,
        }
    }
}

/// Whether the client fills in forms.
pub(super) fn fills_in(client: &ClientCapabilities) -> bool {
    let declared = client.elicitation.as_ref();
    declared.is_some_and(|declared| declared.form.is_some() || declared.url.is_none())
}

/// The question as a form.
///
/// # Errors
/// The protocol's types take no such form.
pub(super) fn form(asked: &ApprovalRequest) -> Answered<ElicitRequestParams> {
    let mut args = asked.args.to_string();
    if let Some((at, _)) = args.char_indices().nth(SHOWN_CHARS) {
        args.truncate(at);
        args.push('…');
    }
    let schema: Map<String, Value> = serde_json::from_value(json!({
        "type": "object", "required": ["decision"],
        "properties": {"decision": {"type": "string", "title": "Decision", "enum": ["approve", "deny"]}},
    }))?;
    let requested_schema = ElicitationSchema::from_json_schema(schema)?;
    let message = format!("May `{}` run with {args}?", asked.tool);
    Ok(ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema })
}

/// Those questions by their ids, for a client that answers them with its next request.
///
/// # Errors
/// As [`form`].
pub(super) fn forms(questions: &[ApprovalRequest]) -> Answered<InputRequests> {
    let of = |asked: &ApprovalRequest| {
        let request = InputRequest::Elicitation(ElicitRequest::new(form(asked)?));
        Ok((asked.id.to_string(), request))
    };
    questions.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S13.18: only the word is a yes.
    #[test]
    fn only_the_word_approve_is_a_yes() {
        let of = |answer: Value| Given::of(&answer);
        let yes = of(json!({"action": "accept", "content": {"decision": "approve"}}));
        assert_eq!(yes, Some(Given::Decision(Decision::Approve)));
        let no = Some(Given::Decision(Decision::deny("")));
        assert_eq!(of(json!({"action": "accept", "content": {"decision": "deny"}})), no);
        assert_eq!(of(json!({"action": "decline"})), no);
        assert_eq!(of(json!({"action": "cancel"})), Some(Given::Nothing));
        for invalid in [
            json!({"action": "accept"}),
            json!({"action": "accept", "content": {"decision": true}}),
            json!({"action": "accept", "content": {"decision": "Approve"}}),
            json!({"content": {"decision": "approve"}}),
            json!("approve"),
        ] {
            assert_eq!(of(invalid.clone()), None, "{invalid}");
        }
    }
}
