//! Tools from closures: an async one, or a blocking one off the async threads.

#[cfg(feature = "schema")]
use std::future::Future;
use std::sync::Arc;

use futures_core::future::BoxFuture;
use safepoint_scope::{Failure, Halt};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

#[cfg(feature = "schema")]
use super::Output;
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
    A: DeserializeOwned + JsonSchema + Send + 'static,
    F: Fn(ToolContext, A) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = ToolResult<T>> + Send + 'static,
    T: Into<Output>,
{
    let body = Arc::new(body);
    FnTool {
        spec: spec_of::<A>(name.into(), description.into()),
        body: Arc::new(move |cx, args| {
            let body = Arc::clone(&body);
            Box::pin(async move { body(cx, parse::<A>(args)?).await.map(Into::into) })
        }),
    }
}

/// A tool from a blocking closure: it runs on a thread where blocking is allowed, and should poll
/// [`ToolContext::is_stopping`]. Its contract is *detach*, the only honest one for code that may never look; a closure that
/// does poll can say `OnStop::Cooperate` (S4.8).
#[cfg(feature = "schema")]
pub fn from_blocking_fn<A, F, T>(name: impl Into<String>, description: impl Into<String>, body: F) -> FnTool
where
    A: DeserializeOwned + JsonSchema + Send + 'static,
    F: Fn(&ToolContext, A) -> ToolResult<T> + Send + Sync + 'static,
    T: Into<Output> + Send + 'static,
{
    let body = Arc::new(body);
    FnTool {
        spec: ToolSpec {
            is_blocking: true,
            ..spec_of::<A>(name.into(), description.into()).on_stop(super::OnStop::Detach)
        },
        body: Arc::new(move |cx, args| {
            let body = Arc::clone(&body);
            Box::pin(async move {
                let args = parse::<A>(args)?;
                let label = cx.name().to_owned();
                let scope = cx.scope().clone();
                let task = scope.spawn_blocking(label, move || body(&cx, args));
                match task.await {
                    Ok(result) => result.map(Into::into),
                    Err(safepoint_scope::TaskEnd::Panicked(message)) => {
                        Err(Failure::new(format!("the tool panicked: {message}")).into())
                    }
                    Err(safepoint_scope::TaskEnd::Dropped) => {
                        Err(Failure::new("the tool's thread was shut down").into())
                    }
                }
            })
        }),
    }
}

#[cfg(feature = "schema")]
fn spec_of<A: JsonSchema>(name: String, description: String) -> ToolSpec {
    let spec = ToolSpec::new(name, description);
    // The schema of `()` is `null`; a tool without arguments is still called with an object.
    let is_unit = A::schema_name() == <() as JsonSchema>::schema_name();
    if is_unit { spec } else { spec.arguments::<A>() }
}

pub(super) fn parse<A: DeserializeOwned>(args: Value) -> Result<A, Halt> {
    // `()` reads only `null`.
    let is_empty = args.as_object().is_some_and(serde_json::Map::is_empty);
    if is_empty && let Ok(unit) = serde_json::from_value(Value::Null) {
        return Ok(unit);
    }
    serde_json::from_value(args)
        .map_err(|error| Failure::new(format!("the arguments do not fit: {error}")).without_effect().into())
}
