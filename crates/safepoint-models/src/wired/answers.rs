//! How a typed answer is asked for: by the wire's own schema, or by a tool.

use std::{borrow::Cow, sync::Arc};

use safepoint::model::{AnswerFormat, ModelSpec};
use serde_json::Value;

use super::{HttpModel, Wire};
use crate::config::{SHARED_FIELDS, ToolChoice};

/// How a model is asked for a typed answer ([`Agent::run_typed`](safepoint::Agent::run_typed)).
///
/// *By schema*: the request holds the JSON Schema of the answer in the wire's own field (`response_format` of chat completions,
/// `text.format` of Responses, `output_config.format` of messages, `responseJsonSchema` of Gemini), the provider holds the
/// model to it, and the answer is the model's text. *By tool*: the model answers by calling a tool whose arguments are the
/// answer, which works everywhere. Either way the engine checks the answer, and has the model correct it.
///
/// Providers take a part of JSON Schema: closed objects, with chat completions and Responses each property required, no maps,
/// no tuples, no values of any type, on messages and Gemini no type that contains itself. Fields that may be null are made
/// required, and bounds (such as `minimum`) move into the descriptions. A schema that cannot be said so is asked for by
/// the tool, whatever is set here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum TypedAnswers {
    /// By schema at the provider's own address, with models that are known to take one; else by tool.
    ///
    /// By tool also where the model's own settings speak against a schema: a choice that forces a tool, or an
    /// [extra](HttpModel::extra) field that sets another format. A run that has begun with the tool keeps it when it is
    /// resumed.
    #[default]
    Auto,
    /// By schema, also at another address and with a model of any name: for servers that are known to take one.
    Schema,
    /// By tool.
    Tool,
}

impl<W: Wire> HttpModel<W> {
    /// Sets how a typed answer is asked for. Default: [`TypedAnswers::Auto`].
    ///
    /// ```
    /// use safepoint_models::{TypedAnswers, openai};
    /// // A server that takes `response_format`.
    /// let model = openai::model("qwen3").base_url("http://127.0.0.1:8000/v1").typed_answers(TypedAnswers::Schema);
    /// ```
    pub fn typed_answers(mut self, how: TypedAnswers) -> Self {
        self.set.change().answers = how;
        self
    }

    /// What the wire writes of a spec: with the answer's schema and without its tool, or with the tool alone.
    pub(crate) fn asked<'s>(&self, spec: &'s ModelSpec) -> Cow<'s, ModelSpec> {
        let Some(answer) = &spec.answer else { return Cow::Borrowed(spec) };
        let schema = self.may_ask_by_schema(spec).then(|| W::strict(&answer.schema)).flatten();
        Cow::Owned(match schema {
            Some(schema) => {
                let tools = spec.tools.iter().filter(|tool| tool.name != answer.tool).cloned().collect();
                let answer = Some(AnswerFormat { tool: answer.tool.clone(), schema: Arc::new(schema) });
                ModelSpec { tools, choice: None, answer, ..spec.clone() }
            }
            None => ModelSpec { answer: None, ..spec.clone() },
        })
    }

    fn may_ask_by_schema(&self, spec: &ModelSpec) -> bool {
        let parameters = self.parameters_of(spec);
        let extra = parameters.extras().get(W::ANSWER_FIELD);
        let is_beside = |extra: &Value| {
            SHARED_FIELDS.contains(&W::ANSWER_FIELD) && extra.is_object() && extra.get("format").is_none()
        };
        let is_forced = matches!(self.set.choice, Some(ToolChoice::Required | ToolChoice::Tool(_)));
        let may = !is_forced && extra.is_none_or(is_beside);
        match self.set.answers {
            TypedAnswers::Tool => false,
            TypedAnswers::Schema => may,
            TypedAnswers::Auto => {
                let is_at_home = self.set.endpoint.base_url.trim_end_matches('/') == W::DEFAULT_BASE;
                may && is_at_home && W::takes_schemas(&self.set.wire_name, spec)
            }
        }
    }
}
