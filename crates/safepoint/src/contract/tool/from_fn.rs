//! Tools from closures: an async one, or a blocking one off the async threads.

#[cfg(feature = "schema")]
use std::future::Future;
use std::sync::Arc;

use futures_core::future::BoxFuture;
#[cfg(feature = "schema")]
use safepoint_scope::{Failure, TaskEnd};
use serde_json::Value;

#[cfg(feature = "schema")]
use super::{
    IntoOutput, OnStop, ToolArgs,
    args::{parse, spec_of},
};
use super::{Tool, ToolContext, ToolResult, ToolSpec};

pub(super) type Body = dyn Fn(ToolContext, Value) -> BoxFuture<'static, ToolResult> + Send + Sync;

/// A tool made of a closure; see [`from_fn`].
pub struct FnTool {
    spec: ToolSpec,
    body: Arc<Body>,
}

impl FnTool {
    /// A tool with this declaration and this body.
    pub(crate) fn shared(
        spec: ToolSpec,
        body: impl Fn(ToolContext, Value) -> BoxFuture<'static, ToolResult> + Send + Sync + 'static,
    ) -> Arc<dyn Tool> {
        Arc::new(Self { spec, body: Arc::new(body) })
    }

    pub(super) fn new(spec: ToolSpec, body: Arc<Body>) -> Self {
        Self { spec, body }
    }

    /// Changes the declaration.
    ///
    /// ```
    /// use safepoint::tool::{self, EffectClass};
    /// let clock = tool::from_fn("clock", "Says the time", |_cx, (): ()| async { Ok("noon") })
    ///     .with(|spec| spec.effect(EffectClass::ReadOnly));
    /// ```
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(ToolSpec) -> ToolSpec) -> Self {
        self.spec = change(self.spec);
        self
    }
}

impl std::fmt::Debug for FnTool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FnTool").field("spec", &self.spec).finish_non_exhaustive()
    }
}

impl Tool for FnTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }
    fn call(&self, cx: ToolContext, args: Value) -> BoxFuture<'static, ToolResult> {
        (self.body)(cx, args)
    }
}

/// A tool from an async closure. Its arguments' schema comes from `A`; use `()` for none. It needs the feature `schema`.
///
/// Its effect is *unsafe* and its contract *drop* until [`FnTool::with`] says otherwise.
///
/// ```
/// use std::time::Duration;
/// use safepoint::tool;
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Nap { seconds: u64 }
///
/// let nap = tool::from_fn("nap", "Sleeps for some seconds", |cx, nap: Nap| async move {
///     cx.run(tokio::time::sleep(Duration::from_secs(nap.seconds))).await?; // a stop leaves here, never as an error
///     Ok(format!("slept {} s", nap.seconds))
/// });
/// ```
#[cfg(feature = "schema")]
pub fn from_fn<A, F, Fut, T>(name: impl Into<String>, description: impl Into<String>, body: F) -> FnTool
where
    A: ToolArgs,
    F: Fn(ToolContext, A) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = ToolResult<T>> + Send + 'static,
    T: IntoOutput,
{
    let body = Arc::new(body);
    FnTool {
        spec: spec_of::<A>(name, description),
        body: Arc::new(move |cx, args| {
            let body = Arc::clone(&body);
            Box::pin(async move { body(cx, parse::<A>(args)?).await?.into_output() })
        }),
    }
}

/// Like [`from_fn`], with a state that all calls share: each gets it as an `Arc`, so nothing has to be cloned by hand. It
/// needs the feature `schema`.
///
/// ```
/// use safepoint::tool;
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Lookup { name: String }
///
/// struct PhoneBook { entries: Vec<(String, String)> }
///
/// let book = PhoneBook { entries: Vec::new() };
/// let find = tool::from_fn_with_state(book, "find", "Finds a number", |_cx, book, lookup: Lookup| async move {
///     let found = book.entries.iter().find(|(name, _)| *name == lookup.name);
///     Ok(found.map_or("there is no such person".to_owned(), |(_, number)| number.clone()))
/// });
/// ```
#[cfg(feature = "schema")]
pub fn from_fn_with_state<S, A, F, Fut, T>(
    state: S,
    name: impl Into<String>,
    description: impl Into<String>,
    body: F,
) -> FnTool
where
    S: Send + Sync + 'static,
    A: ToolArgs,
    F: Fn(ToolContext, Arc<S>, A) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = ToolResult<T>> + Send + 'static,
    T: IntoOutput,
{
    let state = Arc::new(state);
    from_fn(name, description, move |cx, args| body(cx, Arc::clone(&state), args))
}

/// A tool from a blocking closure: it runs on a thread where blocking is allowed, and should poll
/// [`ToolContext::is_stopping`]. Its contract is *detach*, the only honest one for code that may never look; a closure that
/// does poll can say `OnStop::Cooperate` (S4.8).
#[cfg(feature = "schema")]
pub fn from_blocking_fn<A, F, T>(name: impl Into<String>, description: impl Into<String>, body: F) -> FnTool
where
    A: ToolArgs,
    F: Fn(&ToolContext, A) -> ToolResult<T> + Send + Sync + 'static,
    T: IntoOutput,
{
    let body = Arc::new(body);
    FnTool {
        spec: ToolSpec { is_blocking: true, ..spec_of::<A>(name, description).on_stop(OnStop::Detach) },
        body: Arc::new(move |cx, args| {
            let body = Arc::clone(&body);
            Box::pin(async move {
                let args = parse::<A>(args)?;
                let label = cx.name().to_owned();
                let scope = cx.scope().clone();
                let task = scope.spawn_blocking(label, move || body(&cx, args)?.into_output());
                match task.await {
                    Ok(result) => result,
                    Err(TaskEnd::Panicked(message)) => {
                        Err(Failure::new(format!("the tool panicked: {message}")).into())
                    }
                    Err(TaskEnd::Dropped) => Err(Failure::new("the tool's thread was shut down").into()),
                }
            })
        }),
    }
}
