//! JSON from elsewhere: its size is checked before it is read as values.
//!
//! A list of zeros takes two bytes an entry as text, and thirty or more as a value: a bound on the text alone
//! does not bound the values.

use std::io;

use serde::Serialize;
use serde_json::Value;

/// The most values in one piece of JSON that is read as a value.
pub const MOST_VALUES: usize = 1 << 18;

/// Why a piece of JSON was not read. Exhaustive: it holds too much, or is not JSON.
#[derive(Debug, thiserror::Error)]
pub enum Unread {
    /// It holds more than [`MOST_VALUES`].
    #[error("it holds more than {MOST_VALUES} values")]
    TooManyValues,
    /// It is not JSON.
    #[error("{0}")]
    NotJson(serde_json::Error),
}

/// A map whose keys are no texts, as a list of pairs.
pub mod pairs {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    /// Writes the list.
    ///
    /// # Errors
    /// Those of a key, a value or the writer.
    pub fn serialize<K: Serialize, V: Serialize, S: Serializer>(
        map: &BTreeMap<K, V>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_seq(map)
    }

    /// Reads the list; of two pairs with one key, the later.
    ///
    /// # Errors
    /// Those of a key, a value or the reader.
    pub fn deserialize<'a, K: Deserialize<'a> + Ord, V: Deserialize<'a>, D: Deserializer<'a>>(
        from: D,
    ) -> Result<BTreeMap<K, V>, D::Error> {
        Ok(Vec::<(K, V)>::deserialize(from)?.into_iter().collect())
    }
}

/// Reads it.
///
/// # Errors
/// [`Unread`]: it is not JSON, or holds more values than are kept.
pub fn read(json: &[u8]) -> Result<Value, Unread> {
    if is_wide(json) {
        return Err(Unread::TooManyValues);
    }
    serde_json::from_slice(json).map_err(Unread::NotJson)
}

/// Whether it would hold more than [`MOST_VALUES`].
#[must_use]
pub fn is_wide(json: &[u8]) -> bool {
    // A value is a byte, and what parts it from the next is one.
    const BYTES_A_VALUE: usize = 2;
    json.len() / BYTES_A_VALUE >= MOST_VALUES && values(json) > MOST_VALUES
}

/// An upper bound on its values: one more than the commas, colons and opening brackets outside of its
/// strings.
fn values(json: &[u8]) -> usize {
    let (mut values, mut is_in_string, mut is_escaped) = (1, false, false);
    for byte in json {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_in_string => is_escaped = true,
            b'"' => is_in_string = !is_in_string,
            b',' | b':' | b'[' | b'{' if !is_in_string => values += 1,
            _ => {}
        }
    }
    values
}

/// How long a value is as JSON, without writing it anywhere.
#[must_use]
pub fn bytes(value: &Value) -> usize {
    measured(value, 0).expect("a JSON value is JSON, and counting cannot fail").bytes
}

/// Writes it to nothing but its first bytes: all of them, if they are no more than `most`.
fn measured<T: Serialize + ?Sized>(value: &T, most: usize) -> serde_json::Result<Measured> {
    let mut measured = Measured { bytes: 0, most, bound: usize::MAX, all: Vec::new() };
    serde_json::to_writer(&mut measured, value)?;
    Ok(measured)
}

/// How long a text is, and the text if it is short.
struct Measured {
    bytes: usize,
    most: usize,
    /// Beyond this many bytes it is not measured.
    bound: usize,
    all: Vec<u8>,
}

impl io::Write for Measured {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes += bytes.len();
        if self.bytes > self.bound {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        if self.bytes <= self.most {
            self.all.extend_from_slice(bytes);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// About what a value takes in memory: a list of empty objects is three bytes an entry as text, and some hundred as a value.
#[must_use]
pub fn weight(value: &Value) -> usize {
    /// A value where it stands, and the least that is allocated for a text.
    const SLOT: usize = 32;
    /// A node of an object's tree, and its fields.
    const NODE: usize = 640;
    const FIELDS: usize = 11;
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => SLOT,
        Value::String(text) => SLOT + SLOT.max(text.len()),
        Value::Array(items) => items.iter().fold(SLOT, |all, item| all.saturating_add(weight(item))),
        Value::Object(fields) => {
            fields.iter().fold(SLOT + fields.len().div_ceil(FIELDS) * NODE, |all, (name, field)| {
                all.saturating_add(SLOT.max(name.len())).saturating_add(weight(field))
            })
        }
    }
}

/// The JSON of a value, as [`to_vec`] writes it; `None` if it has more than `bound` bytes, of which none is kept then.
///
/// # Errors
/// If it cannot be written as JSON.
pub fn to_vec_within<T: Serialize + ?Sized>(value: &T, bound: usize) -> serde_json::Result<Option<Vec<u8>>> {
    let mut measured = Measured { bytes: 0, most: 0, bound, all: Vec::new() };
    match serde_json::to_writer(&mut measured, value) {
        Err(_) if measured.bytes > bound => return Ok(None),
        measured => measured?,
    }
    let mut whole = Vec::with_capacity(measured.bytes);
    serde_json::to_writer(&mut whole, value)?;
    Ok(Some(whole))
}

/// The JSON of a value, in a buffer of its size. A growing buffer needs as much as three times that for a moment
/// (S12.4), so a large value is measured first.
///
/// # Errors
/// If it cannot be written as JSON.
pub fn to_vec<T: Serialize + ?Sized>(value: &T) -> serde_json::Result<Vec<u8>> {
    const SHORT: usize = 64 << 10;
    let measured = measured(value, SHORT)?;
    if measured.bytes <= SHORT {
        return Ok(measured.all);
    }
    let mut whole = Vec::with_capacity(measured.bytes);
    drop(measured);
    serde_json::to_writer(&mut whole, value)?;
    Ok(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S12.4: a short text of many values is not read as a value; a long one of few is.
    #[test]
    fn what_would_grow_is_not_read() {
        let wide = format!("[{}0]", "0,".repeat(MOST_VALUES));
        assert!(matches!(read(wide.as_bytes()), Err(Unread::TooManyValues)));
        let long = format!("{{\"a\":\"{}\\\"\"}}", ",[".repeat(MOST_VALUES));
        assert!(read(long.as_bytes()).is_ok());
        assert_eq!(values(long.as_bytes()), 3);
    }

    /// S12.4: what takes much as values counts much, however short it is as text; a long text counts about its length.
    #[test]
    fn a_value_weighs_what_it_takes() {
        for (text, least, most) in [
            (format!("[{}{{}}]", "{},".repeat(999)), 32_000, 64_000),
            (format!("[{}{{\"a\":1}}]", "{\"a\":1},".repeat(999)), 640_000, 800_000),
            (format!("\"{}\"", "x".repeat(1 << 20)), 1 << 20, (1 << 20) + 64),
        ] {
            let weight = weight(&read(text.as_bytes()).expect("it is JSON"));
            assert!((least..=most).contains(&weight), "{}: {weight}", &text[..20]);
        }
    }

    /// S12.4: the size of a value is that of its text.
    #[test]
    fn a_value_is_as_long_as_its_text() {
        for text in [r#"{"a":[1,null,"x\n"]}"#, "[]", "\"\""] {
            assert_eq!(bytes(&read(text.as_bytes()).expect("it is JSON")), text.len());
        }
    }

    /// S12.4, S7.17: what is longer than it may be is not written, and is not walked to its end.
    #[test]
    fn what_is_longer_than_it_may_be_is_not_written() {
        struct Endless;
        impl Serialize for Endless {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.collect_seq(std::iter::repeat("x"))
            }
        }
        assert_eq!(to_vec_within(&Endless, 1 << 20).expect("it is JSON"), None);
        assert_eq!(to_vec_within("x", 2).expect("it is JSON"), None);
        assert_eq!(to_vec_within("x", 3).expect("it is JSON"), Some(b"\"x\"".to_vec()));
    }

    /// S12.4: a value is written as it is, a large one into a buffer of its size.
    #[test]
    fn a_large_value_is_written_into_its_size() {
        for text in [1, 1 << 16, 3 << 20].map(|long| "x\n".repeat(long)) {
            let written = to_vec(&text).expect("it is JSON");
            assert_eq!(written, serde_json::to_vec(&text).expect("it is JSON"));
            assert!(text.len() < 1 << 16 || written.capacity() == written.len(), "{}", written.capacity());
        }
    }
}
