//! The tools that a provider runs itself, as each wire declares them, and an error before anything is sent for one that it
//! cannot declare.

use safepoint::model::{ModelError, ModelErrorKind, ModelSpec};
use serde_json::Value;

use super::{HttpModel, Wire};
use crate::config::Fields;

impl<W: Wire> HttpModel<W> {
    /// Whether the wire can declare each of a spec's provider tools, beside all else of it.
    ///
    /// # Errors
    /// Which it cannot, and why.
    pub(crate) fn fits(&self, spec: &ModelSpec) -> Result<(), ModelError> {
        let refused = |what: &str, why: &str| {
            let message = format!("the {} wire does not take {what}: {why}; nothing was sent", W::NAME);
            ModelError::new(ModelErrorKind::Refused, message)
                .with_hint("change or leave out the provider tool, or take a model on another wire")
        };
        for tool in spec.provider_tools.iter() {
            let what = format!("the provider tool {}", tool.name());
            W::provider_tool(tool).map_err(|why| refused(&what, why))?;
        }
        if spec.provider_tools.is_empty() {
            return Ok(());
        }
        W::may_combine(&self.set.wire_name, &self.asked(spec))
            .map_err(|why| refused("these tools together", why))
    }

    /// Declares a spec's provider tools behind its own.
    pub(crate) fn add_provider_tools(&self, fields: &mut Fields, spec: &ModelSpec) {
        // One that the wire cannot declare was refused before.
        let declared = spec.provider_tools.iter().filter_map(|tool| W::provider_tool(tool).ok());
        let declared: Vec<Value> = declared.collect();
        if !declared.is_empty() {
            fields.add_tools(declared);
        }
    }
}
