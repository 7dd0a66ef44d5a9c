//! Tools from functions and types: what the model sees of them, what they may return, and how they fail.

use std::{
    error::Error,
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use safepoint::{
    Halt, Outcome, StopRequest, ToolContext, ToolResult,
    approval::ToolApproval,
    history::Message,
    message::{CallResult, Part, ResultStatus},
    model::ToolDecl,
    receipt::{CallStatus, Ending, SideEffect},
    tool::{
        self, Concurrency, EffectClass, IntoOutput, IntoTool, Json, OnStop, OnToolFailure, Output, ToolSpec,
        TypedTool,
    },
};
use serde_json::{Value, json};

use crate::world::{agent, ask, ask_with, call_started, say};

/// Says the weather.
///
/// In any city.
///
/// # Arguments
/// * `city` - the name of the city,
///   in English
/// * `cx` - never seen by a model
///
/// # Errors
/// None of these words are for the model.
#[expect(clippy::too_many_arguments, reason = "one of each kind")]
#[safepoint::tool(effect = "read_only", timeout = "30s", on_stop = "finish 500ms", output_bytes = 10)]
async fn weather(
    city: &str,
    cx: &ToolContext,
    /// How many days ahead.
    days: Option<u8>,
    #[default(3)] tries: u32,
    #[default("C")] unit: String,
    #[default] tags: &[String],
) -> String {
    format!("{city} {days:?} {tries} {unit} {tags:?} {}", cx.name())
}

/// Pays.
#[safepoint::tool(
    name = "pay-out",
    effect = "keyed",
    on_stop = "detach",
    overlap = "exclusive",
    approval = "required",
    on_failure = "end_run"
)]
pub(crate) async fn pay(#[schemars(range(min = 1))] r#type: u32, mut amount: f64) -> Result<Json<f64>, Halt> {
    amount += f64::from(r#type);
    Ok(Json(amount))
}

fn spec<Kind>(tool: impl IntoTool<Kind>) -> ToolSpec {
    tool.into_tool().spec().clone()
}

/// The results of the newest calls.
pub(crate) fn results(outcome: &Outcome) -> Vec<CallResult> {
    let newest = outcome.history().entries().iter().rev().find_map(|entry| match &**entry {
        Message::Results { results } => Some(results.clone()),
        Message::User(_) | Message::Assistant(_) => None,
    });
    newest.unwrap_or_default()
}

/// The results of calls of this tool with these arguments.
async fn answers<Kind>(tool: impl IntoTool<Kind>, args: &[Value]) -> Vec<CallResult> {
    let tool = tool.into_tool();
    let name = tool.spec().name.clone();
    let calls: Vec<(&str, Value)> = args.iter().map(|args| (&*name, args.clone())).collect();
    let outcome = agent([ask_with(&calls), say("ok")]).tool(tool).build().run("go").await;
    assert_eq!(outcome.ending(), Ending::Done, "{outcome:?}");
    results(&outcome)
}

/// S4.17: what a model sees of a function is its name, its doc comment up to the first heading, and its arguments.
#[test]
fn a_function_is_declared_by_its_source() {
    let spec = spec(weather);
    assert_eq!(
        spec.decl(),
        ToolDecl {
            name: "weather".into(),
            description: "Says the weather.\n\nIn any city.".into(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "city": {"type": "string", "description": "the name of the city, in English"},
                    "days": {
                        "type": ["integer", "null"], "format": "uint8", "minimum": 0, "maximum": 255,
                        "description": "How many days ahead."
                    },
                    "tries": {"type": "integer", "format": "uint32", "minimum": 0, "default": 3},
                    "unit": {"type": "string", "default": "C"},
                    "tags": {"type": "array", "items": {"type": "string"}, "default": []},
                },
                "required": ["city"],
            }),
        }
    );
    assert_eq!((spec.effect, spec.timeout), (EffectClass::ReadOnly, Some(Duration::from_secs(30))));
    assert_eq!(spec.on_stop, OnStop::Finish(Some(Duration::from_millis(500))));
    assert_eq!((spec.output_bytes, spec.overlap), (Some(10), Concurrency::ByEffect));
}

/// S4.17, S4.3, S4.4: the attribute says the rest, and what it does not say is the careful default.
#[test]
fn an_attribute_says_the_rest_of_a_declaration() {
    let said = spec(pay);
    assert_eq!(
        (said.name.as_str(), said.effect, said.on_stop),
        ("pay-out", EffectClass::Keyed, OnStop::Detach)
    );
    assert_eq!((said.overlap, said.approval), (Concurrency::Exclusive, ToolApproval::Required));
    assert_eq!(said.on_failure, OnToolFailure::EndRun);
    assert_eq!(said.parameters["properties"]["type"]["minimum"], 1);

    /// Does nothing.
    #[safepoint::tool]
    async fn nothing() {}
    let plain = spec(nothing());
    assert_eq!((plain.effect, plain.on_stop, plain.timeout), (EffectClass::Unsafe, OnStop::Drop, None));
    assert_eq!(plain.parameters, json!({"type": "object", "properties": {}}));
}

/// S4.17, S4.11: what is missing has its default, and what does not fit never reaches the function.
#[tokio::test]
async fn a_function_gets_its_arguments() {
    let shown = spec(weather).output_bytes(1000);
    let all = json!({"city": "Rome", "days": 2, "tries": 1, "unit": "F", "tags": ["a"]});
    let args = [json!({"city": "Lisbon"}), all, json!({"days": 300})];
    let tool = weather.into_tool();
    let tool = tool::from_fn("weather", "", move |cx, args: Value| {
        let tool = Arc::clone(&tool);
        async move { tool.call(cx, args).await }
    });
    let answers = answers(tool.with(|_| shown), &args).await;
    assert_eq!(*answers[0].text, r#"Lisbon None 3 C [] weather"#);
    assert_eq!(*answers[1].text, r#"Rome Some(2) 1 F ["a"] weather"#);
    assert_eq!(answers[2].verdict, ResultStatus::Error);
    assert!(answers[2].text.contains("do not fit"), "{}", answers[2].text);
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Find {
    name: String,
}

struct PhoneBook(Vec<(String, u32)>);

impl TypedTool for PhoneBook {
    const NAME: &'static str = "phone_book";
    const DESCRIPTION: &'static str = "Finds a number";
    type Args = Find;
    type Output = Option<u32>;

    fn declare(&self, spec: ToolSpec) -> ToolSpec {
        spec.effect(EffectClass::ReadOnly)
    }

    async fn call(&self, _cx: ToolContext, args: Find) -> ToolResult<Option<u32>> {
        Ok(self.0.iter().find(|(name, _)| *name == args.name).map(|(_, number)| *number))
    }
}

/// S4.17, S4.18: a type with state is a tool, and so is a closure with state; both are called with their arguments read.
#[tokio::test]
async fn a_type_and_a_closure_have_their_state() {
    let book = || PhoneBook(vec![("Ana".into(), 7)]);
    assert_eq!(spec(book()).effect, EffectClass::ReadOnly);
    let args = [json!({"name": "Ana"}), json!({"name": "Bo"})];
    let typed = answers(book(), &args).await;
    assert_eq!(typed.iter().map(|result| result.text.as_str()).collect::<Vec<_>>(), ["7", ""]);
    let find = tool::from_fn_with_state(book(), "find", "Finds", |_cx, book, find: Find| async move {
        Ok(book.0.iter().any(|(name, _)| *name == find.name))
    });
    let closed = answers(find, &args).await;
    assert_eq!(closed.iter().map(|result| result.text.as_str()).collect::<Vec<_>>(), ["true", "false"]);
}

/// S4.18: text, numbers, values, files and nothing are outputs; a value that is no JSON is a failure.
#[test]
fn what_a_tool_returns_becomes_its_output() {
    fn text(output: impl IntoOutput) -> String {
        output.into_output().unwrap().text
    }
    assert_eq!(
        [text("a"), text(String::from("b")), text(Box::<str>::from("c")), text(())],
        ["a", "b", "c", ""]
    );
    assert_eq!(
        [text(true), text('x'), text(-3_i64), text(0.5), text(Arc::<str>::from("d"))],
        ["true", "x", "-3", "0.5", "d"]
    );
    let value = json!({"degrees": 21});
    assert_eq!(Json(&value).into_output().unwrap(), Output::json(value.clone()));
    assert_eq!(value.clone().into_output().unwrap(), Output::json(value));
    let part = Part::image("image/png", &[1]).unwrap();
    assert_eq!(part.clone().into_output().unwrap(), Output::default().with(part));
    assert_eq!((text(Some(1)), text(None::<u8>)), ("1".into(), String::new()));
    let numbers = std::collections::HashMap::from([(vec![1_u8], 2_u8)]);
    let Err(Halt::Failed(failure)) = Json(numbers).into_output() else { panic!("no JSON has such a key") };
    assert!(failure.to_string().starts_with("the output cannot be written as JSON: "), "{failure}");
}

#[derive(Debug)]
struct NoRoute(std::num::ParseIntError);

impl fmt::Display for NoRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no route")
    }
}

impl Error for NoRoute {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0)
    }
}

/// S4.18: an error of any type fails the call with its text and that of what caused it.
#[tokio::test]
async fn any_error_fails_the_call_with_its_causes() {
    /// Fails in the way that is asked for.
    #[safepoint::tool]
    async fn fails(how: &str) -> Result<String, Box<dyn Error + Send + Sync>> {
        match how {
            "typed" => Err(NoRoute("x".parse::<u8>().unwrap_err()))?,
            "text" => Err("a text")?,
            _ => Ok("no".into()),
        }
    }
    let args = [json!({"how": "typed"}), json!({"how": "text"}), json!({"how": "not at all"})];
    let said = answers(fails, &args).await;
    assert_eq!(*said[0].text, "error: no route: invalid digit found in string");
    assert_eq!((said[1].text.as_str(), said[1].verdict), ("error: a text", ResultStatus::Error));
    assert_eq!((said[2].text.as_str(), said[2].verdict), ("no", ResultStatus::Ok));
}

/// S4.18, S2.14, S3.1: a stop that a function passes on with `?`, between errors of every type, stays a stop.
#[tokio::test(start_paused = true)]
async fn a_stop_stays_a_stop_between_errors() {
    let seen = Arc::new(Mutex::new(Vec::<String>::new()));
    /// Waits.
    #[safepoint::tool(on_stop = "cooperate")]
    async fn waits(cx: ToolContext, #[context] seen: &Arc<Mutex<Vec<String>>>) -> ToolResult<u8> {
        let number: u8 = "1".parse()?;
        let boxed: Result<(), Box<dyn Error + Send + Sync>> = Ok(());
        boxed?;
        let waited = cx.run(std::future::pending::<()>()).await;
        seen.lock().unwrap().push(format!("{}", waited.is_err()));
        waited?;
        Ok(number)
    }
    let handle = agent([ask(&["waits"])]).tool(waits).with(Arc::clone(&seen)).build().run("go").detach();
    call_started(&handle).await;
    tokio::task::yield_now().await;
    handle.stop(StopRequest::now());
    let outcome = handle.done().await;
    let call = &outcome.receipt().calls[0];
    assert_eq!((outcome.ending(), call.status), (Ending::Stopped, CallStatus::Stopped));
    assert_eq!(call.effect, SideEffect::Unknown);
    assert_eq!(*seen.lock().unwrap(), ["true"]);
}
