//! A model that never ends its reply: it writes one piece after the other while a client reads.

use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{sync::watch, time::timeout};

use crate::{
    http::{self, Connection, Serving},
    server::ServedWire,
};

/// The field of a wire that a model floods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Field {
    /// Its text.
    Text,
    /// Its reasoning.
    Reasoning,
    /// The signature, or the encrypted form, of its reasoning.
    Seal,
    /// The arguments of one call.
    Args,
    /// The name of one call.
    Name,
    /// The id of one call.
    Id,
    /// Whole calls, each with its own id.
    Calls,
    /// A tool of the provider's own.
    OwnTool,
    /// Where a text is from.
    Citation,
    /// Events that say nothing.
    Nothing,
}

/// All fields.
pub const FIELDS: [Field; 10] = [
    Field::Text,
    Field::Reasoning,
    Field::Seal,
    Field::Args,
    Field::Name,
    Field::Id,
    Field::Calls,
    Field::OwnTool,
    Field::Citation,
    Field::Nothing,
];

/// A server of such a model. Dropping it ends it.
#[derive(Debug)]
pub struct Flood {
    address: SocketAddr,
    written: watch::Receiver<u64>,
    gone: watch::Receiver<u64>,
    pieces: Arc<Pieces>,
    _serving: Serving,
}

impl Flood {
    /// Starts a server whose every answer floods `field` of `wire` with pieces of about `bytes`.
    ///
    /// # Errors
    /// If it cannot listen.
    ///
    /// # Cancel safety
    /// No server was started.
    pub async fn start(wire: ServedWire, field: Field, bytes: usize) -> io::Result<Self> {
        let listener = http::bind(http::LOOPBACK)?;
        let address = listener.local_addr()?;
        let (tell, written) = watch::channel(0);
        let (tell_gone, gone) = watch::channel(0);
        let (filler, number) = ("x".repeat(bytes), AtomicU64::new(0));
        let pieces = Arc::new(Pieces { wire, field, filler, number });
        let serving = Serving::start(listener, &pieces, move |connection, pieces| {
            let (tell, tell_gone) = (tell.clone(), tell_gone.clone());
            async move {
                // A reader that stops reading is the expected end.
                let written = pieces.write(connection, &tell).await;
                tell_gone.send_modify(|gone| *gone += 1);
                written
            }
        });
        Ok(Self { address, written, gone, pieces, _serving: serving })
    }

    /// The base URL of its wire.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Bytes that were written so far.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        *self.written.borrow()
    }

    /// Pieces that were made so far; the last of them may yet have to be read.
    #[must_use]
    pub fn pieces(&self) -> u64 {
        // Relaxed: a count that only grows, and orders nothing.
        self.pieces.number.load(Ordering::Relaxed)
    }

    /// Waits until this many bytes are written.
    ///
    /// # Errors
    /// If they are not within a minute.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn until(&self, bytes: u64) -> io::Result<()> {
        wait(self.written.clone(), bytes).await
    }

    /// Waits until this many readers are gone.
    ///
    /// # Errors
    /// If they are not within a minute.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn until_gone(&self, readers: u64) -> io::Result<()> {
        wait(self.gone.clone(), readers).await
    }
}

async fn wait(mut count: watch::Receiver<u64>, least: u64) -> io::Result<()> {
    const PATIENCE: Duration = Duration::from_secs(60);
    match timeout(PATIENCE, count.wait_for(|count| *count >= least)).await {
        Ok(Ok(_enough)) => Ok(()),
        Ok(Err(_gone)) => Err(io::ErrorKind::BrokenPipe.into()),
        Err(_elapsed) => Err(io::ErrorKind::TimedOut.into()),
    }
}

/// What the answers are made of.
#[derive(Debug)]
struct Pieces {
    wire: ServedWire,
    field: Field,
    filler: String,
    number: AtomicU64,
}

impl Pieces {
    async fn write(&self, mut connection: Connection, tell: &watch::Sender<u64>) -> io::Result<()> {
        if connection.request().await?.is_none() {
            return Ok(());
        }
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        connection.write(head.as_bytes()).await?;
        let mut batch = String::new();
        self.begin().iter().for_each(|event| push(&mut batch, event));
        loop {
            const BATCH: usize = 32 << 10;
            while batch.len() < BATCH {
                // Relaxed: each piece has its own number; which is written first is open.
                let number = self.number.fetch_add(1, Ordering::Relaxed);
                self.next(number).iter().for_each(|event| push(&mut batch, event));
            }
            connection.write(batch.as_bytes()).await?;
            tell.send_modify(|written| *written += batch.len() as u64);
            batch.clear();
        }
    }

    /// What stands before the flood.
    fn begin(&self) -> Vec<Value> {
        let thinking = json!({"type": "thinking", "thinking": ""});
        let call = |name: &str| json!({"type": "tool_use", "id": "c", "name": name, "input": {}});
        let own = json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}});
        let chat = |function: Value| json!([{"index": 0, "id": "c", "function": function}]);
        match (self.wire, self.field) {
            (ServedWire::Anthropic, Field::Seal) => vec![begins(&thinking)],
            (ServedWire::Anthropic, Field::Args) => vec![begins(&call("f"))],
            (ServedWire::Anthropic, Field::OwnTool) => vec![begins(&own)],
            (ServedWire::Anthropic, Field::Citation) => vec![begins(&json!({"type": "text", "text": ""}))],
            (ServedWire::OpenAi, Field::Args | Field::Name) => {
                vec![chunk(&json!({"tool_calls": chat(json!({"name": "f"}))}))]
            }
            (ServedWire::Responses, Field::Args) => {
                let item = json!({"type": "function_call", "name": "f"});
                vec![json!({"type": "response.output_item.added", "item": item})]
            }
            _ => Vec::new(),
        }
    }

    /// One more piece.
    fn next(&self, number: u64) -> Vec<Value> {
        match self.wire {
            ServedWire::OpenAi => vec![self.chat(number)],
            ServedWire::Anthropic => self.messages(number),
            ServedWire::Responses => vec![self.responses(number)],
            ServedWire::Gemini => vec![self.gemini(number)],
        }
    }

    fn chat(&self, number: u64) -> Value {
        let filler = &self.filler;
        let call = |index: u64, id: String, name: &str, args: &str| json!({"tool_calls": [{"index": index, "id": id, "function": {"name": name, "arguments": args}}]});
        chunk(&match self.field {
            Field::Text => json!({"content": filler}),
            Field::Reasoning | Field::Seal => json!({"reasoning_content": filler}),
            Field::Args => json!({"tool_calls": [{"index": 0, "function": {"arguments": filler}}]}),
            Field::Name => json!({"tool_calls": [{"index": 0, "function": {"name": filler}}]}),
            Field::Id => call(number, format!("{filler}{number}"), "f", "{}"),
            Field::Calls => call(number, format!("c{number}"), "f", "{}"),
            Field::OwnTool | Field::Citation => json!({"annotations": [{"url": filler}]}),
            Field::Nothing => json!({}),
        })
    }

    fn messages(&self, number: u64) -> Vec<Value> {
        let filler = &self.filler;
        let whole = |block: Value| vec![begins(&block), json!({"type": "content_block_stop", "index": 0})];
        let call =
            |id: String, name: &str| whole(json!({"type": "tool_use", "id": id, "name": name, "input": {}}));
        let more = |delta: Value| vec![json!({"type": "content_block_delta", "index": 0, "delta": delta})];
        match self.field {
            Field::Text => more(json!({"type": "text_delta", "text": filler})),
            Field::Reasoning => more(json!({"type": "thinking_delta", "thinking": filler})),
            Field::Seal => more(json!({"type": "signature_delta", "signature": filler})),
            Field::Args | Field::OwnTool => more(json!({"type": "input_json_delta", "partial_json": filler})),
            Field::Name => call(format!("c{number}"), filler),
            Field::Id => call(format!("{filler}{number}"), "f"),
            Field::Calls => call(format!("c{number}"), "f"),
            Field::Citation => more(json!({"type": "citations_delta", "citation": {"cited_text": filler}})),
            Field::Nothing => vec![json!({"type": "ping"})],
        }
    }

    fn responses(&self, number: u64) -> Value {
        let filler = &self.filler;
        let more = |kind: &str| json!({"type": format!("response.{kind}.delta"), "delta": filler});
        let done = |item: Value| json!({"type": "response.output_item.done", "item": item});
        let call = |id: String, name: &str| {
            done(json!({"type": "function_call", "call_id": id, "name": name, "arguments": "{}"}))
        };
        match self.field {
            Field::Text => more("output_text"),
            Field::Reasoning => more("reasoning_summary_text"),
            Field::Seal => done(json!({"type": "reasoning", "id": "r", "encrypted_content": filler})),
            Field::Args => more("function_call_arguments"),
            Field::Name => call(format!("c{number}"), filler),
            Field::Id => call(format!("{filler}{number}"), "f"),
            Field::Calls => call(format!("c{number}"), "f"),
            Field::OwnTool => {
                done(json!({"type": "web_search_call", "id": "w", "action": {"query": filler}}))
            }
            Field::Citation => {
                let part = json!({"type": "output_text", "text": "", "annotations": [{"url": filler}]});
                done(json!({"type": "message", "content": [part]}))
            }
            Field::Nothing => json!({"type": "response.heartbeat"}),
        }
    }

    fn gemini(&self, number: u64) -> Value {
        let filler = &self.filler;
        let part = |part: Value| json!({"candidates": [{"content": {"parts": [part]}}]});
        let call =
            |id: String, name: &str| part(json!({"functionCall": {"id": id, "name": name, "args": {}}}));
        match self.field {
            Field::Text => part(json!({"text": filler})),
            Field::Reasoning => part(json!({"text": filler, "thought": true})),
            Field::Seal => part(json!({"text": "t", "thoughtSignature": filler})),
            Field::Args => part(json!({"functionCall": {"name": "f", "args": {"a": filler}}})),
            Field::Name => call(format!("c{number}"), filler),
            Field::Id => call(format!("{filler}{number}"), "f"),
            Field::Calls => call(format!("c{number}"), "f"),
            Field::OwnTool => part(json!({"executableCode": {"code": filler}})),
            Field::Citation => json!({"candidates": [{"groundingMetadata": {"webSearchQueries": [filler]}}]}),
            Field::Nothing => json!({"candidates": []}),
        }
    }
}

fn begins(block: &Value) -> Value {
    json!({"type": "content_block_start", "index": 0, "content_block": block})
}

fn chunk(delta: &Value) -> Value {
    json!({"choices": [{"index": 0, "delta": delta}]})
}

fn push(batch: &mut String, event: &Value) {
    batch.push_str(&format!("data: {event}\n\n"));
}
