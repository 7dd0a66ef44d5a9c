//! The models that can be chosen: those of the provider in use, and of each other provider whose key is set.

use std::time::Duration;

use futures_util::future::join_all;
use safepoint_models::{ModelBuilder, PROVIDERS};
use tokio::time::timeout;

use super::model::{self, PRACTICE};
use crate::{render::chat::choosing::OfferedModels, settings::AgentSettings};

/// A provider that does not answer within this is left out, and named.
const PATIENCE: Duration = Duration::from_secs(5);

/// Asks each provider, all at once.
pub(crate) async fn models(settings: &AgentSettings, current: &str) -> OfferedModels {
    let asked = join_all(providers(settings, current).into_iter().map(|(name, provider)| async move {
        let listed = timeout(PATIENCE, provider.list()).await;
        (name, listed.map_err(|_late| format!("no answer within {} s", PATIENCE.as_secs())))
    }));
    let mut offered = OfferedModels::default();
    for (provider, listed) in asked.await {
        match listed {
            Ok(Ok(names)) => offered.names.extend(names.iter().map(|name| format!("{provider}:{name}"))),
            Ok(Err(error)) => offered.missing.push(format!("{provider}: {error}")),
            Err(late) => offered.missing.push(format!("{provider}: {late}")),
        }
    }
    offered.names.push(PRACTICE.to_owned());
    offered
}

/// The provider in use first, where and with the key that the settings say; then those that need a key and have one.
fn providers(settings: &AgentSettings, current: &str) -> Vec<(&'static str, ModelBuilder)> {
    let in_use = model::reached(current, &settings.args).ok();
    let here = in_use.as_ref().map(|model| model.provider());
    let mut keys: Vec<&str> = here.iter().flat_map(|provider| provider.key_variables()).copied().collect();
    let mut all: Vec<_> = in_use.into_iter().map(|model| (model.provider().name(), model)).collect();
    for provider in PROVIDERS.iter().filter(|provider| provider.is_available()) {
        let own = provider.key_variables();
        let is_set = |name: &&&str| std::env::var(name).is_ok_and(|key| !key.trim().is_empty());
        // Two names of one provider list the same models.
        if own.iter().any(|name| keys.contains(name)) || own.iter().find(is_set).is_none() {
            continue;
        }
        keys.extend(own);
        let named = format!("{}:any", provider.name()).parse();
        all.extend(named.ok().map(|model| (provider.name(), model)));
    }
    all
}
