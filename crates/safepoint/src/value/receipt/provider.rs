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
        let parts = || {
            message.blocks.iter().filter_map(|block| match block {
                Block::Provider(block) => Some((&block.wire, &block.part)),
                Block::Text { .. } | Block::Reasoning(_) | Block::Call(_) => None,
            })
        };
        for (wire, part) in parts() {
            let ProviderPart::Use { tool, .. } = part else { continue };
            Self { tool: tool.clone(), wire: wire.clone(), uses: 1, unfinished: 0 }.add_to(all);
        }
        for (wire, tool) in unfinished(parts()) {
            let known = all.iter_mut().find(|known| known.tool == tool && known.wire == wire);
            known.into_iter().for_each(|known| known.unfinished += 1);
        }
    }
}

/// The uses without a result: by their ids, and where there are none by their order.
fn unfinished<'m>(
    parts: impl Iterator<Item = (&'m String, &'m ProviderPart)>,
) -> impl Iterator<Item = (&'m str, &'m str)> {
    let mut open: Vec<(&str, &str, &str)> = Vec::new();
    for (wire, part) in parts {
        match part {
            ProviderPart::Use { id, tool, result: None, .. } => open.push((id, wire, tool)),
            ProviderPart::Result { id, .. } => {
                if let Some(place) = open.iter().position(|(used, _, _)| used == id) {
                    open.remove(place);
                }
            }
            ProviderPart::Use { .. } | ProviderPart::Citations(_) => {}
        }
    }
    open.into_iter().map(|(_, wire, tool)| (wire, tool))
}
