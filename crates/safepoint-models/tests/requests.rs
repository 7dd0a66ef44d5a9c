//! The golden file of requests: what each wire sends of each history of the engine's golden file.

use std::sync::Arc;

use safepoint::{
    History,
    model::{ModelSpec, ToolChoice, ToolDecl},
};
use safepoint_golden::{Golden, section};
use safepoint_models::{anthropic, gemini, openai, responses};
use serde_json::json;

/// The same for each, with this choice of a tool.
fn spec(choice: Option<ToolChoice>) -> ModelSpec {
    let parameters = json!({"type": "object", "properties": {"command": {"type": "string"}}});
    let shell = ToolDecl { name: "shell".into(), description: "runs".into(), parameters };
    ModelSpec { system: Some("be brief".into()), tools: Arc::from([shell]), choice, ..ModelSpec::default() }
}

type Encode = fn(&ModelSpec, &[&History]) -> Vec<Vec<u8>>;

const WIRES: [(&str, Encode); 4] = [
    ("openai", |spec, histories| openai::encoded(&openai::model("m"), spec, histories)),
    ("anthropic", |spec, histories| anthropic::encoded(&anthropic::model("m"), spec, histories)),
    ("gemini", |spec, histories| gemini::encoded(&gemini::model("m"), spec, histories)),
    ("responses", |spec, histories| responses::encoded(&responses::model("m"), spec, histories)),
];

#[test]
fn what_each_wire_sends() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../safepoint/tests/golden/history.txt");
    let histories: Vec<History> = section(&std::fs::read_to_string(path).unwrap(), "history");
    let choices = [
        None,
        Some(ToolChoice::Auto),
        Some(ToolChoice::None),
        Some(ToolChoice::Required),
        Some(ToolChoice::Tool("shell".into())),
    ];
    let mut golden = Golden::file(env!("CARGO_MANIFEST_DIR"), "tests/golden/requests.txt");
    for (wire, encode) in WIRES {
        // Each in a separate conversation, then one that grows.
        let mut sent: Vec<Vec<u8>> =
            histories.iter().flat_map(|history| encode(&spec(None), &[history])).collect();
        sent.extend(choices.iter().flat_map(|choice| encode(&spec(choice.clone()), &[&histories[0]])));
        sent.extend(encode(&spec(None), &[&History::new(), &histories[0]]));
        golden = golden.lines(wire, sent.into_iter().map(|body| String::from_utf8(body).unwrap()));
    }
    golden.check();
}
