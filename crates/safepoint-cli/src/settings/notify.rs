//! How a chat calls for its person.

use serde::Deserialize;

/// How a chat calls for its person while its terminal is not in front. Exhaustive: the five.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Notify {
    /// The bell, and the notification that this terminal is known to show.
    #[default]
    Auto,
    /// The bell alone.
    Bell,
    /// The bell, and `OSC 9`, as iTerm2, WezTerm, Ghostty and kitty show it.
    Osc9,
    /// The bell, and `OSC 777`, as urxvt, foot and VTE show it.
    Osc777,
    /// Nothing; nor is the terminal asked whether it is in front, or given a title.
    Off,
}
