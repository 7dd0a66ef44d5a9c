//! Messages as servers write them: what is nested too deeply is cut out, and what cannot be read ends its own call and
//! nothing else.

use rmcp::model::{RequestId, ServerJsonRpcMessage};
use safepoint::raw::json;
use serde_json::error::Category;

use super::{depth, own};
use crate::{limits, lines::Scan};

/// A message that was read.
pub(super) struct MessageRead {
    pub(super) message: ServerJsonRpcMessage,
    /// The text without what is nested too deeply, if something is.
    pub(super) shallow: Option<Vec<u8>>,
}

/// Reads a message; why it is none, without its words, otherwise.
pub(super) fn read(text: &[u8]) -> Result<MessageRead, String> {
    if json::is_wide(text) {
        return Err(too_large());
    }
    let whole = serde_json::from_slice(text).map(|message| MessageRead { message, shallow: None });
    // A reader of JSON refuses all of a text that is nested deeply somewhere: the rest of it costs that nothing.
    let read = whole.or_else(|error| match depth::cut(text, limits::MCP_DEPTH) {
        Some(kept) => {
            serde_json::from_slice(&kept).map(|message| MessageRead { message, shallow: Some(kept) })
        }
        None => Err(error),
    });
    read.map_err(|error| {
        // The error may quote the server; where it is quoted it stands in the log alone.
        tracing::debug!(%error, bytes = text.len(), "what an MCP server wrote is no message");
        invalid(&flaw(&error))
    })
}

/// What is said of an answer that is no text.
pub(super) fn not_utf8() -> String {
    invalid("it is not UTF-8")
}

fn invalid(flaw: &str) -> String {
    format!("answered, but its answer is no valid message ({flaw})")
}

/// What is said of an answer that is larger than anything here reads.
pub(super) fn too_large() -> String {
    let (limit, values) = (limits::MCP_MESSAGE_BYTES, json::MOST_VALUES);
    format!("answered with more than {limit} bytes or {values} values, which were not read")
}

/// The end of the call that an unread message answers, where that can be seen.
pub(super) fn failed(scan: &Scan, why: String) -> Option<ServerJsonRpcMessage> {
    let id = scan.answers()?;
    Some(ServerJsonRpcMessage::error(own::unread(why), Some(RequestId::Number(id))))
}

/// What is wrong with a text, without its words.
fn flaw(error: &serde_json::Error) -> String {
    let what = match error.classify() {
        Category::Data => "it is not as the protocol says",
        Category::Syntax | Category::Eof | Category::Io => "it is not JSON",
    };
    match error.line() {
        0 | 1 => format!("{what}, at its byte {}", error.column()),
        line => format!("{what}, at byte {} of its line {line}", error.column()),
    }
}
