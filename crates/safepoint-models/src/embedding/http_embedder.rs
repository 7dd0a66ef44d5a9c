//! An embedder behind HTTP: the settings that every wire has, the requests, and what is checked of the answers.

use std::{fmt, marker::PhantomData, ops::Range, sync::Arc};

use bytes::Bytes;
use futures_core::future::BoxFuture;
use futures_util::{StreamExt as _, stream};
use safepoint::{
    Usage,
    model::{ModelError, ModelErrorKind},
    usage::UsageSource,
};
use secrecy::SecretString;
use serde_json::{Map, Value};

use super::{
    Embedder, Embeddings,
    answer::{AnswerPiece, AnswerReader},
    batches::{self, BatchLimits},
    vector::Vector,
};
use crate::{
    body::Growing,
    config::{Auth, ConfigError, Endpoint},
    error,
    http::{
        Patience,
        outgoing::{Outgoing, Prepared},
        whole::{self, WholeAnswer},
    },
    made::Settled,
    wired::Wire,
};

/// An embedder that is reached over HTTP, on the wire `W`.
///
/// ```
/// let embedder = safepoint_models::openai::embedder("text-embedding-3-small").dimensions(256);
/// let local = safepoint_models::openai::embedder("nomic-embed-text").base_url("http://127.0.0.1:11434/v1");
/// ```
#[derive(Clone, Debug)]
#[must_use = "a setting returns the changed value"]
pub struct HttpEmbedder<W> {
    name: String,
    set: Settled<EmbedSet<W>>,
}

/// What is set of an embedder.
#[derive(Clone, Debug)]
pub(crate) struct EmbedSet<W> {
    /// The model's name as the provider knows it.
    pub(crate) wire_name: String,
    pub(crate) endpoint: Endpoint,
    pub(crate) dimensions: Option<usize>,
    /// The provider's name of the setting before.
    pub(crate) dimensions_field: &'static str,
    /// Fields beside those of the wire.
    pub(crate) fields: Map<String, Value>,
    pub(crate) limits: BatchLimits,
    wire: PhantomData<fn() -> W>,
}

/// A wire that has embeddings. Sealed: the wires are those of this crate.
#[expect(private_bounds, reason = "what a wire does is this crate's own")]
pub trait EmbedWire: Wire + Embeds {}

impl<W: Wire + Embeds> EmbedWire for W {}

/// What differs between wires that have embeddings.
pub(crate) trait Embeds: Sized {
    /// The name of the list of vectors in an answer.
    const LIST: &'static str;

    /// What is set from the start, with what a request and its texts may hold.
    fn new_set(model: String) -> EmbedSet<Self>;
    /// Where requests go, below the base URL, and how the key is sent.
    fn path(set: &EmbedSet<Self>) -> (String, Auth);
    /// The body of a request.
    fn body(set: &EmbedSet<Self>, texts: &[String]) -> Value;
    /// A vector of the list, and where it belongs if its provider says so.
    fn item(json: &[u8]) -> serde_json::Result<(Option<usize>, Vector)>;
    /// The tokens that this member of an answer names.
    fn tokens(name: &str, json: &[u8]) -> Option<u64>;
}

impl<W: EmbedWire> HttpEmbedder<W> {
    /// An embedder by the name of its model, without a key; add one with [`HttpEmbedder::api_key`] where the server wants
    /// it.
    pub fn new(model: impl Into<String>) -> Self {
        let set = W::new_set(W::wire_name(model.into()));
        Self::of(W::NAME, set)
    }

    /// An embedder with the key and, where it is set, the base URL of the wire's variables.
    ///
    /// # Errors
    /// If neither is set: without a base URL a key is needed.
    pub fn from_env(model: impl Into<String>) -> Result<Self, ConfigError> {
        let mut embedder = Self::new(model);
        embedder.set.change().endpoint =
            Endpoint::from_env(W::DEFAULT_BASE, W::KEY_VARIABLE, W::BASE_VARIABLE)?;
        Ok(embedder)
    }

    pub(crate) fn of(provider: &str, set: EmbedSet<W>) -> Self {
        Self { name: format!("{provider}:{}", set.wire_name), set: Settled::new(set) }
    }

    /// The part of the address before the wire's own path; it includes `/v1`, or `/v1beta`.
    pub fn base_url(mut self, url: impl Into<String>) -> Self {
        self.set.change().endpoint.base_url = url.into();
        self
    }

    /// Sets the key.
    pub fn api_key(mut self, key: SecretString) -> Self {
        self.set.change().endpoint.key = Some(key);
        self
    }

    /// Adds a header to each request.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.set.change().endpoint.headers.push((name.into(), value.into()));
        self
    }

    /// Sets how long to wait and how often to try, as a model does.
    pub fn patience(mut self, patience: Patience) -> Self {
        self.set.change().endpoint.patience = patience;
        self
    }

    /// Asks for vectors of this length, where the model can shorten them; another length is then an error. A shortened
    /// vector need not have the length 1: divide by it before you compare, as a cosine does.
    pub fn dimensions(mut self, dimensions: usize) -> Self {
        self.set.change().dimensions = Some(dimensions);
        self
    }

    /// Adds a field to each request as it is, over what is set otherwise, such as `input_type`.
    pub fn extra(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.set.change().fields.insert(name.into(), value.into());
        self
    }

    /// The most texts of one request. Default: what the provider documents (2,048 at OpenAI, 100 at Gemini).
    pub fn max_texts(mut self, texts: usize) -> Self {
        self.set.change().limits.texts = texts;
        self
    }

    /// The most bytes of one text; a larger one is refused before anything is sent. Providers count tokens, which only
    /// they can; the default is eight bytes for each token that they document, and four at Gemini, which cuts a longer text
    /// without a word.
    pub fn max_text_bytes(mut self, bytes: usize) -> Self {
        self.set.change().limits.text_bytes = bytes;
        self
    }

    /// The most bytes of all texts of one request: two for each token that the provider documents, so that texts in any
    /// language fit.
    pub fn max_request_bytes(mut self, bytes: usize) -> Self {
        self.set.change().limits.request_bytes = bytes;
        self
    }

    /// How many requests run at once. Default 4.
    pub fn parallel_requests(mut self, requests: usize) -> Self {
        self.set.change().limits.parallel = requests;
        self
    }

    fn prepared(&self) -> Result<Arc<Prepared>, ModelError> {
        self.set.prepared(|set| {
            let (path, auth) = W::path(set);
            set.endpoint.prepare(&path, auth, whole::accepts_json())
        })
    }

    async fn embed_all(&self, texts: &[String]) -> Result<Embeddings, ModelError> {
        let requests = batches::plan(texts, &self.set.limits)?;
        let prepared = self.prepared()?;
        let is_one = requests.len() == 1;
        let asked = requests.into_iter().map(|range| {
            let prepared = Arc::clone(&prepared);
            async move {
                let embedded = self.request(prepared, &texts[range.clone()]).await;
                embedded.map_err(|error| if is_one { error } else { named(&range, texts.len(), &error) })
            }
        });
        let mut answers = stream::iter(asked).buffered(self.set.limits.parallel);
        let mut all = Embeddings::new(Vec::with_capacity(texts.len()), Usage::default());
        while let Some(answer) = answers.next().await {
            let Embeddings { vectors, usage } = answer?;
            all.vectors.extend(vectors);
            all.usage.add(&usage);
        }
        drop(answers);
        same_lengths(self.set.dimensions, &all.vectors)?;
        Ok(all)
    }

    /// One request, for texts that fit it.
    async fn request(&self, prepared: Arc<Prepared>, texts: &[String]) -> Result<Embeddings, ModelError> {
        let body = W::body(&self.set, texts).to_string();
        let floor = Usage::floor_of_bytes(texts.iter().map(String::len).sum());
        let growing = Growing::behind(Bytes::from(body));
        let outgoing = Outgoing { prepared, body: growing.with_tail(b""), output_bytes: usize::MAX };
        let answer = whole::ask(&outgoing).await.map_err(too_long)?;
        let mut taken = Taken::<W>::new(texts.len());
        taken.read(answer).await?;
        let source = if taken.tokens.is_some() { UsageSource::Exact } else { UsageSource::Estimated };
        let usage = Usage::new(taken.tokens.unwrap_or(floor), 0).with_source(source);
        Ok(Embeddings::new(taken.whole()?, usage))
    }
}

impl<W: EmbedWire> Embedder for HttpEmbedder<W> {
    fn name(&self) -> &str {
        &self.name
    }

    fn embed<'a>(&'a self, texts: &'a [String]) -> BoxFuture<'a, Result<Embeddings, ModelError>> {
        Box::pin(self.embed_all(texts))
    }
}

impl<W> EmbedSet<W> {
    pub(crate) fn new(wire_name: String, base: &str, limits: BatchLimits) -> Self {
        Self {
            wire_name,
            endpoint: Endpoint::new(base),
            dimensions: None,
            dimensions_field: "dimensions",
            fields: Map::new(),
            limits,
            wire: PhantomData,
        }
    }
}

/// What one answer has brought.
struct Taken<W> {
    vectors: Vec<Option<Vec<f32>>>,
    /// How many items came.
    items: usize,
    tokens: Option<u64>,
    wire: PhantomData<fn() -> W>,
}

impl<W: EmbedWire> Taken<W> {
    fn new(texts: usize) -> Self {
        Self { vectors: vec![None; texts], items: 0, tokens: None, wire: PhantomData }
    }

    /// Reads an answer to its end.
    async fn read(&mut self, mut answer: WholeAnswer) -> Result<(), ModelError> {
        let mut reader = AnswerReader::new(W::LIST);
        while let Some(chunk) = answer.chunk().await? {
            let mut bytes = &chunk[..];
            while let Some(piece) = reader.next(&mut bytes).map_err(error::malformed)? {
                self.take(piece)?;
                // A stop looks in between two vectors, however many one chunk has.
                tokio::task::coop::consume_budget().await;
            }
        }
        if reader.is_complete() { Ok(()) } else { Err(error::ended_early()) }
    }

    fn take(&mut self, piece: AnswerPiece) -> Result<(), ModelError> {
        match piece {
            AnswerPiece::Item(json) => self.item(&json),
            AnswerPiece::Member(name, json) if name == "error" => {
                let body = [b"{\"error\":", &json[..], b"}"].concat();
                let words = error::provider_words(&body).unwrap_or_else(|| "no reason was given".to_owned());
                Err(error::in_stream(&words))
            }
            AnswerPiece::Member(name, json) => {
                self.tokens = W::tokens(&name, &json).or(self.tokens);
                Ok(())
            }
        }
    }

    fn item(&mut self, json: &[u8]) -> Result<(), ModelError> {
        let (asked, number) = (self.vectors.len(), self.items);
        if number == asked {
            return Err(error::malformed(format_args!(
                "more vectors came than the {asked} that were asked for"
            )));
        }
        let (index, Vector(vector)) = W::item(json)
            .map_err(|wrong| error::malformed(format_args!("vector {} of {asked}: {wrong}", number + 1)))?;
        self.items += 1;
        let index = index.unwrap_or(number);
        match self.vectors.get_mut(index) {
            Some(place @ None) => *place = Some(vector),
            Some(Some(_)) => {
                return Err(error::malformed(format_args!("two vectors came for the index {index}")));
            }
            None => {
                let what = format_args!("a vector came for the index {index}, and {asked} were asked for");
                return Err(error::malformed(what));
            }
        }
        Ok(())
    }

    fn whole(self) -> Result<Vec<Vec<f32>>, ModelError> {
        let asked = self.vectors.len();
        let vectors: Vec<_> = self.vectors.into_iter().flatten().collect();
        if vectors.len() < asked {
            let what = format_args!("{asked} vectors were asked for, and {} came", vectors.len());
            return Err(error::malformed(what));
        }
        Ok(vectors)
    }
}

impl<W> fmt::Debug for Taken<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Taken").field("items", &self.items).finish_non_exhaustive()
    }
}

/// That all vectors have the length that was asked for, or else one length.
fn same_lengths(asked: Option<usize>, vectors: &[Vec<f32>]) -> Result<(), ModelError> {
    let first = vectors.first().map_or(0, Vec::len);
    let wanted = asked.unwrap_or(first);
    let Some(index) = vectors.iter().position(|vector| vector.len() != wanted) else { return Ok(()) };
    let (number, length) = (index + 1, vectors[index].len());
    let what = match asked {
        Some(wanted) => format!("vector {number} has {length} dimensions where {wanted} were asked for"),
        None => format!("vector {number} has {length} dimensions, and the first one {first}"),
    };
    let error = ModelError::new(ModelErrorKind::Malformed, what);
    Err(error.with_hint("does the model have that many dimensions, and can it shorten its vectors?"))
}

/// An error, and for which of all texts.
fn named(texts: &Range<usize>, all: usize, error: &ModelError) -> ModelError {
    let what = format!("texts {} to {} of {all}: {error}", texts.start + 1, texts.end);
    let mut named = ModelError::new(error.kind(), what);
    if let Some(hint) = error.hint() {
        named = named.with_hint(hint.to_owned());
    }
    match error.status() {
        Some(status) => named.with_status(status),
        None => named,
    }
}

/// The provider's refusal of what is too long, with what to do about texts.
fn too_long(error: ModelError) -> ModelError {
    if error.kind() != ModelErrorKind::ContextWindow {
        return error;
    }
    error.with_hint(
        "a text, or all texts of a request, have more tokens than the model takes: split long texts, or set \
                     `max_request_bytes` lower",
    )
}
