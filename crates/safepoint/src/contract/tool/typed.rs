//! Tools whose arguments are a type of their own.

use std::{future::Future, sync::Arc};

use super::{
    FnTool, IntoOutput, IntoTool, Json, Tool, ToolArgs, ToolContext, ToolResult, ToolSpec,
    args::{parse, spec_of},
};

/// A tool with a type for its arguments: its state is in its fields, and its schema comes from the type. Given to
/// [`AgentBuilder::tool`](crate::AgentBuilder::tool) like every other.
///
/// An async function is a tool by [`#[safepoint::tool]`](macro@crate::tool), and a closure by [`from_fn`](super::from_fn). A
/// tool whose schema is known only at run time implements [`Tool`]. It needs the feature `schema`.
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
