//! The tools that a provider ran itself, as a receipt counts them.

use serde::{Deserialize, Serialize};

use crate::value::message::{AssistantMessage, Block, ProviderPart};

/// How often a provider used one of its tools in an attempt. What such a tool did outside is not known here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ProviderToolReport {
    /// The tool, such as `web_search`.
    pub tool: String,
    /// The wire whose provider ran it.
    pub wire: String,
    /// How often it was used, as far as it was said.
    pub uses: u64,
    /// How many of these uses have no known end: their message was cut or failed first.
    pub unfinished: u64,
}

impl ProviderToolReport {
    /// Adds it to the report of the same tool.
    pub(crate) fn add_to(&self, all: &mut Vec<Self>) {
        match all.iter_mut().find(|known| known.tool == self.tool && known.wire == self.wire) {
            Some(known) => {
                known.uses += self.uses;
                known.unfinished += self.unfinished;
            }
            None => all.push(self.clone()),
        }
    }

    /// Counts what a message used.
    pub(crate) fn count(all: &mut Vec<Self>, message: &AssistantMessage) {
        for ProviderUse { wire, tool, has_ended, .. } in provider_uses(message) {
            let unfinished = u64::from(!has_ended);
            Self { tool: tool.to_owned(), wire: wire.to_owned(), uses: 1, unfinished }.add_to(all);
        }
    }
}

/// One use of a tool that a provider ran itself.
pub(crate) struct ProviderUse<'m> {
    pub(crate) wire: &'m str,
    pub(crate) tool: &'m str,
    /// What it was given, for people.
    pub(crate) input: &'m str,
    /// Whether its result is there.
    pub(crate) has_ended: bool,
    id: &'m str,
}

/// What a message used, in its order. A result belongs to a use by its id, and where there are none by its order.
pub(crate) fn provider_uses(message: &AssistantMessage) -> Vec<ProviderUse<'_>> {
    let mut uses: Vec<ProviderUse<'_>> = Vec::new();
    for block in &message.blocks {
        let Block::Provider(block) = block else { continue };
        match &block.part {
            ProviderPart::Use { id, tool, input, result } => {
                let (wire, has_ended) = (block.wire.as_str(), result.is_some());
                uses.push(ProviderUse { wire, tool, input, has_ended, id });
            }
            ProviderPart::Result { id, .. } => {
                if let Some(ended) = uses.iter_mut().find(|used| !used.has_ended && used.id == id) {
                    ended.has_ended = true;
                }
            }
            ProviderPart::Citations(_) => {}
        }
    }
    uses
}
