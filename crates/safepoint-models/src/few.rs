//! A list in a provider's event, of which no more is collected than a reply can mean: the rest is passed over as it is
//! read, so that a short event cannot become a large value.

use std::{fmt, iter::Chain, marker::PhantomData, option, vec};

use safepoint::model::ModelError;
use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, SeqAccess, Visitor},
};

use crate::error;

/// The most entries of one list that are collected.
const MOST: usize = 1 << 14;

/// A list, or its beginning. Most have one entry, which takes no room elsewhere.
#[derive(Debug)]
pub(crate) struct Few<T> {
    first: Option<T>,
    others: Vec<T>,
    is_cut: bool,
}

/// The entries, in order.
type Entries<T> = Chain<option::IntoIter<T>, vec::IntoIter<T>>;

impl<T> Few<T> {
    /// All entries.
    ///
    /// # Errors
    /// That there are more than any reply means.
    pub(crate) fn all(self) -> Result<Entries<T>, ModelError> {
        if self.is_cut {
            return Err(error::too_many("one event of the stream", MOST));
        }
        Ok(self.first.into_iter().chain(self.others))
    }
}

impl<T> Default for Few<T> {
    fn default() -> Self {
        Self { first: None, others: Vec::new(), is_cut: false }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Few<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Reads(PhantomData))
    }
}

struct Reads<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Reads<T> {
    type Value = Few<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Few<T>, A::Error> {
        let mut few = Few { first: list.next_element()?, ..Few::default() };
        if few.first.is_none() {
            return Ok(few);
        }
        while few.others.len() + 1 < MOST {
            match list.next_element()? {
                Some(entry) => few.others.push(entry),
                None => return Ok(few),
            }
        }
        while list.next_element::<IgnoredAny>()?.is_some() {
            few.is_cut = true;
        }
        Ok(few)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S12.4: a list of any length costs no more than its beginning, and is distinct from a complete one.
    #[test]
    fn a_long_list_is_not_collected() {
        let list = |length: usize| format!("[{}]", vec!["0"; length].join(","));
        let read = |length| serde_json::from_str::<Few<u8>>(&list(length)).expect("it is a list");
        assert_eq!(read(MOST).all().expect("it is whole").count(), MOST);
        let long = read(10 * MOST);
        assert_eq!(1 + long.others.len(), MOST);
        assert!(long.all().is_err());
    }
}
