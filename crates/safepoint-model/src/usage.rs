//! What a model call used, and how sure we are of it (S3.9).

use serde::{Deserialize, Serialize};

use crate::is_default;

pub(crate) mod cost;

/// Tokens of one model call or of a whole run. Never zero for a call that was sent: what the provider did not say is
/// estimated and marked so.
///
/// ```
/// use safepoint::Usage;
/// let usage = Usage::new(1_200, 300).with_cached_input(1_000);
/// assert_eq!((usage.total(), usage.cached_input), (1_500, 1_000));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Usage {
    /// Tokens of the request, cached ones included.
    pub input: u64,
    /// The part of `input` that was read from the provider's cache.
    pub cached_input: u64,
    /// The part of `input` that was written to the provider's cache, for which some ask more than for other input.
    #[serde(default, skip_serializing_if = "is_default")]
    pub cache_write: u64,
    /// Tokens of the reply, reasoning included.
    pub output: u64,
    /// The part of `output` that was reasoning.
    pub reasoning: u64,
    /// How sure the figures are.
    pub source: UsageSource,
    /// What may have been billed beyond them.
    pub billed_beyond: ExtraBilling,
}

/// Where figures come from. Exhaustive: a third kind would have to be shown to every reader.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum UsageSource {
    /// The provider said so.
    #[default]
    Exact,
    /// A floor computed from what arrived.
    Estimated,
}

/// Whether more may be billed than the figures say. Exhaustive: billing beyond is known or it is not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ExtraBilling {
    /// The call ran to its end: nothing more.
    #[default]
    Nothing,
    /// The call was cut; whether the provider went on is its affair.
    Unknown,
}

impl Usage {
    /// As many tokens of the request and of the reply, as the provider said.
    #[must_use]
    pub fn new(input: u64, output: u64) -> Self {
        Self { input, output, ..Self::default() }
    }

    /// Sets the part of `input` that was read from the provider's cache.
    #[must_use]
    pub fn with_cached_input(mut self, tokens: u64) -> Self {
        self.cached_input = tokens;
        self
    }

    /// Sets the part of `input` that was written to the provider's cache.
    #[must_use]
    pub fn with_cache_write(mut self, tokens: u64) -> Self {
        self.cache_write = tokens;
        self
    }

    /// Sets the part of `output` that was reasoning.
    #[must_use]
    pub fn with_reasoning(mut self, tokens: u64) -> Self {
        self.reasoning = tokens;
        self
    }

    /// Says how sure the figures are.
    #[must_use]
    pub fn with_source(mut self, source: UsageSource) -> Self {
        self.source = source;
        self
    }

    /// Says whether more may have been billed.
    #[must_use]
    pub fn with_billed_beyond(mut self, billed_beyond: ExtraBilling) -> Self {
        self.billed_beyond = billed_beyond;
        self
    }

    /// Input and output together.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.input.saturating_add(self.output)
    }

    /// Adds another call's usage; one estimated part makes the sum estimated.
    pub fn add(&mut self, other: &Usage) {
        self.input = self.input.saturating_add(other.input);
        self.cached_input = self.cached_input.saturating_add(other.cached_input);
        self.cache_write = self.cache_write.saturating_add(other.cache_write);
        self.output = self.output.saturating_add(other.output);
        self.reasoning = self.reasoning.saturating_add(other.reasoning);
        if other.source == UsageSource::Estimated {
            self.source = UsageSource::Estimated;
        }
        if other.billed_beyond == ExtraBilling::Unknown {
            self.billed_beyond = ExtraBilling::Unknown;
        }
    }

    /// A floor for `bytes` of text: four bytes a token, at least one token.
    #[must_use]
    pub fn floor_of_bytes(bytes: usize) -> u64 {
        const BYTES_PER_TOKEN: u64 = 4;
        (bytes as u64).div_ceil(BYTES_PER_TOKEN).max(1)
    }
}

/// Prices of a model, in any one currency, per million tokens.
///
/// ```
/// use safepoint::{Usage, usage::Price};
/// let price = Price::new(3.0, 0.3, 15.0).with_cache_write(3.75);
/// let usage = Usage::new(2_000_000, 0).with_cache_write(1_000_000);
/// assert_eq!(price.of(&usage), 6.75);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Price {
    /// Input tokens that were neither read from the provider's cache nor written to it.
    pub input: f64,
    /// Input tokens read from the provider's cache.
    pub cached_input: f64,
    /// Input tokens written to the provider's cache; none: as other input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<f64>,
    /// Output tokens, reasoning included.
    pub output: f64,
}

impl Price {
    /// Prices of input, of input that is read from a cache, and of output; what is written to a cache costs as other input.
    #[must_use]
    pub fn new(input: f64, cached_input: f64, output: f64) -> Self {
        Self { input, cached_input, cache_write: None, output }
    }

    /// Sets the price of what is written to the provider's cache.
    #[must_use]
    pub fn with_cache_write(mut self, price: f64) -> Self {
        self.cache_write = Some(price);
        self
    }

    /// What `usage` costs.
    #[must_use]
    pub fn of(&self, usage: &Usage) -> f64 {
        const MILLION: f64 = 1_000_000.0;
        let fresh = usage.input.saturating_sub(usage.cached_input).saturating_sub(usage.cache_write);
        #[expect(clippy::cast_precision_loss, reason = "2^53 tokens are beyond any bill")]
        let sum = fresh as f64 * self.input
            + usage.cached_input as f64 * self.cached_input
            + usage.cache_write as f64 * self.cache_write.unwrap_or(self.input)
            + usage.output as f64 * self.output;
        sum / MILLION
    }
}
