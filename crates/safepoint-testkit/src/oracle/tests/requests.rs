//! What is beside the history: tools, media and marks.

use serde_json::{Value, json};

use super::{HistoryRule, chat, talk, user};
use crate::oracle::{Violation, anthropic, gemini, openai, responses};

fn with(mut body: Value, field: &str, value: Value) -> Value {
    body[field] = value;
    body
}

fn refused(of: Result<(), Violation>, rule: HistoryRule, words: &str) {
    let refused = of.expect_err(words);
    assert_eq!(refused.rule, rule, "{refused}");
    assert!(refused.message.contains(words), "{refused}");
}

fn contents() -> Value {
    json!({"contents": [{"parts": [{"text": "hi"}]}]})
}

/// S4.24: a provider refuses a tool that it does not have, a setting that the tool does not have, and one that lacks what it
/// needs.
#[test]
fn tools_are_judged_by_each_providers_rules() {
    let talk = |tool: Value| anthropic(&with(talk(json!([user()])), "tools", json!([tool])));
    let search = |more: Value| {
        let mut tool = json!({"type": "web_search_20250305", "name": "web_search"});
        more.as_object().into_iter().flatten().for_each(|(name, value)| tool[name] = value.clone());
        tool
    };
    assert!(talk(search(json!({"max_uses": 1}))).is_ok());
    let rule = HistoryRule::ToolDeclaration;
    for (tool, words) in [
        (json!({"type": "web_search"}), "'web_search'"),
        (search(json!({"filters": {}})), "filters: Extra inputs"),
        (search(json!({"allowed_domains": ["a"], "blocked_domains": ["b"]})), "Only one of"),
        (json!({"name": "f"}), "input_schema"),
    ] {
        refused(talk(tool), rule, words);
    }
    let items = |tool: Value| responses(&with(json!({"input": "hi"}), "tools", json!([tool])));
    assert!(items(json!({"type": "web_search", "filters": {"allowed_domains": ["a"]}})).is_ok());
    for (tool, words) in [
        (json!({"type": "google_search"}), "'google_search'"),
        (json!({"type": "web_search", "max_uses": 1}), "max_uses"),
        (json!({"type": "file_search"}), "vector_store_ids"),
        (json!({"type": "code_interpreter"}), "container"),
        (json!({"type": "function"}), "name"),
    ] {
        refused(items(tool), rule, words);
    }
    for kind in ["namespace", "custom", "shell", "web_search_preview"] {
        assert!(
            items(json!({"type": kind, "name": "n"})).is_ok(),
            "{kind} is one that an agent of others declares"
        );
    }
    assert!(items(json!({"type": "web_search", "external_web_access": false})).is_ok());
    assert!(talk(json!({"type": "bash_20250124", "name": "bash"})).is_ok());
    let chats = |tool: Value| openai(&with(chat(json!([user()])), "tools", json!([tool])));
    refused(chats(json!({"type": "web_search"})), rule, "'web_search'");
    refused(chats(json!({"type": "function"})), rule, "function.name");
    let both = json!([{"functionDeclarations": [{"name": "f"}]}, {"googleSearch": {}}]);
    let gemini_with = |tools: &Value| with(contents(), "tools", tools.clone());
    refused(gemini(&gemini_with(&both)), rule, "include_server_side_tool_invocations");
    let enabled = with(gemini_with(&both), "toolConfig", json!({"includeServerSideToolInvocations": true}));
    assert!(gemini(&enabled).is_ok());
    refused(gemini(&gemini_with(&json!([{"web_search": {}}]))), rule, "web_search");
}

/// S5.1: a provider refuses an image, a sound or a document of a type that it does not take.
#[test]
fn media_are_judged_by_each_providers_rules() {
    let rule = HistoryRule::MediaType;
    let said = |part: Value| json!({"role": "user", "content": [part]});
    for (part, words) in [
        (
            json!({"type": "image_url", "image_url": {"url": "data:image/tiff;base64,eA=="}}),
            "unsupported image",
        ),
        (json!({"type": "input_audio", "input_audio": {"data": "eA==", "format": "ogg"}}), "'ogg'"),
        (json!({"type": "file", "file": {"file_data": "data:text/csv;base64,eA=="}}), "application/pdf"),
        (json!({"type": "video"}), "'video'"),
    ] {
        refused(openai(&chat(json!([said(part)]))), rule, words);
    }
    for (part, words) in [
        (json!({"type": "input_audio"}), "'input_audio'"),
        (json!({"type": "input_image", "image_url": "data:image/tiff;base64,eA=="}), "unsupported image"),
    ] {
        refused(responses(&json!({"input": [said(part)]})), rule, words);
    }
    let source = |kind: &str, media: &str| json!({"type": kind, "media_type": media, "data": "eA=="});
    for (kind, source) in [
        ("image", source("base64", "image/tiff")),
        ("document", source("base64", "application/zip")),
        ("document", source("text", "text/markdown")),
        ("image", json!({})),
        ("audio", json!({})),
    ] {
        refused(anthropic(&talk(json!([said(json!({"type": kind, "source": source}))]))), rule, kind);
    }
    let part =
        |media: &str| json!({"contents": [{"parts": [{"inlineData": {"mimeType": media, "data": "eA=="}}]}]});
    assert!(gemini(&part("audio/wav")).is_ok() && gemini(&part("text/csv")).is_ok());
    refused(gemini(&part("image/gif")), rule, "image/gif");
}

/// S12.1: a request has four marks for the cache at most.
#[test]
fn marks_for_the_cache_are_bounded() {
    let marked = |count: usize, mark: Value| {
        let blocks: Vec<Value> = vec![json!({"type": "text", "text": "t", "cache_control": mark}); count];
        anthropic(&talk(json!([{"role": "user", "content": blocks}])))
    };
    assert!(marked(4, json!({"type": "ephemeral", "ttl": "1h"})).is_ok());
    refused(marked(5, json!({"type": "ephemeral"})), HistoryRule::CacheMarks, "Found 5");
    refused(marked(1, json!({"type": "ephemeral", "ttl": "2h"})), HistoryRule::CacheMarks, "'1h'");
}
