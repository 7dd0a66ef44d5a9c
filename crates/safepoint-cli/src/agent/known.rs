//! What the table of windows and prices, and the config file, say of a chat's model.

use std::sync::Arc;

use safepoint::{AgentBuilder, Tool, window::Window};
use safepoint_models::PROVIDERS;

use crate::{
    args::agent::OnFull,
    prices::{Figures, Prices},
    settings::AgentSettings,
};

/// A chat summarises its oldest rounds where neither its person nor the config file says what happens to a full window.
pub(crate) fn summarise_by_default(settings: &mut AgentSettings) {
    if settings.args.window.is_some() {
        settings.args.on_full.get_or_insert(OnFull::Summarise);
    }
}

/// The agent with the window of the table, if no other was named.
pub(crate) fn windowed(builder: AgentBuilder, settings: &AgentSettings, model: &str) -> AgentBuilder {
    if settings.args.window.is_some() || settings.args.backend.is_some() {
        return builder;
    }
    let Some(tokens) = figures(settings, model).window else { return builder };
    let window = Window::of(tokens).summarise();
    builder.window(match settings.args.max_tokens {
        Some(answer) if answer < tokens => window.keep_for_answer(answer),
        Some(_) | None => window,
    })
}

/// What is known of this model, and of all prices.
pub(crate) fn figures(settings: &AgentSettings, model: &str) -> Figures {
    let prices = Prices::new(settings.prices.clone(), is_at_its_provider(settings, model));
    Figures { window: settings.args.window.or_else(|| prices.window(model)), prices }
}

/// Whether it is asked at its provider's own address.
fn is_at_its_provider(settings: &AgentSettings, model: &str) -> bool {
    let is_set = |variable: &str| std::env::var_os(variable).is_some_and(|value| !value.is_empty());
    let provider = model.split(':').next().unwrap_or_default();
    let known = PROVIDERS.iter().find(|known| known.name() == provider);
    settings.args.base_url.is_none() && known.is_some_and(|known| !is_set(known.base_variable()))
}

/// How many there are, and the bytes of what a model learns about them.
pub(crate) fn size_of(tools: &[Arc<dyn Tool>]) -> (usize, u64) {
    let size = |tool: &Arc<dyn Tool>| {
        let spec = tool.spec();
        spec.name.len() + spec.description.len() + spec.parameters.to_string().len()
    };
    (tools.len(), tools.iter().map(size).sum::<usize>() as u64)
}
