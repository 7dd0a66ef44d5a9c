//! What a tool's arguments are: a type that is read from what the model wrote, with a JSON Schema.

use safepoint_scope::{Failure, Halt};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

#[cfg(feature = "schema")]
use super::ToolSpec;

/// The arguments of a tool. Every type that derives both `serde::Deserialize` and `schemars::JsonSchema` is that; `()` is
/// no arguments. The doc comments of its fields are what the model reads about them. It needs the feature `schema`.
///
/// ```
/// use safepoint::tool;
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Search {
///     /// What to look for.
///     query: String,
///     /// How many results at most.
///     limit: Option<u32>,
/// }
///
/// let search = tool::from_fn("search", "Searches the notes", |_cx, search: Search| async move {
///     Ok(format!("nothing about {}, of {:?} at most", search.query, search.limit))
/// });
/// ```
#[cfg(feature = "schema")]
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the arguments of a tool",
    label = "not readable as the arguments of a tool",
    note = "derive both for it: `#[derive(serde::Deserialize, schemars::JsonSchema)]`, with no lifetime in it",
    note = "each call of a tool reads its own arguments: `()` is none"
)]
pub trait ToolArgs: DeserializeOwned + JsonSchema + Send + 'static {}

#[cfg(feature = "schema")]
#[diagnostic::do_not_recommend]
impl<A: DeserializeOwned + JsonSchema + Send + 'static> ToolArgs for A {}

/// A declaration with the schema of the arguments.
#[cfg(feature = "schema")]
pub(super) fn spec_of<A: ToolArgs>(name: impl Into<String>, description: impl Into<String>) -> ToolSpec {
    let spec = ToolSpec::new(name, description);
    // The schema of `()` is `null`; a tool without arguments is still called with an object.
    let is_unit = A::schema_name() == <() as JsonSchema>::schema_name();
    if is_unit { spec } else { spec.arguments::<A>() }
}

/// Reads the arguments.
///
/// # Errors
/// What does not fit the type: nothing was done.
pub(super) fn parse<A: DeserializeOwned>(args: Value) -> Result<A, Halt> {
    // `()` reads only `null`.
    let is_empty = args.as_object().is_some_and(serde_json::Map::is_empty);
    if is_empty && let Ok(unit) = serde_json::from_value(Value::Null) {
        return Ok(unit);
    }
    serde_json::from_value(args)
        .map_err(|error| Failure::new(format!("the arguments do not fit: {error}")).without_effect().into())
}
