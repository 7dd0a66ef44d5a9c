//! Secrets that the program knows: wherever one would enter a run, its name replaces it.
//!
//! **Invariants**: no output of a model, a tool or a remote agent reaches a record, an event, another request
//! or a file of the engine with a known secret in it. Secrets are replaced on entry, so that no exit has to
//! be watched.

use std::{borrow::Cow, fmt, sync::Arc};

use serde_json::Value;

use crate::{
    contract::tool::Output,
    value::message::{Part, PartSource},
};

mod model;

pub use model::Cleaned;

/// The shortest text that is taken for a secret: a shorter one stands in ordinary words.
pub const SHORTEST: usize = 8;

/// The secrets of a program: each value, and the name that stands in its place.
#[derive(Clone, Default)]
pub struct Secrets(Arc<[(String, String)]>);

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(_value, name)| name)).finish()
    }
}

impl Secrets {
    /// These secrets, each with the name that replaces it. A value shorter than [`SHORTEST`] bytes is not
    /// searched for.
    #[must_use]
    pub fn of(named: impl IntoIterator<Item = (String, String)>) -> Self {
        let mut secrets: Vec<(String, String)> = Vec::new();
        for (name, value) in named {
            let value = value.trim();
            for value in [value.to_owned(), value.escape_default().to_string(), in_json(value)] {
                let is_new = secrets.iter().all(|(known, _)| *known != value);
                if value.len() >= SHORTEST && is_new {
                    secrets.push((value, format!("[secret {name}]")));
                }
            }
        }
        // One that holds another goes first, or its rest would be left.
        secrets.sort_by_key(|(value, _)| std::cmp::Reverse(value.len()));
        Self(secrets.into())
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The text with the name of each secret in its place.
    #[must_use]
    pub fn clean<'a>(&self, text: impl Into<Cow<'a, str>>) -> Cow<'a, str> {
        let mut text = text.into();
        for (value, name) in self.0.iter().filter(|(value, _)| !value.is_empty()) {
            if text.contains(value) {
                text = Cow::Owned(text.replace(value, name));
            }
        }
        text
    }

    pub(crate) fn clean_text(&self, text: String) -> String {
        self.clean(text).into_owned()
    }

    /// Cleans every text of a value, also the names of its fields. Whether something was replaced.
    pub(crate) fn clean_value(&self, value: &mut Value) -> bool {
        match value {
            Value::String(text) => self.clean_in(text),
            Value::Array(items) => {
                items.iter_mut().filter_map(|item| self.clean_value(item).then_some(())).count() > 0
            }
            Value::Object(fields) => {
                let mut found = false;
                for (mut name, mut field) in std::mem::take(fields) {
                    found |= self.clean_in(&mut name);
                    found |= self.clean_value(&mut field);
                    fields.insert(name, field);
                }
                found
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }

    /// Cleans a text that may be JSON, in which a letter has more than one way to be written. One that is clean stays as
    /// it is, to the byte.
    pub(crate) fn clean_json(&self, text: &mut String) {
        self.clean_in(text);
        if text.contains('\\')
            && let Ok(mut value) = serde_json::from_str::<Value>(text)
            && self.clean_value(&mut value)
        {
            *text = value.to_string();
        }
    }

    /// Whether something was replaced.
    pub(crate) fn clean_in(&self, text: &mut String) -> bool {
        let cleaned = match self.clean(text.as_str()) {
            Cow::Borrowed(_) => return false,
            Cow::Owned(cleaned) => cleaned,
        };
        *text = cleaned;
        true
    }

    pub(crate) fn clean_output(&self, mut output: Output) -> Output {
        output.text = self.clean_text(output.text);
        if let Some(value) = &mut output.structured {
            self.clean_value(value);
        }
        self.clean_parts(&mut output.parts);
        output
    }

    /// Cleans what is text of them: how they are named, and where they are.
    pub(crate) fn clean_parts(&self, parts: &mut [Part]) {
        for Part { media_type, name, source, .. } in parts {
            self.clean_in(media_type);
            if let Some(name) = name {
                self.clean_in(name);
            }
            if let PartSource::Url(address) = source {
                self.clean_in(address);
            }
        }
    }

    /// How many bytes of the end of the text may be the beginning of a secret.
    #[must_use]
    pub fn begun(&self, text: &str) -> usize {
        let longest = |(value, _): &(String, String)| {
            let ends = value.char_indices().map(|(end, _)| end).skip(1);
            ends.filter(|end| text.ends_with(&value[..*end])).max().unwrap_or(0)
        };
        self.0.iter().map(longest).max().unwrap_or(0)
    }
}

/// As it stands in a text of JSON, without the quotes.
fn in_json(value: &str) -> String {
    let quoted = Value::from(value).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S8.10
    #[test]
    fn a_secret_is_replaced_by_its_name_wherever_it_stands() {
        let secrets = Secrets::of([
            ("SHORT".to_owned(), "abc".to_owned()),
            ("ONE".to_owned(), "hunter22".to_owned()),
            ("TWO".to_owned(), "hunter22-and-more\n".to_owned()),
        ]);
        assert_eq!(secrets.clean("abc hunter22-and-more hunter22."), "abc [secret TWO] [secret ONE].");
        assert_eq!(secrets.begun("say hunter22-and"), "hunter22-and".len());
        assert_eq!(secrets.begun("nothing"), 0);
        assert!(!format!("{secrets:?}").contains("hunter22"));
        let mut value = serde_json::json!({"a": ["hunter22", 1]});
        secrets.clean_value(&mut value);
        assert_eq!(value, serde_json::json!({"a": ["[secret ONE]", 1]}));
    }

    /// S8.10: a part says its name and its address as well.
    #[test]
    fn a_part_of_an_output_tells_no_secret() {
        let secrets = Secrets::of([("ONE".to_owned(), "hunter22".to_owned())]);
        let part = |secret: &str| Part {
            media_type: format!("image/{secret}"),
            name: Some(format!("{secret}.png")),
            ..Part::image_at(format!("https://a/?key={secret}"))
        };
        let output = secrets.clean_output(Output { parts: vec![part("hunter22")], ..Output::from("") });
        assert_eq!(output.parts, [part("[secret ONE]")]);
    }

    /// S8.10: arguments are JSON, where a secret has many ways to be written; those without one keep their bytes.
    #[test]
    fn a_secret_is_found_however_json_writes_it() {
        let pem = "-----BEGIN-----\nMIIab/c\u{e9}\n-----END-----";
        let secrets =
            Secrets::of([("PEM".to_owned(), pem.to_owned()), ("ONE".to_owned(), "hunter22".to_owned())]);
        for (said, cleaned) in [
            (serde_json::json!({"content": pem}).to_string(), r#"{"content":"[secret PEM]"}"#),
            (
                r#"{"content":"-----BEGIN-----\nMIIab\/c\u00e9\n-----END-----"}"#.to_owned(),
                r#"{"content":"[secret PEM]"}"#,
            ),
            (r#"{"\u0068unter22": 1}"#.to_owned(), r#"{"[secret ONE]":1}"#),
            (r#"{"a":  "\u0068"}"#.to_owned(), r#"{"a":  "\u0068"}"#),
            (format!("no JSON: {pem} {}", in_json(pem)), "no JSON: [secret PEM] [secret PEM]"),
        ] {
            let mut text = said.clone();
            secrets.clean_json(&mut text);
            assert_eq!(text, cleaned, "{said}");
        }
    }
}
