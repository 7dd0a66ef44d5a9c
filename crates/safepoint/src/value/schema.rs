//! A JSON Schema, compiled once: which values fit it, and where and why another does not.
//!
//! **Invariants**: nothing is fetched and no file is read for a schema, whatever it refers to.

use std::{fmt, sync::Arc};

use boon::{CompileError, Compiler, ErrorKind, SchemaIndex, Schemas, SchemeUrlLoader, ValidationError};
use serde_json::Value;

/// The address under which a schema is compiled. It names no document: relative references stay inside the schema.
const HOME: &str = "schema:///arguments";

/// How many choices of a schema a misfit explains.
const CHOICES: usize = 3;

/// A compiled JSON Schema: draft 2020-12, or the older draft that it names in `$schema`.
///
/// `format` is a note and not a check, as the specification has it. A `pattern` is one without look-around and
/// back-references: matching it takes linear time, whatever a model sends.
#[derive(Clone)]
pub struct Schema {
    compiled: Arc<(Schemas, SchemaIndex)>,
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schema").finish_non_exhaustive()
    }
}

/// Why a document is not a schema that values can be checked by.
#[derive(Debug, thiserror::Error)]
#[error("it is not a JSON Schema that can be checked: {why}")]
pub struct InvalidSchema {
    why: String,
    pattern: Option<String>,
}

impl InvalidSchema {
    fn because(why: String) -> Self {
        Self { why, pattern: None }
    }

    /// Where the pattern stands that is the only thing wrong so far, as a JSON pointer.
    #[must_use]
    pub fn unsupported_pattern(&self) -> Option<&str> {
        self.pattern.as_deref()
    }
}

/// Where a value does not match, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfit {
    /// A JSON pointer to the part that does not fit; empty for the whole value.
    pub place: String,
    /// What is expected there.
    pub what: String,
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place.as_str() {
            "" => write!(f, "{}", self.what),
            place => write!(f, "at {place}: {}", self.what),
        }
    }
}

impl Schema {
    /// # Errors
    /// If the document is not a JSON Schema, refers to another document, or has a pattern with look-around or a
    /// back-reference.
    pub fn new(document: &Value) -> Result<Self, InvalidSchema> {
        let mut compiler = Compiler::new();
        compiler.use_loader(Box::new(SchemeUrlLoader::new()));
        let mut schemas = Schemas::new();
        compiler.add_resource(HOME, document.clone()).map_err(|error| invalid(&error))?;
        let index = compiler.compile(HOME, &mut schemas).map_err(|error| invalid(&error))?;
        Ok(Self { compiled: Arc::new((schemas, index)) })
    }

    /// # Errors
    /// Where and why the value does not fit, the first that was found.
    pub fn check(&self, value: &Value) -> Result<(), Misfit> {
        let (schemas, index) = &*self.compiled;
        schemas.validate(value, *index).map_err(|error| first(&error))
    }
}

/// The first part that does not match: an error that only groups others says nothing itself.
fn first(error: &ValidationError<'_, '_>) -> Misfit {
    let leaf = leaf(error);
    Misfit { place: leaf.instance_location.to_string(), what: expected(leaf) }
}

fn leaf<'e, 's, 'v>(error: &'e ValidationError<'s, 'v>) -> &'e ValidationError<'s, 'v> {
    let groups = matches!(
        error.kind,
        ErrorKind::Group | ErrorKind::Schema { .. } | ErrorKind::Reference { .. } | ErrorKind::AllOf
    );
    match error.causes.first() {
        Some(cause) if groups => leaf(cause),
        _ => error,
    }
}

fn expected(error: &ValidationError<'_, '_>) -> String {
    if !matches!(error.kind, ErrorKind::AnyOf | ErrorKind::OneOf(None)) {
        return error.kind.to_string();
    }
    let choices: Vec<String> =
        error.causes.iter().take(CHOICES).map(|cause| first(cause).to_string()).collect();
    format!("it fits none of the choices ({})", choices.join("; "))
}

fn invalid(error: &CompileError) -> InvalidSchema {
    match error {
        CompileError::ValidationError { src, .. } => misdrawn(src),
        CompileError::UnsupportedUrlScheme { url } | CompileError::LoadUrlError { url, .. } => {
            InvalidSchema::because(format!(
                "it refers to another document, {}, and nothing is fetched for a schema",
                url.escape_debug()
            ))
        }
        other => InvalidSchema::because(other.to_string()),
    }
}

/// The error of the meta-schema for a document.
fn misdrawn(error: &ValidationError<'_, '_>) -> InvalidSchema {
    let leaf = leaf(error);
    let place = leaf.instance_location.to_string();
    match &leaf.kind {
        ErrorKind::Format { got, want: "regex", .. } => InvalidSchema {
            why: format!(
                "the pattern {got} at {place} is not a regular expression without look-around and back-references"
            ),
            pattern: place.ends_with("/pattern").then_some(place),
        },
        _ => InvalidSchema::because(first(error).to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn misfit(schema: Value, value: Value) -> String {
        Schema::new(&schema).unwrap().check(&value).unwrap_err().to_string()
    }

    /// S4.11: a misfit says where it is and what is expected there, through references and choices.
    #[test]
    fn a_misfit_says_where_and_what() {
        let pay =
            json!({"type": "object", "properties": {"euros": {"type": "integer"}}, "required": ["euros"]});
        assert_eq!(misfit(pay.clone(), json!({"euros": "ten"})), "at /euros: want integer, but got string");
        assert_eq!(misfit(pay, json!({})), "missing properties 'euros'");
        let held = json!({"$ref": "#/$defs/id", "$defs": {"id": {"type": "string", "maxLength": 2}}});
        assert!(misfit(held, json!("abc")).contains('2'));
        let choice = json!({"anyOf": [{"type": "string"}, {"type": "integer"}]});
        let problem = misfit(choice, json!(null));
        assert!(problem.contains("want string") && problem.contains("want integer"), "{problem}");
    }

    /// A schema is made by others too: nothing is read or fetched for it, and its patterns take linear time.
    #[test]
    fn a_schema_reaches_nothing_outside_itself() {
        for far in ["file:///etc/passwd", "https://example.com/schema.json", "other.json"] {
            let error = Schema::new(&json!({"$ref": far})).unwrap_err();
            assert!(error.to_string().contains("nothing is fetched"), "{error}");
        }
        let ahead = json!({"properties": {"name": {"type": "string", "pattern": "^(?=.*[0-9]).+$"}}});
        let error = Schema::new(&ahead).unwrap_err();
        assert_eq!(error.unsupported_pattern(), Some("/properties/name/pattern"), "{error}");
        let slow = json!({"type": "string", "pattern": "^(a+)+$"});
        assert!(Schema::new(&slow).unwrap().check(&json!("a".repeat(50_000) + "!")).is_err());
    }

    /// What is not a schema is refused with the place that is wrong.
    #[test]
    fn what_is_no_schema_is_refused() {
        let error = Schema::new(&json!({"type": "object", "properties": {"a": {"type": 7}}})).unwrap_err();
        assert!(error.to_string().contains("/properties/a/type"), "{error}");
        assert!(error.unsupported_pattern().is_none());
    }
}
