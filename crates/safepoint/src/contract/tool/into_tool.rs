//! What counts as a tool where an agent takes one.

use std::sync::Arc;

use serde_json::Value;

use super::Tool;

/// What an agent takes as a tool: a [`Tool`], a `TypedTool`, or a function without arguments that makes one of the latter,
/// as [`#[safepoint::tool]`](macro@crate::tool) makes it. `Kind` keeps the three apart and is inferred.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tool",
    label = "not a tool",
    note = "mark an `async fn` with `#[safepoint::tool]` and give its name: `.tool(weather)`",
    note = "or use `tool::from_fn`, or implement `TypedTool` or `Tool` for a type of your own"
)]
pub trait IntoTool<Kind> {
    /// Makes it a tool.
    fn into_tool(self) -> Arc<dyn Tool>;
}

/// Its arguments stay a value.
impl<T: Tool> IntoTool<Value> for T {
    fn into_tool(self) -> Arc<dyn Tool> {
        Arc::new(self)
    }
}

/// Several tools together, to be given to [`AgentBuilder::tools`](crate::AgentBuilder::tools).
///
/// ```
/// use safepoint::tool::{self, Tools};
/// let clock = tool::from_fn("clock", "Says the time", |_cx, (): ()| async { Ok("noon") });
/// let place = tool::from_fn("place", "Says where we are", |_cx, (): ()| async { Ok("Lisbon") });
/// assert_eq!(Tools::new().tool(clock).tool(place).into_iter().count(), 2);
/// ```
#[derive(Clone, Default)]
#[must_use = "give them to `AgentBuilder::tools`"]
pub struct Tools(Vec<Arc<dyn Tool>>);

impl Tools {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tool.
    pub fn tool<Kind>(mut self, tool: impl IntoTool<Kind>) -> Self {
        self.0.push(tool.into_tool());
        self
    }
}

impl IntoIterator for Tools {
    type Item = Arc<dyn Tool>;
    type IntoIter = std::vec::IntoIter<Arc<dyn Tool>>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl FromIterator<Arc<dyn Tool>> for Tools {
    fn from_iter<I: IntoIterator<Item = Arc<dyn Tool>>>(tools: I) -> Self {
        Self(tools.into_iter().collect())
    }
}

impl Extend<Arc<dyn Tool>> for Tools {
    fn extend<I: IntoIterator<Item = Arc<dyn Tool>>>(&mut self, tools: I) {
        self.0.extend(tools);
    }
}

impl std::fmt::Debug for Tools {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.iter().map(|tool| &tool.spec().name)).finish()
    }
}
