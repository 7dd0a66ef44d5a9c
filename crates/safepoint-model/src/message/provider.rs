//! What a provider did itself while it made a message: its tools, what they gave, and where a text is from.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ResultStatus;
use crate::{json, text::head};

/// A piece of a message that a provider made with one of its tools, such as a search, or that says where a text is from.
///
/// It is kept in the provider's own form, and goes back to that wire as it came. Another wire gets a
/// [note](ProviderBlock::note) in its place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ProviderBlock {
    /// The wire that gave it, such as `anthropic`.
    pub wire: String,
    /// What it is.
    pub part: ProviderPart,
    /// The form in which the wire gave it; null where it is part of another block.
    pub raw: Value,
}

/// What a provider's block says. Exhaustive: the receipt and every wire read each of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ProviderPart {
    /// A tool that the provider runs itself was used.
    Use {
        /// The provider's id of the use; empty where it gives none.
        id: String,
        /// The tool, such as `web_search`.
        tool: String,
        /// What it was given, for people: a query, a program.
        input: String,
        /// How it ended, where that is said with the use itself and not in a separate block.
        result: Option<ResultStatus>,
    },
    /// What a use gave.
    Result {
        /// The id of the use; empty where the provider gives none: then it is that of the use before it.
        id: String,
        /// The tool.
        tool: String,
        /// Whether it failed.
        status: ResultStatus,
        /// The beginning of what it gave, for people and for other models; at most [`MOST_TEXT`](ProviderBlock::MOST_TEXT) bytes.
        text: String,
    },
    /// Where the text before it is from.
    Citations(Vec<Citation>),
}

/// Where a text is from, as far as the provider says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Citation {
    /// The address of a page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The name of a page, a document or a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The words that are cited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cited: Option<String>,
}

impl ProviderBlock {
    /// The most bytes of an input or a result that are kept as text, beside the provider's own form.
    pub const MOST_TEXT: usize = 4 << 10;

    /// A block of this wire, for adapters. Texts are cut to [`MOST_TEXT`](Self::MOST_TEXT) bytes.
    #[must_use]
    pub fn new(wire: impl Into<String>, mut part: ProviderPart, raw: Value) -> Self {
        match &mut part {
            ProviderPart::Use { input: text, .. } | ProviderPart::Result { text, .. } => {
                text.truncate(head(text, Self::MOST_TEXT).len());
            }
            ProviderPart::Citations(_) => {}
        }
        Self { wire: wire.into(), part, raw }
    }

    /// The text that another wire gets in its place; empty where there is nothing to say.
    #[must_use]
    pub fn note(&self) -> String {
        match &self.part {
            ProviderPart::Use { tool, input, .. } if input.is_empty() => {
                format!("[the provider's tool {tool} was used]")
            }
            ProviderPart::Use { tool, input, .. } => {
                format!("[the provider's tool {tool} was used: {input}]")
            }
            ProviderPart::Result { tool, status, text, .. } => {
                let how = if *status == ResultStatus::Ok { "gave" } else { "failed" };
                let text = if text.is_empty() { "no text" } else { text };
                format!("[{tool} {how}: {text}]")
            }
            ProviderPart::Citations(citations) => {
                let named: Vec<&str> = citations.iter().filter_map(Citation::name).collect();
                if named.is_empty() { String::new() } else { format!("[from: {}]", named.join("; ")) }
            }
        }
    }

    /// About how many bytes it takes.
    #[must_use]
    pub fn weight(&self) -> usize {
        let text = match &self.part {
            ProviderPart::Use { id, tool, input, .. } => id.len() + tool.len() + input.len(),
            ProviderPart::Result { id, tool, text, .. } => id.len() + tool.len() + text.len(),
            ProviderPart::Citations(citations) => citations.iter().map(Citation::weight).sum(),
        };
        json::weight(&self.raw).saturating_add(text)
    }

    /// Each text of it, to be changed.
    pub fn texts_mut(&mut self) -> Vec<&mut String> {
        match &mut self.part {
            ProviderPart::Use { id, tool, input: text, .. } | ProviderPart::Result { id, tool, text, .. } => {
                vec![id, tool, text]
            }
            ProviderPart::Citations(citations) => citations
                .iter_mut()
                .flat_map(|citation| [&mut citation.url, &mut citation.title, &mut citation.cited])
                .flatten()
                .collect(),
        }
    }
}

impl Citation {
    /// Where a text is from; each is none where the provider does not say it.
    #[must_use]
    pub fn new(url: Option<String>, title: Option<String>, cited: Option<String>) -> Self {
        Self { url, title, cited }
    }

    /// Its address, or else its name.
    fn name(&self) -> Option<&str> {
        self.url.as_deref().or(self.title.as_deref())
    }

    fn weight(&self) -> usize {
        const FRAME: usize = 96;
        let texts = [&self.url, &self.title, &self.cited];
        texts.into_iter().flatten().map(String::len).sum::<usize>() + FRAME
    }
}
