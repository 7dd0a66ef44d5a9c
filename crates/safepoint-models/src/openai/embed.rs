//! OpenAI's embeddings, and every server that speaks them.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::Chat;
use crate::{
    config::Auth,
    embedding::{
        EmbedSet, Embeds, HttpEmbedder, Vector,
        batches::{BatchLimits, PARALLEL},
    },
    wired::Wire,
};

/// An embedder that speaks OpenAI's embeddings.
///
/// ```
/// let embedder = safepoint_models::openai::embedder("text-embedding-3-small").base_url("http://127.0.0.1:8080/v1");
/// ```
pub type OpenAiEmbedder = HttpEmbedder<Chat>;

/// 2,048 texts of at most 8,192 tokens each, and 300,000 tokens together.
pub(crate) const LIMITS: BatchLimits =
    BatchLimits { texts: 2_048, text_bytes: 8 * 8_192, request_bytes: 2 * 300_000, parallel: PARALLEL };

#[derive(Deserialize)]
struct EmbeddingItem {
    index: Option<usize>,
    embedding: Vector,
}

#[derive(Deserialize)]
struct Tokens {
    prompt_tokens: Option<u64>,
    total_tokens: Option<u64>,
}

impl Embeds for Chat {
    const LIST: &'static str = "data";

    fn new_set(name: String) -> EmbedSet<Self> {
        let mut set = EmbedSet::new(name, Self::DEFAULT_BASE, LIMITS);
        set.fields = Map::from_iter([("encoding_format".to_owned(), json!("float"))]);
        set
    }

    fn path(_set: &EmbedSet<Self>) -> (String, Auth) {
        ("embeddings".to_owned(), Auth::Bearer)
    }

    fn body(set: &EmbedSet<Self>, texts: &[String]) -> Value {
        let mut body = Map::new();
        body.insert("model".to_owned(), set.wire_name.as_str().into());
        if let Some(dimensions) = set.dimensions {
            body.insert(set.dimensions_field.to_owned(), dimensions.into());
        }
        body.insert("input".to_owned(), texts.into());
        body.extend(set.fields.clone());
        Value::Object(body)
    }

    fn item(json: &[u8]) -> serde_json::Result<(Option<usize>, Vector)> {
        let EmbeddingItem { index, embedding } = serde_json::from_slice(json)?;
        Ok((index, embedding))
    }

    fn tokens(name: &str, json: &[u8]) -> Option<u64> {
        let tokens: Tokens = (name == "usage").then(|| serde_json::from_slice(json).ok())??;
        tokens.prompt_tokens.or(tokens.total_tokens)
    }
}
