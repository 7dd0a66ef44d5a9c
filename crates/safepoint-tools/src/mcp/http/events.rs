//! The events of an answer, as the WHATWG HTML standard parses them, each bounded.
//!
//! **Invariants** Memory does not grow beyond one event of the limit, whatever is sent. Of what is larger, or no message,
//! it is still known which question it answers: it ends its own call, and the stream continues. So no such event is ever
//! asked for again, as it would be if the stream broke at it.

use std::mem;

use bytes::Bytes;
use futures_util::{
    StreamExt as _,
    stream::{self, BoxStream},
};
use rmcp::transport::streamable_http_client::SseError;
use safepoint_http::Response;
use sse_stream::Sse;

use super::super::message;
use crate::lines::Scan;

const BOM: &[u8] = "\u{feff}".as_bytes();
const DATA: &[u8] = b"data:";

/// The events of an answer.
pub(super) fn read(response: Response, most: usize) -> BoxStream<'static, Result<Sse, SseError>> {
    let state = (response, Bytes::new(), Decoder::new(most));
    stream::try_unfold(state, |(mut response, mut bytes, mut decoder)| async move {
        loop {
            if let Some(event) = decoder.next(&mut bytes) {
                return Ok(Some((event, (response, bytes, decoder))));
            }
            match response.chunk().await.map_err(|error| SseError::Body(Box::new(error)))? {
                Some(more) => bytes = more,
                None => return Ok(None),
            }
        }
    })
    .boxed()
}

/// Turns bytes into events, however the bytes are cut.
struct Decoder {
    most: usize,
    /// What has arrived of a line.
    line: Vec<u8>,
    /// What the lines before it say.
    event: Sse,
    data: Option<Vec<u8>>,
    /// Set while the rest of an event that is too large is passed over.
    passed: Option<Passed>,
    /// In the first line, which may begin with a byte order mark.
    is_first: bool,
    /// Behind a carriage return: a line feed here belongs to it.
    is_after_cr: bool,
}

/// What is seen of the data of an event that is passed over.
#[derive(Default)]
struct Passed {
    scan: Scan,
    line: PassedLine,
}

/// Which line of it the next bytes are of. Exhaustive: its name is not known, or it is data or not.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum PassedLine {
    #[default]
    New,
    Data,
    Other,
}

impl Passed {
    /// Takes a part of a line, which holds the whole of the line's name if it is the first.
    fn feed(&mut self, part: &[u8]) {
        let value = match self.line {
            PassedLine::New => part.strip_prefix(DATA),
            PassedLine::Data => Some(part),
            PassedLine::Other => None,
        };
        self.line = if value.is_some() { PassedLine::Data } else { PassedLine::Other };
        self.scan.feed(value.unwrap_or_default());
    }
}

impl Decoder {
    fn new(most: usize) -> Self {
        Self {
            most,
            line: Vec::new(),
            event: Sse::default(),
            data: None,
            passed: None,
            is_first: true,
            is_after_cr: false,
        }
    }

    /// Takes bytes up to the end of the next event; none once all of them are taken.
    fn next(&mut self, bytes: &mut Bytes) -> Option<Sse> {
        while !bytes.is_empty() {
            if mem::take(&mut self.is_after_cr) && bytes[0] == b'\n' {
                drop(bytes.split_to(1));
                continue;
            }
            let end = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let part = bytes.split_to(end.unwrap_or(bytes.len()));
            self.take(&part);
            if end.is_none() {
                break;
            }
            self.is_after_cr = bytes.split_to(1)[0] == b'\r';
            if let Some(event) = self.end_of_line() {
                return Some(event);
            }
        }
        None
    }

    /// Takes a part of a line.
    fn take(&mut self, part: &[u8]) {
        self.line.extend_from_slice(part);
        if self.passed.is_none() && self.kept() + self.line.len() > self.most {
            let scan = Scan::of(&self.data.take().unwrap_or_default());
            self.passed = Some(Passed { scan, line: PassedLine::New });
        }
        if let Some(passed) = &mut self.passed
            && (passed.line != PassedLine::New || self.line.len() >= DATA.len())
        {
            passed.feed(&mem::take(&mut self.line));
        }
    }

    /// How much is kept of the event.
    fn kept(&self) -> usize {
        let Sse { event, id, .. } = &self.event;
        let named = event.as_ref().map_or(0, String::len) + id.as_ref().map_or(0, String::len);
        self.data.as_ref().map_or(0, Vec::len) + named
    }

    /// A line has come to its end; an event, if that was the empty one behind it.
    fn end_of_line(&mut self) -> Option<Sse> {
        let mut line = mem::take(&mut self.line);
        if mem::take(&mut self.is_first) && line.starts_with(BOM) {
            line.drain(..BOM.len());
        }
        if let Some(passed) = &mut self.passed {
            let was = mem::take(&mut passed.line);
            // What is shorter than the name of data is no data.
            return if was == PassedLine::New && line.is_empty() { self.end_of_event() } else { None };
        }
        if line.is_empty() {
            return self.end_of_event();
        }
        let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let value = line.get(colon + 1..).unwrap_or_default();
        let value = value.strip_prefix(b" ").unwrap_or(value);
        let text = || String::from_utf8_lossy(value).into_owned();
        match &line[..colon] {
            b"data" => match &mut self.data {
                Some(data) => {
                    data.push(b'\n');
                    data.extend_from_slice(value);
                }
                None => self.data = Some(value.to_vec()),
            },
            b"event" => self.event.event = Some(text()),
            b"id" if !value.contains(&0) => self.event.id = Some(text()),
            b"retry" => self.event.retry = text().parse().ok().or(self.event.retry),
            // A comment, or what a later version of the standard may know.
            _ => {}
        }
        None
    }

    /// None if there was nothing between two empty lines.
    fn end_of_event(&mut self) -> Option<Sse> {
        let (event, data) = (mem::take(&mut self.event), self.data.take());
        if let Some(Passed { scan, .. }) = self.passed.take() {
            return Some(Sse { event: None, data: failed(&scan, message::too_large()), ..event });
        }
        let is_message = matches!(event.event.as_deref(), None | Some("" | "message"));
        let data = match data {
            Some(data) if is_message => said(data),
            Some(data) => Some(String::from_utf8_lossy(&data).into_owned()),
            None => None,
        };
        let event = Sse { data, ..event };
        (event != Sse::default()).then_some(event)
    }
}

/// A message as rmcp can read it; the failure of what it answers, otherwise; none if it answers nothing.
fn said(data: Vec<u8>) -> Option<String> {
    if data.is_empty() {
        return None;
    }
    let text = match String::from_utf8(data) {
        Ok(text) => text,
        Err(error) => return failed(&Scan::of(error.as_bytes()), message::not_utf8()),
    };
    match message::read(text.as_bytes()) {
        Ok(read) => match read.shallow.map(String::from_utf8) {
            Some(shallow) => Some(shallow.expect("what is cut out of a text begins and ends at ASCII")),
            None => Some(text),
        },
        Err(why) => failed(&Scan::of(text.as_bytes()), why),
    }
}

fn failed(scan: &Scan, why: String) -> Option<String> {
    serde_json::to_string(&message::failed(scan, why)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The events of these bytes, which come in two parts.
    fn decoded(bytes: &[u8], cut: usize, most: usize) -> Vec<Sse> {
        let (first, second) = bytes.split_at(cut);
        let mut decoder = Decoder::new(most);
        let mut events = Vec::new();
        for part in [first, second] {
            let mut part = Bytes::copy_from_slice(part);
            while let Some(event) = decoder.next(&mut part) {
                events.push(event);
            }
            assert!(decoder.kept() <= most, "what is kept is bounded");
        }
        events
    }

    fn all(bytes: &[u8], most: usize) -> Vec<Sse> {
        let events = decoded(bytes, 0, most);
        for cut in 1..=bytes.len() {
            assert_eq!(decoded(bytes, cut, most), events, "cut at {cut}");
        }
        events
    }

    const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

    /// S4.10: events are as the standard says, however the bytes are cut.
    #[test]
    fn events_are_parsed_however_the_bytes_are_cut() {
        let text = format!(
            "\u{feff}id: a\nretry: 7\ndata:\n\n: nothing\nfuture: field\nlonely\n\n\r\ndata:{PING}\r\rid: b\r\n\
             event: message\r\ndata: {{\"jsonrpc\":\"2.0\",\r\ndata: \"id\":2,\"method\":\"ping\"}}\r\n\r\n\
             event: other\ndata: words\n\ndata: not yet an event\n"
        );
        let two = "{\"jsonrpc\":\"2.0\",\n\"id\":2,\"method\":\"ping\"}";
        let expected = [
            Sse::default().id("a").retry(7),
            Sse::default().data(PING),
            Sse::default().id("b").event("message").data(two),
            Sse::default().event("other").data("words"),
        ];
        assert_eq!(all(text.as_bytes(), 100), expected);
    }

    /// S4.7, S4.10: an event that is too large, in one line or in many, ends the call that it answers, and the next event
    /// is read.
    #[test]
    fn an_event_that_is_too_large_ends_its_own_call() {
        let large = "x".repeat(100);
        for data in [
            format!("data: {{\"result\":\"{large}\",\"id\":7}}\n"),
            format!(
                "id: a\ndata: {{\"id\"\nda\ndata::7,\ndata: \"result\":[\"{large}\",\"{large}\"]\ndata: }}\n"
            ),
            format!("data:{{\"result\":[\n{}data:],\"id\":7}}\n", "data:\"id\",\ndata:9,\n".repeat(20)),
        ] {
            let events = all(format!("{data}\ndata: {PING}\n\n").as_bytes(), 60);
            let [failed, next] = &events[..] else { panic!("{events:?}") };
            let failed: serde_json::Value = serde_json::from_str(failed.data.as_ref().unwrap()).unwrap();
            assert_eq!(failed["id"], 7, "{data}");
            assert!(failed["error"]["message"].as_str().unwrap().contains("which were not read"), "{data}");
            assert_eq!(next, &Sse::default().data(PING));
        }
    }

    /// S4.10: an answer that is no message ends its call; what answers nothing is passed over.
    #[test]
    fn an_event_that_is_no_message_ends_the_call_that_it_answers() {
        for (data, flaw) in
            [(&b"{\"id\":7}"[..], "as the protocol says"), (b"{\"id\":7,\"a\":\"\xff\"}", "UTF-8")]
        {
            let events = all(&[b"data:", data, b"\n\n"].concat(), 60);
            let [Sse { data: Some(failed), .. }] = &events[..] else { panic!("{events:?}") };
            assert!(failed.contains("\"id\":7") && failed.contains(flaw), "{failed}");
        }
        assert_eq!(all(b"data: noise\n\ndata: {\"method\":1,\"id\":7}\n\n", 60), []);
    }
}
