//! The rules of Anthropic messages.

use std::{borrow::Cow, collections::HashSet};

use serde_json::{Value, json};

use super::{
    HistoryRule, Violation,
    answer_schema::{self, SchemaRules},
    list, media, must, text, tools,
};

/// Judges the history of a messages request.
///
/// # Errors
/// The first violation.
pub fn judge(body: &Value) -> Result<(), Violation> {
    let is_bounded = body["max_tokens"].as_u64().is_some_and(|most| most > 0);
    must(is_bounded, 0, HistoryRule::MaxTokens, || "max_tokens: Field required")?;
    tools::anthropic(body)?;
    cache_marks(body)?;
    answer_schema::judge(&body["output_config"]["format"]["schema"], "", SchemaRules::Anthropic)?;
    let messages = list(&body["messages"]);
    must(body["messages"].is_array(), 0, HistoryRule::SomeMessages, || "messages: Field required")?;
    let says = "messages: at least one message is required";
    must(!messages.is_empty(), 0, HistoryRule::SomeMessages, || says)?;
    let mut history = History::default();
    for (index, message) in messages.iter().enumerate() {
        history.take(index, message)?;
    }
    history.must_be_answered()?;
    ends_cleanly(messages)?;
    if body["thinking"]["type"] == "enabled" { thinking_first(messages) } else { Ok(()) }
}

/// A request has four marks for the cache at most, each of a kind that the provider knows.
fn cache_marks(body: &Value) -> Result<(), Violation> {
    const MOST: usize = 4;
    let blocks = list(&body["messages"]).iter().flat_map(|message| list(&message["content"]));
    let all = list(&body["system"]).iter().chain(list(&body["tools"])).chain(blocks);
    let marks: Vec<&Value> =
        all.map(|block| &block["cache_control"]).filter(|mark| !mark.is_null()).collect();
    let is_known = |mark: &&Value| {
        mark["type"] == "ephemeral" && matches!(mark["ttl"].as_str(), None | Some("5m" | "1h"))
    };
    must(
        marks.iter().all(is_known),
        0,
        HistoryRule::CacheMarks,
        || "cache_control.ttl: Input should be '5m' or '1h'",
    )?;
    must(marks.len() <= MOST, 0, HistoryRule::CacheMarks, || {
        format!("A maximum of 4 blocks with cache_control may be provided. Found {}.", marks.len())
    })
}

/// What the messages so far leave to be watched.
#[derive(Default)]
struct History {
    /// Ids of all calls.
    seen: HashSet<String>,
    /// Calls of the message before.
    asked: Vec<String>,
    /// Those of them that are not answered.
    open: Vec<String>,
    /// Where they were asked.
    at: usize,
}

impl History {
    fn take(&mut self, index: usize, message: &Value) -> Result<(), Violation> {
        let role = text(&message["role"]);
        self.alternates(index, role)?;
        let blocks = blocks(message);
        must(!blocks.is_empty(), index, HistoryRule::SomeContent, || {
            format!(
                "messages.{index}: all messages must have non-empty content except for the optional final assistant message"
            )
        })?;
        texts(index, &blocks)?;
        blocks.iter().try_for_each(|block| media::anthropic(index, block))?;
        match role {
            "user" => self.results(index, &blocks),
            _ => self.uses(index, &blocks),
        }
    }

    /// The user has the even places, the assistant the odd ones.
    fn alternates(&self, index: usize, role: &str) -> Result<(), Violation> {
        let broken = |says: String| Err(Violation::new(index, HistoryRule::RolesAlternate, says));
        match (role, index % 2) {
            ("user", 0) | ("assistant", 1) => Ok(()),
            ("assistant", _) if index == 0 => {
                broken("messages: first message must use the \"user\" role".into())
            }
            ("user" | "assistant", _) => broken(format!(
                "messages: roles must alternate between \"user\" and \"assistant\", but found multiple \"{role}\" roles in a row"
            )),
            (other, _) => {
                let says = format!(
                    "messages: Unexpected role \"{other}\". Allowed roles are \"user\" or \"assistant\""
                );
                Err(Violation::new(index, HistoryRule::KnownRole, says))
            }
        }
    }

    fn results(&mut self, index: usize, blocks: &[Value]) -> Result<(), Violation> {
        let mut text_before = false;
        for (place, block) in blocks.iter().enumerate() {
            if block["type"] != "tool_result" {
                text_before = true;
                continue;
            }
            result_content(index, place, block)?;
            let id = text(&block["tool_use_id"]);
            if let Some(waits) = self.open.iter().position(|open| open == id) {
                // To the provider, a result behind a text is no result at all.
                if text_before {
                    return Err(self.unanswered(HistoryRule::ResultsFirst));
                }
                self.open.remove(waits);
                continue;
            }
            let says = if self.asked.iter().any(|asked| asked == id) {
                format!(
                    "messages.{index}.content.{place}: each tool_use must have a single result. Found multiple `tool_result` blocks with id: {id}"
                )
            } else {
                format!(
                    "messages.{index}.content.{place}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
                )
            };
            return Err(Violation::new(index, HistoryRule::ResultWithoutCall, says));
        }
        self.must_be_answered()?;
        self.asked.clear();
        Ok(())
    }

    fn uses(&mut self, index: usize, blocks: &[Value]) -> Result<(), Violation> {
        self.at = index;
        let mut trailing = false;
        for (place, block) in blocks.iter().enumerate() {
            let kind = text(&block["type"]);
            if kind == "tool_use" {
                let id = self.tool_use(index, place, block)?;
                self.asked.push(id);
                continue;
            }
            trailing |= !self.asked.is_empty();
            sealed(index, place, block, kind)?;
        }
        self.open.clone_from(&self.asked);
        own_tools(index, blocks)?;
        // The provider looks for results after the call and finds something else.
        if trailing { Err(self.unanswered(HistoryRule::CallsLast)) } else { Ok(()) }
    }

    fn tool_use(&mut self, index: usize, place: usize, block: &Value) -> Result<String, Violation> {
        let at = format!("messages.{index}.content.{place}");
        let id = text(&block["id"]);
        let fits = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
        must(!id.is_empty() && id.chars().all(fits), index, HistoryRule::OwnId, || {
            format!("{at}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'")
        })?;
        must(self.seen.insert(id.to_owned()), index, HistoryRule::OwnId, || {
            format!("{at}: `tool_use` ids must be unique")
        })?;
        must(!text(&block["name"]).is_empty(), index, HistoryRule::WellFormedCall, || {
            format!("{at}.tool_use.name: String should have at least 1 character")
        })?;
        must(block["input"].is_object(), index, HistoryRule::WellFormedCall, || {
            format!("{at}.tool_use.input: Input should be a valid dictionary")
        })?;
        Ok(id.to_owned())
    }

    fn must_be_answered(&self) -> Result<(), Violation> {
        if self.open.is_empty() { Ok(()) } else { Err(self.unanswered(HistoryRule::CallUnanswered)) }
    }

    fn unanswered(&self, rule: HistoryRule) -> Violation {
        let says = format!(
            "messages.{}: `tool_use` ids were found without `tool_result` blocks immediately after: {}. Each `tool_use` block must have a corresponding `tool_result` block in the next message.",
            self.at,
            self.open.join(", ")
        );
        Violation::new(self.at, rule, says)
    }
}

/// A result is a string or blocks; an error has text only.
fn result_content(index: usize, place: usize, block: &Value) -> Result<(), Violation> {
    let at = format!("messages.{index}.content.{place}.tool_result");
    for part in list(&block["content"]) {
        let kind = text(&part["type"]);
        let is_known = matches!(kind, "text" | "image" | "document" | "search_result");
        must(is_known, index, HistoryRule::ResultContent, || {
            format!(
                "{at}.content: Input tag '{kind}' found using 'type' does not match any of the expected tags"
            )
        })?;
        must(block["is_error"] != true || kind == "text", index, HistoryRule::ResultContent, || {
            format!("{at}: all content must be type \"text\" if \"is_error\" is true")
        })?;
    }
    Ok(())
}

fn blocks(message: &Value) -> Cow<'_, [Value]> {
    match &message["content"] {
        Value::String(text) if text.is_empty() => Cow::default(),
        Value::String(text) => Cow::Owned(vec![json!({"type": "text", "text": text})]),
        Value::Array(blocks) => Cow::Borrowed(blocks),
        _ => Cow::default(),
    }
}

fn texts(index: usize, blocks: &[Value]) -> Result<(), Violation> {
    for block in blocks.iter().filter(|block| block["type"] == "text") {
        let text = text(&block["text"]);
        let says = "messages: text content blocks must be non-empty";
        must(!text.is_empty(), index, HistoryRule::SomeText, || says)?;
        let says = "messages: text content blocks must contain non-whitespace text";
        must(!text.trim().is_empty(), index, HistoryRule::SomeText, || says)?;
    }
    Ok(())
}

/// A tool of the provider's own was used and gave its result in one message.
fn own_tools(index: usize, blocks: &[Value]) -> Result<(), Violation> {
    let used = blocks.iter().filter(|block| block["type"] == "server_tool_use");
    for id in used.map(|block| &block["id"]) {
        let has_result = blocks.iter().any(|block| block["tool_use_id"] == *id);
        must(has_result, index, HistoryRule::CallUnanswered, || {
            format!(
                "messages.{index}: `server_tool_use` block {id} was found without a corresponding result block"
            )
        })?;
    }
    Ok(())
}

/// Thinking carries its signature, redacted thinking its data.
fn sealed(index: usize, place: usize, block: &Value, kind: &str) -> Result<(), Violation> {
    let seal = match kind {
        "thinking" => "signature",
        "redacted_thinking" => "data",
        _ => return Ok(()),
    };
    must(!text(&block[seal]).is_empty(), index, HistoryRule::SignedThinking, || {
        format!("messages.{index}.content.{place}.{kind}.{seal}: Field required")
    })
}

fn ends_cleanly(messages: &[Value]) -> Result<(), Violation> {
    let last = messages.last().filter(|last| last["role"] == "assistant");
    let is_blank = last.is_some_and(|last| {
        blocks(last).last().is_some_and(|block| text(&block["text"]) != text(&block["text"]).trim_end())
    });
    let says = "messages: final assistant content cannot end with trailing whitespace";
    must(!is_blank, messages.len() - 1, HistoryRule::NoTrailingSpace, || says)
}

/// The last assistant message begins with thinking if its calls are answered by the last message of all.
fn thinking_first(messages: &[Value]) -> Result<(), Violation> {
    let Some(index) = messages.iter().rposition(|message| message["role"] == "assistant") else {
        return Ok(());
    };
    let blocks = blocks(&messages[index]);
    let has_calls = blocks.iter().any(|block| block["type"] == "tool_use");
    let first = blocks.first().map_or("", |block| text(&block["type"]));
    let holds = !has_calls || matches!(first, "thinking" | "redacted_thinking");
    must(holds, index, HistoryRule::ThinkingFirst, || {
        format!(
            "messages.{index}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{first}`. When `thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks). We recommend you include thinking blocks from previous turns. To avoid this requirement, disable `thinking`. Please consult our documentation at https://docs.anthropic.com/en/docs/build-with-claude/extended-thinking"
        )
    })
}
