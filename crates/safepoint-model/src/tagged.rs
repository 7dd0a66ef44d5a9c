//! Enums whose variant is named by one of their fields, read in one go where that field comes first, as it does in all that is
//! written here. Derived, each would be kept as loose values first, to look for that field: a long conversation takes twice the time.

use std::{borrow::Cow, fmt, marker::PhantomData};

use serde::{
    Deserializer,
    de::{DeserializeSeed, Error as _, MapAccess, Visitor, value::MapAccessDeserializer},
};
use serde_json::{Map, Value};

/// An enum that is read so.
pub(crate) trait Tagged<'de>: Sized {
    /// The field that names the variant.
    const TAG: &'static str;

    /// Reads the fields of the variant of this name.
    fn read<D: Deserializer<'de>>(name: &str, fields: D) -> Result<Self, D::Error>;
}

/// Reads one.
pub(crate) fn read<'de, T: Tagged<'de>, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
    from.deserialize_map(Fields(PhantomData))
}

struct Fields<T>(PhantomData<T>);

impl<'de, T: Tagged<'de>> Visitor<'de> for Fields<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object with a field `{}`", T::TAG)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<T, A::Error> {
        let first = fields.next_key_seed(InPlace)?;
        let Some(first) = first else { return Err(A::Error::missing_field(T::TAG)) };
        if first == T::TAG {
            let name = fields.next_value_seed(InPlace)?;
            return T::read(&name, MapAccessDeserializer::new(fields));
        }
        let mut all = Map::new();
        all.insert(first.into_owned(), fields.next_value()?);
        while let Some((name, field)) = fields.next_entry()? {
            all.insert(name, field);
        }
        match all.remove(T::TAG) {
            Some(Value::String(name)) => T::read(&name, Value::Object(all)).map_err(A::Error::custom),
            Some(_) => Err(A::Error::custom(format_args!("the field `{}` is no text", T::TAG))),
            None => Err(A::Error::missing_field(T::TAG)),
        }
    }
}

/// Reads a text where it stands, if it can be read there: a long conversation has thousands of tags.
struct InPlace;

impl<'de> DeserializeSeed<'de> for InPlace {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Cow<'de, str>, D::Error> {
        from.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for InPlace {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E>(self, text: &str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Owned(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Owned(text))
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use serde_json::json;

    use super::{DeserializeSeed as _, InPlace};

    use crate::history::Message;

    /// S7.6: what is read does not depend on the order of the fields, and what is missing or unknown is named.
    #[test]
    fn the_tag_may_stand_anywhere() {
        let call = json!({"type": "call", "id": "c", "name": "n", "args": "{}"});
        let blocks =
            json!([{"type": "text", "text": "t"}, {"type": "reasoning", "text": "r", "seal": null}, call]);
        let result = json!({"call_id": "c", "name": "n", "text": "ok", "verdict": "good"});
        for whole in [
            json!({"role": "user", "text": "hello"}),
            json!({"role": "assistant", "blocks": blocks}),
            json!({"role": "results", "results": [result]}),
        ] {
            let message: Message = serde_json::from_value(whole.clone()).unwrap();
            let written = serde_json::to_string(&message).unwrap();
            assert_eq!(serde_json::from_str::<serde_json::Value>(&written).unwrap(), whole);
            assert!(written.starts_with("{\"role\":"), "{written}");
            assert_eq!(serde_json::from_str::<Message>(&written).unwrap(), message);
        }
        for (bad, why) in [
            ("{\"text\":\"hello\"}", "missing field `role`"),
            ("{}", "missing field `role`"),
            ("{\"role\":\"other\"}", "unknown variant `other`"),
            ("{\"text\":\"t\",\"role\":1}", "no text"),
            ("{\"role\":\"assistant\"}", "missing field `blocks`"),
        ] {
            let error = serde_json::from_str::<Message>(bad).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }

    /// A tag is not copied, so that reading a long conversation makes no text for each of its messages and blocks twice.
    #[test]
    fn a_tag_is_read_where_it_stands() {
        let read = |json| InPlace.deserialize(&mut serde_json::Deserializer::from_str(json)).unwrap();
        assert!(matches!(read("\"role\""), Cow::Borrowed("role")));
        assert!(matches!(read("\"r\\u006fle\""), Cow::Owned(role) if role == "role"));
    }
}
