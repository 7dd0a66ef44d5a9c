//! Server-sent events as the WHATWG HTML standard parses them, bounded, and in an exact state when cut at any byte.
//!
//! **Invariants**: no event is larger than the bound; bytes are consumed once; what was not yet an event when the
//! stream ended is never made one.

/// One event: its type (empty for the default one) and its data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SseEvent {
    /// Its type; empty for the default one.
    pub name: String,
    /// Its data.
    pub data: String,
}

/// Why a stream is not one of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SseError {
    /// A line or an event is larger than the bound.
    #[error("an event of the stream is larger than allowed")]
    TooLarge,
    /// The bytes are not UTF-8.
    #[error("the stream is not UTF-8")]
    NotUtf8,
}

/// Turns bytes into events, however the bytes are cut.
#[derive(Debug)]
pub struct SseDecoder {
    /// The part of a line that has arrived, if the rest of it has not.
    line: Vec<u8>,
    event: SseEvent,
    has_data: bool,
    /// Whether the event was given out, so that the next line begins another one.
    is_given: bool,
    bound: usize,
    place: LinePlace,
}

/// Where in the stream the next byte stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LinePlace {
    /// In the first line, which may begin with a byte order mark.
    Start,
    Inside,
    /// Behind a carriage return: a line feed here belongs to it.
    AfterCr,
}

/// Room of a line or an event that is kept for the next one.
const KEPT: usize = 16 << 10;
const DATA: &[u8] = b"data:";
const BOM: &[u8] = "\u{feff}".as_bytes();

impl SseDecoder {
    /// A decoder at the start of a stream whose lines and events are at most this many bytes.
    #[must_use]
    pub fn new(bound: usize) -> Self {
        Self {
            line: Vec::new(),
            event: SseEvent::default(),
            has_data: false,
            is_given: false,
            bound,
            place: LinePlace::Start,
        }
    }

    /// Takes bytes and hands each event that they complete to `out`.
    ///
    /// # Errors
    /// [`SseError`]: the stream is none of events, or does not keep to the bound.
    pub fn feed(&mut self, mut bytes: &[u8], mut out: impl FnMut(SseEvent)) -> Result<(), SseError> {
        while self.find_event(&mut bytes)? {
            out(std::mem::take(&mut self.event));
        }
        Ok(())
    }

    /// Takes bytes up to the end of the next event, and lends that; none once all of them are taken. So that a caller who reads a
    /// flood of small events can do something else between any two of them.
    ///
    /// # Errors
    /// As [`SseDecoder::feed`].
    pub fn next(&mut self, bytes: &mut &[u8]) -> Result<Option<&SseEvent>, SseError> {
        Ok(self.find_event(bytes)?.then_some(&self.event))
    }

    /// Forgets the event that was lent last. The room of a large one is free then.
    pub(crate) fn forget(&mut self) {
        let SseEvent { name, data } = &mut self.event;
        for text in [name, data] {
            text.clear();
            text.shrink_to(KEPT);
        }
        self.is_given = false;
    }

    /// Whether these bytes complete an event, which is in its field then.
    fn find_event(&mut self, bytes: &mut &[u8]) -> Result<bool, SseError> {
        if self.is_given {
            self.forget();
        }
        while !bytes.is_empty() {
            if self.place == LinePlace::AfterCr {
                self.place = LinePlace::Inside;
                if bytes[0] == b'\n' {
                    *bytes = &bytes[1..];
                    continue;
                }
            }
            let end = memchr::memchr2(b'\n', b'\r', bytes);
            let taken = &bytes[..end.unwrap_or(bytes.len())];
            if self.line.len() + taken.len() > self.bound {
                return Err(SseError::TooLarge);
            }
            let Some(end) = end else {
                self.line.extend_from_slice(taken);
                *bytes = &[];
                return Ok(false);
            };
            let after = if bytes[end] == b'\r' { LinePlace::AfterCr } else { LinePlace::Inside };
            *bytes = &bytes[end + 1..];
            let is_event = self.end_line(taken)?;
            self.place = after;
            if is_event {
                self.is_given = true;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// A line is complete: what has arrived of it before, and its rest. Whether it ends an event.
    fn end_line(&mut self, rest: &[u8]) -> Result<bool, SseError> {
        if self.line.is_empty() {
            return self.take_line(rest);
        }
        let mut line = std::mem::take(&mut self.line);
        line.extend_from_slice(rest);
        // A large one is not copied.
        if !self.has_data && line.len() > KEPT && line.starts_with(DATA) {
            let start = if line.get(DATA.len()) == Some(&b' ') { DATA.len() + 1 } else { DATA.len() };
            line.drain(..start);
            self.event.data = String::from_utf8(line).map_err(|_invalid| SseError::NotUtf8)?;
            self.has_data = true;
            self.place = LinePlace::Inside;
            return Ok(false);
        }
        let is_event = self.take_line(&line)?;
        // Its room is used again, unless it was a large line's.
        line.clear();
        line.shrink_to(KEPT);
        self.line = line;
        Ok(is_event)
    }

    fn take_line(&mut self, line: &[u8]) -> Result<bool, SseError> {
        let is_first = self.place == LinePlace::Start;
        self.place = LinePlace::Inside;
        let line = if is_first { line.strip_prefix(BOM).unwrap_or(line) } else { line };
        let line = std::str::from_utf8(line).map_err(|_invalid| SseError::NotUtf8)?;
        if line.is_empty() {
            let has_data = std::mem::take(&mut self.has_data);
            if !has_data {
                self.event.name.clear();
            }
            return Ok(has_data);
        }
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        self.field(name, value.strip_prefix(' ').unwrap_or(value))?;
        Ok(false)
    }

    fn field(&mut self, name: &str, value: &str) -> Result<(), SseError> {
        match name {
            "event" => value.clone_into(&mut self.event.name),
            "data" => {
                if self.event.data.len() + value.len() > self.bound {
                    return Err(SseError::TooLarge);
                }
                if self.has_data {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(value);
                self.has_data = true;
            }
            // Comments have an empty name; `id` and `retry` are for clients that reconnect, and this one never does.
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use futures_util::StreamExt as _;
    use proptest::prelude::*;

    use super::*;

    const BOUND: usize = 1 << 16;

    fn decode(chunks: impl IntoIterator<Item = Vec<u8>>) -> Result<Vec<SseEvent>, SseError> {
        let mut decoder = SseDecoder::new(BOUND);
        let mut events = Vec::new();
        for chunk in chunks {
            decoder.feed(&chunk, |event| events.push(event))?;
        }
        Ok(events)
    }

    /// S5.4: an event that was cut is not an event.
    #[test]
    fn a_cut_event_is_none() {
        let events = decode([b"data: a\n\ndata: b\n".to_vec()]).unwrap();
        assert_eq!(events, [SseEvent { name: String::new(), data: "a".into() }]);
    }

    /// A field without a colon has an empty value, and each `data` is one line.
    #[test]
    fn a_bare_field_has_an_empty_value() {
        let events = decode([b"data\ndata\n\n".to_vec()]).unwrap();
        assert_eq!(events, [SseEvent { name: String::new(), data: "\n".into() }]);
    }

    /// S2.8: a stream that never ends a line is refused, not collected.
    #[test]
    fn an_endless_line_is_refused() {
        assert_eq!(decode(vec![vec![b'x'; 1 << 12]; 32]), Err(SseError::TooLarge));
        assert_eq!(
            decode(vec![b"data: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\n".to_vec(); 1 << 14]),
            Err(SseError::TooLarge)
        );
    }

    proptest! {
        /// S5.4: however the bytes are cut, the events are the same, and as another decoder reads them. That one is
        /// stricter (it refuses a repeated field and leaves out empty data), so such events are not made here.
        #[test]
        fn any_chunking_gives_the_events_of_another_decoder(
            events in proptest::collection::vec(
                ("(event: [a-z]{1,6})?", "(: [a-z]{0,6})?", proptest::collection::vec("data: ?[a-z][a-z:]{0,5}", 1..4)),
                0..5,
            ),
            end in "(\n|\r\n)",
            cuts in proptest::collection::vec(1usize..9, 1..40),
            cut_off in 0usize..9,
        ) {
            let mut text = String::new();
            for (name, comment, data) in &events {
                for line in [name, comment].into_iter().chain(data).filter(|line| !line.is_empty()) {
                    text.push_str(&format!("{line}{end}"));
                }
                text.push_str(&end);
            }
            text.truncate(text.len().saturating_sub(cut_off));
            let mut chunks = Vec::new();
            let mut rest = text.as_bytes();
            for cut in cuts.iter().cycle() {
                if rest.is_empty() { break }
                let (head, tail) = rest.split_at((*cut).min(rest.len()));
                chunks.push(head.to_vec());
                rest = tail;
            }
            let ours = decode(chunks).unwrap();
            prop_assert_eq!(&ours, &decode([text.clone().into_bytes()]).unwrap());
            let body = text.clone().into_bytes();
            let stream = sse_stream::SseStream::from_bytes_stream(futures_util::stream::iter([Ok::<_, std::io::Error>(bytes::Bytes::from(body))]));
            let theirs: Vec<_> = futures_executor(stream.collect::<Vec<_>>());
            let theirs: Vec<String> = theirs.into_iter().filter_map(Result::ok).filter_map(|sse| sse.data).collect();
            // The other decoder also gives what the end of the stream cut off; ours is a prefix of it.
            let ours: Vec<String> = ours.into_iter().map(|event| event.data).collect();
            prop_assert!(theirs.starts_with(&ours), "{theirs:?} {ours:?}");
        }

        /// No bytes make it panic or grow beyond its bound.
        #[test]
        fn random_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..4096)) {
            let mut decoder = SseDecoder::new(64);
            let mut longest = 0;
            if decoder.feed(&bytes, |event| longest = longest.max(event.data.len())).is_err() { return Ok(()) }
            prop_assert!(longest <= 128 && decoder.line.len() <= 64);
        }
    }

    fn futures_executor<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
    }
}
