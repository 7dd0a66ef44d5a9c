//! Secrets that the program knows: wherever one would enter a run, its name takes its place.
//!
//! **Invariants**: nothing that a model, a tool or a peer says reaches a record, an event, another request or a file of the
//! engine with a known secret in it. It is replaced where it comes in, so that no way out has to be watched.

use std::{borrow::Cow, fmt, sync::Arc};

use serde_json::Value;

use crate::tool::Output;

mod model;
mod tool;

pub use model::Cleaned;
pub(crate) use tool::CleanTool;

/// The shortest text that is taken for a secret: a shorter one stands in ordinary words.
pub const SHORTEST: usize = 8;

/// The secrets of a program, by name.
#[derive(Clone, Default)]
pub struct Secrets(Arc<[Secret]>);

struct Secret {
    value: String,
    /// What stands in its place.
    said: String,
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|secret| &secret.said)).finish()
    }
}

impl Secrets {
    /// These secrets, each with the name that is told in its place. A value shorter than [`SHORTEST`] bytes is not looked
    /// for.
    #[must_use]
    pub fn of(named: impl IntoIterator<Item = (String, String)>) -> Self {
        let mut secrets: Vec<Secret> = Vec::new();
        for (name, value) in named {
            let escaped = value.escape_default().to_string();
            for value in [value.trim().to_owned(), escaped] {
                let is_new = secrets.iter().all(|known| known.value != value);
                if value.len() >= SHORTEST && is_new {
                    secrets.push(Secret { value, said: format!("[secret {name}]") });
                }
            }
        }
        // One that holds another goes first, or its rest would be left.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.value.len()));
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
        for secret in self.0.iter().filter(|secret| !secret.value.is_empty()) {
            if text.contains(&secret.value) {
                text = Cow::Owned(text.replace(&secret.value, &secret.said));
            }
        }
        text
    }

    pub(crate) fn clean_text(&self, text: String) -> String {
        self.clean(text).into_owned()
    }

    pub(crate) fn clean_value(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.clean_text(std::mem::take(text)),
            Value::Array(items) => items.iter_mut().for_each(|item| self.clean_value(item)),
            Value::Object(fields) => fields.values_mut().for_each(|field| self.clean_value(field)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    pub(crate) fn clean_output(&self, mut output: Output) -> Output {
        output.text = self.clean_text(output.text);
        if let Some(value) = &mut output.structured {
            self.clean_value(value);
        }
        output
    }

    /// How much of the end of the text may be the beginning of a secret.
    fn begun(&self, text: &str) -> usize {
        let longest = |secret: &Secret| {
            let ends = secret.value.char_indices().map(|(end, _)| end).skip(1);
            ends.filter(|end| text.ends_with(&secret.value[..*end])).max().unwrap_or(0)
        };
        self.0.iter().map(longest).max().unwrap_or(0)
    }
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
}
