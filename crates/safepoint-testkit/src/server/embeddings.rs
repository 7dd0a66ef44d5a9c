//! Embeddings: what a provider refuses, vectors of the words in a text, and answers with something wrong in them.

use serde_json::{Value, json};

use super::{
    render::{self, WireStep},
    route::ServedWire,
};

/// What goes wrong with an answer to a request for embeddings.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum EmbeddingFault {
    /// The last vector is missing.
    OneMissing,
    /// The last vector comes once more, with the next index.
    OneMore,
    /// The vectors come last first, each with its own index where the wire has one.
    Reversed,
    /// No vector has an index.
    NoIndex,
    /// The last vector has this index.
    LastIndex(usize),
    /// The last vector lacks a number.
    ShortVector,
    /// The last vector has no number.
    EmptyVector,
    /// This stands in the last vector where a number should.
    Number(Value),
    /// The last vector is a text.
    Text,
    /// The vectors are as long as if no length had been asked for.
    IgnoredDimensions,
    /// No usage is named.
    NoUsage,
    /// The body ends in its middle, with all the bytes that were promised.
    Cut,
    /// A success whose body is an error with these words.
    Error(String),
    /// A success that is a page for people.
    Page,
    /// This status, in the provider's form.
    Status(u16),
    /// The request is read and nothing is said.
    Silence,
}

/// The wire of a request for embeddings.
pub(super) fn wire_of(path: &str) -> Option<ServedWire> {
    let path = path.split('?').next().unwrap_or_default();
    if model_in(path).is_some() {
        return Some(ServedWire::Gemini);
    }
    path.ends_with("/embeddings").then_some(ServedWire::OpenAi)
}

/// The model that Gemini names in the path.
fn model_in(path: &str) -> Option<&str> {
    path.split('?').next()?.rsplit_once("/models/")?.1.strip_suffix(":batchEmbedContents")
}

/// The body of the 400 with which the provider would refuse this request; none if it would take it.
pub(super) fn judge(wire: ServedWire, path: &str, body: &Value) -> Option<Value> {
    if wire == ServedWire::Gemini {
        let message = judge_gemini(model_in(path).unwrap_or_default(), body).err()?;
        return Some(json!({"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}));
    }
    let (message, code) = judge_openai(body).err()?;
    let kind = "invalid_request_error";
    Some(json!({"error": {"message": message, "type": kind, "param": "input", "code": code}}))
}

/// Four bytes a token, as the testkit counts.
const TOKEN_BYTES: usize = 4;

fn judge_openai(body: &Value) -> Result<(), (String, Option<&'static str>)> {
    const MOST_TEXTS: usize = 2_048;
    const MOST_TOKENS: usize = 8_192;
    const MOST_TOGETHER: usize = 300_000;
    let invalid = |what: &str| (format!("'$.input' is invalid. {what}"), None);
    if body["model"].as_str().is_none_or(str::is_empty) {
        return Err(("you must provide a model parameter".to_owned(), None));
    }
    let input = body["input"].as_array().ok_or_else(|| invalid("An array of strings is wanted."))?;
    let texts: Option<Vec<&str>> = input.iter().map(Value::as_str).collect();
    let texts = texts.ok_or_else(|| invalid("An array of strings is wanted."))?;
    if texts.is_empty() || texts.iter().any(|text| text.is_empty()) {
        return Err(invalid("It cannot be an empty string."));
    }
    if texts.len() > MOST_TEXTS {
        return Err(invalid("Expected an array with maximum length 2048."));
    }
    let tokens = |text: &&str| text.len().div_ceil(TOKEN_BYTES);
    if texts.iter().map(tokens).any(|tokens| tokens > MOST_TOKENS) {
        let says = "This model's maximum context length is 8192 tokens.";
        return Err((says.to_owned(), Some("context_length_exceeded")));
    }
    if texts.iter().map(tokens).sum::<usize>() > MOST_TOGETHER {
        return Err(invalid("Requested more than max 300000 tokens per request."));
    }
    let has_length = body["dimensions"].is_null() || body["dimensions"].as_u64().is_some_and(|most| most > 0);
    if !has_length || !matches!(body["encoding_format"].as_str(), None | Some("float" | "base64")) {
        return Err(("a parameter is invalid".to_owned(), None));
    }
    Ok(())
}

fn judge_gemini(model: &str, body: &Value) -> Result<(), String> {
    const MOST_TEXTS: usize = 100;
    let requests = body["requests"].as_array().filter(|requests| !requests.is_empty());
    let requests = requests.ok_or("* BatchEmbedContentsRequest.requests: requests is not specified\n")?;
    if requests.len() > MOST_TEXTS {
        return Err(
            "* BatchEmbedContentsRequest.requests: at most 100 requests can be in one batch\n".to_owned()
        );
    }
    for (index, request) in requests.iter().enumerate() {
        let place = format!("* BatchEmbedContentsRequest.requests[{index}]");
        if request["model"] != format!("models/{model}") {
            return Err(format!("{place}.model: must be the model of the batch\n"));
        }
        if request["content"]["parts"][0]["text"].as_str().is_none_or(str::is_empty) {
            return Err(format!("{place}.content: contents is not specified\n"));
        }
        let length = &request["outputDimensionality"];
        if !(length.is_null() || length.as_u64().is_some_and(|most| most > 0)) {
            return Err(format!("{place}.outputDimensionality: must be positive\n"));
        }
    }
    Ok(())
}

/// The steps of an answer.
pub(super) fn answer(wire: ServedWire, body: &Value, fault: Option<EmbeddingFault>) -> Vec<WireStep> {
    match &fault {
        Some(EmbeddingFault::Status(status)) => {
            return vec![render::whole(*status, &render::of_status(wire, *status))];
        }
        Some(EmbeddingFault::Silence) => return vec![WireStep::Silence],
        Some(EmbeddingFault::Error(words)) => {
            return vec![render::whole(200, &json!({"error": {"message": words}}))];
        }
        Some(EmbeddingFault::Page) => {
            let page = render::http(200, "text/html", &[], b"<p>Sign in");
            return vec![WireStep::Whole(200, page.into())];
        }
        _ => {}
    }
    let whole = spoilt(wire, body, fault.as_ref());
    if fault == Some(EmbeddingFault::Cut) {
        let text = whole.to_string();
        let half = render::http(200, "application/json", &[], &text.as_bytes()[..text.len() / 2]);
        return vec![WireStep::Whole(200, half.into())];
    }
    vec![render::whole(200, &whole)]
}

/// The answer, with what is wrong with it.
fn spoilt(wire: ServedWire, body: &Value, fault: Option<&EmbeddingFault>) -> Value {
    const DIMENSIONS: u64 = 256;
    let is_gemini = wire == ServedWire::Gemini;
    let (texts, asked) = match body["requests"].as_array() {
        Some(requests) => {
            let texts = requests.iter().map(|request| &request["content"]["parts"][0]["text"]);
            (texts.collect::<Vec<_>>(), &body["requests"][0]["outputDimensionality"])
        }
        None => (body["input"].as_array().into_iter().flatten().collect(), &body["dimensions"]),
    };
    let dimensions = match fault {
        Some(EmbeddingFault::IgnoredDimensions) => DIMENSIONS,
        _ => asked.as_u64().unwrap_or(DIMENSIONS),
    };
    let texts: Vec<&str> = texts.into_iter().filter_map(Value::as_str).collect();
    let mut vectors: Vec<Value> = texts.iter().map(|text| json!(vector(text, dimensions))).collect();
    spoil(&mut vectors, fault);
    let mut items: Vec<Value> =
        vectors.into_iter().enumerate().map(|item| wrapped(is_gemini, item)).collect();
    reorder(&mut items, fault);
    let tokens = texts.iter().map(|text| text.len().div_ceil(TOKEN_BYTES)).sum::<usize>();
    let mut whole = if is_gemini {
        json!({"embeddings": items, "usageMetadata": {"promptTokenCount": tokens}})
    } else {
        let usage = json!({"prompt_tokens": tokens, "total_tokens": tokens});
        json!({"object": "list", "data": items, "model": body["model"], "usage": usage})
    };
    if fault == Some(&EmbeddingFault::NoUsage)
        && let Some(members) = whole.as_object_mut()
    {
        members.retain(|name, _| !name.starts_with("usage"));
    }
    whole
}

fn spoil(vectors: &mut Vec<Value>, fault: Option<&EmbeddingFault>) {
    let Some(last) = vectors.last_mut() else { return };
    match fault {
        Some(EmbeddingFault::EmptyVector) => *last = json!([]),
        Some(EmbeddingFault::Text) => *last = json!("AACAPwAAAEA="),
        Some(EmbeddingFault::Number(number)) => last[0] = number.clone(),
        Some(EmbeddingFault::ShortVector) => {
            last.as_array_mut().expect("a vector is a list").truncate(255);
        }
        Some(EmbeddingFault::OneMissing) => {
            vectors.pop();
        }
        Some(EmbeddingFault::OneMore) => {
            let last = last.clone();
            vectors.push(last);
        }
        _ => {}
    }
}

fn reorder(items: &mut [Value], fault: Option<&EmbeddingFault>) {
    match (fault, items.last_mut()) {
        (Some(EmbeddingFault::Reversed), _) => items.reverse(),
        (Some(EmbeddingFault::LastIndex(index)), Some(last)) => last["index"] = json!(index),
        (Some(EmbeddingFault::NoIndex), _) => {
            items.iter_mut().filter_map(Value::as_object_mut).for_each(|item| {
                item.remove("index");
            });
        }
        _ => {}
    }
}

fn wrapped(is_gemini: bool, (index, vector): (usize, Value)) -> Value {
    if is_gemini {
        return json!({ "values": vector });
    }
    json!({"object": "embedding", "index": index, "embedding": vector})
}

/// A vector of the words in a text, of length 1: each word, without its case and its punctuation, adds to one dimension.
fn vector(text: &str, dimensions: u64) -> Vec<f32> {
    let mut counts = vec![0_f32; usize::try_from(dimensions.clamp(1, 4_096)).expect("it is small")];
    for word in text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty()) {
        // FNV-1a: the same on every machine and in every release.
        let hash = word.to_lowercase().bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let place = usize::try_from(hash % counts.len() as u64).expect("it is small");
        counts[place] += 1.0;
    }
    let length = counts.iter().map(|count| count * count).sum::<f32>().sqrt();
    if length > 0.0 {
        counts.iter_mut().for_each(|count| *count /= length);
    }
    counts
}
