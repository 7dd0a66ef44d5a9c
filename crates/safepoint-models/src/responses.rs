//! OpenAI Responses, stateless: each request carries the whole history, and encrypted reasoning goes back with it.
//!
//! On a stop the response is dropped: an HTTP/1 connection closes, an HTTP/2 stream is reset, and the provider stops
//! generating. A response in the [background](Responses::background) does not end with its connection: a stop also
//! sends its cancel, and a connection that breaks is taken up again where it broke. No usage is named of a cut stream,
//! so the figures of a cut call are a floor, marked estimated.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use http::HeaderMap;
use safepoint::{
    History,
    model::{
        AnswerFormat, Conversation, DeltaStream, ModelSpec, Parameter, PromptCache, ProviderTool,
        ReasoningEffort,
    },
};
use serde_json::{Map, Value, json};

use crate::{
    config::{Auth, ConfigError, Fields, ToolChoice},
    conversation::HttpConversation,
    encoded_history::EncodedHistory,
    http::{exchange, outgoing},
    openai_schema, parts, strict_schema,
    wired::{HttpModel, Wire, sealed::Sealed},
};

mod encode;
mod handle;
mod own;
pub(crate) mod read;

use encode::ItemEncoder;
use handle::Handle;
use read::ResponsesReader;

/// A model that speaks OpenAI Responses.
///
/// ```
/// let model = safepoint_models::responses::model("gpt-5.2").reasoning_effort("low").background();
/// ```
pub type Responses = HttpModel<Stateless>;

/// The wire of OpenAI Responses, where each request carries the whole history.
#[derive(Clone, Debug, Default)]
pub struct Stateless {
    is_background: bool,
}

/// A model by name, without a key; add one with [`HttpModel::api_key`] where the server wants it.
pub fn model(name: impl Into<String>) -> Responses {
    HttpModel::new(name)
}

/// A model with the key of `OPENAI_API_KEY` and, where it is set, the base URL of `OPENAI_BASE_URL`.
///
/// # Errors
/// If neither is set: without a base URL a key is needed.
pub fn from_env(name: impl Into<String>) -> Result<Responses, ConfigError> {
    HttpModel::from_env(name)
}

impl Sealed for Stateless {}

impl Wire for Stateless {
    const NAME: &'static str = "responses";
    const DEFAULT_BASE: &'static str = "https://api.openai.com/v1";
    const KEY_VARIABLE: &'static str = "OPENAI_API_KEY";
    const BASE_VARIABLE: &'static str = "OPENAI_BASE_URL";

    fn defaults(&self) -> Map<String, Value> {
        let include = json!(["reasoning.encrypted_content"]);
        Map::from_iter([("store".to_owned(), json!(false)), ("include".to_owned(), include)])
    }

    fn say(&self, fields: &mut Map<String, Value>, parameter: &Parameter) -> Result<(), &'static str> {
        let (name, value) = match parameter {
            Parameter::MaxTokens(tokens) => ("max_output_tokens", json!(tokens)),
            Parameter::Temperature(temperature) => ("temperature", json!(temperature)),
            Parameter::TopP(share) => ("top_p", json!(share)),
            Parameter::ReasoningEffort(ReasoningEffort::Max) => return Err("its levels are none to xhigh"),
            Parameter::ReasoningEffort(effort) => {
                reasoning(fields)["effort"] = effort.as_str().into();
                return Ok(());
            }
            Parameter::ServiceTier(tier) => ("service_tier", json!(tier)),
            Parameter::PromptCache(PromptCache::Key(key)) => ("prompt_cache_key", json!(key)),
            // It does so by itself.
            Parameter::PromptCache(PromptCache::Prefix) => return Ok(()),
            Parameter::PromptCache(PromptCache::PrefixForAnHour) => {
                return Err("it has no setting for how long to cache");
            }
            _ => return Err("Responses has no such setting"),
        };
        fields.insert(name.to_owned(), value);
        Ok(())
    }

    fn tool_choice(fields: &mut Map<String, Value>, choice: &ToolChoice) {
        let choice = match choice {
            ToolChoice::Auto => json!("auto"),
            ToolChoice::None => json!("none"),
            ToolChoice::Required => json!("required"),
            ToolChoice::Tool(name) => json!({"type": "function", "name": name}),
        };
        fields.insert("tool_choice".into(), choice);
    }

    fn one_call(fields: &mut Map<String, Value>) {
        fields.insert("parallel_tool_calls".into(), false.into());
    }

    const ANSWER_FIELD: &'static str = "text";

    fn takes_schemas(model: &str, _spec: &ModelSpec) -> bool {
        openai_schema::takes_schemas(model)
    }

    fn strict(schema: &Value) -> Option<Value> {
        strict_schema::strict(schema, &openai_schema::STRICT)
    }

    fn ask_schema(fields: &mut Map<String, Value>, answer: &AnswerFormat) {
        let format =
            json!({"type": "json_schema", "name": answer.tool, "strict": true, "schema": *answer.schema});
        fields.entry(Self::ANSWER_FIELD).or_insert_with(|| json!({}))["format"] = format;
    }

    fn provider_tool(tool: &ProviderTool) -> Result<Value, &'static str> {
        match tool {
            ProviderTool::WebSearch(search) if search.max_uses.is_some() => {
                Err("it cannot limit the uses of a search")
            }
            ProviderTool::WebSearch(search) if !search.blocked_domains.is_empty() => {
                Err("its search can be limited to domains, but not leave some out")
            }
            ProviderTool::WebSearch(search) if search.allowed_domains.is_empty() => {
                Ok(json!({"type": "web_search"}))
            }
            ProviderTool::WebSearch(search) => {
                Ok(json!({"type": "web_search", "filters": {"allowed_domains": search.allowed_domains}}))
            }
            ProviderTool::CodeExecution => {
                Ok(json!({"type": "code_interpreter", "container": {"type": "auto"}}))
            }
            ProviderTool::FileSearch(search) => {
                let mut tool = json!({"type": "file_search", "vector_store_ids": search.stores});
                if let Some(most) = search.max_results {
                    tool["max_num_results"] = most.into();
                }
                Ok(tool)
            }
            _ => Err("it does not know it"),
        }
    }

    fn open(model: &Responses, spec: &ModelSpec) -> Box<dyn Conversation> {
        Box::new(model.conversation(spec))
    }
}

/// How the model thinks, in the wire's own object.
fn reasoning(fields: &mut Map<String, Value>) -> &mut Value {
    fields.entry("reasoning").or_insert_with(|| json!({}))
}

impl HttpModel<Stateless> {
    /// Sets how hard the model thinks, in the provider's words: `low`, `medium`, `high`.
    pub fn reasoning_effort(mut self, effort: impl Into<String>) -> Self {
        reasoning(&mut self.set.change().fields)["effort"] = Value::String(effort.into());
        self
    }
    /// Asks for a summary of the reasoning, in the provider's words: `auto`, `concise`, `detailed`.
    pub fn reasoning_summary(mut self, summary: impl Into<String>) -> Self {
        reasoning(&mut self.set.change().fields)["summary"] = Value::String(summary.into());
        self
    }
    /// Marks the stable prefix for the provider's prompt cache.
    pub fn prompt_cache_key(mut self, key: impl Into<String>) -> Self {
        self.set.change().fields.insert("prompt_cache_key".into(), key.into().into());
        self
    }
    /// Lets the provider run each response in the background: it outlives its connection, so a connection that breaks
    /// is taken up again at the next event, and a stop sends the response's cancel. The provider stores the response.
    pub fn background(mut self) -> Self {
        self.set.change().fields.insert("background".into(), true.into());
        self.set.change().fields.insert("store".into(), true.into());
        self.set.change().wire.is_background = true;
        self
    }

    fn prefix(&self, spec: &ModelSpec) -> Vec<u8> {
        let mut fields = self.settings(spec);
        fields.set("model", self.set.wire_name.as_str());
        fields.set("stream", true);
        if let Some(system) = &spec.system {
            fields.set("instructions", &**system);
        }
        fields.set_tools(spec, |tool| {
            json!({"type": "function", "name": tool.name, "description": tool.description,
                "parameters": tool.parameters, "strict": false})
        });
        self.add_provider_tools(&mut fields, spec);
        include_results(&mut fields, spec);
        self.opened(fields, "input")
    }

    fn conversation(&self, spec: &ModelSpec) -> ResponsesConversation {
        let http = HttpConversation {
            prepared: self
                .prepared(spec, |set| set.endpoint.prepare("responses", Auth::Bearer, HeaderMap::new())),
            output_bytes: spec.output_bytes,
            wire: (Stateless::NAME, parts::responses as parts::Write),
            encoder: EncodedHistory::new(
                self.set.prefix(spec, || self.prefix(&self.asked(spec))),
                ItemEncoder::default(),
            ),
            reader: ResponsesReader::default,
        };
        ResponsesConversation { http, is_background: self.set.wire.is_background, latest: Handle::default() }
    }
}

/// Asks for what the provider's tools give: without that their items hold only that they were used.
fn include_results(fields: &mut Fields, spec: &ModelSpec) {
    let Value::Array(include) = fields.entry("include") else { return };
    for tool in spec.provider_tools.iter() {
        match tool {
            ProviderTool::CodeExecution => include.push("code_interpreter_call.outputs".into()),
            ProviderTool::FileSearch(_) => include.push("file_search_call.results".into()),
            _ => {}
        }
    }
}

/// A conversation, and the response that is under way.
struct ResponsesConversation {
    http: HttpConversation<ItemEncoder, ResponsesReader>,
    is_background: bool,
    latest: Handle,
}

impl Conversation for ResponsesConversation {
    fn stream(&mut self, history: &History) -> DeltaStream {
        self.latest = Handle::new(self.is_background);
        exchange(self.http.request(history), ResponsesReader::new(self.latest.clone()))
    }

    /// A response in the background is called off at its own address.
    fn release(&mut self) -> Option<BoxFuture<'static, ()>> {
        let id = self.latest.take()?;
        let prepared = Arc::clone(self.http.prepared.as_ref().ok()?);
        Some(Box::pin(outgoing::tell(prepared, format!("/{id}/cancel"))))
    }

    fn never_blocks(&self) -> bool {
        true
    }
}

/// The encoded request body, for tests of the encoding.
#[doc(hidden)]
pub fn encoded(model: &Responses, spec: &ModelSpec, histories: &[&History]) -> Vec<Vec<u8>> {
    model.conversation(spec).http.encoded(histories)
}
