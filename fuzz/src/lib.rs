//! What each fuzz target checks, as a function of bytes: `cargo fuzz` drives it on nightly, `tests/smoke.rs` with proptest
//! on any toolchain.


use safepoint::{
    Agent, History, Outcome,
    approval::ApprovalMode,
    history::Message,
    ids::CallId,
    message::ToolCall,
    model::{Delta, Finish, ModelError, ModelSpec},
    receipt::CallStatus,
    tool::{self, FnTool},
};
use safepoint_models::{
    anthropic as messages, fuzz, gemini as generate, openai as chat, responses as stateless,
};
use safepoint_testkit::{oracle, script::Script, scripted::ScriptedModel};

/// Cuts a stream by its first byte: whole, byte by byte, or in pieces of that size.
fn pieces(data: &[u8]) -> (Vec<&[u8]>, &[u8]) {
    let Some((size, rest)) = data.split_first() else { return (Vec::new(), data) };
    (rest.chunks(usize::from(*size).max(1)).collect(), rest)
}

/// However a stream of events is cut, the same events come out of it.
pub fn sse(data: &[u8]) {
    let (cut, whole) = pieces(data);
    assert_eq!(fuzz::events(&cut), fuzz::events(&[whole]));
}

/// However a stream is cut, the same deltas come out of it; each call in it has arguments and a name, and nothing comes
/// after its end.
fn wire(read: impl Fn(&[&[u8]]) -> Vec<Result<Delta, ModelError>>, data: &[u8]) {
    let (cut, whole) = pieces(data);
    let deltas = read(&[whole]);
    assert_eq!(format!("{:?}", read(&cut)), format!("{deltas:?}"));
    let ended = deltas.iter().position(|delta| matches!(delta, Ok(Delta::Ended(_)) | Err(_)));
    assert!(ended.is_none_or(|at| at + 1 == deltas.len()), "something comes after the end: {deltas:?}");
    assert!(!deltas.is_empty(), "a stream that says nothing is broken, and says so");
}

/// An OpenAI stream.
pub fn openai(data: &[u8]) {
    wire(fuzz::openai, data);
}

/// An Anthropic stream.
pub fn anthropic(data: &[u8]) {
    wire(fuzz::anthropic, data);
}

/// A Gemini stream.
pub fn gemini(data: &[u8]) {
    wire(fuzz::gemini, data);
}

/// A Responses stream.
pub fn responses(data: &[u8]) {
    wire(fuzz::responses, data);
}

/// Any history that a store may hold is repaired, once, so that every provider accepts it.
pub fn history(data: &[u8]) {
    let Ok(entries) = serde_json::from_slice::<Vec<Message>>(data) else { return };
    let mut history = History::new();
    entries.into_iter().for_each(|entry| history.push(entry));
    history.repair();
    history.close();
    assert!(history.repair().is_empty(), "the second repair finds nothing");
    history.push(Message::User("continue".into()));
    let spec = ModelSpec::default();
    for body in chat::encoded(&chat::model("m"), &spec, &[&history]) {
        let body = serde_json::from_slice(&body).expect("a body is JSON");
        assert_eq!(oracle::openai(&body), Ok(()), "{body}");
    }
    for body in messages::encoded(&messages::model("m"), &spec, &[&history]) {
        let body = serde_json::from_slice(&body).expect("a body is JSON");
        assert_eq!(oracle::anthropic(&body), Ok(()), "{body}");
    }
    for body in stateless::encoded(&stateless::model("m"), &spec, &[&history]) {
        let body = serde_json::from_slice(&body).expect("a body is JSON");
        assert_eq!(oracle::responses(&body), Ok(()), "{body}");
    }
    for body in generate::encoded(&generate::model("gemini-3-m"), &spec, &[&history]) {
        let body = serde_json::from_slice(&body).expect("a body is JSON");
        assert_eq!(oracle::gemini(&body), Ok(()), "{body}");
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Amount {
    euros: u32,
}

fn pay() -> FnTool {
    tool::from_fn("pay", "pays", |_cx, amount: Amount| async move { Ok(format!("paid {}", amount.euros)) })
}

/// Whatever a model puts where arguments should be: the call runs with what fits, or fails and says why; the run continues.
pub fn arguments(data: &[u8]) {
    let args = String::from_utf8_lossy(data).into_owned();
    let fits = serde_json::from_str::<Amount>(&args).is_ok();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    runtime.block_on(async {
        let model = ScriptedModel::new(Script::default());
        let first = model.gate();
        let call = ToolCall { id: CallId::from("c"), name: "pay".into(), args };
        first.send(Delta::CallReady(call)).send(Delta::Ended(Finish::Natural));
        let agent = Agent::builder(model).approvals(ApprovalMode::Auto).tool(pay()).build();
        let outcome = agent.run("pay").await;
        assert!(matches!(outcome, Outcome::Done(_)), "{outcome:?}");
        let status = outcome.receipt().calls[0].status;
        assert!(matches!(status, CallStatus::Completed | CallStatus::Failed), "{status:?}");
        assert!(fits || status == CallStatus::Failed, "it ran with arguments that do not fit");
    });
}
