//! The published schema of the lines, made of their types.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings, json_schema};
use serde_json::{Map, Value, json};

use super::body::{NullOrSlot, RunLine, SessionLine, Slot};
use crate::value::receipt::Receipt;

const ABOUT: &str = "One JSON object a line. `epoch` numbers the owners of a stored session, one after the other, and is 0 \
    where the session is not stored; `seq` is gapless from 0 within one epoch, so the lines of a session are in order by \
    (epoch, seq), over all its processes. `turn` is the turn's number in its session, the same as in trace.json; a turn \
    that is taken up again keeps it. Each attempt of a turn ends with exactly one `outcome`. The command line \
    prints no `call_delta`, and of the lines of a session `missed` alone.";

/// The JSON Schema of what an [`EventEncoder`](crate::event::EventEncoder) makes: `docs/schema/event.json` is this
/// document.
#[must_use]
pub fn event_schema() -> Value {
    let mut made = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let mut lines = variants(
        &RunLine::json_schema(&mut made),
        &json!({"type": "string", "pattern": "^run_"}),
        &number(1),
    );
    let run = json!({"type": ["string", "null"], "pattern": "^run_"});
    let turn = json!({"type": ["integer", "null"], "minimum": 1});
    lines.extend(variants(&SessionLine::json_schema(&mut made), &run, &turn));
    let mut document = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "An event as a line of JSON",
        "description": ABOUT,
        "type": "object",
        "required": ["type", "v", "session", "run", "epoch", "seq", "at", "turn"],
        "oneOf": lines,
        "$defs": made.take_definitions(true),
    });
    plain(&mut document);
    document
}

fn number(least: u64) -> Value {
    json!({"type": "integer", "minimum": least})
}

/// Each variant with what every line has, and without anything else.
fn variants(all: &Schema, run: &Value, turn: &Value) -> Vec<Value> {
    let each = all.get("oneOf").and_then(Value::as_array).cloned().unwrap_or_default();
    each.into_iter().map(|variant| with_header(variant, run, turn)).collect()
}

fn with_header(mut variant: Value, run: &Value, turn: &Value) -> Value {
    let kind = variant["properties"]["type"]["const"].clone();
    let path = json!({
        "description": "Which child run: the calls that lead to it from the root. Absent for the root.",
        "type": "array", "items": {"type": "string"},
    });
    let header = [
        ("type", json!({"const": kind})),
        ("v", json!({"const": 1})),
        ("session", json!({"type": "string", "minLength": 1})),
        ("run", run.clone()),
        ("epoch", number(0)),
        ("seq", number(0)),
        ("at", json!({"type": "string", "format": "date-time"})),
        ("turn", turn.clone()),
    ];
    let properties = variant["properties"].as_object_mut().map(std::mem::take).unwrap_or_default();
    let mut properties: Map<String, Value> = properties;
    properties.extend(header.map(|(name, schema)| (name.to_owned(), schema)));
    properties.entry("path").or_insert(path);
    variant["title"] = kind;
    variant["properties"] = Value::Object(properties);
    variant["additionalProperties"] = json!(false);
    variant
}

/// A receipt as a line has it.
pub(super) fn receipt_with_quiet(made: &mut SchemaGenerator) -> Schema {
    let receipt = made.subschema_for::<Receipt>();
    let quiet = made.subschema_for::<Option<jiff::Timestamp>>();
    json_schema!({
        "allOf": [receipt, {"type": "object", "required": ["quiet"], "properties": {"quiet": quiet}}],
    })
}

impl JsonSchema for Slot {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Text".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string"})
    }
}

impl JsonSchema for NullOrSlot {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "TextOrNull".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": ["string", "null"]})
    }
}

/// Leaves out of descriptions what means something in the program's documentation alone: links, and why an enum is exhaustive.
fn plain(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::String(text)) = fields.get_mut("description") {
                *text = without_links(text.split(" Exhaustive:").next().unwrap_or_default());
            }
            fields.values_mut().for_each(plain);
        }
        Value::Array(values) => values.iter_mut().for_each(plain),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The words of a text of documentation, in one line.
fn without_links(text: &str) -> String {
    let mut parts = text.split("](");
    let mut words = parts.next().unwrap_or_default().to_owned();
    // What follows `](` is the target of a link, up to its bracket.
    words.extend(parts.filter_map(|part| part.split_once(')')).map(|(_target, rest)| rest));
    words.replace("[`", "`").replace("`]", "`").replace('\n', " ")
}
