//! The arguments of a call as they stream, on every wire.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, also in its helpers")]

use futures_util::StreamExt as _;
use safepoint::{
    History, Model,
    history::Message,
    model::{Delta, ModelSpec},
};
use safepoint_models::{anthropic, gemini, openai, responses};
use safepoint_testkit::{
    script::{Reply, Script},
    server::ModelServer,
};
use serde_json::{Value, json};

/// The fragments, and the call that they make.
async fn streamed(model: &dyn Model) -> (Vec<(String, String, String)>, (String, String, String)) {
    let mut history = History::new();
    history.push(Message::User("go".into()));
    let (mut fragments, mut calls) = (Vec::new(), Vec::new());
    let mut stream = model.open(ModelSpec::default()).stream(&history);
    while let Some(delta) = stream.next().await {
        match delta.unwrap() {
            Delta::CallArguments { id, name, text } => {
                fragments.push((id.to_string(), name.to_string(), text))
            }
            Delta::CallReady(call) => calls.push((call.id.to_string(), call.name, call.args)),
            _ => {}
        }
    }
    assert_eq!(calls.len(), 1);
    (fragments, calls.remove(0))
}

/// S11.8: on every wire the fragments of a call's arguments are its arguments, under its id and its name.
#[tokio::test]
async fn the_fragments_of_arguments_are_the_arguments() {
    let args = json!({"to": "the landlord", "amount": 1200, "note": "rent, \"May\""});
    let script = Script { repeat: true, ..Script::of([Reply::call("pay", args.clone())]) };
    let server = ModelServer::start(script).await.unwrap();
    let models: [Box<dyn Model>; 4] = [
        Box::new(openai::model("any").base_url(server.url())),
        Box::new(responses::model("any").base_url(server.url())),
        Box::new(anthropic::model("any").base_url(server.url())),
        Box::new(gemini::model("any").base_url(server.url())),
    ];
    for model in models {
        let (fragments, (id, name, whole)) = streamed(&*model).await;
        let joined: String = fragments.iter().map(|(_, _, text)| text.as_str()).collect();
        assert!(!fragments.is_empty(), "{}", model.name());
        assert_eq!(joined, whole, "{}", model.name());
        assert_eq!(serde_json::from_str::<Value>(&joined).unwrap(), args);
        assert!(fragments.iter().all(|(of, tool, _)| (of, tool) == (&id, &name)), "{fragments:?}");
    }
}
