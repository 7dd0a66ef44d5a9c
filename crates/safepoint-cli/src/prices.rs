//! The windows and the prices of well-known models, and the prices that the config file names.
//!
//! **Invariants**: this table is the only place in the program that knows a model's window or price. Where no price is known, none
//! is made up.

use std::collections::BTreeMap;

use safepoint::{Usage, usage::Price};
use serde::Deserialize;

use crate::exit;

/// Since when the table says this, and by whom.
pub(crate) const AS_OF: &str = "2026-10, by the price pages of Anthropic, OpenAI and Google";

/// What is known of a model.
#[derive(Clone, Copy, Debug)]
struct Known {
    name: &'static str,
    /// The most tokens of a request.
    window: u64,
    /// US dollars for a million tokens: of input, of input from the cache, of input written to the cache, of output.
    price: [f64; 4],
    /// A request of more tokens than this costs more.
    long: Option<Long>,
}

/// From how many tokens of input a request costs more, and how many times as much: its input, its output.
#[derive(Clone, Copy, Debug)]
struct Long {
    above: u64,
    input: f64,
    output: f64,
}

const fn known(name: &'static str, window: u64, price: [f64; 4]) -> Known {
    Known { name, window, price, long: None }
}

/// The same; above this number of tokens of input a request costs twice as much for its input, and half as much again for its output.
const fn tiered(name: &'static str, window: u64, above: u64, price: [f64; 4]) -> Known {
    Known { name, window, price, long: Some(Long { above, input: 2.0, output: 1.5 }) }
}

/// The names are whole: a date may follow, nothing else.
const TABLE: [Known; 34] = [
    // https://platform.claude.com/docs/en/about-claude/pricing and /about-claude/models/overview, 2026-10; cache writes of 5 minutes.
    known("claude-opus-5-5", 1_000_000, [4.0, 0.2, 5.0, 20.0]),
    known("claude-opus-5", 1_000_000, [5.0, 0.5, 6.25, 25.0]),
    known("claude-opus-4-8", 1_000_000, [5.0, 0.5, 6.25, 25.0]),
    known("claude-opus-4-7", 1_000_000, [5.0, 0.5, 6.25, 25.0]),
    known("claude-opus-4-6", 1_000_000, [5.0, 0.5, 6.25, 25.0]),
    known("claude-opus-4-5", 200_000, [5.0, 0.5, 6.25, 25.0]),
    known("claude-sonnet-5-5", 1_000_000, [2.0, 0.1, 2.5, 10.0]),
    known("claude-sonnet-5", 1_000_000, [2.0, 0.2, 2.5, 10.0]),
    known("claude-sonnet-4-6", 1_000_000, [3.0, 0.3, 3.75, 15.0]),
    known("claude-sonnet-4-5", 200_000, [3.0, 0.3, 3.75, 15.0]),
    Known {
        name: "claude-haiku-5-5",
        window: 1_000_000,
        price: [0.1, 0.01, 0.125, 0.5],
        long: Some(Long { above: 100_000, input: 5.0, output: 5.0 }),
    },
    known("claude-haiku-4-5", 200_000, [1.0, 0.1, 1.25, 5.0]),
    // https://developers.openai.com/api/docs/pricing and /api/docs/models/NAME, 2026-10 (gpt-6.2-sol: 2026-11); the window is the most tokens of input.
    tiered("gpt-6.2-sol", 922_000, 272_000, [2.0, 0.1, 2.5, 10.0]),
    tiered("gpt-5.5", 922_000, 272_000, [5.0, 0.5, 5.0, 30.0]),
    tiered("gpt-5.4", 922_000, 272_000, [2.5, 0.25, 2.5, 15.0]),
    known("gpt-5.4-mini", 272_000, [0.75, 0.075, 0.75, 4.5]),
    known("gpt-5.4-nano", 272_000, [0.2, 0.02, 0.2, 1.25]),
    known("gpt-5.3-codex", 272_000, [1.75, 0.175, 1.75, 14.0]),
    known("gpt-5.2", 272_000, [1.75, 0.175, 1.75, 14.0]),
    known("gpt-5.2-codex", 272_000, [1.75, 0.175, 1.75, 14.0]),
    known("gpt-5.1", 272_000, [1.25, 0.125, 1.25, 10.0]),
    known("gpt-5.1-codex", 272_000, [1.25, 0.125, 1.25, 10.0]),
    known("gpt-5", 272_000, [1.25, 0.125, 1.25, 10.0]),
    known("gpt-5-mini", 272_000, [0.25, 0.025, 0.25, 2.0]),
    known("gpt-5-nano", 272_000, [0.05, 0.005, 0.05, 0.4]),
    known("gpt-4.1", 1_047_576, [2.0, 0.5, 2.0, 8.0]),
    known("gpt-4.1-mini", 1_047_576, [0.4, 0.1, 0.4, 1.6]),
    known("gpt-4o", 128_000, [2.5, 1.25, 2.5, 10.0]),
    known("gpt-4o-mini", 128_000, [0.15, 0.075, 0.15, 0.6]),
    // https://ai.google.dev/gemini-api/docs/pricing and /gemini-api/docs/models, 2026-10.
    tiered("gemini-3.1-pro-preview", 1_048_576, 200_000, [2.0, 0.2, 2.0, 12.0]),
    tiered("gemini-3-pro-preview", 1_048_576, 200_000, [2.0, 0.2, 2.0, 12.0]),
    known("gemini-3-flash-preview", 1_048_576, [0.5, 0.05, 0.5, 3.0]),
    tiered("gemini-2.5-pro", 1_048_576, 200_000, [1.25, 0.125, 1.25, 10.0]),
    known("gemini-2.5-flash", 1_048_576, [0.3, 0.03, 0.3, 2.5]),
];

/// A price that the config file names, in US dollars for a million tokens.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(crate) struct OwnPrice {
    input: f64,
    /// By default as other input.
    cached_input: Option<f64>,
    cache_write: Option<f64>,
    output: f64,
}

/// The prices that hold in a session.
#[derive(Clone, Debug, Default)]
pub(crate) struct Prices {
    own: BTreeMap<String, OwnPrice>,
    /// Whether the table holds: the models are asked at their providers' own addresses.
    is_listed: bool,
}

/// What is known of the session's model, and of the prices of all models.
#[derive(Clone, Debug, Default)]
pub(crate) struct Figures {
    pub(crate) window: Option<u64>,
    pub(crate) prices: Prices,
}

/// Looks at the prices of a config file.
///
/// # Errors
/// If one of them is no price.
pub(crate) fn check(own: &BTreeMap<String, OwnPrice>) -> Result<(), exit::Usage> {
    for (name, price) in own {
        if let Some(fault) = price.fault() {
            return Err(exit::Usage(format!("prices.{name:?} in the config file: {fault}")));
        }
    }
    Ok(())
}

impl OwnPrice {
    /// What is wrong with it, if anything is.
    fn fault(&self) -> Option<&'static str> {
        let all = [Some(self.input), self.cached_input, self.cache_write, Some(self.output)];
        let is_right = |price: f64| price.is_finite() && price >= 0.0;
        (!all.into_iter().flatten().all(is_right)).then_some("a price is a number, 0 or more")
    }

    fn price(self) -> Price {
        let price = Price::new(self.input, self.cached_input.unwrap_or(self.input), self.output);
        self.cache_write.map_or(price, |write| price.with_cache_write(write))
    }
}

impl Prices {
    pub(crate) fn new(own: BTreeMap<String, OwnPrice>, is_listed: bool) -> Self {
        Self { own, is_listed }
    }

    /// What one call of this model costs, in US dollars; none if no price of it is known.
    pub(crate) fn of(&self, model: &str, usage: &Usage) -> Option<f64> {
        if let Some(own) = self.own(model) {
            return Some(own.price().of(usage));
        }
        listed(model).filter(|_| self.is_listed).map(|known| known.price_of(usage).of(usage))
    }

    /// The most tokens of a request to this model, if the table says so.
    pub(crate) fn window(&self, model: &str) -> Option<u64> {
        listed(model).filter(|_| self.is_listed).map(|known| known.window)
    }

    /// By `PROVIDER:NAME`, else by the name alone.
    fn own(&self, model: &str) -> Option<OwnPrice> {
        let name = model.split_once(':').map_or(model, |(_, name)| name);
        self.own.get(model).or_else(|| self.own.get(name)).copied()
    }
}

impl Known {
    fn price_of(&self, usage: &Usage) -> Price {
        let [input, cached, write, output] = self.price;
        let (more_in, more_out) = match self.long {
            Some(long) if usage.input > long.above => (long.input, long.output),
            Some(_) | None => (1.0, 1.0),
        };
        Price::new(input * more_in, cached * more_in, output * more_out).with_cache_write(write * more_in)
    }
}

/// The row of this model, `PROVIDER:NAME`: of its name, or of its name and a date, at its own provider.
fn listed(model: &str) -> Option<&'static Known> {
    let (provider, model) = model.split_once(':')?;
    let vendor = match provider {
        "anthropic" => "claude-",
        "openai" | "responses" => "gpt-",
        "gemini" => "gemini-",
        _ => return None,
    };
    let is_date = |rest: &str| rest.chars().all(|letter| letter.is_ascii_digit() || letter == '-');
    TABLE.iter().filter(|known| known.name.starts_with(vendor)).find(|known| {
        let rest = model.strip_prefix(known.name);
        rest.is_some_and(|rest| rest.is_empty() || rest.len() >= "-20260101".len() && is_date(rest))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed_prices() -> Prices {
        Prices::new(BTreeMap::new(), true)
    }

    fn cents(cost: Option<f64>) -> Option<i64> {
        #[expect(clippy::cast_possible_truncation, reason = "a few cents")]
        cost.map(|cost| (cost * 100.0).round() as i64)
    }

    /// S12.57: a well-known model has its price and window, with a date behind its name too.
    #[test]
    fn a_known_model_has_a_price_and_a_window() {
        let usage = Usage::new(1_000_000, 100_000).with_cached_input(500_000).with_cache_write(200_000);
        let prices = listed_prices();
        for name in ["anthropic:claude-sonnet-4-5", "anthropic:claude-sonnet-4-5-20250929"] {
            assert_eq!(cents(prices.of(name, &usage)), Some(90 + 15 + 75 + 150));
            assert_eq!(prices.window(name), Some(200_000));
        }
        assert_eq!(prices.window("responses:gpt-5.2-2025-12-11"), Some(272_000));
    }

    /// S12.57: another model whose name begins like a known one has no price, and neither has any at another address.
    #[test]
    fn no_price_is_made_up() {
        let usage = Usage::new(1000, 1000);
        for name in [
            "anthropic:claude-opus-5-turbo",
            "openai:gpt-5.2-pro",
            "ollama:gpt-5.2",
            "anthropic:claude-opus-5-6",
            "",
        ] {
            assert_eq!(
                (listed_prices().of(name, &usage), listed_prices().window(name)),
                (None, None),
                "{name}"
            );
        }
        let elsewhere = Prices::default();
        assert_eq!(
            (elsewhere.of("openai:gpt-5.2", &usage), elsewhere.window("openai:gpt-5.2")),
            (None, None)
        );
    }

    /// S12.57: a long request has the price of a long one, and each call its own.
    #[test]
    fn a_long_request_costs_what_a_long_one_costs() {
        let prices = listed_prices();
        assert_eq!(cents(prices.of("openai:gpt-5.4", &Usage::new(272_000, 100_000))), Some(68 + 150));
        assert_eq!(cents(prices.of("openai:gpt-5.4", &Usage::new(272_001, 100_000))), Some(136 + 225));
    }

    /// S12.57: the config file's price comes first, and holds at any address.
    #[test]
    fn an_own_price_comes_first() {
        let own: BTreeMap<String, OwnPrice> = toml::from_str(
            "'gpt-5.2' = { input = 1.0, output = 2.0 }\n'openai:mine' = { input = 4.0, cached_input = 0.0, output = 0.0 }",
        )
        .unwrap();
        let prices = Prices::new(own, false);
        let usage = Usage::new(1_000_000, 1_000_000).with_cached_input(500_000);
        assert_eq!(cents(prices.of("openai:gpt-5.2", &usage)), Some(300));
        assert_eq!(cents(prices.of("openai:mine", &usage)), Some(200));
        let wrong = OwnPrice { input: -1.0, cached_input: None, cache_write: None, output: 0.0 };
        assert!(wrong.fault().is_some());
    }
}
