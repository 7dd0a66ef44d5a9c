//! The settings that every wire has: set in the same way, and sent where each wire expects them.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, also in its helpers")]

use safepoint::{History, Model as _, model::ModelSpec};
use safepoint_models::{HttpModel, ToolChoice, Wire, anthropic, gemini, openai, responses};
use serde_json::{Value, json};

fn configured<W: Wire>() -> HttpModel<W> {
    HttpModel::new("m")
        .temperature(0.5)
        .max_tokens(77)
        .tool_choice(&ToolChoice::Required)
        .extra("seed", 7)
        .extra("model", "another")
}

fn body(bytes: Vec<Vec<u8>>) -> Value {
    serde_json::from_slice(&bytes[0]).unwrap()
}

/// A setting reaches the body in the wire's own field, and what is extra outranks it.
#[test]
fn a_setting_is_said_in_each_wires_own_field() {
    let spec = ModelSpec::default();
    let history = History::new();
    let one = [&history];
    let chat = body(openai::encoded(&configured(), &spec, &one));
    let messages = body(anthropic::encoded(&configured(), &spec, &one));
    let stateless = body(responses::encoded(&configured(), &spec, &one));
    let generate = body(gemini::encoded(&configured(), &spec, &one));
    for (body, most) in
        [(&chat, "max_completion_tokens"), (&messages, "max_tokens"), (&stateless, "max_output_tokens")]
    {
        assert_eq!((&body["temperature"], &body[most]), (&json!(0.5), &json!(77)), "{body}");
    }
    assert_eq!(generate["generationConfig"], json!({"temperature": 0.5, "maxOutputTokens": 77}));
    assert_eq!((&chat["tool_choice"], &stateless["tool_choice"]), (&json!("required"), &json!("required")));
    assert_eq!(messages["tool_choice"], json!({"type": "any"}));
    assert_eq!(generate["toolConfig"], json!({"functionCallingConfig": {"mode": "ANY"}}));
    for body in [chat, messages, stateless, generate] {
        assert_eq!((&body["seed"], &body["model"]), (&json!(7), &json!("another")), "{body}");
    }
}

/// A model is named with its wire, as the command line names it.
#[test]
fn a_model_is_named_with_its_wire() {
    assert_eq!(openai::model("m").name(), "openai:m");
    assert_eq!(responses::model("m").name(), "responses:m");
    assert_eq!(anthropic::model("m").name(), "anthropic:m");
    assert_eq!(gemini::model("models/m").name(), "gemini:m");
}
