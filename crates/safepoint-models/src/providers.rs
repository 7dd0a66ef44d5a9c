//! The providers that a model can be named at, as data: wire, address, variables, and in what a compatible server differs.

/// A provider of models, as the first part of `anthropic:claude-sonnet-4-5` names it.
///
/// ```
/// let groq = safepoint_models::PROVIDERS.iter().find(|provider| provider.name() == "groq").expect("it is listed");
/// assert_eq!((groq.wire(), groq.base_url()), ("openai", "https://api.groq.com/openai/v1"));
/// assert_eq!(groq.key_variables(), ["GROQ_API_KEY"]);
/// ```
#[derive(Debug)]
pub struct ModelProvider {
    name: &'static str,
    pub(crate) speaks: Speaks,
    base_url: &'static str,
    base_variable: &'static str,
    keys: &'static [&'static str],
    pub(crate) key_use: KeyUse,
    pub(crate) dialect: Dialect,
    note: &'static str,
}

/// The wire of a provider. Exhaustive: the wires of this crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speaks {
    OpenAi,
    Responses,
    Anthropic,
    Gemini,
}

/// What a provider wants of a key. Exhaustive: it needs one, in one of two ways, or takes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyUse {
    /// One, as the wire sends it.
    Needed,
    /// One, in the header `api-key`.
    NeededAsApiKey,
    /// A server of one's own: one if it was started with one.
    Optional,
}

/// In what a server that speaks OpenAI chat completions differs from OpenAI's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dialect {
    /// The field for the most tokens of a reply.
    pub(crate) max_tokens: &'static str,
    /// The field for the seed.
    pub(crate) seed: &'static str,
    /// Whether it must be asked to name the usage of a stream, or names it unasked and refuses the question.
    pub(crate) is_asked_for_usage: bool,
    /// The parameters that it ignores or refuses.
    pub(crate) lacks: &'static [&'static str],
}

impl Dialect {
    pub(crate) const OPENAI: Self =
        Self { max_tokens: "max_completion_tokens", seed: "seed", is_asked_for_usage: true, lacks: &[] };
    /// That of servers that know only the older field.
    const OLDER: Self = Self { max_tokens: "max_tokens", ..Self::OPENAI };
}

impl Default for Dialect {
    fn default() -> Self {
        Self::OPENAI
    }
}

impl ModelProvider {
    /// Its name, as in `groq:llama-3.3-70b-versatile`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The wire that it speaks (`openai`, `responses`, `anthropic` or `gemini`), which is also the name of the Cargo feature
    /// that has it.
    #[must_use]
    pub fn wire(&self) -> &'static str {
        match self.speaks {
            Speaks::OpenAi => "openai",
            Speaks::Responses => "responses",
            Speaks::Anthropic => "anthropic",
            Speaks::Gemini => "gemini",
        }
    }

    /// Whether this build has its wire.
    #[must_use]
    pub fn is_available(&self) -> bool {
        match self.speaks {
            Speaks::OpenAi => cfg!(feature = "openai"),
            Speaks::Responses => cfg!(feature = "responses"),
            Speaks::Anthropic => cfg!(feature = "anthropic"),
            Speaks::Gemini => cfg!(feature = "gemini"),
        }
    }

    /// Its base URL. A part in braces is the value of that variable, or of the first of several that is set.
    #[must_use]
    pub fn base_url(&self) -> &'static str {
        self.base_url
    }

    /// The variable that holds another base URL.
    #[must_use]
    pub fn base_variable(&self) -> &'static str {
        self.base_variable
    }

    /// The variables that may hold its key; the first that is set counts.
    #[must_use]
    pub fn key_variables(&self) -> &'static [&'static str] {
        self.keys
    }

    /// What a person should know about it; empty where there is nothing.
    #[must_use]
    pub fn note(&self) -> &'static str {
        self.note
    }

    /// One that speaks OpenAI chat completions at this address.
    const fn chat(name: &'static str, base_url: &'static str, base_variable: &'static str) -> Self {
        Self {
            name,
            speaks: Speaks::OpenAi,
            base_url,
            base_variable,
            keys: &[],
            key_use: KeyUse::Needed,
            dialect: Dialect::OPENAI,
            note: "",
        }
    }

    const fn keys(mut self, keys: &'static [&'static str]) -> Self {
        self.keys = keys;
        self
    }

    const fn wired(mut self, speaks: Speaks) -> Self {
        self.speaks = speaks;
        self
    }

    const fn key_use(mut self, key_use: KeyUse) -> Self {
        self.key_use = key_use;
        self
    }

    const fn dialect(mut self, dialect: Dialect) -> Self {
        self.dialect = dialect;
        self
    }

    const fn noted(mut self, note: &'static str) -> Self {
        self.note = note;
        self
    }
}

/// The providers that [`parse`](crate::parse()) knows. A server that is not among them is reached by the wire that it speaks
/// and a base URL.
pub const PROVIDERS: &[ModelProvider] = &[
    ModelProvider::chat("openai", "https://api.openai.com/v1", "OPENAI_BASE_URL").keys(&["OPENAI_API_KEY"]),
    ModelProvider::chat("responses", "https://api.openai.com/v1", "OPENAI_BASE_URL")
        .keys(&["OPENAI_API_KEY"])
        .wired(Speaks::Responses)
        .noted("OpenAI's Responses"),
    ModelProvider::chat("anthropic", "https://api.anthropic.com/v1", "ANTHROPIC_BASE_URL")
        .keys(&["ANTHROPIC_API_KEY"])
        .wired(Speaks::Anthropic),
    ModelProvider::chat("gemini", "https://generativelanguage.googleapis.com/v1beta", "GEMINI_BASE_URL")
        .keys(&["GEMINI_API_KEY", "GOOGLE_API_KEY"])
        .wired(Speaks::Gemini),
    ModelProvider::chat("azure", "{AZURE_OPENAI_ENDPOINT}/openai/v1", "AZURE_OPENAI_BASE_URL")
        .keys(&["AZURE_OPENAI_API_KEY"])
        .key_use(KeyUse::NeededAsApiKey)
        .noted("Azure OpenAI: NAME is the deployment's"),
    ModelProvider::chat("openrouter", "https://openrouter.ai/api/v1", "OPENROUTER_BASE_URL")
        .keys(&["OPENROUTER_API_KEY"])
        .noted("NAME has the vendor: openrouter:openai/gpt-5.2"),
    ModelProvider::chat("ollama", "http://localhost:11434/v1", "OLLAMA_BASE_URL")
        .keys(&["OLLAMA_API_KEY"])
        .key_use(KeyUse::Optional)
        .dialect(Dialect { lacks: &["service_tier"], ..Dialect::OLDER })
        .noted("on this machine"),
    ModelProvider::chat("vllm", "http://localhost:8000/v1", "VLLM_BASE_URL")
        .keys(&["VLLM_API_KEY"])
        .key_use(KeyUse::Optional)
        .noted("on this machine"),
    ModelProvider::chat("lmstudio", "http://localhost:1234/v1", "LMSTUDIO_BASE_URL")
        .keys(&["LM_API_TOKEN"])
        .key_use(KeyUse::Optional)
        .dialect(Dialect::OLDER)
        .noted("LM Studio, on this machine"),
    ModelProvider::chat("groq", "https://api.groq.com/openai/v1", "GROQ_BASE_URL").keys(&["GROQ_API_KEY"]),
    ModelProvider::chat("mistral", "https://api.mistral.ai/v1", "MISTRAL_BASE_URL").keys(&["MISTRAL_API_KEY"]).dialect(
        Dialect {
            max_tokens: "max_tokens",
            seed: "random_seed",
            is_asked_for_usage: false,
            lacks: &["service_tier"],
        },
    ),
    ModelProvider::chat("deepseek", "https://api.deepseek.com", "DEEPSEEK_BASE_URL")
        .keys(&["DEEPSEEK_API_KEY"])
        .dialect(Dialect { lacks: &["seed", "service_tier"], ..Dialect::OLDER }),
    ModelProvider::chat("xai", "https://api.x.ai/v1", "XAI_BASE_URL").keys(&["XAI_API_KEY"]),
    ModelProvider::chat("together", "https://api.together.ai/v1", "TOGETHER_BASE_URL")
        .keys(&["TOGETHER_API_KEY"])
        .dialect(Dialect::OLDER)
        .noted("NAME has the vendor: together:openai/gpt-oss-20b"),
    ModelProvider::chat(
        "bedrock",
        "https://bedrock-mantle.{AWS_REGION|AWS_DEFAULT_REGION}.api.aws/v1",
        "BEDROCK_BASE_URL",
    )
    .keys(&["AWS_BEARER_TOKEN_BEDROCK"])
    .noted("Amazon Bedrock's OpenAI-compatible endpoint, with a Bedrock API key"),
    ModelProvider::chat(
        "vertex",
        "https://{GOOGLE_CLOUD_LOCATION}-aiplatform.googleapis.com/v1/projects/{GOOGLE_CLOUD_PROJECT}\
         /locations/{GOOGLE_CLOUD_LOCATION}/endpoints/openapi",
        "VERTEX_BASE_URL",
    )
    .keys(&["VERTEX_AI_ACCESS_TOKEN", "GOOGLE_OAUTH_ACCESS_TOKEN"])
    .noted(
        "Vertex AI's OpenAI-compatible endpoint; the token is that of `gcloud auth print-access-token`, for an hour",
    ),
];
