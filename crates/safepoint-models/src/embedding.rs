//! What makes vectors of texts: the trait, what every wire of it shares, and what is checked of the answers.

use std::sync::Arc;

use futures_core::future::BoxFuture;
use safepoint::{Usage, model::ModelError};

mod answer;
pub(crate) mod batches;
mod http_embedder;
mod vector;

pub(crate) use http_embedder::{EmbedSet, Embeds};
pub use http_embedder::{EmbedWire, HttpEmbedder};
pub(crate) use vector::Vector;

/// Makes vectors of texts. Shared by all callers; holds no state of any of them.
///
/// What makes one over HTTP is [`HttpEmbedder`]. To add another, implement this trait.
///
/// ```
/// use safepoint::model::ModelError;
/// use safepoint_models::embed::Embedder;
/// /// How near two texts are in meaning: 1 is the same.
/// async fn nearness(embedder: &dyn Embedder, texts: &[String; 2]) -> Result<f32, ModelError> {
///     let vectors = embedder.embed(texts).await?.vectors;
///     let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
///     let (left, right) = (&vectors[0], &vectors[1]);
///     Ok(dot(left, right) / (dot(left, left) * dot(right, right)).sqrt())
/// }
/// ```
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
