//! The schema of an answer, how the answer is read, and what a model gets if it does not match.
//!
//! **Invariants**: a text reads the same in the engine and for the caller, so a run that is done has its
//! value.

use std::{fmt, sync::Arc};

use futures_core::future::BoxFuture;
use safepoint_scope::Failure;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::{
    contract::{
        model::{AnswerFormat, ToolChoice},
        tool::{Tool, ToolContext, ToolResult, ToolSpec},
    },
    definition::fits::Fits,
    value::{
        event::ErrorReport,
        message::{AssistantMessage, CallResult, ResultStatus},
    },
};

/// The code of a run that gave no matching answer.
pub(crate) const CODE: &str = "answer";

/// How often a model may correct an answer that does not match, unless set otherwise.
#[cfg(feature = "schema")]
pub const REPAIRS: u32 = 2;

const NAME: &str = "final_answer";
const DESCRIPTION: &str =
    "Gives your final answer and ends the task. Call it once, when everything else is done.";

/// The one field of an answer that is no object: tools take only objects.
const FIELD: &str = "answer";

type Check = dyn Fn(&Value) -> Result<(), String> + Send + Sync;

/// The form of an answer.
#[derive(Clone)]
pub(crate) struct AnswerSchema {
    spec: ToolSpec,
    format: AnswerFormat,
    fits: Fits,
    check: Arc<Check>,
    /// Whether the arguments hold the answer in their one field, and are not the answer itself.
    is_held: bool,
    repairs: u32,
}

impl fmt::Debug for AnswerSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnswerSchema").field("spec", &self.spec).finish_non_exhaustive()
    }
}

#[cfg(feature = "schema")]
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct Held<T> {
    answer: T,
}

impl AnswerSchema {
    /// The form of a `T`, under a name that is not taken.
    #[cfg(feature = "schema")]
    pub(crate) fn of<T: JsonSchema + DeserializeOwned + 'static>(is_taken: impl Fn(&str) -> bool) -> Self {
        let mut name = NAME.to_owned();
        while is_taken(&name) {
            name.push('_');
        }
        let spec = ToolSpec::new(name, DESCRIPTION).effect(crate::value::effect::EffectClass::ReadOnly);
        let plain = spec.clone().arguments::<T>();
        let is_held = !is_plain_object(&plain.parameters);
        let spec = if is_held { spec.arguments::<Held<T>>() } else { plain };
        let fits = Fits::of(&spec).expect("a schema that was derived from a type is a JSON Schema");
        let format = AnswerFormat { tool: spec.name.clone(), schema: Arc::new(spec.parameters.clone()) };
        let check = |value: &Value| T::deserialize(value).map(drop).map_err(|error| error.to_string());
        Self { spec, format, fits, check: Arc::new(check), is_held, repairs: REPAIRS }
    }

    pub(crate) fn with_repairs(&self, repairs: u32) -> Self {
        Self { repairs, ..self.clone() }
    }

    pub(crate) fn fits(&self) -> Fits {
        self.fits.clone()
    }

    pub(crate) fn name(&self) -> &str {
        &self.spec.name
    }

    /// What a model is asked for.
    pub(crate) fn format(&self) -> AnswerFormat {
        self.format.clone()
    }

    /// What the model must call: this tool alone, or any of its tools.
    pub(crate) fn choice(&self, others: usize) -> ToolChoice {
        if others == 0 { ToolChoice::Tool(self.spec.name.clone()) } else { ToolChoice::Required }
    }

    /// The value in what a model wrote, as JSON alone or in a fence.
    fn value(&self, text: &str) -> Result<Value, String> {
        let value: Value =
            serde_json::from_str(unfenced(text)).map_err(|error| format!("it is not JSON ({error})"))?;
        let bare = if self.is_held { value.get(FIELD).unwrap_or(&value) } else { &value };
        let whole = if self.is_held { json!({ FIELD: bare }) } else { bare.clone() };
        self.fits.check(&whole)?;
        (self.check)(bare)?;
        Ok(bare.clone())
    }

    /// The answer itself in a value as a model writes it; none while only what it is held in has arrived.
    pub(crate) fn bare(&self, value: Value) -> Option<Value> {
        match value {
            Value::Object(mut fields) if self.is_held => fields.remove(FIELD),
            value => Some(value),
        }
    }

    /// # Errors
    /// What does not fit.
    pub(crate) fn read<T: DeserializeOwned>(&self, text: &str) -> Result<T, String> {
        T::deserialize(self.value(text)?).map_err(|error| error.to_string())
    }

    /// Whether it is taken as an answer.
    pub(crate) fn takes(&self, text: &str) -> bool {
        self.value(text).is_ok()
    }

    /// The answer in a message: the arguments of its answering call, or its text if it calls nothing.
    pub(crate) fn found(&self, message: &AssistantMessage) -> Option<String> {
        let mut calls = message.calls().filter(|call| call.name == self.name());
        calls.find(|call| self.takes(&call.args)).map(|call| call.args.clone()).or_else(|| {
            let text = message.text();
            let is_it = message.calls().next().is_none() && self.takes(&text);
            is_it.then(|| text.into_owned())
        })
    }

    /// Whether one of these results took the answer.
    pub(crate) fn is_taken(&self, results: &[CallResult]) -> bool {
        results.iter().any(|result| result.name == self.name() && result.verdict == ResultStatus::Ok)
    }

    /// The text for the model about a text that is no answer.
    pub(crate) fn correction(&self, text: &str) -> String {
        let why = self.value(text).err().unwrap_or_default();
        let name = self.name();
        format!(
            "[your answer was not taken: {why}. Give it by calling the tool `{name}`, or as JSON alone where you have no such tool.]"
        )
    }

    /// The failure after this many answers that did not match; `None` while more are allowed.
    pub(crate) fn refusal(&self, missed: u32) -> Option<ErrorReport> {
        const HINT: &str =
            "the history holds what it said: describe the fields of the type, or allow more repairs";
        let message = || format!("the model gave no answer that fits, in {missed} tries");
        (missed > self.repairs).then(|| ErrorReport::new(CODE, message(), Some(HINT)))
    }
}

/// The tool with which the model answers; what a schema cannot express, parsing the type checks.
impl Tool for AnswerSchema {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call(&self, _cx: ToolContext, args: Value) -> BoxFuture<'static, ToolResult> {
        let checked = self.value(&args.to_string());
        Box::pin(async move {
            let why = |misfit| format!("the answer does not fit: {misfit}. Correct it and call again.");
            checked.map_err(|misfit: String| Failure::new(why(misfit)).without_effect())?;
            Ok("[the answer is taken]".into())
        })
    }
}

/// Whether a schema is that of arguments as every provider takes them.
fn is_plain_object(schema: &Value) -> bool {
    const CHOICES: [&str; 4] = ["oneOf", "anyOf", "allOf", "$ref"];
    schema["type"] == "object" && CHOICES.iter().all(|word| schema.get(*word).is_none())
}

/// The inside of a fenced block, if the text is one.
fn unfenced(text: &str) -> &str {
    let text = text.trim();
    let inside = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    inside.map_or(text, |inside| inside.strip_prefix("json").unwrap_or(inside).trim())
}
