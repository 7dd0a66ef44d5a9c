//! The secrets that this program knows: keys of providers, headers of servers, and what the environment calls one.

use std::collections::BTreeMap;

use safepoint::secret::Secrets;
use safepoint_tools::process::{holds_secret, password_in};

use crate::{
    args::place::StorePlace,
    settings::{AgentSettings, mcp::Servers},
};

/// All that are known where these arguments hold.
pub(crate) fn known(settings: &AgentSettings) -> Secrets {
    let args = &settings.args;
    let mut found = of_the_environment();
    for name in args.api_key_env.iter().chain(&args.known.backend_key_env) {
        if let Ok(value) = std::env::var(name) {
            found.insert(name.clone(), value);
        }
    }
    for address in args.base_url.iter().chain(&args.backend) {
        found.extend(password(address).map(|password| ("of the address".to_owned(), password.to_owned())));
    }
    if let Some(StorePlace::Postgres(address)) = &settings.kept_in {
        found.extend(
            address.secrets().into_iter().map(|secret| ("of the store's address".to_owned(), secret)),
        );
    }
    found.extend(settings.servers.secrets());
    Secrets::of(found)
}

/// All that are known to a command that only asks servers of tools.
pub(crate) fn known_with(servers: &Servers) -> Secrets {
    let mut found = of_the_environment();
    found.extend(servers.secrets());
    Secrets::of(found)
}

fn of_the_environment() -> BTreeMap<String, String> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter_map(|(name, value)| match holds_secret(&name) {
            true => Some((name, value)),
            false => password_in(&value).map(str::to_owned).map(|password| (name, password)),
        })
        .collect()
}

/// The password of an address, or the user that stands there alone.
fn password(address: &str) -> Option<&str> {
    let (_, rest) = address.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let (user, _host) = authority.rsplit_once('@')?;
    password_in(address).or(Some(user))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S8.10
    #[test]
    fn the_password_of_an_address_is_known() {
        assert_eq!(password("https://ann:hunter2@a.example/x@y"), Some("hunter2"));
        assert_eq!(password("https://a.example/x@y"), None);
    }
}
