//! A vector as its provider writes it: a list of numbers, each of which fits 32 bits.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{Error, SeqAccess, Visitor},
};

/// A vector; it has a number.
#[derive(Debug, PartialEq)]
pub(crate) struct Vector(pub(crate) Vec<f32>);

impl<'de> Deserialize<'de> for Vector {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Reads)
    }
}

struct Reads;

impl<'de> Visitor<'de> for Reads {
    type Value = Vector;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of numbers")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vector, A::Error> {
        let mut numbers = Vec::new();
        while let Some(number) = list.next_element::<f64>()? {
            #[expect(clippy::cast_possible_truncation, reason = "vectors have 32 bits a number")]
            let short = number as f32;
            if !short.is_finite() {
                return Err(A::Error::custom(format_args!("{number:e} does not fit 32 bits")));
            }
            numbers.push(short);
        }
        if numbers.is_empty() {
            return Err(A::Error::custom("it is empty"));
        }
        numbers.shrink_to_fit();
        Ok(Vector(numbers))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S12.31: what is no finite number makes no vector.
    #[test]
    fn a_vector_has_finite_numbers_only() {
        let read = serde_json::from_str::<Vector>;
        assert_eq!(read("[1, -0.5, 1e-50]").unwrap(), Vector(vec![1.0, -0.5, 0.0]));
        for (wrong, says) in [
            ("[]", "it is empty"),
            ("[1, null]", "null"),
            ("[1, \"NaN\"]", "NaN"),
            ("[1e39]", "does not fit 32 bits"),
            ("[1e400]", "number out of range"),
            ("\"AACAPw==\"", "a list of numbers"),
            ("[1, NaN]", "expected value"),
        ] {
            let error = read(wrong).unwrap_err().to_string();
            assert!(error.contains(says), "{wrong}: {error}");
        }
    }
}
