//! The secrets that this program knows: keys of providers, headers of servers, and what the environment calls one.

use std::collections::BTreeMap;

use safepoint::secret::Secrets;
use safepoint_tools::process::is_secret;

use crate::args::AgentArgs;

/// What a name ends in that only says where a secret is.
const PLACES: [&str; 5] = ["_FILE", "_PATH", "_DIR", "_ENV", "_URL"];

/// All that are known where these arguments hold.
pub(crate) fn known(args: &AgentArgs) -> Secrets {
    let mut found: BTreeMap<String, String> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| names_one(name))
        .collect();
    for name in args.api_key_env.iter().chain(&args.known.backend_key_env) {
        if let Ok(value) = std::env::var(name) {
            found.insert(name.clone(), value);
        }
    }
    for address in args.base_url.iter().chain(&args.backend) {
        found.extend(password(address).map(|password| ("of the address".to_owned(), password.to_owned())));
    }
    found.extend(args.servers.secrets());
    Secrets::of(found)
}

/// Whether a variable of this name holds a secret, and does not only say where one is.
pub(crate) fn names_one(name: &str) -> bool {
    let is_place = PLACES.iter().any(|place| name.to_ascii_uppercase().ends_with(place));
    !is_place && is_secret(name)
}

/// The password of an address.
fn password(address: &str) -> Option<&str> {
    let (_, rest) = address.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let (user, _host) = authority.rsplit_once('@')?;
    Some(user.split_once(':').map_or(user, |(_name, password)| password))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S8.10
    #[test]
    fn a_secret_is_known_by_the_name_of_its_variable() {
        for (name, is_one) in [
            ("OPENAI_API_KEY", true),
            ("github_token", true),
            ("AWS_SECRET_ACCESS_KEY", true),
            ("PGPASSWORD", true),
            ("SSL_KEY_FILE", false),
            ("PATH", false),
            ("PWD", false),
        ] {
            assert_eq!(names_one(name), is_one, "{name}");
        }
        assert_eq!(password("https://ann:hunter2@a.example/x@y"), Some("hunter2"));
        assert_eq!(password("https://a.example/x@y"), None);
    }
}
