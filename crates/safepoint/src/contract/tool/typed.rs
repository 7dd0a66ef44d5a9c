//! Tools whose arguments are a type of their own, and what counts as a tool where an agent takes one.

use std::{future::Future, sync::Arc};

use serde_json::Value;

use super::{
    FnTool, IntoOutput, Json, Tool, ToolArgs, ToolContext, ToolResult, ToolSpec,
    args::{parse, spec_of},
};

/// A tool with a type for its arguments: its state is in its fields, and its schema comes from the type. Given to
/// [`AgentBuilder::tool`](crate::AgentBuilder::tool) like every other.
///
/// An async function is a tool by [`#[safepoint::tool]`](macro@crate::tool), and a closure by [`from_fn`](super::from_fn). A
/// tool whose schema is known only at run time implements [`Tool`].
///
/// ```
/// use safepoint::{ToolContext, ToolResult, tool::{EffectClass, ToolSpec, TypedTool}};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Lookup { name: String }
///
/// struct PhoneBook { entries: Vec<(String, String)> }
///
/// impl TypedTool for PhoneBook {
///     const NAME: &'static str = "phone_book";
///     const DESCRIPTION: &'static str = "Finds the number of a person";
///     type Args = Lookup;
///     type Output = String;
///
///     fn declare(&self, spec: ToolSpec) -> ToolSpec {
///         spec.effect(EffectClass::ReadOnly)
///     }
///
///     async fn call(&self, _cx: ToolContext, args: Lookup) -> ToolResult<String> {
///         let found = self.entries.iter().find(|(name, _)| *name == args.name);
///         Ok(found.map(|(_, number)| number.clone()).ok_or("there is no such person")?)
///     }
/// }
/// # let _tool = safepoint::tool::Tools::new().tool(PhoneBook { entries: Vec::new() });
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tool",
    label = "not a tool",
    note = "implement `TypedTool` for it, mark an `async fn` with `#[safepoint::tool]`, or use `tool::from_fn`"
)]
pub trait TypedTool: Send + Sync + 'static {
    /// Its arguments.
    type Args: ToolArgs;
    /// What it returns.
    type Output: IntoOutput;
    /// The name that the model uses.
    const NAME: &'static str;
    /// What it does, for the model.
    const DESCRIPTION: &'static str;

    /// Completes its declaration: its effect, its contract for a stop, its time limit. Default: the careful ones of
    /// [`ToolSpec`].
    fn declare(&self, spec: ToolSpec) -> ToolSpec {
        spec
    }

    /// Runs the call.
    ///
    /// # Errors
    /// A [`Halt`](crate::Halt): `?` takes every error and the stop into it.
    ///
    /// # Cancel safety
    /// As [`Tool::call`].
    fn call(
        &self,
        cx: ToolContext,
        args: Self::Args,
    ) -> impl Future<Output = ToolResult<Self::Output>> + Send;
}

/// What an agent takes as a tool: a [`Tool`], a [`TypedTool`], or a function without arguments that makes one of the latter,
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

/// Its arguments are read.
impl<T: TypedTool> IntoTool<Json<T::Args>> for T {
    fn into_tool(self) -> Arc<dyn Tool> {
        let spec = self.declare(spec_of::<T::Args>(T::NAME, T::DESCRIPTION));
        let tool = Arc::new(self);
        FnTool::shared(spec, move |cx, args| {
            let tool = Arc::clone(&tool);
            Box::pin(async move { tool.call(cx, parse(args)?).await?.into_output() })
        })
    }
}

/// What [`#[safepoint::tool]`](macro@crate::tool) makes of a function.
impl<T: TypedTool, F: FnOnce() -> T> IntoTool<fn() -> T> for F {
    fn into_tool(self) -> Arc<dyn Tool> {
        self().into_tool()
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
