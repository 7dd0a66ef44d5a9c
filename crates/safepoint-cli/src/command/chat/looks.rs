//! What the environment says of how a terminal looks.

use crate::{
    render::chat::{markdown::look::Look, surface::Paint},
    settings::AgentSettings,
};

/// How Markdown looks in this terminal.
pub(super) fn look(settings: &AgentSettings) -> Look {
    let root = settings.args.root.clone().map_or_else(std::env::current_dir, std::path::absolute).ok();
    Look::of(variable, settings.theme, root)
}

/// A variable of the environment, if it is text.
pub(super) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Whether there are colours.
pub(super) fn paint() -> Paint {
    let is_plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    if is_plain { Paint::Plain } else { Paint::Styled }
}
