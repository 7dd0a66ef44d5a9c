//! Gemini's `generateContent`, streamed as server-sent events.
//!
//! On a stop the response is dropped: an HTTP/1 connection closes, an HTTP/2 stream is reset. Usage is cumulative on
//! the chunks, so the figures of a cut call are what the provider had named last, or a floor where more had arrived.

use http::HeaderMap;
use safepoint::{
    History,
    model::{AnswerFormat, Conversation, ModelSpec, Parameter, PromptCache, ProviderTool, ReasoningEffort},
};
use serde_json::{Map, Value, json};

use crate::{
    config::{Auth, ConfigError, Fields, ToolChoice},
    conversation::HttpConversation,
    embedding::HttpEmbedder,
    encoded_history::EncodedHistory,
    parts,
    strict_schema::{self, StrictRules},
    wired::{HttpModel, Wire, sealed::Sealed},
};

mod embed;
mod encode;
mod own;
pub(crate) mod read;

pub use embed::GeminiEmbedder;

use encode::Contents;
use read::GeminiReader;

/// A model that speaks Gemini's `generateContent`.
///
/// ```
/// let model = safepoint_models::gemini::model("gemini-3-pro-preview").max_tokens(4096).thinking_level("low");
/// ```
pub type Gemini = HttpModel<GenerateContent>;

/// The wire of Gemini's `generateContent`.
#[derive(Clone, Debug, Default)]
pub struct GenerateContent(());

/// A model by name, without a key; add one with [`HttpModel::api_key`] where the server wants it.
pub fn model(name: impl Into<String>) -> Gemini {
    HttpModel::new(name)
}

/// A model with the key of `GEMINI_API_KEY` and, where it is set, the base URL of `GEMINI_BASE_URL`.
///
/// # Errors
/// If neither is set: without a base URL a key is needed.
pub fn from_env(name: impl Into<String>) -> Result<Gemini, ConfigError> {
    HttpModel::from_env(name)
}

/// An embedder by the name of its model, without a key; see [`embed`](crate::embed).
///
/// ```
/// let embedder = safepoint_models::gemini::embedder("gemini-embedding-001").dimensions(256);
/// ```
pub fn embedder(model: impl Into<String>) -> GeminiEmbedder {
    HttpEmbedder::new(model)
}

/// An embedder with the key of `GEMINI_API_KEY` and, where it is set, the base URL of `GEMINI_BASE_URL`.
///
/// # Errors
/// If neither is set: without a base URL a key is needed.
pub fn embedder_from_env(model: impl Into<String>) -> Result<GeminiEmbedder, ConfigError> {
    HttpEmbedder::from_env(model)
}

impl Sealed for GenerateContent {}

impl Wire for GenerateContent {
    const NAME: &'static str = "gemini";
    const DEFAULT_BASE: &'static str = "https://generativelanguage.googleapis.com/v1beta";
    const KEY_VARIABLE: &'static str = "GEMINI_API_KEY";
    const BASE_VARIABLE: &'static str = "GEMINI_BASE_URL";

    fn wire_name(given: String) -> String {
        given.strip_prefix("models/").map(str::to_owned).unwrap_or(given)
    }

    fn defaults(&self) -> Map<String, Value> {
        Map::new()
    }

    fn say(&self, fields: &mut Map<String, Value>, parameter: &Parameter) -> Result<(), &'static str> {
        let (name, value) = match parameter {
            Parameter::MaxTokens(tokens) => ("maxOutputTokens", json!(tokens)),
            Parameter::Temperature(temperature) => ("temperature", json!(temperature)),
            Parameter::TopP(share) => ("topP", json!(share)),
            Parameter::Seed(seed) => {
                let seed = i32::try_from(*seed).map_err(|_large| "its seed is at most 2147483647")?;
                ("seed", json!(seed))
            }
            Parameter::StopSequences(texts) => ("stopSequences", json!(texts)),
            Parameter::ReasoningEffort(
                ReasoningEffort::None | ReasoningEffort::XHigh | ReasoningEffort::Max,
            ) => {
                return Err("its levels are minimal to high");
            }
            Parameter::ReasoningEffort(effort) => {
                generation(fields)["thinkingConfig"]["thinkingLevel"] = effort.as_str().into();
                return Ok(());
            }
            // It does so by itself.
            Parameter::PromptCache(PromptCache::Prefix) => return Ok(()),
            Parameter::PromptCache(PromptCache::PrefixForAnHour) => {
                return Err("it has no setting for how long to cache");
            }
            _ => return Err("`generateContent` has no such setting"),
        };
        generation(fields)[name] = value;
        Ok(())
    }

    fn tool_choice(fields: &mut Map<String, Value>, choice: &ToolChoice) {
        let config = match choice {
            ToolChoice::Auto => json!({"mode": "AUTO"}),
            ToolChoice::None => json!({"mode": "NONE"}),
            ToolChoice::Required => json!({"mode": "ANY"}),
            ToolChoice::Tool(name) => json!({"mode": "ANY", "allowedFunctionNames": [name]}),
        };
        fields.insert("toolConfig".into(), json!({ "functionCallingConfig": config }));
    }

    fn one_call(_fields: &mut Map<String, Value>) {
        // The provider has no such setting.
    }

    const ANSWER_FIELD: &'static str = "generationConfig";

    /// From Gemini 2.5 on, and beside tools from Gemini 3 on.
    fn takes_schemas(model: &str, spec: &ModelSpec) -> bool {
        const OTHERS: [&str; 4] = ["image", "tts", "live", "audio"];
        let own = usize::from(spec.answer.is_some());
        let has_other_tools = spec.tools.len() > own || !spec.provider_tools.is_empty();
        let since = if has_other_tools { (3, 0) } else { (2, 5) };
        version(model).is_some_and(|version| version >= since)
            && !OTHERS.iter().any(|other| model.contains(other))
    }

    fn strict(schema: &Value) -> Option<Value> {
        const RULES: StrictRules = StrictRules { is_closed: false, is_all_required: false, may_recur: false };
        strict_schema::strict(schema, &RULES)
    }

    fn ask_schema(fields: &mut Map<String, Value>, answer: &AnswerFormat) {
        let generation = generation(fields);
        generation["responseMimeType"] = "application/json".into();
        generation["responseJsonSchema"] = (*answer.schema).clone();
    }

    fn provider_tool(tool: &ProviderTool) -> Result<Value, &'static str> {
        match tool {
            ProviderTool::WebSearch(search) if search.max_uses.is_some() => {
                Err("it cannot limit the uses of a search")
            }
            ProviderTool::WebSearch(search)
                if !search.allowed_domains.is_empty() || !search.blocked_domains.is_empty() =>
            {
                Err("it cannot choose the domains of a search")
            }
            ProviderTool::WebSearch(_) => Ok(json!({"googleSearch": {}})),
            ProviderTool::CodeExecution => Ok(json!({"codeExecution": {}})),
            ProviderTool::FileSearch(search) => {
                let mut tool = json!({"fileSearch": {"fileSearchStoreNames": search.stores}});
                if let Some(most) = search.max_results {
                    tool["fileSearch"]["topK"] = most.into();
                }
                Ok(tool)
            }
            _ => Err("it does not know it"),
        }
    }

    fn may_combine(model: &str, spec: &ModelSpec) -> Result<(), &'static str> {
        let may = spec.tools.is_empty() || version(model).is_some_and(|version| version >= BOTH_KINDS_SINCE);
        may.then_some(())
            .ok_or("before Gemini 3 a model takes tools of the provider or of the program, not both")
    }

    fn open(model: &Gemini, spec: &ModelSpec) -> Box<dyn Conversation> {
        Box::new(model.conversation(spec))
    }
}

/// The first version that takes tools of both kinds.
const BOTH_KINDS_SINCE: (u32, u32) = (3, 0);

/// The version in a model's name, such as `gemini-2.5-pro`; other models of this wire have none.
fn version(model: &str) -> Option<(u32, u32)> {
    let mut numbers = model.strip_prefix("gemini-")?.split('-').next()?.split('.').map(str::parse);
    let major = numbers.next()?.ok()?;
    Some((major, numbers.next().and_then(Result::ok).unwrap_or(0)))
}

/// What the provider wants where its own tools stand beside the program's: what its tools did comes with the reply, and no
/// call can be forced.
fn both_kinds(fields: &mut Fields) {
    let config = fields.entry("toolConfig");
    config["includeServerSideToolInvocations"] = true.into();
    let mode = &mut config["functionCallingConfig"];
    if mode["mode"] != "NONE" {
        *mode = json!({"mode": "VALIDATED"});
    }
}

/// What the model is to do with all that, in the wire's own object.
fn generation(fields: &mut Map<String, Value>) -> &mut Value {
    fields.entry("generationConfig").or_insert_with(|| json!({}))
}

impl HttpModel<GenerateContent> {
    /// Sets how hard the model thinks, in the provider's words (`low`, `high`): for models from Gemini 3 on.
    pub fn thinking_level(mut self, level: impl Into<String>) -> Self {
        generation(&mut self.set.change().fields)["thinkingConfig"]["thinkingLevel"] =
            Value::String(level.into());
        self
    }
    /// Lets the model think for at most this number of tokens: for models before Gemini 3.
    pub fn thinking_budget(mut self, tokens: u64) -> Self {
        generation(&mut self.set.change().fields)["thinkingConfig"]["thinkingBudget"] = tokens.into();
        self
    }
    /// Asks for a summary of the thoughts.
    pub fn thoughts(mut self) -> Self {
        generation(&mut self.set.change().fields)["thinkingConfig"]["includeThoughts"] = true.into();
        self
    }

    fn prefix(&self, spec: &ModelSpec) -> Vec<u8> {
        let mut fields = self.settings(spec);
        if let Some(system) = spec.system.as_deref().filter(|system| !system.trim().is_empty()) {
            fields.set("systemInstruction", json!({"parts": [{"text": system}]}));
        }
        let declared = spec.tools.iter().map(|tool| {
            json!({"name": tool.name, "description": tool.description, "parametersJsonSchema": tool.parameters})
        });
        if !spec.tools.is_empty() {
            fields.set("tools", json!([{ "functionDeclarations": declared.collect::<Vec<_>>() }]));
        }
        self.add_provider_tools(&mut fields, spec);
        if !spec.tools.is_empty() && !spec.provider_tools.is_empty() {
            both_kinds(&mut fields);
        }
        self.opened(fields, "contents")
    }

    fn conversation(&self, spec: &ModelSpec) -> HttpConversation<Contents, GeminiReader> {
        HttpConversation {
            prepared: self.prepared(spec, |set| {
                let path = format!("models/{}:streamGenerateContent?alt=sse", set.wire_name);
                set.endpoint.prepare(&path, Auth::GoogKey, HeaderMap::new())
            }),
            output_bytes: spec.output_bytes,
            wire: (GenerateContent::NAME, parts::gemini),
            encoder: EncodedHistory::new(
                self.set.prefix(spec, || self.prefix(&self.asked(spec))),
                Contents::for_model(&self.set.wire_name),
            ),
            reader: GeminiReader::default,
        }
    }
}

/// The encoded request body, for tests of the encoding.
#[doc(hidden)]
pub fn encoded(model: &Gemini, spec: &ModelSpec, histories: &[&History]) -> Vec<Vec<u8>> {
    model.conversation(spec).encoded(histories)
}
