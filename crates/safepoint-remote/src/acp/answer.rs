//! `session/request_permission`: a question for a person, and their decision in the agent's terms.

use safepoint::{approval::Decision, raw::remote::RemoteQuestion};
use serde_json::{Map, Value, json};

use super::{
    message::{self, BAD_PARAMS},
    update::{Titles, shown},
};

/// An open question.
#[derive(Debug)]
pub(super) struct Asked {
    /// The agent's id of the question.
    pub(super) id: Value,
    options: Vec<Choice>,
}

#[derive(Debug)]
struct Choice {
    id: Value,
    kind: String,
}

impl Asked {
    /// What a person is asked: the call as the agent described it, and the answers that it offers.
    pub(super) fn read(id: Value, params: &Value, titles: &Titles) -> (Self, RemoteQuestion) {
        let call = &params["toolCall"];
        let offered = params["options"].as_array().map(Vec::as_slice).unwrap_or_default();
        let text = |option: &Value, name: &str| option[name].as_str().unwrap_or_default().to_owned();
        let options = offered
            .iter()
            .map(|option| Choice { id: option["optionId"].clone(), kind: text(option, "kind") });
        let asked = Self { options: options.collect(), id };
        let tool = call["kind"].as_str().map_or_else(|| "other".to_owned(), shown);
        let mut args = Map::new();
        args.insert("title".into(), titles.title(call).into());
        for (ours, theirs) in [("input", "rawInput"), ("locations", "locations"), ("content", "content")] {
            if !call[theirs].is_null() {
                args.insert(ours.into(), call[theirs].clone());
            }
        }
        let names = offered.iter().map(|option| json!({ text(option, "kind"): text(option, "name") }));
        args.insert("options".into(), names.collect());
        let question = RemoteQuestion { id: asked.id.to_string(), tool, args: args.into() };
        (asked, question)
    }

    /// The answer with the decision, and never more: a yes allows the call once, where the agent offers that.
    /// Later questions of the same kind are decided here, not by the agent.
    pub(super) fn answer(&self, decision: &Decision) -> Value {
        let wanted = match decision {
            Decision::Approve | Decision::ApproveAlways { .. } => ["allow_once", "allow_always"],
            // The protocol carries neither other arguments nor a result.
            Decision::ApproveWith { .. } | Decision::Deny { .. } | Decision::Respond { .. } => {
                ["reject_once", "reject_always"]
            }
        };
        let choice = wanted.iter().find_map(|kind| self.options.iter().find(|option| option.kind == *kind));
        match choice {
            Some(choice) => {
                message::answer(&self.id, &json!({"outcome": {"outcome": "selected", "optionId": choice.id}}))
            }
            None => message::refusal(&self.id, BAD_PARAMS, "no option says what was decided"),
        }
    }

    /// The answer where the turn is ended instead.
    pub(super) fn cancelled(&self) -> Value {
        message::answer(&self.id, &json!({"outcome": {"outcome": "cancelled"}}))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(kinds: &[&str]) -> Asked {
        let options: Vec<_> = kinds
            .iter()
            .map(|kind| json!({"optionId": format!("id-{kind}"), "name": "x", "kind": kind}))
            .collect();
        let params = json!({"toolCall": {"toolCallId": "1", "title": "Pay"}, "options": options});
        Asked::read(json!("q"), &params, &Titles::default()).0
    }

    fn chosen(kinds: &[&str], decision: &Decision) -> Option<String> {
        let answer = asked(kinds).answer(decision);
        answer["result"]["outcome"]["optionId"].as_str().map(str::to_owned)
    }

    /// S8.6
    #[test]
    fn a_yes_is_never_more_than_what_was_said() {
        let all = ["allow_always", "reject_always", "allow_once", "reject_once"];
        let no = Decision::Deny { message: "no".into() };
        assert_eq!(chosen(&all, &Decision::Approve).as_deref(), Some("id-allow_once"));
        assert_eq!(chosen(&all, &no).as_deref(), Some("id-reject_once"));
        assert_eq!(chosen(&["allow_always"], &Decision::Approve).as_deref(), Some("id-allow_always"));
        assert_eq!(chosen(&["allow_once"], &no), None, "a no is never a yes");
        assert_eq!(chosen(&["reject_once"], &Decision::Approve), None);
        let other = Decision::approve_with(json!({}));
        assert_eq!(chosen(&all, &other).as_deref(), Some("id-reject_once"));
        assert_eq!(asked(&["ponder"]).answer(&Decision::Approve)["error"]["code"], BAD_PARAMS);
    }
}
