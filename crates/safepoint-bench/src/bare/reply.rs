//! A streamed reply of chat completions, typed: each event is parsed where it arrived, and lends its texts.

use std::borrow::Cow;

use memchr::memmem;
use serde::Deserialize;

/// What a model said in one round.
#[derive(Default)]
pub(super) struct BareReply {
    pub(super) text: String,
    pub(super) calls: Vec<BareCall>,
}

#[derive(Default)]
pub(super) struct BareCall {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) arguments: String,
}

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow)]
    choices: Vec<Choice<'a>>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow)]
    delta: ChunkDelta<'a>,
}

#[derive(Deserialize)]
struct ChunkDelta<'a> {
    #[serde(borrow, default)]
    content: Option<LentText<'a>>,
    #[serde(borrow, default)]
    tool_calls: Vec<CallPiece<'a>>,
}

#[derive(Deserialize)]
struct CallPiece<'a> {
    index: usize,
    #[serde(borrow, default)]
    id: Option<LentText<'a>>,
    #[serde(borrow)]
    function: FunctionPiece<'a>,
}

#[derive(Deserialize)]
struct FunctionPiece<'a> {
    #[serde(borrow, default)]
    name: Option<LentText<'a>>,
    #[serde(borrow, default)]
    arguments: Cow<'a, str>,
}

/// A text that is borrowed where nothing in it is escaped. A bare `Cow` in an `Option` would be copied.
#[derive(Deserialize)]
struct LentText<'a>(#[serde(borrow)] Cow<'a, str>);

impl BareReply {
    /// Reads all events that end in `bytes`; how many bytes these were.
    pub(super) fn read(&mut self, bytes: &[u8]) -> anyhow::Result<usize> {
        const END: &[u8] = b"\n\n";
        let mut read = 0;
        while let Some(end) = memmem::find(&bytes[read..], END) {
            if let Some(data) = bytes[read..read + end].strip_prefix(b"data: ")
                && data != b"[DONE]"
            {
                self.add(serde_json::from_slice(data)?);
            }
            read += end + END.len();
        }
        Ok(read)
    }

    fn add(&mut self, chunk: Chunk<'_>) {
        for Choice { delta } in chunk.choices {
            if let Some(LentText(text)) = delta.content {
                self.text.push_str(&text);
            }
            for piece in delta.tool_calls {
                if self.calls.len() <= piece.index {
                    self.calls.resize_with(piece.index + 1, BareCall::default);
                }
                let call = &mut self.calls[piece.index];
                if let Some(LentText(id)) = piece.id {
                    call.id = id.into_owned();
                }
                if let Some(LentText(name)) = piece.function.name {
                    call.name = name.into_owned();
                }
                call.arguments.push_str(&piece.function.arguments);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_read_from_pieces_cut_anywhere() {
        let stream = concat!(
            "data: {\"choices\":[{\"delta\":{\"content\":null,\"tool_calls\":[{\"index\":0,\"id\":\"c\",",
            "\"function\":{\"name\":\"echo\",\"arguments\":\"\"}}]}}]}\n\n",
            "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"{\\\"a\\\"}\"}}]}}]}\n\n",
            "data: {\"choices\":[{\"delta\":{\"content\":\"so\"}}]}\n\n",
            "data: {\"choices\":[]}\n\ndata: [DONE]\n\n"
        )
        .as_bytes();
        for cut in 0..stream.len() {
            let mut events = super::super::Events::default();
            events.take(&stream[..cut]).unwrap();
            events.take(&stream[cut..]).unwrap();
            let BareReply { text, calls } = events.reply;
            assert_eq!((text.as_str(), calls.len()), ("so", 1), "cut at {cut}");
            assert_eq!((calls[0].id.as_str(), calls[0].name.as_str()), ("c", "echo"));
            assert_eq!(calls[0].arguments, "{\"a\"}");
            assert!(events.rest.is_empty());
        }
    }
}
