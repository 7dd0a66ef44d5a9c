//! The list of a server's tools: read leniently, checked one by one, so that one wrong tool does not cost the others.

use std::{collections::HashSet, sync::Arc};

use rmcp::model::ServerResult;
use safepoint::{
    Tool,
    raw::schema::{Misfit, Schema},
    tool::EffectClass,
};
use serde_json::{Value, json};

use super::{
    depth,
    exchange::{Fault, Live},
    names,
    server::Server,
};
use crate::{files::cut, limits};

/// What a server offers.
#[derive(Clone, Default)]
pub struct Offer {
    /// What an agent can be given.
    pub tools: Vec<Arc<dyn Tool>>,
    /// The server's own name of each of these, in the same order.
    pub own_names: Vec<String>,
    /// What it cannot be given, and why.
    pub refused: Vec<Refused>,
    /// All names that the server listed, wanted or not, as it spelt them.
    pub names: Vec<String>,
    /// What of the choice of tools fits none of these names, in a sentence each.
    pub unmatched: Vec<String>,
}

/// A tool that is not offered to a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Its name as the server spelt it.
    pub name: String,
    /// What is wrong with it.
    pub why: String,
}

impl Offer {
    /// Where and how arguments do not fit the schema of the tool of this own name, as a run would say it (S4.11); none if
    /// they do. A tool that is not offered has no schema that could be asked.
    #[must_use]
    pub fn misfit(&self, own_name: &str, args: &Value) -> Option<Misfit> {
        let (tool, _) = self.tools.iter().zip(&self.own_names).find(|(_, own)| *own == own_name)?;
        Schema::new(&tool.spec().parameters).ok()?.check(args).err()
    }
}

impl std::fmt::Debug for Offer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = self.tools.iter().map(|tool| tool.spec().name.as_str()).collect();
        f.debug_struct("Offer").field("tools", &names).field("refused", &self.refused).finish()
    }
}

/// A tool as its server listed it, checked.
#[derive(Clone, Debug)]
pub(super) struct Listed {
    /// The server's name for it.
    pub(super) name: String,
    /// The name under which it is offered.
    pub(super) offered: String,
    pub(super) description: String,
    pub(super) schema: Value,
    /// What its calls may change, by the server's word.
    pub(super) effect: EffectClass,
}

/// Asks for all pages; what a server tells without end is cut off.
///
/// # Cancel safety
/// The server gets a notice that the request is abandoned.
pub(super) async fn all(live: &Live) -> Result<Vec<Value>, Fault> {
    let mut listed = Vec::new();
    let mut cursor = None;
    for _page in 0..limits::MCP_PAGES {
        let next;
        (listed, next) = page(live.list(cursor).await?, listed)?;
        if next.is_none() || listed.len() > limits::MCP_TOOLS {
            break;
        }
        cursor = next;
    }
    Ok(listed)
}

/// Adds a page, which may hold a tool that is not as the protocol says.
fn page(result: ServerResult, mut listed: Vec<Value>) -> Result<(Vec<Value>, Option<String>), Fault> {
    let wrong = || Fault::Refused("its list of tools is none".to_owned());
    let mut raw = match result {
        ServerResult::ListToolsResult(page) => serde_json::to_value(page).map_err(|_unwritable| wrong())?,
        ServerResult::CustomResult(raw) => raw.0,
        _ => return Err(wrong()),
    };
    let Some(Value::Array(tools)) = raw.get_mut("tools").map(Value::take) else { return Err(wrong()) };
    listed.extend(tools);
    Ok((listed, raw["nextCursor"].as_str().map(str::to_owned)))
}

/// Checks every tool that is wanted.
pub(super) fn check(server: &Server, listed: Vec<Value>) -> (Vec<Listed>, Vec<Refused>) {
    let mut good = Vec::new();
    let mut refused = Vec::new();
    let mut taken = HashSet::new();
    for raw in listed {
        let name = raw["name"].as_str().unwrap_or_default().to_owned();
        if !server.pick.takes(&name) {
            continue;
        }
        let checked = match one(server, name.clone(), &raw) {
            _ if good.len() >= limits::MCP_TOOLS => {
                Err(format!("only {} tools are taken", limits::MCP_TOOLS))
            }
            Ok(tool) if !taken.insert(tool.offered.clone()) => {
                Err(format!("another tool of this server is offered as `{}`", tool.offered))
            }
            other => other,
        };
        match checked {
            Ok(tool) => good.push(tool),
            Err(why) => refused.push(Refused { name, why }),
        }
    }
    (good, refused)
}

fn one(server: &Server, name: String, raw: &Value) -> Result<Listed, String> {
    if name.is_empty() {
        return Err("it has no name".to_owned());
    }
    let offered = match server.pick.rename.get(&name) {
        Some(chosen) if names::is_tool_name(chosen) => chosen.clone(),
        Some(chosen) => return Err(format!("no provider takes the name `{chosen}` that was chosen for it")),
        None => names::offered(&server.name, &name),
    };
    let (schema, unchecked) = arguments(&raw["inputSchema"])?;
    Ok(Listed {
        offered,
        description: description(server, raw, &unchecked),
        schema,
        effect: annotated(&raw["annotations"]),
        name,
    })
}

/// A schema that the engine can check arguments by, and that every provider takes: one of an object. Beside it the patterns
/// that only the server can check: the schema has them no more.
fn arguments(raw: &Value) -> Result<(Value, Vec<String>), String> {
    let Value::Object(fields) = raw else {
        return Err("its arguments have no schema".to_owned());
    };
    let mut schema = fields.clone();
    if schema.entry("type").or_insert_with(|| json!("object")) != "object" {
        return Err("its arguments are no object".to_owned());
    }
    schema.remove("$schema");
    let mut schema = Value::Object(schema);
    if is_cut(&schema) {
        return Err(format!("its schema is nested more than {} levels deep", limits::MCP_DEPTH));
    }
    if schema.to_string().len() > limits::MCP_SCHEMA_BYTES {
        return Err(format!("its schema is larger than {} bytes", limits::MCP_SCHEMA_BYTES));
    }
    let mut unchecked = Vec::new();
    while let Err(error) = Schema::new(&schema) {
        let Some(pattern) = error.unsupported_pattern().and_then(|at| take_pattern(&mut schema, at)) else {
            return Err(format!("its schema cannot be used: {error}"));
        };
        unchecked.push(pattern);
        if unchecked.len() > limits::MCP_UNCHECKED_PATTERNS {
            return Err(format!("its schema cannot be used: {error}"));
        }
    }
    Ok((schema, unchecked))
}

/// Whether something of it was nested too deeply to be read.
fn is_cut(value: &Value) -> bool {
    match value {
        Value::String(text) => text == depth::TOO_DEEP,
        Value::Array(parts) => parts.iter().any(is_cut),
        Value::Object(fields) => fields.values().any(is_cut),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Takes the pattern out of the schema: where it stood and what it was.
fn take_pattern(schema: &mut Value, at: &str) -> Option<String> {
    let (holder, keyword) = at.rsplit_once('/')?;
    let pattern = schema.pointer_mut(holder)?.as_object_mut()?.remove(keyword)?;
    Some(format!("{holder} must match the pattern {pattern}"))
}

/// The server's words, bounded, and whose they are.
fn description(server: &Server, raw: &Value, unchecked: &[String]) -> String {
    let listed = raw["description"].as_str().or_else(|| raw["title"].as_str()).unwrap_or_default();
    let mut lines = vec![cut(listed, limits::MCP_DESCRIPTION_BYTES).trim().to_owned()];
    lines.extend(unchecked.iter().cloned());
    lines.push(format!("(a tool of the MCP server {})", server.name));
    lines.join("\n").trim().to_owned()
}

fn annotated(raw: &Value) -> EffectClass {
    let says = |hint: &str| raw[hint] == true;
    if says("readOnlyHint") {
        EffectClass::ReadOnly
    } else if says("idempotentHint") {
        EffectClass::Idempotent
    } else {
        EffectClass::Unsafe
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S4.11: a pattern that only the server can check costs no tool: it leaves the schema, and the model is informed.
    #[test]
    fn a_pattern_with_look_around_is_left_to_the_server() {
        let raw = json!({"type": "object", "properties": {
            "name": {"type": "string", "pattern": "^(?!-).+$"},
            "id": {"type": "string", "pattern": "^[a-z]+$"},
        }});
        let (schema, unchecked) = arguments(&raw).unwrap();
        assert_eq!(unchecked, [r#"/properties/name must match the pattern "^(?!-).+$""#]);
        let schema = Schema::new(&schema).unwrap();
        assert_eq!(schema.check(&json!({"name": "-x", "id": "abc"})), Ok(()));
        assert_eq!(schema.check(&json!({"id": "ABC"})).unwrap_err().place, "/id");
    }
}
