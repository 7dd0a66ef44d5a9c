//! Providers of embeddings by name: where each is, which key it wants, and how much it takes at once.

use std::sync::Arc;

use serde_json::{Map, json};

#[cfg(feature = "gemini")]
use crate::gemini::GeminiEmbedder;
use crate::{
    config::{ConfigError, Endpoint},
    embedding::{
        EmbedSet, Embedder, HttpEmbedder,
        batches::{BatchLimits, PARALLEL},
    },
    openai::{OpenAiEmbedder, embed::LIMITS},
};

struct Preset {
    name: &'static str,
    base: &'static str,
    /// The variable of its key; none for a server of one's own, which may want none.
    key: Option<&'static str>,
    base_variable: &'static str,
    dimensions_field: &'static str,
    /// Fields that each request has.
    fields: fn() -> serde_json::Value,
    limits: BatchLimits,
}

/// What servers that document no limit are sent at once.
const MODEST: BatchLimits = BatchLimits { texts: 128, ..LIMITS };

fn floats() -> serde_json::Value {
    json!({"encoding_format": "float"})
}

const fn server(name: &'static str, base: &'static str, base_variable: &'static str) -> Preset {
    let dimensions_field = "dimensions";
    Preset { name, base, key: None, base_variable, dimensions_field, fields: floats, limits: MODEST }
}

const PRESETS: [Preset; 8] = [
    Preset {
        key: Some("OPENAI_API_KEY"),
        limits: LIMITS,
        ..server("openai", "https://api.openai.com/v1", "OPENAI_BASE_URL")
    },
    // 256 texts, and 16,384 tokens together.
    Preset {
        key: Some("MISTRAL_API_KEY"),
        dimensions_field: "output_dimension",
        limits: BatchLimits {
            texts: 256,
            text_bytes: 8 * 8_192,
            request_bytes: 2 * 16_384,
            parallel: PARALLEL,
        },
        ..server("mistral", "https://api.mistral.ai/v1", "MISTRAL_BASE_URL")
    },
    // 1,000 texts of 32,000 tokens, and 120,000 tokens together with the models that take the fewest. It would cut a long
    // text without a word, and its form of numbers is floats unless base64 is asked for.
    Preset {
        key: Some("VOYAGE_API_KEY"),
        dimensions_field: "output_dimension",
        fields: || json!({"truncation": false}),
        limits: BatchLimits {
            texts: 1_000,
            text_bytes: 8 * 32_000,
            request_bytes: 2 * 120_000,
            parallel: PARALLEL,
        },
        ..server("voyage", "https://api.voyageai.com/v1", "VOYAGE_BASE_URL")
    },
    Preset {
        key: Some("OPENROUTER_API_KEY"),
        ..server("openrouter", "https://openrouter.ai/api/v1", "OPENROUTER_BASE_URL")
    },
    Preset {
        key: Some("TOGETHER_API_KEY"),
        ..server("together", "https://api.together.xyz/v1", "TOGETHER_BASE_URL")
    },
    server("ollama", "http://127.0.0.1:11434/v1", "OLLAMA_BASE_URL"),
    server("vllm", "http://127.0.0.1:8000/v1", "VLLM_BASE_URL"),
    server("lmstudio", "http://127.0.0.1:1234/v1", "LMSTUDIO_BASE_URL"),
];

/// An embedder at a provider that speaks OpenAI's embeddings: `openai`, `mistral`, `voyage`, `openrouter`, `together`,
/// and `ollama`, `vllm` and `lmstudio` on this machine. Its key is that of `MISTRAL_API_KEY` and so on; `MISTRAL_BASE_URL`
/// and so on name another address.
///
/// ```
/// # fn main() -> Result<(), safepoint_models::ConfigError> {
/// let embedder = safepoint_models::embed::compatible("ollama", "nomic-embed-text")?.parallel_requests(1);
/// # Ok(()) }
/// ```
///
/// # Errors
/// If the provider is not known, or its key is not set.
pub fn compatible(provider: &str, model: impl Into<String>) -> Result<OpenAiEmbedder, ConfigError> {
    let Some(preset) = PRESETS.iter().find(|preset| preset.name == provider) else {
        let known = PRESETS.map(|preset| preset.name).join(", ");
        return Err(ConfigError::new(format!(
            "no provider of embeddings is called `{provider}`: use {known}, or \
             `openai::embedder` with a base URL"
        )));
    };
    let mut set = EmbedSet::new(model.into(), preset.base, preset.limits);
    set.endpoint = match preset.key {
        Some(key) => Endpoint::from_env(preset.base, key, preset.base_variable)?,
        None => Endpoint::local(preset.base, preset.base_variable),
    };
    set.dimensions_field = preset.dimensions_field;
    set.fields = match (preset.fields)() {
        serde_json::Value::Object(fields) => fields,
        _ => Map::new(),
    };
    Ok(HttpEmbedder::of(preset.name, set))
}

/// An embedder by name, `PROVIDER:MODEL`: `gemini:gemini-embedding-001`, or a provider of [`compatible`], such as
/// `openai:text-embedding-3-small`.
///
/// ```
/// # fn main() -> Result<(), safepoint_models::ConfigError> {
/// use safepoint_models::embed::{self, Embedder as _};
/// let embedder = embed::parse("ollama:nomic-embed-text")?;
/// assert_eq!(embedder.name(), "ollama:nomic-embed-text");
/// # Ok(()) }
/// ```
///
/// # Errors
/// If it is no such name, the provider is not known, or its key is not set.
pub fn parse(name: &str) -> Result<Arc<dyn Embedder>, ConfigError> {
    match name.split_once(':') {
        #[cfg(feature = "gemini")]
        Some(("gemini", model)) if !model.is_empty() => Ok(Arc::new(GeminiEmbedder::from_env(model)?)),
        #[cfg(not(feature = "gemini"))]
        Some(("gemini", _)) => Err(ConfigError::new(format!(
            "`{name}` speaks a wire that this program is built without: switch on the feature `gemini` of safepoint-models"
        ))),
        Some((provider, model)) if !model.is_empty() => Ok(Arc::new(compatible(provider, model)?)),
        _ => Err(ConfigError::new(format!(
            "`{name}` names no embedder: write PROVIDER:MODEL, such as openai:text-embedding-3-small"
        ))),
    }
}
