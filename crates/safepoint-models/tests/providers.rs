//! Every row of the table of providers against the scripted server: the address, the key's header and the body are what the
//! provider documents.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, also in its helpers")]

use futures_util::StreamExt as _;
use safepoint::{
    History, Model,
    history::Message,
    model::{Delta, ModelSpec, Parameters},
};
use safepoint_models::{ModelBuilder, ModelProvider, PROVIDERS};
use safepoint_testkit::{
    script::{Reply, Script},
    server::{Exchange, ModelServer, ServerOptions, Strictness},
};
use serde_json::{Value, json};
use url::Url;

type Documented =
    (&'static str, &'static str, (&'static str, &'static str), &'static str, Option<&'static str>);

/// What each provider documents: the path, the header of the key, and the fields of these two parameters: the most tokens
/// of a reply, and the seed, if it has one.
const DOCUMENTED: [Documented; 16] = [
    ("openai", "/v1/chat/completions", BEARER, "/max_completion_tokens", Some("/seed")),
    ("responses", "/v1/responses", BEARER, "/max_output_tokens", None),
    ("anthropic", "/v1/messages", ("x-api-key", "KEY"), "/max_tokens", None),
    (
        "gemini",
        "/v1beta/models/m:streamGenerateContent?alt=sse",
        ("x-goog-api-key", "KEY"),
        "/generationConfig/maxOutputTokens",
        Some("/generationConfig/seed"),
    ),
    ("azure", "/openai/v1/chat/completions", ("api-key", "KEY"), "/max_completion_tokens", Some("/seed")),
    ("openrouter", "/api/v1/chat/completions", BEARER, "/max_completion_tokens", Some("/seed")),
    ("ollama", "/v1/chat/completions", BEARER, "/max_tokens", Some("/seed")),
    ("vllm", "/v1/chat/completions", BEARER, "/max_completion_tokens", Some("/seed")),
    ("lmstudio", "/v1/chat/completions", BEARER, "/max_tokens", Some("/seed")),
    ("groq", "/openai/v1/chat/completions", BEARER, "/max_completion_tokens", Some("/seed")),
    ("mistral", "/v1/chat/completions", BEARER, "/max_tokens", Some("/random_seed")),
    ("deepseek", "/chat/completions", BEARER, "/max_tokens", None),
    ("xai", "/v1/chat/completions", BEARER, "/max_completion_tokens", Some("/seed")),
    ("together", "/v1/chat/completions", BEARER, "/max_tokens", Some("/seed")),
    ("bedrock", "/v1/chat/completions", BEARER, "/max_completion_tokens", Some("/seed")),
    (
        "vertex",
        "/v1/projects/x/locations/x/endpoints/openapi/chat/completions",
        BEARER,
        "/max_completion_tokens",
        Some("/seed"),
    ),
];

const BEARER: (&str, &str) = ("authorization", "Bearer KEY");

/// The provider's address on this server, with `x` for the value of each variable.
fn at(server: &ModelServer, provider: &ModelProvider) -> String {
    let (mut whole, mut rest) = (String::new(), provider.base_url());
    while let Some((before, inside)) = rest.split_once('{') {
        whole.push_str(before);
        whole.push_str(if whole.is_empty() { "https://x" } else { "x" });
        rest = inside.split_once('}').unwrap().1;
    }
    let whole = Url::parse(&(whole + rest)).unwrap();
    format!("http://{}{}", server.address(), whole.path().trim_end_matches('/'))
}

fn named(provider: &ModelProvider) -> ModelBuilder {
    format!("{}:m", provider.name()).parse().unwrap()
}

/// What the server gets of one call, which is answered.
async fn sent(server: &ModelServer, model: &dyn Model) -> Exchange {
    let mut history = History::new();
    history.push(Message::User("hello".into()));
    let before = server.requests().len();
    let deltas: Vec<_> = model.open(ModelSpec::default()).stream(&history).collect().await;
    assert!(matches!(deltas.last(), Some(Ok(Delta::Ended(_)))), "{}: {deltas:?}", model.name());
    server.request(before).await
}

async fn server() -> ModelServer {
    let script = Script::of(vec![Reply::text("so"); 2 * PROVIDERS.len()]);
    let options = ServerOptions { strictness: Strictness::Strict, ..ServerOptions::default() };
    ModelServer::start_with(script, options, "127.0.0.1:0".parse().unwrap()).await.unwrap()
}

/// S12.42
#[tokio::test]
async fn each_provider_is_asked_as_it_documents() {
    let server = server().await;
    assert_eq!(PROVIDERS.len(), DOCUMENTED.len(), "a new row has a line here");
    for (provider, (name, path, (header, value), most, seed)) in PROVIDERS.iter().zip(DOCUMENTED) {
        assert_eq!(provider.name(), name);
        let mut parameters = Parameters::new().max_tokens(77).temperature(0.5);
        if seed.is_some() {
            parameters = parameters.seed(7);
        }
        let builder = named(provider).base_url(at(&server, provider)).api_key("KEY".to_owned().into());
        let model = builder.parameters(parameters).build().unwrap();
        assert_eq!(model.name(), format!("{name}:m"));
        let exchange = sent(&server, &*model).await;
        assert_eq!((exchange.path.as_str(), exchange.wire.as_str()), (path, provider.wire()), "{name}");
        assert_eq!(exchange.header(header), Some(value), "{name}");
        for other in ["authorization", "x-api-key", "x-goog-api-key", "api-key"] {
            assert_eq!(exchange.header(other).is_some(), other == header, "{name}: {other}");
        }
        let body: &Value = &exchange.body;
        assert_eq!(body.pointer(most), Some(&json!(77)), "{name}: {body}");
        if let Some(seed) = seed {
            assert_eq!(body.pointer(seed), Some(&json!(7)), "{name}: {body}");
        }
        // Mistral names the usage unasked, and refuses a field that it does not know.
        let asks = provider.wire() == "openai" && name != "mistral";
        assert_eq!(body["stream_options"] == json!({"include_usage": true}), asks, "{name}: {body}");
    }
}

/// S12.40: a provider that has no seed refuses it when the model is built, and so does one without service tiers.
#[test]
fn what_a_provider_lacks_is_refused() {
    for (provider, (name, .., seed)) in PROVIDERS.iter().zip(DOCUMENTED) {
        let built = |parameters| named(provider).base_url("http://h/v1").parameters(parameters).build();
        let refused = built(Parameters::new().seed(7)).err().map(|error| error.to_string());
        assert_eq!(refused.is_none(), seed.is_some(), "{name}: {refused:?}");
        assert!(refused.is_none_or(|said| said.contains("`seed`") && said.contains(name)), "{name}");
        let tiers = built(Parameters::new().service_tier("flex")).is_ok();
        assert_eq!(tiers, !matches!(name, "gemini" | "ollama" | "mistral" | "deepseek"), "{name}");
    }
}

/// A server of one's own is asked without a key.
#[tokio::test]
async fn a_server_of_ones_own_needs_no_key() {
    let server = server().await;
    let url = format!("http://{}/v1", server.address());
    let mut local = 0;
    for provider in PROVIDERS.iter().filter(|provider| provider.base_url().starts_with("http://localhost")) {
        let model = named(provider).base_url(&url).build().unwrap();
        let exchange = sent(&server, &*model).await;
        let is_set = provider.key_variables().iter().any(|name| std::env::var_os(name).is_some());
        assert_eq!(exchange.header("authorization").is_some(), is_set, "{}", provider.name());
        local += 1;
    }
    assert_eq!(local, 3);
}

/// The guide has the table as it is.
#[test]
fn the_guide_lists_each_provider() {
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guides/models.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    for provider in PROVIDERS {
        let keys: Vec<String> = provider.key_variables().iter().map(|key| format!("`{key}`")).collect();
        let is_local = provider.base_url().starts_with("http://localhost");
        let keys = keys.join(", ") + if is_local { ", if at all" } else { "" };
        let note = Some(provider.note()).filter(|note| !note.is_empty()).map(|note| format!("{note} "));
        let row = format!(
            "\n| `{}` | {} | `{}` | `{}` | {keys} | {}|\n",
            provider.name(),
            provider.wire(),
            provider.base_url().replace('|', "\\|"),
            provider.base_variable(),
            note.unwrap_or_default(),
        );
        assert!(guide.contains(&row), "docs/guides/models.md has no row\n{row}");
    }
}

/// S12.42: the models that a provider lists, asked as it documents on each wire; the header of the key is that of its calls.
#[tokio::test]
async fn each_wire_lists_its_models() {
    let server = ModelServer::start(Script::default()).await.unwrap();
    for provider in ["openai", "responses", "anthropic", "gemini"] {
        let named: ModelBuilder = format!("{provider}:any").parse().unwrap();
        let listed = named.base_url(server.url()).api_key("KEY".into()).list().await.unwrap();
        assert_eq!(listed, ["scripted", "scripted-mini"], "{provider}");
    }
    let nowhere: ModelBuilder = "openai:any".parse().unwrap();
    let error = nowhere.base_url("http://127.0.0.1:9/v1").list().await.unwrap_err();
    assert_eq!(error.kind(), safepoint::model::ModelErrorKind::Unreachable, "{error}");
}
