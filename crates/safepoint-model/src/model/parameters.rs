//! What is asked of a model beside the conversation: how it samples, how hard it thinks, what it may spend.
//!
//! **Invariants**: each parameter is set at most once; one that a model cannot say to its provider is refused before
//! anything is sent, and never left out in silence.

use serde_json::{Map, Value, json};

/// Parameters of the calls of a model: set for an agent (`AgentBuilder::parameters`)
/// or for a model. What is not set is the provider's default. Those of an agent win over those of its model.
///
/// A parameter for which a model's wire has no form is an error when the agent is built
/// ([`Model::check`](crate::model::Model::check)). What only one provider has is set by [`Parameters::extra`].
///
/// ```
/// use safepoint::model::{Parameters, ReasoningEffort};
/// let careful = Parameters::new().seed(7).reasoning_effort(ReasoningEffort::High).stop_sequences(["END"]);
/// let changed = careful.with(&Parameters::new().seed(8).extra("user", "ann"));
/// assert_eq!(changed, Parameters::new().seed(8).reasoning_effort(ReasoningEffort::High).stop_sequences(["END"]).extra("user", "ann"));
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "a setting returns the changed value"]
pub struct Parameters {
    set: Vec<Parameter>,
    extra: Map<String, Value>,
}

/// One parameter. A wire says it in its own field, or refuses it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Parameter {
    /// The most tokens of one reply, reasoning included.
    MaxTokens(u64),
    /// How random the choice of each token is: 0 is the least.
    Temperature(f64),
    /// The share of the probability, up to 1, from which tokens are chosen.
    TopP(f64),
    /// With the same seed and input a provider tries to give the same reply.
    Seed(u64),
    /// Texts at which the reply ends.
    StopSequences(Vec<String>),
    /// How hard the model thinks.
    ReasoningEffort(ReasoningEffort),
    /// How soon the provider serves the request and at which price, in its own words.
    ServiceTier(String),
    /// What the provider keeps of the prompt for the next call.
    PromptCache(PromptCache),
    /// A reply may ask for one call only.
    OneCallAtATime,
}

/// How hard a model thinks before it answers. Providers and models have some of these levels each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ReasoningEffort {
    /// Not at all.
    None,
    /// As little as it can.
    Minimal,
    /// Little.
    Low,
    /// Some.
    Medium,
    /// Much.
    High,
    /// More than that.
    XHigh,
    /// As much as it can.
    Max,
}

/// What a provider keeps of a prompt, so that the next call with the same beginning costs less.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PromptCache {
    /// Instructions, tools and the conversation so far. Where a provider does so by itself, nothing is sent.
    Prefix,
    /// The same, kept for an hour from its last use on, and not for minutes. Messages have it; what is written to the cache
    /// costs more.
    PrefixForAnHour,
    /// The same as [`Prefix`](Self::Prefix), shared by all requests with this key: for providers that serve those from one place.
    Key(String),
}

impl Parameter {
    /// Its name, as in [`Parameters`].
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::MaxTokens(_) => "max_tokens",
            Self::Temperature(_) => "temperature",
            Self::TopP(_) => "top_p",
            Self::Seed(_) => "seed",
            Self::StopSequences(_) => "stop_sequences",
            Self::ReasoningEffort(_) => "reasoning_effort",
            Self::ServiceTier(_) => "service_tier",
            Self::PromptCache(_) => "prompt_cache",
            Self::OneCallAtATime => "one_call_at_a_time",
        }
    }

    /// What is wrong with its value for any model.
    fn flaw(&self) -> Option<&'static str> {
        match self {
            Self::MaxTokens(0) => Some("a reply of no tokens says nothing"),
            Self::Temperature(it) if !it.is_finite() || *it < 0.0 => Some("it is a number, 0 or more"),
            Self::TopP(it) if !it.is_finite() || *it <= 0.0 || *it > 1.0 => {
                Some("it is above 0, and at most 1")
            }
            Self::StopSequences(all) if all.iter().any(String::is_empty) => {
                Some("an empty text ends nothing")
            }
            Self::ServiceTier(word) if word.trim().is_empty() => Some("it has no word"),
            Self::PromptCache(PromptCache::Key(key)) if key.is_empty() => Some("the key is empty"),
            Self::MaxTokens(_)
            | Self::Temperature(_)
            | Self::TopP(_)
            | Self::Seed(_)
            | Self::StopSequences(_)
            | Self::ReasoningEffort(_)
            | Self::ServiceTier(_)
            | Self::PromptCache(_)
            | Self::OneCallAtATime => None,
        }
    }

    /// The value as JSON.
    fn value(&self) -> Value {
        match self {
            Self::MaxTokens(count) | Self::Seed(count) => Value::from(*count),
            Self::Temperature(number) | Self::TopP(number) => Value::from(*number),
            Self::StopSequences(texts) => Value::from(texts.clone()),
            Self::ReasoningEffort(effort) => Value::from(effort.as_str()),
            Self::ServiceTier(word) | Self::PromptCache(PromptCache::Key(word)) => Value::from(word.as_str()),
            Self::PromptCache(PromptCache::PrefixForAnHour) => json!({"ttl": "1h"}),
            Self::PromptCache(PromptCache::Prefix) | Self::OneCallAtATime => Value::from(true),
        }
    }
}

impl ReasoningEffort {
    /// Its word: `none`, `minimal`, `low`, `medium`, `high`, `xhigh` or `max`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::XHigh => "xhigh",
            Self::Max => "max",
        }
    }
}

impl Parameters {
    /// None.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the most tokens of one reply, reasoning included.
    pub fn max_tokens(self, tokens: u64) -> Self {
        self.set(Parameter::MaxTokens(tokens))
    }

    /// Sets how random the choice of each token is: 0 is the least.
    pub fn temperature(self, temperature: f64) -> Self {
        self.set(Parameter::Temperature(temperature))
    }

    /// Sets the share of the probability, above 0 and at most 1, from which tokens are chosen.
    pub fn top_p(self, share: f64) -> Self {
        self.set(Parameter::TopP(share))
    }

    /// Sets the seed: with the same one and the same input a provider tries to give the same reply. Chat completions
    /// and Gemini have it.
    pub fn seed(self, seed: u64) -> Self {
        self.set(Parameter::Seed(seed))
    }

    /// Sets the texts at which the reply ends; none of them is in it. Chat completions, messages and Gemini have them.
    pub fn stop_sequences<T: Into<String>>(self, texts: impl IntoIterator<Item = T>) -> Self {
        self.set(Parameter::StopSequences(texts.into_iter().map(Into::into).collect()))
    }

    /// Sets how hard the model thinks.
    pub fn reasoning_effort(self, effort: ReasoningEffort) -> Self {
        self.set(Parameter::ReasoningEffort(effort))
    }

    /// Sets how soon the provider serves the request and at which price, in its own words, such as `flex` or `priority`
    /// (OpenAI) or `standard_only` (Anthropic). Chat completions, Responses and messages have it.
    pub fn service_tier(self, tier: impl Into<String>) -> Self {
        self.set(Parameter::ServiceTier(tier.into()))
    }

    /// Sets what the provider keeps of the prompt for the next call.
    pub fn prompt_cache(self, cache: PromptCache) -> Self {
        self.set(Parameter::PromptCache(cache))
    }

    /// Lets a reply ask for one call only. Gemini has no such setting, and gets none. How many calls run at once is
    /// another matter: see `Limits::parallel_calls`.
    pub fn one_call_at_a_time(self) -> Self {
        self.set(Parameter::OneCallAtATime)
    }

    /// Adds a field to each request as it is, over what is set otherwise. Only `tools` is added to what is there: the
    /// agent's own tools stay, and the provider's stand behind them.
    pub fn extra(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.extra.insert(name.into(), value.into());
        self
    }

    /// These, and those of `over` in their place or beside them.
    pub fn with(&self, over: &Self) -> Self {
        let mut all = over.set.iter().cloned().fold(self.clone(), Self::set);
        all.extra.extend(over.extra.iter().map(|(name, value)| (name.clone(), value.clone())));
        all
    }

    /// Those that are set.
    pub fn iter(&self) -> impl Iterator<Item = &Parameter> {
        self.set.iter()
    }

    /// The extra fields.
    #[must_use]
    pub fn extras(&self) -> &Map<String, Value> {
        &self.extra
    }

    /// Whether nothing is set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.set.is_empty() && self.extra.is_empty()
    }

    /// All of it as a JSON object, by name; the extra fields are in `extra`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut all: Map<String, Value> =
            self.set.iter().map(|it| (it.name().to_owned(), it.value())).collect();
        if !self.extra.is_empty() {
            all.insert("extra".to_owned(), Value::Object(self.extra.clone()));
        }
        Value::Object(all)
    }

    /// The name of the first value that no model takes, and why.
    #[must_use]
    pub fn flaw(&self) -> Option<(&'static str, &'static str)> {
        self.set.iter().find_map(|parameter| Some((parameter.name(), parameter.flaw()?)))
    }

    fn set(mut self, parameter: Parameter) -> Self {
        let same = |it: &Parameter| std::mem::discriminant(it) == std::mem::discriminant(&parameter);
        match self.set.iter().position(same) {
            Some(place) => self.set[place] = parameter,
            None => self.set.push(parameter),
        }
        self
    }
}

/// The order in which they were set does not matter.
impl PartialEq for Parameters {
    fn eq(&self, other: &Self) -> bool {
        let has_all = || self.set.iter().all(|it| other.set.contains(it));
        self.set.len() == other.set.len() && has_all() && self.extra == other.extra
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_is_set_once() {
        let set = Parameters::new().seed(1).temperature(0.5).seed(2);
        assert_eq!(set.iter().collect::<Vec<_>>(), [&Parameter::Seed(2), &Parameter::Temperature(0.5)]);
        assert_eq!(set, Parameters::new().temperature(0.5).seed(2));
        assert_ne!(set, Parameters::new().temperature(0.5).seed(3));
    }

    /// S12.40: a value that no provider takes is found before anything is sent.
    #[test]
    fn a_value_that_is_none_is_found() {
        let new = Parameters::new;
        for (flawed, name) in [
            (new().temperature(f64::NAN), "temperature"),
            (new().temperature(-1.0), "temperature"),
            (new().top_p(0.0), "top_p"),
            (new().top_p(1.5), "top_p"),
            (new().max_tokens(0), "max_tokens"),
            (new().stop_sequences(["a", ""]), "stop_sequences"),
            (new().service_tier(" "), "service_tier"),
            (new().prompt_cache(PromptCache::Key(String::new())), "prompt_cache"),
        ] {
            assert_eq!(flawed.flaw().map(|(name, _)| name), Some(name));
        }
        assert_eq!(new().temperature(0.0).top_p(1.0).max_tokens(1).seed(0).flaw(), None);
    }
}
