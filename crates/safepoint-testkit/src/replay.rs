//! A conversation with a model, recorded to a file and served from it again: an agent is tested without a
//! key.
//!
//! What is recorded is what the model was asked (instructions, tools, history) and what it answered, piece by
//! piece, after the wire was decoded: no address, no header and no key is ever in it, because none passes
//! here. What people, tools and the model said is in it, word by word.
//!
//! **Invariants**: a request that is not as it was recorded, or out of its order, is answered with an error that says
//! where it differs; nothing is answered twice.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write as _},
    path::Path,
    sync::{Arc, Mutex},
};

use futures_util::{FutureExt as _, StreamExt as _, future::BoxFuture, stream};
use safepoint::{
    History, Model,
    model::{Conversation, Delta, DeltaStream, ModelError, ModelErrorKind, ModelSpec, Parameters},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::sync::lock;

mod diff;

/// One line of a recording.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum RecordedLine {
    Request(Value),
    Delta(Delta),
    /// The call failed, in these words.
    Failed(String),
}

/// A model that records its conversations as they run.
#[derive(Debug)]
pub struct RecordingModel<M> {
    model: M,
    /// Held to write the lines of one delta, so that lines stay whole. Exchanges that run at once mix their
    /// deltas: a recording is of one at a time.
    file: Arc<Mutex<File>>,
}

impl<M: Model> RecordingModel<M> {
    /// Records what is said to `model` in a new file, which only its owner may read.
    ///
    /// # Errors
    /// If there is such a file, or it cannot be made.
    pub fn new(model: M, path: impl AsRef<Path>) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        Ok(Self { model, file: Arc::new(Mutex::new(options.open(path)?)) })
    }
}

impl<M: Model> Model for RecordingModel<M> {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn accepts(&self, spec: &ModelSpec) -> Result<(), ModelError> {
        self.model.accepts(spec)
    }

    fn open(&self, spec: ModelSpec) -> Box<dyn Conversation> {
        let said = said_of(&spec);
        Box::new(Recorded { inner: self.model.open(spec), file: Arc::clone(&self.file), said })
    }

    fn check(&self, parameters: &Parameters) -> Result<(), ModelError> {
        self.model.check(parameters)
    }
}

struct Recorded {
    inner: Box<dyn Conversation>,
    /// The file of the model: see there.
    file: Arc<Mutex<File>>,
    said: Value,
}

impl Conversation for Recorded {
    fn stream(&mut self, history: &History) -> DeltaStream {
        let mut request = Some(request(&self.said, history));
        let file = Arc::clone(&self.file);
        let answer = self.inner.stream(history);
        Box::pin(answer.map(move |item| {
            let line = match &item {
                Ok(delta) => RecordedLine::Delta(delta.clone()),
                Err(error) => RecordedLine::Failed(error.to_string()),
            };
            let lines = request.take().map(RecordedLine::Request).into_iter().chain([line]);
            write(&file, lines).map_err(|error| {
                ModelError::new(
                    ModelErrorKind::Provider,
                    format!("the recording could not be written: {error}"),
                )
            })?;
            item
        }))
    }

    fn release(&mut self) -> Option<BoxFuture<'static, ()>> {
        self.inner.release()
    }
}

fn write(file: &Mutex<File>, lines: impl Iterator<Item = RecordedLine>) -> io::Result<()> {
    let mut file = lock(file);
    for line in lines {
        let mut bytes = serde_json::to_vec(&line)?;
        bytes.push(b'\n');
        file.write_all(&bytes)?;
    }
    Ok(())
}

/// A model that answers as it was recorded, in that order, and only what was asked then.
#[derive(Clone, Debug)]
pub struct Replay {
    exchanges: Arc<[RecordedExchange]>,
    /// Held from the look at the next exchange to its taking, so that each is used once.
    next: Arc<Mutex<usize>>,
}

#[derive(Debug)]
struct RecordedExchange {
    request: Value,
    deltas: Vec<Delta>,
    failed: Option<String>,
}

impl Replay {
    /// Reads a recording.
    ///
    /// # Errors
    /// If the file cannot be read, or is none.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        let mut exchanges: Vec<RecordedExchange> = Vec::new();
        for line in std::fs::read_to_string(path)?.lines() {
            let line = serde_json::from_str(line)
                .map_err(|error| io::Error::other(format!("it is no recording: {error}")))?;
            match (line, exchanges.last_mut()) {
                (RecordedLine::Request(request), _) => {
                    exchanges.push(RecordedExchange { request, deltas: Vec::new(), failed: None });
                }
                (RecordedLine::Delta(delta), Some(last)) => last.deltas.push(delta),
                (RecordedLine::Failed(error), Some(last)) => last.failed = Some(error),
                (RecordedLine::Delta(_) | RecordedLine::Failed(_), None) => {
                    return Err(io::Error::other("it is no recording: that begins with a request"));
                }
            }
        }
        if exchanges.is_empty() {
            return Err(io::Error::other("it is no recording: there is no request in it"));
        }
        Ok(Self { exchanges: exchanges.into(), next: Arc::default() })
    }

    /// How many recorded requests have not been made yet: none at the end of a test, if it does all that was
    /// done.
    #[must_use]
    pub fn left(&self) -> usize {
        self.exchanges.len() - *lock(&self.next)
    }

    fn answer(&self, now: &Value) -> Result<Vec<Result<Delta, ModelError>>, ModelError> {
        let mut next = lock(&self.next);
        let number = *next + 1;
        let Some(exchange) = self.exchanges.get(*next) else {
            return Err(differs(format!(
                "the recording ends after {} requests, and this is one more",
                *next
            )));
        };
        if let Some(difference) = diff::first(&exchange.request, now) {
            return Err(differs(format!("request {number} is not as it was recorded: {difference}")));
        }
        *next = number;
        let mut items: Vec<Result<Delta, ModelError>> = exchange.deltas.iter().cloned().map(Ok).collect();
        match (&exchange.failed, exchange.deltas.last()) {
            (Some(error), _) => items.push(Err(ModelError::new(ModelErrorKind::Provider, error.clone()))),
            (None, Some(Delta::Ended(_))) => {}
            (None, _) => {
                let words = "the answer was cut when it was recorded, and its rest is not known";
                items.push(Err(ModelError::new(ModelErrorKind::Broken, words)));
            }
        }
        Ok(items)
    }
}

fn differs(message: String) -> ModelError {
    ModelError::new(ModelErrorKind::Refused, message)
        .with_hint("a replay is strict: record it again if the agent was meant to change")
}

impl Model for Replay {
    fn name(&self) -> &str {
        "replay"
    }

    /// What was recorded was accepted.
    fn accepts(&self, _spec: &ModelSpec) -> Result<(), ModelError> {
        Ok(())
    }

    fn open(&self, spec: ModelSpec) -> Box<dyn Conversation> {
        Box::new(Replayed { replay: self.clone(), said: said_of(&spec) })
    }

    /// It is recorded what they were: others are a difference.
    fn check(&self, _: &Parameters) -> Result<(), ModelError> {
        Ok(())
    }
}

struct Replayed {
    replay: Replay,
    said: Value,
}

impl Conversation for Replayed {
    /// As of a model: nothing is asked before the first poll, and each piece may be the last before a stop.
    fn stream(&mut self, history: &History) -> DeltaStream {
        let (replay, now) = (self.replay.clone(), request(&self.said, history));
        let answered = async move { replay.answer(&now).unwrap_or_else(|error| vec![Err(error)]) };
        let pieces = answered.map(stream::iter).flatten_stream();
        Box::pin(pieces.then(|piece| async move {
            tokio::task::yield_now().await;
            piece
        }))
    }
}

fn said_of(spec: &ModelSpec) -> Value {
    let tool = |tool: &safepoint::model::ToolDecl| json!({"name": tool.name, "description": tool.description, "parameters": tool.parameters});
    let tools: Vec<Value> = spec.tools.iter().map(tool).collect();
    let choice = spec.choice.as_ref().map(|choice| format!("{choice:?}"));
    let mut said = json!({"system": spec.system.as_deref(), "tools": tools, "choice": choice});
    // Recordings from before have none.
    if let Some(parameters) = &spec.parameters {
        said["parameters"] = parameters.to_json();
    }
    if !spec.provider_tools.is_empty() {
        said["provider_tools"] = spec.provider_tools.iter().map(|tool| json!(format!("{tool:?}"))).collect();
    }
    said
}

fn request(said: &Value, history: &History) -> Value {
    let mut request = said.clone();
    request["history"] = json!(history.entries());
    request
}

#[cfg(test)]
mod tests;
