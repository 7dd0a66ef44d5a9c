//! Arguments are checked against the JSON Schema of their tool.

use serde_json::Value;

use crate::{contract::tool::ToolSpec, value::schema::Schema};

/// What arguments must fit.
#[derive(Clone)]
pub(crate) struct Fits(Schema);

impl Fits {
    /// # Errors
    /// The schema is none by which values can be checked.
    pub(crate) fn of(spec: &ToolSpec) -> Result<Self, String> {
        Schema::new(&spec.parameters)
            .map(Self)
            .map_err(|error| format!("the schema of tool `{}` cannot be used: {error}", spec.name))
    }

    /// # Errors
    /// Where and why the value does not fit.
    pub(crate) fn check(&self, value: &Value) -> Result<(), String> {
        self.0.check(value).map_err(|misfit| misfit.to_string())
    }
}
