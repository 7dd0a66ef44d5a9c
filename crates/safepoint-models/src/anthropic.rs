//! Anthropic messages.
//!
//! On a stop the response is dropped: an HTTP/1 connection closes, an HTTP/2 stream is reset. Input tokens of a cut
//! call are exact (they are named at its start), output is what was named last or a floor.

use http::{HeaderName, HeaderValue};
use safepoint::{
    History,
    model::{AnswerFormat, Conversation, ModelSpec},
};
use serde_json::{Map, Value, json};

use crate::{
    config::{Auth, ConfigError, ToolChoice},
    conversation::HttpConversation,
    encoded_history::EncodedHistory,
    parts,
    strict_schema::{self, StrictRules},
    wired::{HttpModel, Wire, sealed::Sealed},
};

mod encode;
mod own;
pub(crate) mod read;

use encode::MessageEncoder;
use read::MessagesReader;

const VERSION: &str = "2023-06-01";
const DEFAULT_MAX_TOKENS: u64 = 8192;

/// A model that speaks Anthropic messages.
///
/// ```
/// let model = safepoint_models::anthropic::model("claude-sonnet-4-5").max_tokens(4096).cache();
/// ```
pub type Anthropic = HttpModel<Messages>;

/// The wire of Anthropic messages.
#[derive(Clone, Debug, Default)]
pub struct Messages {
    /// Whether the stable prefix is marked for the provider's cache.
    is_cached: bool,
}

/// A model by name, without a key; add one with [`HttpModel::api_key`] where the server wants it.
pub fn model(name: impl Into<String>) -> Anthropic {
    HttpModel::new(name)
}

/// A model with the key of `ANTHROPIC_API_KEY` and, where it is set, the base URL of `ANTHROPIC_BASE_URL`.
///
/// # Errors
/// If neither is set: without a base URL a key is needed.
pub fn from_env(name: impl Into<String>) -> Result<Anthropic, ConfigError> {
    HttpModel::from_env(name)
}

impl Sealed for Messages {}

impl Wire for Messages {
    const NAME: &'static str = "anthropic";
    const DEFAULT_BASE: &'static str = "https://api.anthropic.com/v1";
    const KEY_VARIABLE: &'static str = "ANTHROPIC_API_KEY";
    const BASE_VARIABLE: &'static str = "ANTHROPIC_BASE_URL";

    fn defaults() -> Map<String, Value> {
        Map::from_iter([("max_tokens".to_owned(), json!(DEFAULT_MAX_TOKENS))])
    }

    fn max_tokens(fields: &mut Map<String, Value>, tokens: u64) {
        fields.insert("max_tokens".into(), tokens.into());
    }

    fn tool_choice(fields: &mut Map<String, Value>, choice: &ToolChoice) {
        let choice = match choice {
            ToolChoice::Auto => json!({"type": "auto"}),
            ToolChoice::None => json!({"type": "none"}),
            ToolChoice::Required => json!({"type": "any"}),
            ToolChoice::Tool(name) => json!({"type": "tool", "name": name}),
        };
        fields.insert("tool_choice".into(), choice);
    }

    /// It refuses to be made to call a tool while it thinks.
    fn may_force(fields: &Map<String, Value>) -> bool {
        !fields.contains_key("thinking")
    }

    fn one_call(fields: &mut Map<String, Value>) {
        let choice = fields.entry("tool_choice").or_insert_with(|| json!({"type": "auto"}));
        // The provider refuses it beside `none`.
        if choice["type"] != "none" {
            choice["disable_parallel_tool_use"] = true.into();
        }
    }

    const ANSWER_FIELD: &'static str = "output_config";

    /// From Claude 4.5 on.
    fn takes_schemas(model: &str, _spec: &ModelSpec) -> bool {
        const SINCE: (u32, u32) = (4, 5);
        // A longer number is a date.
        let number =
            |part: Option<&str>| part.filter(|part| part.len() < 3).and_then(|part| part.parse().ok());
        let mut parts = model.split('-');
        let is_known =
            parts.next() == Some("claude") && matches!(parts.next(), Some("opus" | "sonnet" | "haiku"));
        let version = (number(parts.next()).unwrap_or(0), number(parts.next()).unwrap_or(0));
        is_known && version >= SINCE
    }

    fn strict(schema: &Value) -> Option<Value> {
        const RULES: StrictRules = StrictRules { is_closed: true, is_all_required: false, may_recur: false };
        strict_schema::strict(schema, &RULES)
    }

    fn ask_schema(fields: &mut Map<String, Value>, answer: &AnswerFormat) {
        let format = json!({"type": "json_schema", "schema": *answer.schema});
        fields.insert(Self::ANSWER_FIELD.into(), json!({ "format": format }));
    }

    fn open(model: &Anthropic, spec: &ModelSpec) -> Box<dyn Conversation> {
        Box::new(model.conversation(spec))
    }
}

impl HttpModel<Messages> {
    /// Lets the model think, for at most this number of tokens.
    pub fn thinking(mut self, budget_tokens: u64) -> Self {
        self.set
            .change()
            .fields
            .insert("thinking".into(), json!({"type": "enabled", "budget_tokens": budget_tokens}));
        self
    }
    /// Marks instructions, tools and the newest message for the provider's prompt cache.
    pub fn cache(mut self) -> Self {
        self.set.change().wire.is_cached = true;
        self
    }

    fn prefix(&self, spec: &ModelSpec) -> Vec<u8> {
        let mut fields = self.settings(spec);
        fields.set("model", self.set.wire_name.as_str());
        fields.set("stream", true);
        let mark = |mut value: Value| {
            if self.set.wire.is_cached
                && let Some(object) = value.as_object_mut()
            {
                object.insert("cache_control".into(), json!({"type": "ephemeral"}));
            }
            value
        };
        if let Some(system) = spec.system.as_deref().filter(|system| !system.trim().is_empty()) {
            fields.set("system", vec![mark(json!({"type": "text", "text": system}))]);
        }
        let tools = spec.tools.iter().map(|tool| {
            json!({"name": tool.name, "description": tool.description, "input_schema": tool.parameters})
        });
        let mut tools: Vec<Value> = tools.collect();
        if let Some(last) = tools.pop() {
            tools.push(mark(last));
            fields.set("tools", tools);
        }
        self.opened(fields, "messages")
    }

    fn conversation(&self, spec: &ModelSpec) -> HttpConversation<MessageEncoder, MessagesReader> {
        HttpConversation {
            prepared: self.set.prepared(|set| {
                let version =
                    [(HeaderName::from_static("anthropic-version"), HeaderValue::from_static(VERSION))];
                set.endpoint.prepare("messages", Auth::ApiKey, version.into_iter().collect())
            }),
            output_bytes: spec.output_bytes,
            wire: (Messages::NAME, parts::anthropic),
            encoder: EncodedHistory::new(
                self.set.prefix(spec, || self.prefix(&self.asked(spec))),
                MessageEncoder::new(self.set.wire.is_cached),
            ),
            reader: MessagesReader::default,
        }
    }
}

/// The encoded request body, for tests of the encoding.
#[doc(hidden)]
pub fn encoded(model: &Anthropic, spec: &ModelSpec, histories: &[&History]) -> Vec<Vec<u8>> {
    model.conversation(spec).encoded(histories)
}
