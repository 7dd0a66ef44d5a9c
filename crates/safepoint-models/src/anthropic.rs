//! Anthropic messages.
//!
//! On a stop the response is dropped: an HTTP/1 connection closes, an HTTP/2 stream is reset. Input tokens of a cut
//! call are exact (they are named at its start), output is what was named last or a floor.

use std::sync::Arc;

use http::{HeaderName, HeaderValue};
use safepoint::{
    History,
    model::{
        AnswerFormat, Conversation, ModelError, ModelSpec, Parameter, Parameters, PromptCache, ProviderTool,
        ReasoningEffort,
    },
};
use serde_json::{Map, Value, json};

use crate::{
    config::{self, Auth, ConfigError, ToolChoice},
    conversation::HttpConversation,
    encoded_history::EncodedHistory,
    http::outgoing::Prepared,
    parts,
    strict_schema::{self, StrictRules},
    wired::{HttpModel, Wire, sealed::Sealed},
};

mod encode;
mod own;
pub(crate) mod read;

use encode::MessageEncoder;
use read::MessagesReader;

/// What the provider wants to be named in a header by those who use its code execution.
const CODE_EXECUTION: &str = "code-execution-2025-08-25";
const DEFAULT_MAX_TOKENS: u64 = 8192;

/// A model that speaks Anthropic messages.
///
/// ```
/// let model = safepoint_models::anthropic::model("claude-sonnet-4-5").max_tokens(4096).cache();
/// ```
pub type Anthropic = HttpModel<Messages>;

/// The wire of Anthropic messages.
#[derive(Clone, Debug, Default)]
pub struct Messages(());

/// How long the provider keeps what is marked for its cache, from its last use on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CacheTime {
    FiveMinutes,
    Hour,
}

impl CacheTime {
    fn control(self) -> Value {
        match self {
            Self::FiveMinutes => json!({"type": "ephemeral"}),
            Self::Hour => json!({"type": "ephemeral", "ttl": "1h"}),
        }
    }
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

    fn defaults(&self) -> Map<String, Value> {
        Map::from_iter([("max_tokens".to_owned(), json!(DEFAULT_MAX_TOKENS))])
    }

    fn say(&self, fields: &mut Map<String, Value>, parameter: &Parameter) -> Result<(), &'static str> {
        let (name, value) = match parameter {
            Parameter::MaxTokens(tokens) => ("max_tokens", json!(tokens)),
            Parameter::Temperature(temperature) => ("temperature", json!(temperature)),
            Parameter::TopP(share) => ("top_p", json!(share)),
            Parameter::StopSequences(texts) => ("stop_sequences", json!(texts)),
            Parameter::ReasoningEffort(ReasoningEffort::None | ReasoningEffort::Minimal) => {
                return Err(
                    "its levels are low to max; without one and without `thinking` it does not think",
                );
            }
            Parameter::ReasoningEffort(effort) => {
                fields.entry("output_config").or_insert_with(|| json!({}))["effort"] = effort.as_str().into();
                return Ok(());
            }
            Parameter::ServiceTier(tier) => ("service_tier", json!(tier)),
            // The wire marks it where it stands.
            Parameter::PromptCache(PromptCache::Prefix | PromptCache::PrefixForAnHour) => return Ok(()),
            Parameter::PromptCache(PromptCache::Key(_)) => {
                return Err("messages cache the prefix that is marked, and have no key for it");
            }
            _ => return Err("messages have no such setting"),
        };
        fields.insert(name.to_owned(), value);
        Ok(())
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

    /// From Claude 4.5 on; not beside a search, whose citations it does not put into a text of a schema.
    fn takes_schemas(model: &str, spec: &ModelSpec) -> bool {
        const SINCE: (u32, u32) = (4, 5);
        // A longer number is a date.
        let number =
            |part: Option<&str>| part.filter(|part| part.len() < 3).and_then(|part| part.parse().ok());
        let mut parts = model.split('-');
        let is_known =
            parts.next() == Some("claude") && matches!(parts.next(), Some("opus" | "sonnet" | "haiku"));
        let version = (number(parts.next()).unwrap_or(0), number(parts.next()).unwrap_or(0));
        is_known && version >= SINCE && spec.provider_tools.is_empty()
    }

    fn strict(schema: &Value) -> Option<Value> {
        const RULES: StrictRules = StrictRules { is_closed: true, is_all_required: false, may_recur: false };
        strict_schema::strict(schema, &RULES)
    }

    fn ask_schema(fields: &mut Map<String, Value>, answer: &AnswerFormat) {
        let format = json!({"type": "json_schema", "schema": *answer.schema});
        // How hard it thinks may stand there already.
        fields.entry(Self::ANSWER_FIELD).or_insert_with(|| json!({}))["format"] = format;
    }

    fn provider_tool(tool: &ProviderTool) -> Result<Value, &'static str> {
        match tool {
            ProviderTool::WebSearch(search) => {
                let mut tool = json!({"type": "web_search_20250305", "name": "web_search"});
                if let Some(most) = search.max_uses {
                    tool["max_uses"] = most.into();
                }
                let lists = [
                    ("allowed_domains", &search.allowed_domains),
                    ("blocked_domains", &search.blocked_domains),
                ];
                for (name, domains) in lists.into_iter().filter(|(_, domains)| !domains.is_empty()) {
                    tool[name] = json!(domains);
                }
                Ok(tool)
            }
            ProviderTool::CodeExecution => {
                Ok(json!({"type": "code_execution_20250825", "name": "code_execution"}))
            }
            ProviderTool::FileSearch(_) => Err("its provider stores no files to search"),
            _ => Err("it does not know it"),
        }
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
    /// Marks instructions, tools and the newest message for the provider's prompt cache, which keeps them for five minutes
    /// from their last use on ([`PromptCache::Prefix`]). What is written to it costs a quarter more than other input, what is
    /// read from it a tenth: say so in the [`Price`](safepoint::usage::Price), and costs and limits on them are right.
    ///
    /// The other wires have no such marks: their providers cache by themselves, and name what was read from the cache.
    ///
    /// ```
    /// use safepoint::usage::Price;
    /// let model = safepoint_models::anthropic::model("claude-sonnet-4-5").cache();
    /// let price = Price::new(3.0, 0.3, 15.0).with_cache_write(3.75);
    /// # drop((model, price));
    /// ```
    pub fn cache(self) -> Self {
        self.parameters(Parameters::new().prompt_cache(PromptCache::Prefix))
    }

    /// The same for an hour ([`PromptCache::PrefixForAnHour`]): for conversations that pause. What is written to the cache
    /// costs twice as much as other input.
    pub fn cache_for_an_hour(self) -> Self {
        self.parameters(Parameters::new().prompt_cache(PromptCache::PrefixForAnHour))
    }

    fn prefix(&self, spec: &ModelSpec) -> Vec<u8> {
        let mut fields = self.settings(spec);
        fields.set("model", self.set.wire_name.as_str());
        fields.set("stream", true);
        let cache = self.cache_time(spec);
        let mark = |mut value: Value| {
            if let Some(cache) = cache
                && let Some(object) = value.as_object_mut()
            {
                object.insert("cache_control".into(), cache.control());
            }
            value
        };
        if let Some(system) = spec.system.as_deref().filter(|system| !system.trim().is_empty()) {
            fields.set("system", vec![mark(json!({"type": "text", "text": system}))]);
        }
        let tools = spec.tools.iter().map(|tool| {
            json!({"name": tool.name, "description": tool.description, "input_schema": tool.parameters})
        });
        let own = spec.provider_tools.iter().filter_map(|tool| Messages::provider_tool(tool).ok());
        let mut tools: Vec<Value> = tools.chain(own).collect();
        if let Some(last) = tools.pop() {
            tools.push(mark(last));
            fields.set("tools", tools);
        }
        self.opened(fields, "messages")
    }

    /// For how long what is stable of a conversation is kept by the provider, if it is to be kept.
    fn cache_time(&self, spec: &ModelSpec) -> Option<CacheTime> {
        match self.prompt_cache(spec)? {
            PromptCache::Prefix => Some(CacheTime::FiveMinutes),
            PromptCache::PrefixForAnHour => Some(CacheTime::Hour),
            _ => None,
        }
    }

    fn prepared_request(&self, spec: &ModelSpec) -> Result<Arc<Prepared>, ModelError> {
        let prepared = self.prepared(spec, |set| {
            set.endpoint.prepare("messages", Auth::ApiKey, config::anthropic_version())
        })?;
        let runs_code = spec.provider_tools.contains(&ProviderTool::CodeExecution);
        let beta = (HeaderName::from_static("anthropic-beta"), HeaderValue::from_static(CODE_EXECUTION));
        Ok(if runs_code { Arc::new(prepared.with(beta)) } else { prepared })
    }

    fn conversation(&self, spec: &ModelSpec) -> HttpConversation<MessageEncoder, MessagesReader> {
        HttpConversation {
            prepared: self.prepared_request(spec),
            output_bytes: spec.output_bytes,
            wire: (Messages::NAME, parts::anthropic),
            encoder: EncodedHistory::new(
                self.set.prefix(spec, || self.prefix(&self.asked(spec))),
                MessageEncoder::new(self.cache_time(spec)),
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
