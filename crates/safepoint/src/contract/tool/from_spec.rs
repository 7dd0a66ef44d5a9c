//! A tool from its declaration and an async closure whose arguments are read as a type.

use std::{future::Future, sync::Arc};

use serde::de::DeserializeOwned;

use super::{FnTool, IntoOutput, ToolContext, ToolResult, ToolSpec, args::parse, from_fn::Body};

/// A tool from its declaration, whose JSON Schema is written by hand, and an async closure.
///
/// The arguments are read as an `A`, and what does not fit is a failed call that says so to the model. With the feature
/// `schema` they are checked against the schema too. Without it an agent takes only tools that are made so: the
/// arguments of others cannot be checked.
///
/// ```
/// use safepoint::tool::{self, EffectClass, ToolSpec};
///
/// #[derive(serde::Deserialize)]
/// struct Place { city: String }
///
/// let parameters = serde_json::json!({
///     "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"],
/// });
/// let spec = ToolSpec::new("weather", "Says the weather").parameters(parameters).effect(EffectClass::ReadOnly);
/// let weather = tool::from_spec(spec, |_cx, place: Place| async move { Ok(format!("sunny in {}", place.city)) });
/// ```
pub fn from_spec<A, F, Fut, T>(spec: ToolSpec, body: F) -> FnTool
where
    A: DeserializeOwned + Send + 'static,
    F: Fn(ToolContext, A) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = ToolResult<T>> + Send + 'static,
    T: IntoOutput,
{
    let body = Arc::new(body);
    let body: Arc<Body> = Arc::new(move |cx, args| {
        let body = Arc::clone(&body);
        Box::pin(async move { body(cx, parse::<A>(args)?).await?.into_output() })
    });
    FnTool::new(ToolSpec { is_typed: true, ..spec }, body)
}
