//! A provider's address, with what its variables say in place of the parts in braces.

use super::Variables;
use crate::{config::ConfigError, providers::ModelProvider};

/// The host of Vertex AI's location `global` does not name it.
const GLOBAL: (&str, &str) = ("://global-aiplatform.", "://aiplatform.");

/// # Errors
/// If a variable is not set, or its value cannot stand in an address.
pub(super) fn filled(provider: &ModelProvider, set: &Variables<'_>) -> Result<String, ConfigError> {
    let mut filled = String::new();
    let mut rest = provider.base_url();
    while let Some((before, inside)) = rest.split_once('{') {
        let (names, behind) = inside.split_once('}').unwrap_or((inside, ""));
        let found = names.split('|').find_map(|name| Some((name, set(name)?)));
        let (name, value) = found.ok_or_else(|| missing(provider, names))?;
        let value = value.trim().trim_end_matches('/');
        filled.push_str(before);
        if filled.is_empty() {
            // The whole beginning of the address; its path may be there already.
            let path = behind.split('{').next().unwrap_or_default();
            filled.push_str(value.strip_suffix(path).unwrap_or(value));
        } else if value.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':')) {
            filled.push_str(value);
        } else {
            return Err(ConfigError::new(format!("the value of {name} cannot be a part of an address")));
        }
        rest = behind;
    }
    filled.push_str(rest);
    Ok(filled.replacen(GLOBAL.0, GLOBAL.1, 1))
}

fn missing(provider: &ModelProvider, names: &str) -> ConfigError {
    ConfigError::new(format!(
        "no address for `{}`: set {}, or the whole base URL in {}",
        provider.name(),
        names.replace('|', " or "),
        provider.base_variable()
    ))
}
