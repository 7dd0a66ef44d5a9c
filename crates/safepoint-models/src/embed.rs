//! Embeddings: texts as vectors, on the wires that have them.
//!
//! [`openai::embedder`](crate::openai::embedder) and [`gemini::embedder`](crate::gemini::embedder) make an embedder of a
//! wire, [`compatible`] one of a provider that speaks OpenAI's wire, and [`parse`] one by name. Texts are sent in as many
//! requests as the provider's limits take, several at once, and the vectors come back in the order of the texts.
//!
//! A stop is a drop: all requests are one future, and dropping it closes their connections. A tool passes it to
//! [`ToolContext::run`](safepoint::ToolContext::run), so that a stop of its call ends it:
//!
//! ```
//! use safepoint::{Halt, ToolContext, stop::Failure};
//! use safepoint_models::embed::Embedder;
//!
//! async fn vector_of(cx: &ToolContext, embedder: &dyn Embedder, text: String) -> Result<Vec<f32>, Halt> {
//!     let texts = [text];
//!     let embedded = cx.run(embedder.embed(&texts)).await?; // a stop leaves here, never as an error
//!     let mut vectors = embedded.map_err(|error| Failure::new(error.to_string()))?.vectors;
//!     Ok(vectors.remove(0))
//! }
//! ```

use std::sync::Arc;

use futures_core::future::BoxFuture;
use safepoint::{Usage, model::ModelError};

mod answer;
mod batches;
mod gemini;
mod http_embedder;
mod openai;
mod presets;
mod vector;

pub use http_embedder::{EmbedWire, HttpEmbedder};
pub use presets::{OpenAiEmbedder, compatible, parse};

pub use gemini::GeminiEmbedder;

/// Makes vectors of texts. Shared by all callers; holds no state of any of them.
///
/// What makes one over HTTP is [`HttpEmbedder`]. To add another, implement this trait.
pub trait Embedder: Send + Sync + 'static {
    /// The name for people, such as `openai:text-embedding-3-small`.
    fn name(&self) -> &str;

    /// The vectors of these texts, in their order.
    ///
    /// # Errors
    /// If there is no text, if one is empty or too large, or if the provider fails or answers otherwise than its wire
    /// promises. All texts are refused or embedded together: no vectors come with an error.
    ///
    /// # Cancel safety
    /// Dropping the future releases each of its exchanges at once: an HTTP/1 connection closes, an HTTP/2 stream is
    /// reset. What had been embedded is lost, and may have been billed.
    fn embed<'a>(&'a self, texts: &'a [String]) -> BoxFuture<'a, Result<Embeddings, ModelError>>;
}

impl<E: Embedder + ?Sized> Embedder for Arc<E> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn embed<'a>(&'a self, texts: &'a [String]) -> BoxFuture<'a, Result<Embeddings, ModelError>> {
        (**self).embed(texts)
    }
}

/// The vectors of texts, and what they took.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Embeddings {
    /// One vector a text, in the order of the texts, all of the same length.
    pub vectors: Vec<Vec<f32>>,
    /// The tokens of all requests together. What a provider did not say is a floor, marked
    /// [estimated](safepoint::usage::UsageSource::Estimated).
    pub usage: Usage,
}

impl Embeddings {
    /// Vectors in the order of their texts, for an embedder of your own.
    #[must_use]
    pub fn new(vectors: Vec<Vec<f32>>, usage: Usage) -> Self {
        Self { vectors, usage }
    }
}
