//! What the config file says of the chat alone.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::{exit::Usage, prices::OwnPrice};

/// How a chat shows what it uses, and how it calls for its person.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChatSettings {
    pub(crate) prices: BTreeMap<String, OwnPrice>,
    pub(crate) notify: Notify,
}

/// How a chat calls for its person when its terminal is not in front. Exhaustive: the five.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Notify {
    /// The bell, and the notification that this terminal is known to show.
    #[default]
    Auto,
    /// The bell alone.
    Bell,
    /// `OSC 9`, as iTerm2, WezTerm, Ghostty and kitty show it.
    Osc9,
    /// `OSC 777`, as urxvt, foot and VTE show it.
    Osc777,
    /// Nothing; the terminal is not asked whether it is in front either.
    Off,
}

impl ChatSettings {
    /// # Errors
    /// If a price is none.
    pub(super) fn new(prices: BTreeMap<String, OwnPrice>, notify: Option<Notify>) -> Result<Self, Usage> {
        for (name, price) in &prices {
            if let Some(fault) = price.fault() {
                return Err(Usage(format!("prices.{name:?} in the config file: {fault}")));
            }
        }
        Ok(Self { prices, notify: notify.unwrap_or_default() })
    }
}
