//! The schemas of answers.

use serde_json::{Value, json};

use super::{HistoryRule, chat, talk, user};
use crate::oracle::{Violation, anthropic, gemini, openai, responses};

fn refused(of: Result<(), Violation>, words: &str) {
    let refused = of.expect_err(words);
    assert_eq!(refused.rule, HistoryRule::AnswerSchema);
    assert!(refused.message.contains(words), "{refused}");
}

fn of_openai(schema: &Value, strict: bool) -> Result<(), Violation> {
    let mut body = chat(json!([user()]));
    let named = json!({"name": "n", "strict": strict, "schema": schema});
    body["response_format"] = json!({"type": "json_schema", "json_schema": named});
    let mut input = json!({"input": "hi"});
    input["text"]["format"] = named;
    input["text"]["format"]["type"] = "json_schema".into();
    assert_eq!(openai(&body).is_ok(), responses(&input).is_ok(), "{schema}");
    openai(&body)
}

fn of_anthropic(schema: &Value) -> Result<(), Violation> {
    let mut body = talk(json!([user()]));
    body["output_config"] = json!({"format": {"type": "json_schema", "schema": schema}});
    anthropic(&body)
}

fn of_gemini(schema: &Value, kind: &str) -> Result<(), Violation> {
    gemini(&json!({"contents": [{"parts": [{"text": "hi"}]}],
        "generationConfig": {"responseMimeType": kind, "responseJsonSchema": schema}}))
}

/// S4.23: each provider refuses a schema that its own rules do not allow, and takes one that they do.
#[test]
fn schemas_are_judged_by_each_providers_rules() {
    let city = json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"],
        "additionalProperties": false});
    let json = "application/json";
    assert!(of_openai(&city, true).is_ok() && of_anthropic(&city).is_ok() && of_gemini(&city, json).is_ok());
    let mut open = city.clone();
    open["additionalProperties"] = json!(true);
    refused(of_openai(&open, true), "to be false");
    refused(of_anthropic(&open), "to be false");
    assert!(of_openai(&open, false).is_ok() && of_gemini(&open, json).is_ok());
    let mut optional = city.clone();
    optional["required"] = json!([]);
    refused(of_openai(&optional, true), "Missing 'name'");
    assert!(of_anthropic(&optional).is_ok());
    refused(of_gemini(&city, "text/plain"), "response_mime_type");
    let mut tree = city.clone();
    tree["$defs"]["T"] = json!({"type": "array", "items": {"$ref": "#/$defs/T"}});
    assert!(of_openai(&tree, true).is_ok());
    refused(of_anthropic(&tree), "Circular");
    refused(of_gemini(&tree, json), "Circular");
    for (word, value, says) in [
        ("oneOf", json!([]), "'oneOf'"),
        ("$ref", json!("#/$defs/T"), "$ref cannot"),
        ("anyOf", json!([{}]), "'type' key"),
    ] {
        let mut broken = city.clone();
        broken["properties"]["name"][word] = value;
        refused(of_openai(&broken, true), says);
        refused(of_anthropic(&broken), says);
    }
    refused(of_anthropic(&json!({"type": "array"})), "\"object\"");
    let mut body = chat(json!([user()]));
    for (format, says) in [
        (json!({"type": "xml"}), "'xml'"),
        (json!({"type": "json_schema"}), "'schema'"),
        (json!({"type": "json_schema", "json_schema": {"schema": city}}), "'name'"),
    ] {
        body["response_format"] = format;
        refused(openai(&body), says);
    }
}
