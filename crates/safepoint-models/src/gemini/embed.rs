//! Gemini's `batchEmbedContents`.

use serde::Deserialize;
use serde_json::{Value, json};

use super::GenerateContent;
use crate::{
    config::Auth,
    embedding::{
        EmbedSet, Embeds, HttpEmbedder, Vector,
        batches::{BatchLimits, PARALLEL},
    },
    wired::Wire,
};

/// An embedder that speaks Gemini's `batchEmbedContents`.
///
/// Documents and a question about them want different vectors, which `taskType` says in the provider's words:
///
/// ```
/// let documents = safepoint_models::gemini::embedder("gemini-embedding-001").extra("taskType", "RETRIEVAL_DOCUMENT");
/// let question = documents.clone().extra("taskType", "RETRIEVAL_QUERY");
/// ```
pub type GeminiEmbedder = HttpEmbedder<GenerateContent>;

/// 100 texts of at most 2,048 tokens each. What is longer the provider cuts without a word.
const LIMITS: BatchLimits =
    BatchLimits { texts: 100, text_bytes: 4 * 2_048, request_bytes: 100 * 4 * 2_048, parallel: PARALLEL };

#[derive(Deserialize)]
struct ContentEmbedding {
    values: Vector,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Tokens {
    prompt_token_count: Option<u64>,
}

impl Embeds for GenerateContent {
    const LIST: &'static str = "embeddings";

    fn new_set(name: String) -> EmbedSet<Self> {
        let mut set = EmbedSet::new(name, Self::DEFAULT_BASE, LIMITS);
        set.dimensions_field = "outputDimensionality";
        set
    }

    fn path(set: &EmbedSet<Self>) -> (String, Auth) {
        (format!("models/{}:batchEmbedContents", set.wire_name), Auth::GoogKey)
    }

    fn body(set: &EmbedSet<Self>, texts: &[String]) -> Value {
        let model = format!("models/{}", set.wire_name);
        let requests = texts.iter().map(|text| {
            let mut request = json!({"model": model, "content": {"parts": [{"text": text}]}});
            if let Some(dimensions) = set.dimensions {
                request[set.dimensions_field] = dimensions.into();
            }
            for (name, value) in &set.fields {
                request[name] = value.clone();
            }
            request
        });
        json!({"requests": requests.collect::<Vec<_>>()})
    }

    fn item(json: &[u8]) -> serde_json::Result<(Option<usize>, Vector)> {
        let ContentEmbedding { values } = serde_json::from_slice(json)?;
        Ok((None, values))
    }

    fn tokens(name: &str, json: &[u8]) -> Option<u64> {
        let tokens: Tokens = (name == "usageMetadata").then(|| serde_json::from_slice(json).ok())??;
        tokens.prompt_token_count
    }
}
