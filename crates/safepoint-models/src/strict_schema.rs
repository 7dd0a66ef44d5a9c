//! A JSON Schema as providers take it where they hold a model's answer to one: a part of what JSON Schema can say.
//!
//! **Invariants**: what matches the result also has the shape that the original asks for, save for its bounds (of numbers,
//! lengths and formats), which stand in the descriptions: the engine checks the answer by the original.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

/// What a provider asks of a schema beyond that.
pub(crate) struct StrictRules {
    /// Whether each object names all of its properties, and no others are allowed.
    pub(crate) is_closed: bool,
    /// Whether each property is required.
    pub(crate) is_all_required: bool,
    /// Whether a definition may contain itself.
    pub(crate) may_recur: bool,
}

/// How deep a schema may be, and how many properties it may have: the smallest figures of the providers.
const MOST_DEPTH: usize = 10;
const MOST_PROPERTIES: usize = 5_000;

/// Words that only narrow what a schema takes: not every provider reads each of them, so all go into the description.
const BOUNDS: [&str; 13] = [
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
];

/// Words that say nothing of the shape.
const NOTES: [&str; 9] = [
    "title",
    "description",
    "default",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
    "$schema",
    "$comment",
];

/// Formats that mean something to a reader; the others name sizes of numbers.
const FORMATS: [&str; 10] =
    ["date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"];

/// The same schema under these rules; none if they cannot say what it says.
pub(crate) fn strict(schema: &Value, rules: &StrictRules) -> Option<Value> {
    let defs = ["$defs", "definitions"].into_iter().find_map(|name| schema[name].as_object());
    let mut work = Work { rules, defs, properties: 0 };
    if !rules.may_recur && work.recurs() {
        return None;
    }
    let root = schema.as_object().filter(|root| root.get("type") == Some(&json!("object")))?;
    let mut strict = work.node(root, 0)?;
    if let Some(defs) = defs {
        let mut kept = Map::new();
        for (name, def) in defs {
            kept.insert(name.clone(), work.node(def.as_object()?, 1)?.into());
        }
        strict.insert("$defs".into(), kept.into());
    }
    (work.properties <= MOST_PROPERTIES).then(|| strict.into())
}

struct Work<'s> {
    rules: &'s StrictRules,
    defs: Option<&'s Map<String, Value>>,
    /// How many have been seen.
    properties: usize,
}

impl Work<'_> {
    fn node(&mut self, node: &Map<String, Value>, depth: usize) -> Option<Map<String, Value>> {
        if depth > MOST_DEPTH {
            return None;
        }
        // A word that is not known here may mean anything.
        let shape: Vec<&str> = node.keys().map(String::as_str).filter(|word| !is_beside(word)).collect();
        let mut strict = match shape.as_slice() {
            ["$ref"] => return self.reference(node["$ref"].as_str()?),
            ["anyOf"] => self.choice(&node["anyOf"], depth)?,
            ["oneOf"] => self.choice(&node["oneOf"], depth)?,
            ["allOf"] => match node["allOf"].as_array()?.as_slice() {
                [one] => self.node(one.as_object()?, depth + 1)?,
                _ => return None,
            },
            _ => self.plain(node, &shape, depth)?,
        };
        if let Some(description) = described(node) {
            strict.insert("description".into(), description.into());
        }
        Some(strict)
    }

    /// A definition of this schema, or all of it. What stands beside it are notes, which not every provider takes there.
    fn reference(&self, to: &str) -> Option<Map<String, Value>> {
        if to != "#" {
            self.defs?.get(def_name(to)?)?;
        }
        let to = to.replacen("#/definitions/", "#/$defs/", 1);
        Some(Map::from_iter([("$ref".to_owned(), to.into())]))
    }

    /// One of several: that it is only one of them is not said, but the engine checks it.
    fn choice(&mut self, of: &Value, depth: usize) -> Option<Map<String, Value>> {
        let mut all = Vec::new();
        for one in of.as_array().filter(|all| !all.is_empty())? {
            all.push(Value::from(self.node(one.as_object()?, depth + 1)?));
        }
        Some(Map::from_iter([("anyOf".to_owned(), all.into())]))
    }

    /// Values of a type, or some values.
    fn plain(
        &mut self,
        node: &Map<String, Value>,
        shape: &[&str],
        depth: usize,
    ) -> Option<Map<String, Value>> {
        const KNOWN: [&str; 9] = [
            "type",
            "enum",
            "const",
            "properties",
            "required",
            "additionalProperties",
            "items",
            "$defs",
            "definitions",
        ];
        if shape.iter().any(|word| !KNOWN.contains(word)) {
            return None;
        }
        let mut strict = Map::new();
        let values = node.get("const").map(|value| vec![value.clone()]);
        let values = values.or_else(|| node.get("enum").and_then(Value::as_array).cloned());
        let types = match node.get("type") {
            Some(types) => types.clone(),
            None => json!(type_of(values.as_deref()?)?),
        };
        let has =
            |name: &str| types == *name || types.as_array().is_some_and(|all| all.contains(&json!(name)));
        if has("object") {
            self.object(node, &mut strict, depth)?;
        }
        if has("array") {
            let items = self.node(node.get("items")?.as_object()?, depth + 1)?;
            strict.insert("items".into(), items.into());
        }
        if let Some(values) = values {
            if values.is_empty() || values.iter().any(|value| value.is_array() || value.is_object()) {
                return None;
            }
            strict.insert("enum".into(), values.into());
        }
        strict.insert("type".into(), types);
        Some(strict)
    }

    fn object(
        &mut self,
        node: &Map<String, Value>,
        strict: &mut Map<String, Value>,
        depth: usize,
    ) -> Option<()> {
        let others = node.get("additionalProperties").unwrap_or(&Value::Null);
        // An object of any fields, or where the rules close each, of fields of any name.
        let is_any = !node.contains_key("properties") && matches!(others, Value::Null | Value::Bool(true));
        if is_any || self.rules.is_closed && !matches!(others, Value::Null | Value::Bool(false)) {
            return None;
        }
        let none = Map::new();
        let properties = node.get("properties").map_or(Some(&none), Value::as_object)?;
        let empty = Vec::new();
        let required = node.get("required").map_or(Some(&empty), Value::as_array)?;
        let mut kept = Map::new();
        let mut names = required.clone();
        for (name, property) in properties {
            self.properties += 1;
            let of_it = property.as_object()?;
            if self.rules.is_all_required && !required.contains(&json!(name)) {
                // Null says as much as a field that is not there. Without null the model would have to make a value up.
                if !self.takes_null(of_it) {
                    return None;
                }
                names.push(json!(name));
            }
            kept.insert(name.clone(), self.node(of_it, depth + 1)?.into());
        }
        if names.iter().any(|name| !name.as_str().is_some_and(|name| properties.contains_key(name))) {
            return None;
        }
        if let Some(others) = others.as_object() {
            let others = self.node(others, depth + 1)?;
            strict.insert("additionalProperties".into(), others.into());
        } else if self.rules.is_closed || *others == Value::Bool(false) {
            strict.insert("additionalProperties".into(), false.into());
        }
        strict.insert("properties".into(), kept.into());
        strict.insert("required".into(), names.into());
        Some(())
    }

    fn takes_null(&self, node: &Map<String, Value>) -> bool {
        let any = |all: &Value| {
            let all = all.as_array().map_or(&[][..], Vec::as_slice);
            all.iter().any(|one| one.as_object().is_some_and(|one| self.takes_null(one)))
        };
        let listed = |word| node.get(word).and_then(Value::as_array);
        node.get("type").is_some_and(|types| {
            types == "null" || listed("type").is_some_and(|all| all.contains(&json!("null")))
        }) || ["anyOf", "oneOf"].into_iter().any(|word| node.get(word).is_some_and(any))
    }

    /// Whether a definition contains itself, at any depth, or the whole schema.
    fn recurs(&self) -> bool {
        let defs: Vec<(&String, &Value)> = self.defs.into_iter().flatten().collect();
        defs.iter().any(|(name, _)| {
            let mut reached = BTreeSet::from([name.as_str()]);
            let mut open = vec![name.as_str()];
            while let Some(at) = open.pop() {
                let Some(def) = self.defs.and_then(|defs| defs.get(at)) else { continue };
                let mut found = Vec::new();
                references(def, &mut found);
                if found.iter().any(|to| *to == "#" || def_name(to) == Some(name.as_str())) {
                    return true;
                }
                open.extend(found.iter().filter_map(|to| def_name(to)).filter(|to| reached.insert(to)));
            }
            false
        })
    }
}

/// Whether a word says nothing of the shape.
fn is_beside(word: &str) -> bool {
    NOTES.contains(&word) || BOUNDS.contains(&word) || word == "format"
}

/// The description, with the bounds that stand nowhere else.
fn described(node: &Map<String, Value>) -> Option<String> {
    let bounds = BOUNDS.iter().filter_map(|word| Some((*word, node.get(*word)?)));
    let format = node.get("format").filter(|name| name.as_str().is_some_and(|name| FORMATS.contains(&name)));
    let bounds = bounds.chain(format.map(|name| ("format", name)));
    let bounds: Vec<String> = bounds.map(|(word, value)| format!("{word}: {value}")).collect();
    let text = node.get("description").and_then(Value::as_str).unwrap_or_default();
    match (text, bounds.is_empty()) {
        ("", true) => None,
        (text, true) => Some(text.to_owned()),
        (text, false) => Some(format!("{text} ({})", bounds.join(", ")).trim_start().to_owned()),
    }
}

/// The one type of these values.
fn type_of(values: &[Value]) -> Option<&'static str> {
    let of = |value: &Value| match value {
        Value::String(_) => Some("string"),
        Value::Bool(_) => Some("boolean"),
        Value::Number(number) if number.is_f64() => Some("number"),
        Value::Number(_) => Some("integer"),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    };
    let first = of(values.first()?)?;
    values.iter().all(|value| of(value) == Some(first)).then_some(first)
}

fn def_name(reference: &str) -> Option<&str> {
    ["#/$defs/", "#/definitions/"].into_iter().find_map(|start| reference.strip_prefix(start))
}

fn references<'s>(node: &'s Value, found: &mut Vec<&'s str>) {
    match node {
        Value::Object(fields) => {
            found.extend(fields.get("$ref").and_then(Value::as_str));
            fields.values().for_each(|field| references(field, found));
        }
        Value::Array(all) => all.iter().for_each(|one| references(one, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests;
