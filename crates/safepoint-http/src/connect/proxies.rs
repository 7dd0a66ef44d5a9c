//! Which servers are reached through a proxy.

use std::net::IpAddr;

use http::Uri;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};

use crate::{error::HttpError, settings::Proxy};

/// The proxy of each server that has one.
pub(crate) struct Proxies {
    matcher: Matcher,
    loopback: LoopbackRoute,
}

/// How this machine is reached. Exhaustive: a proxy of the environment is one for servers elsewhere, and a program means what it says.
enum LoopbackRoute {
    Direct,
    AsAnyOther,
}

impl Proxies {
    /// None: no server has one.
    ///
    /// # Errors
    /// If the settings name a proxy that is none.
    pub(crate) fn of(proxy: &Proxy) -> Result<Option<Self>, HttpError> {
        Ok(match proxy {
            Proxy::Direct => None,
            Proxy::Environment => {
                Some(Self { matcher: Matcher::from_env(), loopback: LoopbackRoute::Direct })
            }
            Proxy::Server { address, except } => {
                if !matches!(address.scheme(), "http" | "https") {
                    return Err(HttpError::setup("the proxy's address is neither http: nor https:"));
                }
                let matcher = Matcher::builder().all(address.as_str()).no(except.as_str()).build();
                Some(Self { matcher, loopback: LoopbackRoute::AsAnyOther })
            }
        })
    }

    /// That of this server.
    pub(crate) fn intercept(&self, to: &Uri) -> Option<Intercept> {
        match self.loopback {
            LoopbackRoute::Direct if is_loopback(to) => None,
            LoopbackRoute::Direct | LoopbackRoute::AsAnyOther => self.matcher.intercept(to),
        }
    }
}

/// Whether an address is of this machine, by what it says: no name is looked up.
fn is_loopback(to: &Uri) -> bool {
    let host = to.host().unwrap_or_default().to_ascii_lowercase();
    match host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
        Ok(ip) => ip.to_canonical().is_loopback(),
        Err(_no_number) => {
            let name = host.trim_end_matches('.');
            name == "localhost" || name.ends_with(".localhost")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S13.43: an address is of this machine by its number or by the name that is reserved for it, and by no other.
    #[test]
    fn this_machine_is_known_by_its_numbers_and_its_name() {
        let of = |host: &str| is_loopback(&format!("http://{host}:11434/v1").parse().unwrap());
        for ours in [
            "127.0.0.1",
            "127.9.0.1",
            "[::1]",
            "[::ffff:127.0.0.1]",
            "localhost",
            "LocalHost.",
            "a.localhost",
        ] {
            assert!(of(ours), "{ours}");
        }
        for other in [
            "10.0.0.1",
            "0.0.0.0",
            "[::2]",
            "localhost.example.com",
            "notlocalhost",
            "127.0.0.1.name.invalid",
        ] {
            assert!(!of(other), "{other}");
        }
    }
}
