//! The rules of the schema that a request sets for its answer.

use serde_json::{Map, Value, json};

use super::{HistoryRule, Violation, list, must, text};

/// What a provider asks of a schema. Exhaustive: those of the wires.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SchemaRules {
    OpenAi,
    Anthropic,
    Gemini,
}

const STRUCTURE: [&str; 14] = [
    "type",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "enum",
    "const",
    "anyOf",
    "$ref",
    "$defs",
    "description",
    "title",
    "minItems",
    "format",
];

/// Judges the schema of an answer, if the request sets one.
///
/// # Errors
/// The first violation.
pub(super) fn judge(schema: &Value, name: &str, rules: SchemaRules) -> Result<(), Violation> {
    if schema.is_null() {
        return Ok(());
    }
    let says = |what: &str| match rules {
        SchemaRules::OpenAi => format!("Invalid schema for response_format '{name}': In context=(), {what}"),
        SchemaRules::Anthropic => format!("output_config.format.schema: {what}"),
        SchemaRules::Gemini => {
            format!("* GenerateContentRequest.generation_config.response_json_schema: {what}")
        }
    };
    let refuse = |what: &str| Violation::new(0, HistoryRule::AnswerSchema, says(what));
    let root = schema.as_object().filter(|root| root.get("type") == Some(&json!("object")));
    let root = root.ok_or_else(|| refuse("schema must be a JSON Schema of 'type: \"object\"'."))?;
    if rules != SchemaRules::OpenAi && refers_to_itself(schema) {
        return Err(refuse("Circular reference detected in schema definitions."));
    }
    node(root, rules).map_err(|what| refuse(&what))
}

fn node(schema: &Map<String, Value>, rules: SchemaRules) -> Result<(), String> {
    if let Some(word) = schema.keys().find(|word| !STRUCTURE.contains(&word.as_str())) {
        return Err(format!("'{word}' is not permitted."));
    }
    if schema.contains_key("$ref") && schema.len() > 1 {
        return Err("$ref cannot have other keywords.".into());
    }
    if !["type", "$ref", "anyOf"].iter().any(|word| schema.contains_key(*word)) {
        return Err("schema must have a 'type' key.".into());
    }
    if schema.get("type") == Some(&json!("object")) {
        object(schema, rules)?;
    }
    let lists = schema.get("anyOf").map_or(&[][..], |all| list(all)).iter();
    let maps = ["properties", "$defs"].into_iter().filter_map(|word| schema.get(word)?.as_object());
    let under = lists.chain(maps.flat_map(Map::values)).chain(schema.get("items"));
    for one in under {
        node(one.as_object().ok_or("a schema must be an object.")?, rules)?;
    }
    Ok(())
}

fn object(schema: &Map<String, Value>, rules: SchemaRules) -> Result<(), String> {
    if rules == SchemaRules::Gemini {
        return Ok(());
    }
    if schema.get("additionalProperties") != Some(&json!(false)) {
        return Err("'additionalProperties' is required to be supplied and to be false.".into());
    }
    if rules == SchemaRules::Anthropic {
        return Ok(());
    }
    let required = schema.get("required").map_or(&[][..], |all| list(all));
    let names = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    for (name, _) in names {
        if !required.contains(&json!(name)) {
            return Err(format!(
                "'required' is required to be supplied and to be an array including every key in properties. Missing '{name}'."
            ));
        }
    }
    Ok(())
}

/// Whether a definition contains itself, directly or not.
fn refers_to_itself(schema: &Value) -> bool {
    let defs = schema["$defs"].as_object();
    let depth = defs.map_or(0, Map::len);
    defs.into_iter().flatten().any(|(_, def)| is_deeper(schema, def, depth))
}

/// Whether references can be followed from here more often than there are definitions.
fn is_deeper(schema: &Value, from: &Value, left: usize) -> bool {
    match from {
        Value::Object(fields) => {
            let to = fields.get("$ref").map(text).and_then(|to| to.strip_prefix("#/$defs/"));
            let follows = to.is_some_and(|to| left == 0 || is_deeper(schema, &schema["$defs"][to], left - 1));
            follows || fields.values().any(|field| is_deeper(schema, field, left))
        }
        Value::Array(all) => all.iter().any(|one| is_deeper(schema, one, left)),
        _ => false,
    }
}

/// A format is one that the provider knows, and has its schema.
pub(super) fn format(format: &Value, at: &str) -> Result<(), Violation> {
    let kind = text(&format["type"]);
    must(
        format.is_null() || matches!(kind, "text" | "json_object" | "json_schema"),
        0,
        HistoryRule::AnswerSchema,
        || {
            format!(
                "Invalid value: '{kind}'. Supported values are: 'json_object', 'json_schema', and 'text'."
            )
        },
    )?;
    let schema = if at.is_empty() { format } else { &format[at] };
    let has_schema = kind != "json_schema" || schema["schema"].is_object();
    must(has_schema, 0, HistoryRule::AnswerSchema, || "Missing required parameter: 'schema'.")?;
    let is_named = kind != "json_schema" || !text(&schema["name"]).is_empty();
    must(is_named, 0, HistoryRule::AnswerSchema, || "Missing required parameter: 'name'.")?;
    let strict = if schema["strict"] == true { &schema["schema"] } else { &Value::Null };
    judge(strict, text(&schema["name"]), SchemaRules::OpenAi)
}
