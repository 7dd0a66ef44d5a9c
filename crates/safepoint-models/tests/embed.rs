//! Embeddings against a strict server: what is sent, what is checked of the answers, and what a stop does.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, also in its helpers")]

use std::time::Duration;

use safepoint::{
    StopRequest, Usage,
    model::{ModelError, ModelErrorKind},
    usage::UsageSource,
};
use safepoint_models::{
    Patience, Retry,
    embed::{self, EmbedWire, Embedder, Embeddings, HttpEmbedder},
    gemini, openai,
};
use safepoint_testkit::{
    script::Script,
    server::{EmbeddingFault, ModelServer},
};
use serde_json::{Value, json};
use tokio::time::timeout;

const SOON: Duration = Duration::from_secs(10);

async fn server() -> ModelServer {
    ModelServer::start(Script::default()).await.unwrap()
}

fn texts(number: usize) -> Vec<String> {
    (0..number).map(|index| format!("text {index}")).collect()
}

fn patience() -> Patience {
    let retry = Retry { tries: 2, first: Duration::from_millis(1), ..Retry::default() };
    Patience { retry, ..Patience::default() }
}

/// The result of embedding, within a bound.
async fn embed(embedder: &dyn Embedder, texts: &[String]) -> Result<Embeddings, ModelError> {
    timeout(SOON, embedder.embed(texts)).await.expect("it ends")
}

/// An embedder of each wire at this server, with what differs set by `change`.
fn both(server: &ModelServer) -> [Box<dyn Embedder>; 2] {
    fn at<W: EmbedWire>(server: &ModelServer) -> HttpEmbedder<W> {
        HttpEmbedder::new("m").base_url(server.url()).patience(patience())
    }
    [Box::new(at::<openai::Chat>(server)), Box::new(at::<gemini::GenerateContent>(server))]
}

fn bodies(server: &ModelServer) -> Vec<Value> {
    server.requests().iter().map(|request| (*request.body).clone()).collect()
}

/// S12.31: texts go out in as many requests as the limits need, several at once, and come back in their order.
#[tokio::test]
async fn vectors_come_in_the_order_of_their_texts() {
    let server = server().await;
    let texts = texts(250);
    for (embedder, most) in both(&server).iter().zip([2_048, 100]) {
        let embedded = embed(embedder.as_ref(), &texts).await.unwrap();
        assert_eq!(embedded.vectors.len(), texts.len());
        for index in [0, 99, 100, 249] {
            let alone = embed(embedder.as_ref(), &texts[index..=index]).await.unwrap();
            assert_eq!(alone.vectors, [embedded.vectors[index].clone()], "text {index}, {most} a request");
        }
        assert_eq!(embedded.usage.source, UsageSource::Exact);
        assert!(embedded.usage.input >= 250);
    }
    let sizes: Vec<usize> = bodies(&server)
        .iter()
        .map(|body| body["input"].as_array().or(body["requests"].as_array()).unwrap().len())
        .filter(|texts| *texts > 1)
        .collect();
    let mut gemini = sizes[1..].to_vec();
    gemini.sort_unstable();
    assert_eq!((sizes[0], gemini), (250, vec![50, 100, 100]));
}

/// S12.31: no more requests than the limit are in flight, and the limits of a provider can be set.
#[tokio::test]
async fn requests_in_flight_are_bounded() {
    let server = server().await;
    let mut gates: Vec<_> = (0..3).map(|_| server.gate()).collect();
    let embedder = openai::embedder("m").base_url(server.url()).max_texts(1).parallel_requests(2);
    let texts = texts(3);
    let mut embedding = Box::pin(embedder.embed(&texts));
    let both = async {
        gates[0].request().await;
        gates[1].request().await;
    };
    tokio::select! {
        biased;
        // First: a future that is ready would have sent all of it. Losing this branch loses nothing, it is polled again.
        _ = &mut embedding => panic!("nothing was answered"),
        // Losing this one would lose nothing.
        () = both => {}
    }
    assert_eq!(server.requests().len(), 2, "the third waits");
    for gate in &gates[..2] {
        gate.status(400);
    }
    let error = timeout(SOON, embedding).await.unwrap().unwrap_err();
    assert!(error.to_string().starts_with("texts 1 to 1 of 3: "), "{error}");
}

/// S12.31: what is set is sent in the wire's own field, and what is extra as it is.
#[tokio::test]
async fn settings_are_sent_in_each_wires_own_field() {
    let server = server().await;
    let one = texts(1);
    let chat = openai::embedder("m").base_url(server.url()).dimensions(8).extra("user", "u");
    assert_eq!(embed(&chat, &one).await.unwrap().vectors[0].len(), 8);
    let generate = gemini::embedder("models/m")
        .base_url(server.url())
        .dimensions(16)
        .extra("taskType", "RETRIEVAL_QUERY");
    assert_eq!(embed(&generate, &one).await.unwrap().vectors[0].len(), 16);
    let bodies = bodies(&server);
    assert_eq!(
        bodies[0],
        json!({"model": "m", "dimensions": 8, "input": ["text 0"], "encoding_format": "float", "user": "u"})
    );
    let request = json!({"model": "models/m", "content": {"parts": [{"text": "text 0"}]},
        "outputDimensionality": 16, "taskType": "RETRIEVAL_QUERY"});
    assert_eq!(bodies[1], json!({ "requests": [request] }));
    let [chat, generate] = &server.requests()[..] else { panic!("two requests") };
    assert_eq!((&chat.path[..], chat.header("accept")), ("/v1/embeddings", Some("application/json")));
    assert_eq!(generate.path, "/v1/models/m:batchEmbedContents");
}

/// S12.31: an answer that is not what was asked for is an error that says what is wrong with it, on each wire.
#[tokio::test]
async fn a_wrong_answer_is_an_error() {
    for (fault, says) in [
        (EmbeddingFault::OneMissing, "3 vectors were asked for, and 2 came"),
        (EmbeddingFault::OneMore, "more vectors came than the 3 that were asked for"),
        (EmbeddingFault::ShortVector, "has 255 dimensions, and the first one 256"),
        (EmbeddingFault::EmptyVector, "it is empty"),
        (EmbeddingFault::Number(json!(null)), "null"),
        (EmbeddingFault::Number(json!("NaN")), "NaN"),
        (EmbeddingFault::Number(json!(1e39)), "does not fit 32 bits"),
        (EmbeddingFault::Text, "a list of numbers"),
        (EmbeddingFault::Cut, "ended"),
        (EmbeddingFault::Error("no more today".into()), "no more today"),
        (EmbeddingFault::Page, "text/html where JSON was asked for"),
    ] {
        let server = server().await;
        for embedder in both(&server) {
            server.break_embeddings(fault.clone());
            let error = embed(embedder.as_ref(), &texts(3)).await.unwrap_err();
            assert!(error.to_string().contains(says), "{} {fault:?}: {error}", embedder.name());
            assert!(error.hint().is_some(), "{fault:?}: {error}");
        }
        assert_eq!(server.requests().len(), 2, "{fault:?}: an answer that began is not asked for again");
    }
}

/// S12.31: vectors are put where their index says; an index that stands twice or nowhere is an error.
#[tokio::test]
async fn an_index_says_where_a_vector_belongs() {
    let server = server().await;
    let embedder = openai::embedder("m").base_url(server.url());
    let plain = embed(&embedder, &texts(3)).await.unwrap();
    for fault in [EmbeddingFault::Reversed, EmbeddingFault::NoIndex] {
        server.break_embeddings(fault);
        assert_eq!(embed(&embedder, &texts(3)).await.unwrap().vectors, plain.vectors);
    }
    for (index, says) in [(0, "two vectors came for the index 0"), (7, "the index 7, and 3 were asked for")] {
        server.break_embeddings(EmbeddingFault::LastIndex(index));
        let error = embed(&embedder, &texts(3)).await.unwrap_err();
        assert!(error.to_string().contains(says), "{error}");
    }
}

/// S12.31: another length than the one that was asked for is an error.
#[tokio::test]
async fn dimensions_that_were_asked_for_are_checked() {
    let server = server().await;
    server.break_embeddings(EmbeddingFault::IgnoredDimensions);
    let error =
        embed(&openai::embedder("m").base_url(server.url()).dimensions(8), &texts(2)).await.unwrap_err();
    assert_eq!(error.kind(), ModelErrorKind::Malformed);
    assert!(error.to_string().contains("vector 1 has 256 dimensions where 8 were asked for"), "{error}");
}

/// S12.31: a request beyond what the provider takes is its refusal, with what to do about it, and is not sent again.
#[tokio::test]
async fn an_oversized_request_is_a_clear_error() {
    let server = server().await;
    let url = server.url();
    let many = texts(2_049);
    let error = embed(&openai::embedder("m").base_url(&url).max_texts(5_000), &many).await.unwrap_err();
    assert_eq!((error.kind(), error.status()), (ModelErrorKind::Refused, Some(400)), "{error}");
    let error = embed(&gemini::embedder("m").base_url(&url).max_texts(200), &many[..101]).await.unwrap_err();
    assert!(error.to_string().contains("at most 100 requests"), "{error}");
    let long = ["word ".repeat(20_000)];
    let error = embed(&openai::embedder("m").base_url(&url), &long).await.unwrap_err();
    assert!(error.to_string().contains("has 100000 bytes"), "{error}");
    assert_eq!(server.requests().len(), 2, "what is too large here is not sent");
    let error =
        embed(&openai::embedder("m").base_url(&url).max_text_bytes(1 << 20), &long).await.unwrap_err();
    assert_eq!(error.kind(), ModelErrorKind::ContextWindow);
    assert!(error.hint().unwrap().contains("split long texts"), "{error:?}");
}

/// S12.31: what fails before the first byte of an answer is tried again, as with a model; a refusal is not.
#[tokio::test]
async fn a_failure_before_the_first_byte_is_tried_again() {
    for (status, requests, succeeds) in [(503, 2, true), (429, 2, true), (401, 1, false)] {
        let server = server().await;
        for embedder in both(&server) {
            let before = server.requests().len();
            server.break_embeddings(EmbeddingFault::Status(status));
            assert_eq!(embed(embedder.as_ref(), &texts(1)).await.is_ok(), succeeds, "{status}");
            assert_eq!(server.requests().len() - before, requests, "{status}");
        }
    }
}

/// S3.9: usage that the provider does not say is a floor, marked so.
#[tokio::test]
async fn unsaid_usage_is_estimated() {
    let server = server().await;
    for embedder in both(&server) {
        server.break_embeddings(EmbeddingFault::NoUsage);
        let embedded = embed(embedder.as_ref(), &["twelve bytes".to_owned()]).await.unwrap();
        let floor = Usage::new(3, 0).with_source(UsageSource::Estimated);
        assert_eq!(embedded.usage, floor);
    }
}

/// S2.8: a stop drops the requests, and each of their connections closes at once; the stop is a value.
#[tokio::test]
async fn a_stop_closes_each_connection() {
    let server = server().await;
    let (scope, handle) = safepoint::stop::Scope::root();
    let mut gates = [server.gate(), server.gate()];
    let embedder = openai::embedder("m").base_url(server.url()).max_texts(1);
    let texts = texts(2);
    let stopped = async {
        for gate in &mut gates {
            gate.request().await;
        }
        handle.stop(StopRequest::now());
    };
    let (ended, ()) =
        timeout(SOON, async { tokio::join!(scope.run(embedder.embed(&texts)), stopped) }).await.unwrap();
    assert!(ended.is_err(), "it is a stop, and no result of the embedder");
    for request in server.requests() {
        timeout(SOON, request.peer_closed()).await.expect("the socket closes");
    }
}

/// S12.31: an embedder has a name that says where it is; what names none is an error that says how to write one.
#[test]
fn an_embedder_is_found_by_name() {
    assert_eq!(embed::parse("ollama:nomic-embed-text").unwrap().name(), "ollama:nomic-embed-text");
    assert_eq!(embed::compatible("vllm", "m").unwrap().name(), "vllm:m");
    for (name, says) in
        [("m", "PROVIDER:MODEL"), ("vllm:", "PROVIDER:MODEL"), ("acme:m", "openai, mistral, voyage")]
    {
        let error = embed::parse(name).err().unwrap().to_string();
        assert!(error.contains(says), "{error}");
    }
}
