//! The attribute macro of [Safepoint](https://docs.rs/safepoint), which exports it as `safepoint::tool`.

use proc_macro::TokenStream;

mod arguments;
mod attribute;
mod docs;
mod expand;

/// Makes an `async fn` a tool: `.tool(weather)` gives it to an agent.
///
/// The tool has the function's name. What the model reads about it is the doc comment up to its first heading, and about an
/// argument the doc comment of that argument, or its line in a list under the heading `# Arguments`. The schema comes from
/// the types.
///
/// ```
/// use safepoint::tool;
///
/// /// Says the weather.
/// ///
/// /// # Arguments
/// /// * `city` - the name of the city
/// /// * `days` - how many days ahead, none for now
/// #[tool(effect = "read_only")]
/// async fn weather(city: String, days: Option<u32>) -> String {
///     format!("sunny in {city} in {} days", days.unwrap_or(0))
/// }
///
/// # fn agent(model: impl safepoint::Model) -> safepoint::Agent {
/// safepoint::Agent::builder(model).tool(weather).build()
/// # }
/// ```
///
/// # Parameters of the function
///
/// - An argument's type implements `Deserialize` and `JsonSchema`; `&str`, `&[T]` and `&T` work too. An `Option` may be
///   missing, and so may one with `#[default]` or `#[default(10)]`. Attributes of serde and schemars, such as
///   `#[schemars(range(min = 1))]`, are kept.
/// - A `ToolContext` or `&ToolContext`, anywhere, is the call's context, and no argument.
/// - `#[context] db: &Db` is a value of the run's context, given with `Run::with` or `AgentBuilder::with`, and no argument.
///
/// It returns what `IntoOutput` says, or a `Result` of that with any error. Use `safepoint::ToolResult` where the function
/// passes a stop on with `?`: no error type takes one.
///
/// # Keys of the attribute
///
/// | key | value | default |
/// |---|---|---|
/// | `effect` | `"read_only"`, `"idempotent"`, `"keyed"`, `"unsafe"` | `"unsafe"` |
/// | `on_stop` | `"drop"`, `"cooperate"`, `"finish"`, `"detach"`; `"cooperate 10s"` and `"finish 30s"` with a time | `"drop"` |
/// | `timeout` | such as `"30s"`, in `ms`, `s`, `m` or `h` | the run's |
/// | `overlap` | `"by_effect"`, `"parallel"`, `"exclusive"` | `"by_effect"` |
/// | `approval` | `"required"`, `"not_needed"` | `"not_needed"` |
/// | `on_failure` | `"tell_model"`, `"end_run"` | `"tell_model"` |
/// | `output_bytes` | a number | the run's |
/// | `name` | another name for the model | the function's |
/// | `description` | another description for the model | the doc comment |
/// | `crate` | where the engine is, as in `"my::safepoint"` | `"::safepoint"` |
///
/// **Without `approval` the calls of a tool run without a question**, whatever its effect is: `effect` decides what overlaps
/// and what may be repeated, not who is asked. A rule of the agent may ask as well.
///
/// The function becomes one that makes the tool. Keep what you also want to call yourself in a function apart.
#[proc_macro_attribute]
pub fn tool(attribute: TokenStream, item: TokenStream) -> TokenStream {
    expand::tool(attribute.into(), item.into()).unwrap_or_else(|error| error.to_compile_error()).into()
}
