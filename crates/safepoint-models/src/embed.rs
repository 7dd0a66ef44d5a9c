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

#[cfg(feature = "openai")]
mod presets;

pub use crate::embedding::{EmbedWire, Embedder, Embeddings, HttpEmbedder};
#[cfg(feature = "openai")]
pub use presets::{compatible, parse};
