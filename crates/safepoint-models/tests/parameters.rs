//! Parameters: each in its wire's own field, or refused before anything is sent; an agent's over its model's.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, also in its helpers")]

use std::sync::Arc;

use futures_util::StreamExt as _;
use safepoint::{
    Agent, History, Model,
    model::{ModelErrorKind, ModelSpec, Parameters, PromptCache, ReasoningEffort},
};
use safepoint_models::{Failover, HttpModel, Wire, anthropic, gemini, openai, responses};
use safepoint_testkit::{
    script::{Reply, Script},
    server::ModelServer,
};
use serde_json::{Value, json};

const NONE: &str = "refused";

/// One parameter, its value on the wire, and where it stands in chat completions, Responses, messages and Gemini.
fn table() -> Vec<(Parameters, Value, [&'static str; 4])> {
    let new = Parameters::new;
    let generation = |name: &str| -> &'static str {
        match name {
            "most" => "/generationConfig/maxOutputTokens",
            "temperature" => "/generationConfig/temperature",
            "top_p" => "/generationConfig/topP",
            "seed" => "/generationConfig/seed",
            "stop" => "/generationConfig/stopSequences",
            _ => "/generationConfig/thinkingConfig/thinkingLevel",
        }
    };
    vec![
        (
            new().max_tokens(77),
            json!(77),
            ["/max_completion_tokens", "/max_output_tokens", "/max_tokens", generation("most")],
        ),
        (
            new().temperature(0.5),
            json!(0.5),
            ["/temperature", "/temperature", "/temperature", generation("temperature")],
        ),
        (new().top_p(0.9), json!(0.9), ["/top_p", "/top_p", "/top_p", generation("top_p")]),
        (new().seed(7), json!(7), ["/seed", NONE, NONE, generation("seed")]),
        (new().seed(1 << 31), json!(1_u64 << 31), ["/seed", NONE, NONE, NONE]),
        (
            new().stop_sequences(["END"]),
            json!(["END"]),
            ["/stop", NONE, "/stop_sequences", generation("stop")],
        ),
        (
            new().reasoning_effort(ReasoningEffort::Low),
            json!("low"),
            ["/reasoning_effort", "/reasoning/effort", "/output_config/effort", generation("thinks")],
        ),
        (
            new().reasoning_effort(ReasoningEffort::Minimal),
            json!("minimal"),
            ["/reasoning_effort", "/reasoning/effort", NONE, generation("thinks")],
        ),
        (
            new().reasoning_effort(ReasoningEffort::Max),
            json!("max"),
            ["/reasoning_effort", NONE, "/output_config/effort", NONE],
        ),
        (
            new().service_tier("flex"),
            json!("flex"),
            ["/service_tier", "/service_tier", "/service_tier", NONE],
        ),
        (
            new().prompt_cache(PromptCache::Key("k".into())),
            json!("k"),
            ["/prompt_cache_key", "/prompt_cache_key", NONE, NONE],
        ),
        (new().extra("user", "ann"), json!("ann"), ["/user"; 4]),
    ]
}

type Encode<W> = fn(&HttpModel<W>, &ModelSpec, &[&History]) -> Vec<Vec<u8>>;

fn body<W: Wire>(encode: Encode<W>, model: &HttpModel<W>, spec: &ModelSpec) -> Value {
    serde_json::from_slice(&encode(model, spec, &[&History::new()])[0]).unwrap()
}

/// Of a model and of a conversation alike.
fn said_or_refused<W: Wire>(encode: Encode<W>, place: usize) {
    for (parameters, value, places) in table() {
        let (bare, set) = (HttpModel::<W>::new("m"), HttpModel::<W>::new("m").parameters(parameters.clone()));
        let spec = ModelSpec { parameters: Some(Arc::new(parameters.clone())), ..ModelSpec::default() };
        let checks = [bare.check(&parameters), set.check(&Parameters::new())];
        let at = places[place];
        for check in checks {
            let named = parameters.iter().next().map_or("", |parameter| parameter.name());
            match check {
                Ok(()) => assert_ne!(at, NONE, "{}: {named} is not refused", W::NAME),
                Err(error) => {
                    assert_eq!((at, error.kind()), (NONE, ModelErrorKind::Refused), "{}: {error}", W::NAME);
                    assert!(error.to_string().contains(&format!("`{named}`")), "{error}");
                    assert!(error.hint().unwrap().contains("`extra`"), "{error}");
                }
            }
        }
        if at != NONE {
            let bodies = [body(encode, &set, &ModelSpec::default()), body(encode, &bare, &spec)];
            for body in &bodies {
                assert_eq!(body.pointer(at), Some(&value), "{}: {body}", W::NAME);
            }
            assert_eq!(bodies[0], bodies[1]);
        }
    }
}

/// S12.40: each parameter is in its wire's own field, or refused by its name.
#[test]
fn a_parameter_is_said_or_refused() {
    said_or_refused(openai::encoded, 0);
    said_or_refused(responses::encoded, 1);
    said_or_refused(anthropic::encoded, 2);
    said_or_refused(gemini::encoded, 3);
}

/// What an agent sets wins over what its model sets, and what is extra over both.
#[test]
fn an_agents_parameters_win() {
    let model = openai::model("m").temperature(0.1).max_tokens(5).extra("user", "ann");
    let over = Parameters::new().temperature(0.9).extra("max_completion_tokens", 6);
    let spec = ModelSpec { parameters: Some(Arc::new(over)), ..ModelSpec::default() };
    let body = body(openai::encoded, &model, &spec);
    assert_eq!(
        (&body["temperature"], &body["max_completion_tokens"], &body["user"]),
        (&json!(0.9), &json!(6), &json!("ann"))
    );
}

/// Where a provider caches by itself nothing is sent; Anthropic's prefix is marked.
#[test]
fn a_prefix_is_marked_where_it_must_be() {
    let spec = ModelSpec { system: Some("be brief".into()), ..ModelSpec::default() };
    let cache = || Parameters::new().prompt_cache(PromptCache::Prefix);
    let marked = |body: &Value| body.to_string().contains("cache");
    let set = anthropic::model("m").parameters(cache());
    assert!(marked(&body(anthropic::encoded, &set, &spec)));
    assert_eq!(
        body(anthropic::encoded, &set, &spec),
        body(anthropic::encoded, &anthropic::model("m").cache(), &spec)
    );
    assert!(!marked(&body(anthropic::encoded, &anthropic::model("m"), &spec)));
    let hour = || Parameters::new().prompt_cache(PromptCache::PrefixForAnHour);
    let kept = body(anthropic::encoded, &anthropic::model("m").parameters(hour()), &spec);
    assert_eq!(kept["system"][0]["cache_control"], serde_json::json!({"type": "ephemeral", "ttl": "1h"}));
    let mut history = safepoint::History::new();
    history.push(safepoint::history::Message::User("hi".into()));
    let sent = anthropic::encoded(&anthropic::model("m").cache_for_an_hour(), &spec, &[&history]);
    let sent: Value = serde_json::from_slice(&sent[0]).unwrap();
    assert_eq!(sent["messages"][0]["content"][0]["cache_control"]["ttl"], "1h");
    assert_eq!(kept, body(anthropic::encoded, &anthropic::model("m").cache_for_an_hour(), &spec));
    for refused in [
        openai::model("m").check(&hour()),
        responses::model("m").check(&hour()),
        gemini::model("m").check(&hour()),
    ] {
        assert!(refused.unwrap_err().to_string().contains("how long"));
    }
    assert!(!marked(&body(openai::encoded, &openai::model("m").parameters(cache()), &spec)));
    assert!(!marked(&body(responses::encoded, &responses::model("m").parameters(cache()), &spec)));
    assert!(!marked(&body(gemini::encoded, &gemini::model("m").parameters(cache()), &spec)));
}

/// S12.40: an agent is not built with a parameter that its model, or one of several in a row, cannot say.
#[test]
fn an_agent_is_not_built_with_what_its_model_cannot_say() {
    let seed = || Parameters::new().seed(7);
    let build = |model: Arc<dyn Model>, parameters| Agent::builder(model).parameters(parameters).try_build();
    assert!(build(Arc::new(openai::model("m")), seed()).is_ok());
    let alone = build(Arc::new(anthropic::model("m")), seed()).unwrap_err().to_string();
    assert!(alone.contains("`seed` cannot be said to anthropic:m") && alone.contains("`extra`"), "{alone}");
    let row = Failover::new(openai::model("m")).or(anthropic::model("n"));
    let row = build(Arc::new(row), seed()).unwrap_err().to_string();
    assert!(row.contains("anthropic:n"), "{row}");
    let flawed = build(Arc::new(openai::model("m")), Parameters::new().temperature(f64::NAN)).unwrap_err();
    assert!(flawed.to_string().contains("`temperature` cannot be used"), "{flawed}");
    let own = anthropic::model("m").parameters(seed());
    assert!(Agent::builder(own).try_build().unwrap_err().to_string().contains("`seed`"));
}

/// S12.40: a conversation with a parameter that the wire has no form for sends nothing.
#[tokio::test]
async fn nothing_is_sent_with_what_cannot_be_said() {
    let server = ModelServer::start(Script::of([Reply::text("so")])).await.unwrap();
    let model = anthropic::model("m").base_url(server.url());
    let spec = ModelSpec { parameters: Some(Arc::new(Parameters::new().seed(7))), ..ModelSpec::default() };
    let mut history = History::new();
    history.push(safepoint::history::Message::User("hello".into()));
    let replies: Vec<_> = model.open(spec).stream(&history).collect().await;
    assert!(matches!(&replies[..], [Err(error)] if error.to_string().contains("`seed`")), "{replies:?}");
    assert_eq!(server.requests().len(), 0);
}

/// A model that is chosen while the program runs is used like any other, whatever holds it, and is read by the run itself.
#[tokio::test]
async fn a_model_is_a_value() {
    let server =
        ModelServer::start(Script::of(["one", "two", "three", "four"].map(Reply::text))).await.unwrap();
    let model = || openai::model("m").base_url(server.url());
    let shared: Arc<dyn Model> = Arc::new(model());
    let owned: Box<dyn Model> = Box::new(model());
    let typed = Arc::new(model());
    assert_eq!((shared.name(), owned.name()), ("openai:m", "openai:m"));
    assert!(shared.open(ModelSpec::default()).never_blocks());
    assert!(owned.open(ModelSpec::default()).never_blocks());
    let agents = [
        Agent::builder(Arc::clone(&shared)).build(),
        Agent::builder(owned).build(),
        Agent::builder(typed).build(),
        Agent::builder(Failover::new(shared)).build(),
    ];
    for (agent, answer) in agents.iter().zip(["one", "two", "three", "four"]) {
        assert_eq!(agent.run("hello").await.answer(), Some(answer));
    }
}
