//! Which agent a definition is: by it a run that was saved finds the agent that began it.

use std::collections::BTreeMap;

use serde_json::json;

use super::Definition;
use crate::value::approval::hashed;

/// An agent, in digests. Its limits, rules, hooks and approver are no part of it: they may change between two attempts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AgentIdentity {
    /// Its model's name and its instructions.
    pub(crate) agent: String,
    /// Each of its tools by name, the form of its answers too: the declaration, the place and, of a tool that is an agent, that agent.
    pub(crate) tools: BTreeMap<String, String>,
}

impl AgentIdentity {
    pub(crate) fn of(def: &Definition) -> Self {
        let system = def.system.as_deref().unwrap_or_default();
        let agent = hashed("sha256:", &[def.model.name(), system]);
        let mut tools: BTreeMap<String, String> =
            def.tools.names().map(|name| (name.to_owned(), def.tools.definition(name).to_owned())).collect();
        for child in def.tools.children() {
            let Self { agent, tools: below } = Self::of(child.def());
            if let Some(digest) = tools.get_mut(&child.spec().name) {
                *digest = hashed("sha256:", &[digest, &agent, &json!(below).to_string()]);
            }
        }
        Self { agent, tools }
    }
}
