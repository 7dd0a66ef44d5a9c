//! An answer that is an object with one long list, taken apart as it arrives: the answer is never in memory as a whole.
//!
//! **Invariants**: no more than one item or member is collected at a time, and no more of it than [`PIECE_BYTES`]; the
//! same bytes give the same pieces, however they were cut on their way.

use std::mem;

/// The most bytes of one item, or of one member beside the list.
const PIECE_BYTES: usize = 1 << 20;

/// Takes an answer apart.
#[derive(Debug)]
pub(super) struct AnswerReader {
    /// The name of the list.
    list: &'static str,
    place: AnswerPlace,
    name: String,
    value: Option<Scan>,
}

/// A part of an answer, as JSON.
#[derive(Debug, PartialEq)]
pub(super) enum AnswerPiece {
    /// The next item of the list.
    Item(Vec<u8>),
    /// A member beside the list.
    Member(String, Vec<u8>),
}

/// Why it is no such answer.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(super) enum NoAnswer {
    #[error("{0:?} stands where JSON has {1}")]
    Unexpected(char, &'static str),
    #[error("a member's name is not JSON")]
    BadName,
    #[error("one part of it has more than {PIECE_BYTES} bytes")]
    TooLarge,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum AnswerPlace {
    Start,
    Name,
    Colon,
    Value,
    AfterMember,
    Item,
    AfterItem,
    End,
}

impl AnswerReader {
    pub(super) fn new(list: &'static str) -> Self {
        Self { list, place: AnswerPlace::Start, name: String::new(), value: None }
    }

    /// Whether the object is complete.
    pub(super) fn is_complete(&self) -> bool {
        self.place == AnswerPlace::End
    }

    /// The next piece that ends in these bytes, which are used up to that end; none once they are used up.
    pub(super) fn next(&mut self, bytes: &mut &[u8]) -> Result<Option<AnswerPiece>, NoAnswer> {
        while let Some((&byte, rest)) = bytes.split_first() {
            let (is_used, piece) = match self.value.take() {
                Some(scan) => self.scanned(scan, byte)?,
                None => (true, self.between(byte)?),
            };
            if is_used {
                *bytes = rest;
            }
            if piece.is_some() {
                return Ok(piece);
            }
        }
        Ok(None)
    }

    /// Takes a byte of a value, or the byte behind a number or a word.
    fn scanned(&mut self, mut scan: Scan, byte: u8) -> Result<(bool, Option<AnswerPiece>), NoAnswer> {
        match scan.take(byte) {
            Took::More if scan.bytes.len() > PIECE_BYTES => Err(NoAnswer::TooLarge),
            Took::More => {
                self.value = Some(scan);
                Ok((true, None))
            }
            Took::Last => Ok((true, self.ended(scan.bytes)?)),
            Took::Behind => Ok((false, self.ended(scan.bytes)?)),
        }
    }

    fn ended(&mut self, value: Vec<u8>) -> Result<Option<AnswerPiece>, NoAnswer> {
        Ok(match self.place {
            AnswerPlace::Name => {
                self.name = serde_json::from_slice(&value).map_err(|_malformed| NoAnswer::BadName)?;
                self.place = AnswerPlace::Colon;
                None
            }
            AnswerPlace::Item => {
                self.place = AnswerPlace::AfterItem;
                Some(AnswerPiece::Item(value))
            }
            AnswerPlace::Start
            | AnswerPlace::Colon
            | AnswerPlace::Value
            | AnswerPlace::AfterMember
            | AnswerPlace::AfterItem
            | AnswerPlace::End => {
                self.place = AnswerPlace::AfterMember;
                Some(AnswerPiece::Member(mem::take(&mut self.name), value))
            }
        })
    }

    /// Takes a byte between values, or the first of one.
    fn between(&mut self, byte: u8) -> Result<Option<AnswerPiece>, NoAnswer> {
        let wanted = match (self.place, byte) {
            (_, b' ' | b'\t' | b'\r' | b'\n') => return Ok(None),
            (AnswerPlace::Start, b'{') | (AnswerPlace::AfterMember, b',') => {
                return self.at(AnswerPlace::Name);
            }
            (AnswerPlace::Name | AnswerPlace::AfterMember, b'}') => return self.at(AnswerPlace::End),
            (AnswerPlace::Colon, b':') => return self.at(AnswerPlace::Value),
            (AnswerPlace::Value, b'[') if self.name == self.list => return self.at(AnswerPlace::Item),
            (AnswerPlace::AfterItem, b',') => return self.at(AnswerPlace::Item),
            (AnswerPlace::Item | AnswerPlace::AfterItem, b']') => return self.at(AnswerPlace::AfterMember),
            (AnswerPlace::Name, b'"') => return self.begin(byte),
            (
                AnswerPlace::Value | AnswerPlace::Item,
                b'{' | b'[' | b'"' | b'-' | b'0'..=b'9' | b'a'..=b'z',
            ) => {
                return self.begin(byte);
            }
            (AnswerPlace::Start, _) => "an object",
            (AnswerPlace::Name, _) => "a name",
            (AnswerPlace::Colon, _) => "a colon",
            (AnswerPlace::Value | AnswerPlace::Item, _) => "a value",
            (AnswerPlace::AfterMember | AnswerPlace::AfterItem, _) => "a comma or an end",
            (AnswerPlace::End, _) => "nothing more",
        };
        Err(NoAnswer::Unexpected(char::from(byte), wanted))
    }

    fn at(&mut self, place: AnswerPlace) -> Result<Option<AnswerPiece>, NoAnswer> {
        self.place = place;
        Ok(None)
    }

    fn begin(&mut self, byte: u8) -> Result<Option<AnswerPiece>, NoAnswer> {
        self.value = Some(Scan::of(byte));
        Ok(None)
    }
}

/// A value while it is collected.
#[derive(Debug)]
struct Scan {
    bytes: Vec<u8>,
    /// Of objects and lists; 0 in a text, a number or a word.
    depth: usize,
    is_text: bool,
    is_escaped: bool,
}

enum Took {
    More,
    /// This was the last byte of the value.
    Last,
    /// This byte stands behind the value.
    Behind,
}

impl Scan {
    fn of(first: u8) -> Self {
        let depth = usize::from(matches!(first, b'{' | b'['));
        Self { bytes: vec![first], depth, is_text: first == b'"', is_escaped: false }
    }

    fn take(&mut self, byte: u8) -> Took {
        let is_plain = self.depth == 0 && !self.is_text;
        if is_plain && matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\r' | b'\n') {
            return Took::Behind;
        }
        self.bytes.push(byte);
        if self.is_text {
            self.is_text = byte != b'"' || self.is_escaped;
            self.is_escaped = byte == b'\\' && !self.is_escaped;
        } else {
            match byte {
                b'"' => self.is_text = true,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => self.depth -= 1,
                _ => return Took::More,
            }
        }
        if self.depth == 0 && !self.is_text { Took::Last } else { Took::More }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn pieces(chunks: &[&[u8]]) -> Result<(Vec<AnswerPiece>, bool), NoAnswer> {
        let mut reader = AnswerReader::new("data");
        let mut pieces = Vec::new();
        for chunk in chunks {
            let mut rest = *chunk;
            while let Some(piece) = reader.next(&mut rest)? {
                pieces.push(piece);
            }
        }
        Ok((pieces, reader.is_complete()))
    }

    #[test]
    fn an_answer_is_taken_apart() {
        let text = br#" {"object": "l\"ist]", "data": [{"a": [1, {"b": "]}\\"}]}, 2 ,null], "n":1.5e3,"u": {"data": [3]}} "#;
        let (pieces, is_complete) = pieces(&[text]).unwrap();
        let member = |name: &str, value: &[u8]| AnswerPiece::Member(name.to_owned(), value.to_vec());
        assert!(is_complete);
        assert_eq!(
            pieces,
            [
                member("object", br#""l\"ist]""#),
                AnswerPiece::Item(br#"{"a": [1, {"b": "]}\\"}]}"#.to_vec()),
                AnswerPiece::Item(b"2".to_vec()),
                AnswerPiece::Item(b"null".to_vec()),
                member("n", b"1.5e3"),
                member("u", br#"{"data": [3]}"#),
            ]
        );
    }

    /// S12.4: what no answer has is an error at its first byte, and no part of an answer is collected without a limit.
    #[test]
    fn what_is_no_answer_is_an_error() {
        for wrong in
            ["[]", "x", "{1:2}", "{\"a\" 1}", "{\"a\":}", "{\"data\":[1 2]}", "{\"a\":1 \"b\":2}", "{} {}"]
        {
            assert!(matches!(pieces(&[wrong.as_bytes()]), Err(NoAnswer::Unexpected(..))), "{wrong}");
        }
        let flood = [b"{\"data\":[\"".to_vec(), vec![b'x'; PIECE_BYTES + 10]].concat();
        assert_eq!(pieces(&[&flood]), Err(NoAnswer::TooLarge));
        assert!(!pieces(&[b"{\"data\":[1,"]).unwrap().1, "it has not ended");
    }

    proptest! {
        /// The same bytes give the same pieces, however they are cut.
        #[test]
        fn a_cut_changes_nothing(
            texts in proptest::collection::vec("[\\\\\"{}\\[\\],a ]{0,12}", 0..6),
            cut in 0_usize..400,
        ) {
            let items: Vec<Value> = texts.iter().map(|text| json!({"index": 0, "text": text, "v": [1, -2.5]})).collect();
            let whole = json!({"object": "list", "data": items, "usage": {"n": 1}}).to_string().into_bytes();
            let (once, is_complete) = pieces(&[&whole]).unwrap();
            let (one, other) = whole.split_at(cut.min(whole.len()));
            prop_assert!(is_complete);
            prop_assert_eq!(once.iter().filter(|piece| matches!(piece, AnswerPiece::Item(_))).count(), items.len());
            prop_assert_eq!(pieces(&[one, other]).unwrap(), (once, true));
        }
    }
}
