//! The provider and the model that a name such as `openai:gpt-5.2` has, in the words of the conventions.

/// Providers as models are named by them, and as the conventions name them. A provider without a name there keeps its own.
const PROVIDERS: [(&str, &str); 20] = [
    ("anthropic", "anthropic"),
    ("azure", "azure.ai.openai"),
    ("bedrock", "aws.bedrock"),
    ("cerebras", "cerebras"),
    ("cohere", "cohere"),
    ("deepseek", "deepseek"),
    ("fireworks", "fireworks"),
    ("gemini", "gcp.gemini"),
    ("groq", "groq"),
    ("llamacpp", "llamacpp"),
    ("lmstudio", "lmstudio"),
    ("mistral", "mistral_ai"),
    ("ollama", "ollama"),
    ("openai", "openai"),
    ("openrouter", "openrouter"),
    ("perplexity", "perplexity"),
    ("responses", "openai"),
    ("together", "together"),
    ("vllm", "vllm"),
    ("xai", "x_ai"),
];

fn split(name: &str) -> Option<(&'static str, &str)> {
    let (before, model) = name.split_once(':')?;
    let (_, provider) = PROVIDERS.iter().find(|(ours, _)| *ours == before)?;
    Some((provider, model))
}

/// The provider; `None` if the name has none that is known: it may be a model of the program's own.
pub(super) fn provider_name(name: &str) -> Option<&'static str> {
    split(name).map(|(provider, _)| provider)
}

/// The model, without a provider that is known.
pub(super) fn model_name(name: &str) -> &str {
    split(name).map_or(name, |(_, model)| model)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S11.3: the provider and the model stand in fields of their own, and what only looks like a provider is part of the name.
    #[test]
    fn only_a_known_provider_is_one() {
        assert_eq!(
            (provider_name("gemini:flash"), model_name("gemini:flash")),
            (Some("gcp.gemini"), "flash")
        );
        assert_eq!((provider_name("llama3:8b"), model_name("llama3:8b")), (None, "llama3:8b"));
        assert_eq!(
            (provider_name("ollama:llama3:8b"), model_name("ollama:llama3:8b")),
            (Some("ollama"), "llama3:8b")
        );
    }
}
