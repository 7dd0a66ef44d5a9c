//! Schemas that a provider's rules can say, and schemas that they cannot.

use super::*;

const ALL: StrictRules = StrictRules { is_closed: true, is_all_required: true, may_recur: true };
const SOME: StrictRules = StrictRules { is_closed: true, is_all_required: false, may_recur: false };
const OPEN: StrictRules = StrictRules { is_closed: false, is_all_required: false, may_recur: false };

fn object(properties: Value) -> Value {
    json!({"type": "object", "properties": properties})
}

/// S4.23: objects are closed, a field that may be null is required, and bounds stand in the description.
#[test]
fn what_a_provider_can_say_is_said_in_its_way() {
    let schema = json!({
        "type": "object", "title": "City", "required": ["name"],
        "properties": {
            "name": {"type": "string", "minLength": 1, "description": "Its name."},
            "people": {"type": ["integer", "null"], "format": "uint64", "minimum": 0},
            "kind": {"oneOf": [{"const": "old", "description": "was there"}, {"type": "string", "enum": ["new"]}]},
            "in": {"anyOf": [{"$ref": "#/definitions/Land", "description": "where"}, {"type": "null"}]},
        },
        "definitions": {"Land": {"type": "object", "properties": {}, "additionalProperties": false}},
    });
    let mut required = schema.clone();
    required["required"] = json!(["kind", "name"]);
    let strictly = strict(&required, &ALL).unwrap();
    assert_eq!(
        strictly,
        json!({
            "type": "object", "required": ["kind", "name", "in", "people"], "additionalProperties": false,
            "properties": {
                "name": {"type": "string", "description": "Its name. (minLength: 1)"},
                "people": {"type": ["integer", "null"], "description": "(minimum: 0)"},
                "kind": {"anyOf": [{"type": "string", "enum": ["old"], "description": "was there"},
                    {"type": "string", "enum": ["new"]}]},
                "in": {"anyOf": [{"$ref": "#/$defs/Land"}, {"type": "null"}]},
            },
            "$defs": {"Land": {"type": "object", "properties": {}, "required": [], "additionalProperties": false}},
        })
    );
    // Where not each property is required, those that were not stay so.
    assert_eq!(strict(&schema, &SOME).unwrap()["required"], json!(["name"]));
    assert_eq!(strict(&schema, &OPEN).unwrap().get("additionalProperties"), None);
}

/// S4.23: what the rules cannot say is not said by half: the answer tool takes such a schema.
#[test]
fn what_a_provider_cannot_say_is_left_to_the_tool() {
    let tree = json!({"type": "object", "required": ["t"], "properties": {"t": {"$ref": "#/$defs/T"}},
        "$defs": {"T": {"type": "object", "required": ["of"], "properties":
            {"of": {"type": "array", "items": {"$ref": "#/$defs/T"}}}}}});
    assert!(strict(&tree, &ALL).is_some());
    let map = object(json!({"m": {"type": "object", "additionalProperties": {"type": "string"}}}));
    let mut deep = json!({"type": "string"});
    for _ in 0..=MOST_DEPTH {
        deep = json!({"type": "array", "items": deep});
    }
    for (schema, rules) in [
        (tree, &SOME),
        (map, &SOME),
        (object(json!({"any": true})), &OPEN),
        (object(json!({"any": {"description": "whatever"}})), &OPEN),
        (object(json!({"pair": {"type": "array", "prefixItems": [{"type": "string"}]}})), &OPEN),
        (object(json!({"n": {"type": "integer", "default": 3}})), &ALL),
        (object(json!({"n": {"not": {"type": "string"}}})), &OPEN),
        (object(json!({"n": {"type": "object", "properties": {}, "oneOf": [{"type": "null"}]}})), &OPEN),
        (object(json!({"n": {"$ref": "https://example.com/n"}})), &OPEN),
        (object(json!({"n": {"enum": ["a", {"b": 1}]}})), &OPEN),
        (object(json!({"n": {"enum": ["a", 1]}})), &OPEN),
        (object(json!({"deep": deep})), &OPEN),
        (json!({"type": "object"}), &OPEN),
        (json!({"type": "string"}), &OPEN),
    ] {
        assert_eq!(strict(&schema, rules), None, "{schema}");
    }
}
