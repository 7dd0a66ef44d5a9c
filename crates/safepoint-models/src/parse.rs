//! A model from its name, such as `anthropic:claude-sonnet-4-5`, chosen while the program runs.

use std::{fmt, str::FromStr, sync::Arc};

use safepoint::{
    Model,
    model::{ModelError, Parameters},
};
use secrecy::SecretString;

use crate::{
    config::{Auth, ConfigError, Endpoint},
    http::Patience,
    providers::{self, KeyUse, ModelProvider},
    transport::Transport,
};

mod address;
mod list;
mod nearest;

/// The model of this name, `PROVIDER:NAME`, for [`Agent::builder`](safepoint::Agent::builder). Its key comes from the
/// variable of its provider: see [`PROVIDERS`](crate::PROVIDERS). For other settings there is [`ModelBuilder`].
///
/// ```no_run
/// # fn agent() -> Result<(), Box<dyn std::error::Error>> {
/// let model = safepoint_models::parse("anthropic:claude-sonnet-4-5")?;
/// let agent = safepoint::Agent::builder(model).build();
/// # Ok(()) }
/// ```
///
/// # Errors
/// If it is no such name, no known provider, or its wire is not in this build; if a variable that it needs is not set,
/// which the error names.
pub fn parse(name: &str) -> Result<Arc<dyn Model>, ConfigError> {
    name.parse::<ModelBuilder>()?.build()
}

/// A model by its name, before its settings are complete.
///
/// ```
/// use safepoint::model::Parameters;
/// use safepoint_models::ModelBuilder;
///
/// let named: ModelBuilder = "ollama:qwen3".parse()?;
/// let model = named.base_url("http://gpu.example:11434/v1").parameters(Parameters::new().seed(7)).build()?;
/// assert_eq!(model.name(), "ollama:qwen3");
///
/// let wrong = "antropic:claude".parse::<ModelBuilder>().unwrap_err();
/// assert!(wrong.to_string().contains("did you mean `anthropic`?"));
/// # use safepoint::Model as _;
/// # Ok::<(), safepoint_models::ConfigError>(())
/// ```
#[derive(Clone)]
#[must_use = "a model is made by `build`"]
pub struct ModelBuilder {
    provider: &'static ModelProvider,
    model: String,
    base_url: Option<String>,
    key: Option<SecretString>,
    headers: Vec<(String, String)>,
    patience: Patience,
    transport: Option<Transport>,
    parameters: Parameters,
}

impl FromStr for ModelBuilder {
    type Err = ConfigError;

    fn from_str(name: &str) -> Result<Self, ConfigError> {
        let Some((provider, model)) = name.split_once(':').filter(|(_, model)| !model.trim().is_empty())
        else {
            return Err(ConfigError::new(format!(
                "`{}` names no model: write PROVIDER:NAME, such as openai:gpt-5.2; the providers are {}",
                name.escape_debug(),
                names()
            )));
        };
        let known = providers::PROVIDERS.iter().find(|known| known.name() == provider).ok_or_else(|| {
            let all = providers::PROVIDERS.iter().map(ModelProvider::name);
            let meant = nearest::to(provider, all).map(|near| format!(" (did you mean `{near}`?)"));
            ConfigError::new(format!(
                "there is no provider `{}`{}; the providers are {}",
                provider.escape_debug(),
                meant.unwrap_or_default(),
                names()
            ))
        })?;
        Ok(Self {
            provider: known,
            model: model.to_owned(),
            base_url: None,
            key: None,
            headers: Vec::new(),
            patience: Patience::default(),
            transport: None,
            parameters: Parameters::new(),
        })
    }
}

impl ModelBuilder {
    /// The provider that was named.
    #[must_use]
    pub fn provider(&self) -> &'static ModelProvider {
        self.provider
    }

    /// Sets the part of the address before the wire's own path. Then no key is needed; one that the provider's variable has
    /// is sent.
    pub fn base_url(mut self, url: impl Into<String>) -> Self {
        self.base_url = Some(url.into());
        self
    }

    /// Sets the key.
    pub fn api_key(mut self, key: SecretString) -> Self {
        self.key = Some(key);
        self
    }

    /// Adds a header to each request.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sets how long to wait and how often to try.
    pub fn patience(mut self, patience: Patience) -> Self {
        self.patience = patience;
        self
    }

    /// Sets how requests travel.
    pub fn transport(mut self, transport: Transport) -> Self {
        self.transport = Some(transport);
        self
    }

    /// Sets parameters, over those that were set before.
    pub fn parameters(mut self, parameters: Parameters) -> Self {
        self.parameters = self.parameters.with(&parameters);
        self
    }

    /// Makes the model.
    ///
    /// # Errors
    /// If the provider's wire is not in this build, a variable that it needs is not set, or it has no form for one of the
    /// parameters.
    pub fn build(self) -> Result<Arc<dyn Model>, ConfigError> {
        self.build_with(&|name| std::env::var(name).ok())
    }

    fn build_with(self, variable: &Variables<'_>) -> Result<Arc<dyn Model>, ConfigError> {
        if !self.provider.is_available() {
            return Err(self.left_out());
        }
        let endpoint = self.endpoint(variable)?;
        match self.provider.speaks {
            #[cfg(feature = "openai")]
            providers::Speaks::OpenAi => self.made(endpoint, crate::openai::Chat::of(self.provider.dialect)),
            #[cfg(feature = "responses")]
            providers::Speaks::Responses => self.made(endpoint, crate::responses::Stateless::default()),
            #[cfg(feature = "anthropic")]
            providers::Speaks::Anthropic => self.made(endpoint, crate::anthropic::Messages::default()),
            #[cfg(feature = "gemini")]
            providers::Speaks::Gemini => self.made(endpoint, crate::gemini::GenerateContent::default()),
            #[cfg(not(all(
                feature = "openai",
                feature = "responses",
                feature = "anthropic",
                feature = "gemini"
            )))]
            _left_out => {
                drop(endpoint);
                Err(self.left_out())
            }
        }
    }

    fn made<W: crate::Wire>(&self, endpoint: Endpoint, wire: W) -> Result<Arc<dyn Model>, ConfigError> {
        let named = (self.provider.name(), self.model.clone());
        let model = crate::HttpModel::of(named, endpoint, wire).parameters(self.parameters.clone());
        model.check(&Parameters::new()).map_err(|error| refused(&error))?;
        Ok(Arc::new(model))
    }

    /// Where requests go: what was set, else what the variables say, else what the provider documents.
    fn endpoint(&self, variable: &Variables<'_>) -> Result<Endpoint, ConfigError> {
        let provider = self.provider;
        let set = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        let other = self.base_url.clone().or_else(|| set(provider.base_variable()));
        let key = provider.key_variables().iter().find_map(|name| set(name)).map(SecretString::from);
        let key = self.key.clone().or(key);
        if key.is_none() && other.is_none() && provider.key_use != KeyUse::Optional {
            return Err(ConfigError::missing_key(&provider.key_variables().join(" or ")));
        }
        let base_url = match other {
            Some(other) => other,
            None => address::filled(provider, &set)?,
        };
        let auth = (provider.key_use == KeyUse::NeededAsApiKey).then_some(Auth::AzureKey);
        let (headers, patience, transport) =
            (self.headers.clone(), self.patience.clone(), self.transport.clone());
        Ok(Endpoint { base_url, key, auth, headers, patience, transport })
    }

    fn left_out(&self) -> ConfigError {
        ConfigError::new(format!(
            "the provider `{}` speaks a wire that this program is built without: switch on the feature `{}` of \
             `safepoint-models`",
            self.provider.name(),
            self.provider.wire()
        ))
    }
}

/// The value of a variable.
type Variables<'v> = dyn Fn(&str) -> Option<String> + 'v;

fn names() -> String {
    providers::PROVIDERS.iter().map(ModelProvider::name).collect::<Vec<_>>().join(", ")
}

fn refused(error: &ModelError) -> ConfigError {
    ConfigError::new(match error.hint() {
        Some(hint) => format!("{error}: {hint}"),
        None => error.to_string(),
    })
}

/// Without the key and the headers.
impl fmt::Debug for ModelBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelBuilder")
            .field("provider", &self.provider.name())
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
