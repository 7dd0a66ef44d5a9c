//! What of a message goes back, and where: seals with what they belong to, on their own wire only.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, also in its helpers")]

use safepoint::{
    History,
    history::Message,
    message::{AssistantMessage, Block, CallResult, Part, Reasoning, ResultStatus, ToolCall},
    model::ModelSpec,
};
use safepoint_models::{anthropic, gemini, responses};
use serde_json::{Value, json};

fn says(text: &str) -> Block {
    Block::Text { text: text.into() }
}

fn sealed(seal: Value) -> Block {
    Block::Reasoning(Reasoning { text: "shown".into(), seal: Some(seal) })
}

fn thought(of: &str) -> Block {
    sealed(json!({"type": "thought_signature", "of": of, "signature": of}))
}

fn encrypted(id: &str) -> Block {
    sealed(json!({"type": "reasoning", "id": id, "summary": [], "encrypted_content": "e"}))
}

fn signed() -> Block {
    sealed(json!({"type": "thinking", "thinking": "t", "signature": "s"}))
}

fn asks(id: &str, args: &str) -> Block {
    Block::Call(ToolCall { id: id.into(), name: "f".into(), args: args.into() })
}

/// A user message, this message with its calls answered, and another user message.
fn history(blocks: Vec<Block>) -> History {
    let message = AssistantMessage { blocks };
    let results: Vec<CallResult> = message
        .calls()
        .map(|call| {
            let verdict = if call.args == "bad" { ResultStatus::Error } else { ResultStatus::Ok };
            CallResult::of_text(call.id.clone(), &call.name, "x", verdict)
        })
        .collect();
    let mut history = History::new();
    history.push(Message::User("go".into()));
    history.push(Message::Assistant(message.into()));
    if !results.is_empty() {
        history.push(Message::Results { results });
    }
    history.push(Message::User("on".into()));
    history
}

fn contents(model: &str, blocks: Vec<Block>) -> Value {
    let bodies = gemini::encoded(&gemini::model(model), &ModelSpec::default(), &[&history(blocks)]);
    serde_json::from_slice::<Value>(&bodies[0]).unwrap()["contents"].take()
}

fn input(blocks: Vec<Block>) -> Vec<Value> {
    let bodies = responses::encoded(&responses::model("m"), &ModelSpec::default(), &[&history(blocks)]);
    let mut body: Value = serde_json::from_slice(&bodies[0]).unwrap();
    assert_eq!((&body["store"], &body["include"]), (&json!(false), &json!(["reasoning.encrypted_content"])));
    serde_json::from_value(body["input"].take()).unwrap()
}

/// S5.1, S5.2: a signature goes back on its part: behind a text, on the call that it came with, also when a cut has put
/// a note between them; as many responses as calls; ids only where the provider gave them.
#[test]
fn a_signature_goes_back_on_its_part() {
    let parts = |blocks| contents("m", blocks)[1]["parts"].clone();
    assert_eq!(
        parts(vec![says("a"), thought("text"), says("b")]),
        json!([{"text": "a", "thoughtSignature": "text"}, {"text": "b"}])
    );
    let calls = vec![thought("call"), says("[cut]"), asks("gemini_r_0", "{}"), asks("own", "bad")];
    let list = contents("m", calls);
    assert_eq!(
        list[1]["parts"],
        json!([{"text": "[cut]"}, {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "call"},
            {"functionCall": {"id": "own", "name": "f", "args": {"_raw": "bad"}}}])
    );
    assert_eq!(
        list[2]["parts"],
        json!([{"functionResponse": {"name": "f", "response": {"output": "x"}}},
            {"functionResponse": {"id": "own", "name": "f", "response": {"error": "x"}}}])
    );
    assert_eq!(list[3], json!({"role": "user", "parts": [{"text": "on"}]}));
}

/// S5.1: a call of another provider's model has no signature of this wire: models that want one get the named value.
#[test]
fn foreign_calls_are_marked_where_a_signature_is_wanted() {
    let foreign = || vec![encrypted("rs"), asks("c1", "{}"), asks("c2", "{}")];
    for (model, marked) in [
        ("gemini-3-pro-preview", true),
        ("gemini-3.1-flash", true),
        ("gemini-10", true),
        ("gemini-2.5-pro", false),
        ("gemma-3", false),
    ] {
        let parts = contents(model, foreign())[1]["parts"].clone();
        assert_eq!(parts[0]["thoughtSignature"] == "skip_thought_signature_validator", marked, "{model}");
        assert!(parts[1]["thoughtSignature"].is_null());
    }
    let own = contents("gemini-3-pro", vec![thought("call"), asks("c1", "{}")]);
    assert_eq!(own[1]["parts"][0]["thoughtSignature"], "call");
}

/// S5.1: reasoning goes back with what followed it, and not at all when nothing did.
///
/// continuedev/continue#8933, vercel/ai#7099: reasoning is sent without the item that must follow it.
#[test]
fn reasoning_goes_back_with_what_followed_it() {
    let kinds = |blocks| -> Vec<String> {
        let of = |item: &Value| item["type"].as_str().unwrap().to_owned();
        input(blocks).iter().map(of).collect()
    };
    let sandwich = |inner: &[&str]| -> Vec<String> {
        ["message"].iter().chain(inner).chain(&["message"]).map(|kind| (*kind).to_owned()).collect()
    };
    assert_eq!(
        kinds(vec![encrypted("a"), says("t"), encrypted("b"), asks("c", "{}")]),
        sandwich(&["reasoning", "message", "reasoning", "function_call", "function_call_output"])
    );
    assert_eq!(
        kinds(vec![says("t"), asks("c", "{}"), encrypted("b")]),
        sandwich(&["message", "function_call", "function_call_output"])
    );
    assert_eq!(kinds(vec![encrypted("a"), says(" ")]), sandwich(&[]));
    assert_eq!(kinds(vec![signed(), thought("call"), says("t")]), sandwich(&["message"]));
    let items = input(vec![encrypted("a"), asks("c", "not json")]);
    assert_eq!(items[1], json!({"type": "reasoning", "id": "a", "summary": [], "encrypted_content": "e"}));
    assert_eq!(
        items[2],
        json!({"type": "function_call", "call_id": "c", "name": "f", "arguments": "not json"})
    );
}

/// S5.1: Anthropic is sent only its own thinking.
#[test]
fn only_its_own_thinking_goes_to_anthropic() {
    let blocks = vec![encrypted("a"), thought("text"), signed(), says("t")];
    let bodies = anthropic::encoded(&anthropic::model("m"), &ModelSpec::default(), &[&history(blocks)]);
    let body: Value = serde_json::from_slice(&bodies[0]).unwrap();
    let kinds: Vec<&Value> =
        body["messages"][1]["content"].as_array().unwrap().iter().map(|block| &block["type"]).collect();
    assert_eq!(kinds, ["thinking", "text"]);
}

/// S5.1: before Gemini 3 a result holds no image: it stands in a separate content behind all results, and a GIF, or
/// anything beside an error of Anthropic's, is left out and named.
#[test]
fn older_models_get_images_behind_all_results() {
    let mut with_images = history(vec![asks("a", "{}"), asks("b", "bad")]);
    let Message::Results { mut results } = (*with_images.entries()[2]).clone() else { panic!("results") };
    for result in &mut results {
        result.parts = vec![Part::image("image/png", b"p").unwrap(), Part::image("image/gif", b"g").unwrap()];
    }
    let entries: Vec<_> = with_images.entries().iter().cloned().collect();
    with_images = History::new();
    for (place, entry) in entries.iter().enumerate() {
        let results = Message::Results { results: results.clone() };
        with_images.push(if place == 2 { results } else { (**entry).clone() });
    }
    let spec = ModelSpec::default();
    let body = |bytes: &[Vec<u8>]| serde_json::from_slice::<Value>(&bytes[0]).unwrap();
    let older = body(&gemini::encoded(&gemini::model("gemini-2.5-pro"), &spec, &[&with_images]));
    let responses = older["contents"][2]["parts"].as_array().unwrap();
    assert_eq!(responses.len(), 2);
    assert!(responses.iter().all(|part| part["functionResponse"]["parts"].is_null()), "{older}");
    let output = responses[0]["functionResponse"]["response"]["output"].as_str().unwrap();
    assert!(output.contains("image/gif is left out"), "{output}");
    let png = json!({"inlineData": {"mimeType": "image/png", "data": "cA=="}});
    assert_eq!(older["contents"][3]["parts"], json!([png, png, {"text": "on"}]));
    let newer = body(&gemini::encoded(&gemini::model("gemini-3-pro"), &spec, &[&with_images]));
    assert_eq!(newer["contents"][2]["parts"][0]["functionResponse"]["parts"], json!([png]));
    assert_eq!(newer["contents"][3]["parts"], json!([{"text": "on"}]));
    let body = body(&anthropic::encoded(&anthropic::model("m"), &spec, &[&with_images]));
    let reported = body["messages"][2]["content"].as_array().unwrap();
    assert_eq!(reported[0]["content"].as_array().unwrap().len(), 3);
    assert!(reported[1]["content"].as_str().unwrap().contains("none with an error"), "{body}");
}
