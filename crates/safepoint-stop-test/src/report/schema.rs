//! The published schema of what `--json` writes, made of the types of a report.

use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use super::Report;

const ABOUT: &str = "All that one run of `stop-test` saw of one target. Each time is a number of whole seconds and one of nanoseconds \
    beyond them; those of facts and claims count from the moment in which the stop was asked for.";

/// The JSON Schema of a [`Report`] as JSON: `docs/schema/stop-test.json` is this document.
#[must_use]
pub fn report_schema() -> Value {
    let made =
        SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<Report>();
    let mut document = made.to_value();
    plain(&mut document);
    document["title"] = json!("What `stop-test --json` writes");
    document["description"] = json!(ABOUT);
    document
}

/// Each description in one line, and no field beyond those that are named.
fn plain(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::String(text)) = fields.get_mut("description") {
                *text = text.split(" Exhaustive:").next().unwrap_or_default().replace('\n', " ");
            }
            if fields.contains_key("properties") {
                fields.insert("additionalProperties".to_owned(), json!(false));
            }
            fields.values_mut().for_each(plain);
        }
        Value::Array(values) => values.iter_mut().for_each(plain),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
