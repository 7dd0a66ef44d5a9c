//! The document of the API (OpenAPI 3.1), made of the table of the routes and of the types that they take and answer.

use axum::http::Method;
use schemars::{SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value, json};

use crate::routes::table::{Needs, Route, own};

/// The document, as `GET /v1/openapi.json` answers it.
#[must_use]
pub fn document() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut schemas = settings.into_generator();
    let mut paths = Map::new();
    for route in own() {
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method.as_str().to_ascii_lowercase()] = operation(&route, &mut schemas);
    }
    let mut defined = schemas.take_definitions(true);
    defined.insert("Problem".into(), problem());
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Safepoint", "version": env!("CARGO_PKG_VERSION"),
            "description": "Sessions of agents: items, stops, approvals, and events as a stream.",
        },
        "paths": paths,
        "components": {
            "schemas": defined,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    })
}

fn operation(route: &Route, schemas: &mut SchemaGenerator) -> Value {
    let names = route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let named =
        names.map(|name| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}}));
    let asked = route.query.iter().map(|(name, what)| {
        json!({"name": name, "in": "query", "description": what, "schema": {"type": "string"}})
    });
    let key = (route.method == Method::POST && route.path.ends_with("s")).then(|| {
        let what = "the same key and content is the same item or session";
        json!({"name": "Idempotency-Key", "in": "header", "description": what, "schema": {"type": "string"}})
    });
    let parameters: Vec<Value> = named.chain(asked).chain(key).collect();
    let mut responses = Map::new();
    for status in route.statuses {
        responses.insert(status.to_string(), answered(route, schemas));
    }
    let refused = json!({
        "description": "Refused; `code` says why",
        "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
    });
    responses.insert("default".into(), refused);
    let mut operation = json!({"summary": route.does, "parameters": parameters, "responses": responses});
    if let Needs::Scope(scope) = route.needs {
        operation["security"] = json!([{"token": [scope]}]);
    }
    if let Some(body) = route.body {
        operation["requestBody"] = json!({"content": {"application/json": {"schema": body(schemas)}}});
    }
    operation
}

fn answered(route: &Route, schemas: &mut SchemaGenerator) -> Value {
    let content = match route.answer {
        Some(answer) => json!({"application/json": {"schema": answer(schemas)}}),
        None if route.path.ends_with("/events") => {
            json!({"text/event-stream": {"schema": {"type": "string"}}})
        }
        None if route.path == "/metrics" => json!({"text/plain": {"schema": {"type": "string"}}}),
        None => json!({"application/json": {}}),
    };
    json!({"description": "Done", "content": content})
}

fn problem() -> Value {
    json!({
        "type": "object",
        "required": ["type", "status", "code", "detail"],
        "properties": {
            "type": {"type": "string"}, "status": {"type": "integer"},
            "code": {"type": "string"}, "detail": {"type": "string"},
        },
    })
}
