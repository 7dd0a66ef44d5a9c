//! Where a server is, and whether a token may go there.
//!
//! **Invariants**: a token goes over TLS, stays on this machine, or goes where the user allowed it to be read.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use safepoint_http::{HttpClient, HttpError, Proxy, Settings, shared};
use url::{Host, Url};

use crate::{
    args::{place::StorePlace, server::ServerArgs},
    exit::Usage,
};

/// What names the server where the command line does not.
const VARIABLE: &str = "SAFEPOINT_SERVER";
/// The name that always means this machine.
const LOCALHOST: &str = "localhost";

/// The address of a server.
#[derive(Clone, Debug)]
pub(crate) struct ServerAddress {
    base: Url,
}

impl ServerAddress {
    /// The server that is meant; none: this machine's sessions and its store are.
    ///
    /// # Errors
    /// If it is no address that a token may go to.
    pub(super) fn meant(args: &ServerArgs, store: Option<&StorePlace>) -> Result<Option<Self>, Usage> {
        let by_default = || std::env::var(VARIABLE).ok().filter(|url| !url.is_empty() && store.is_none());
        match args.server.clone().or_else(by_default) {
            Some(url) => Self::parse(&url, args.insecure).map(Some),
            None if args.token_file.is_some() || args.insecure => {
                Err(Usage("--token-file and --insecure go with --server URL".into()))
            }
            None => Ok(None),
        }
    }

    /// The address may hold a password, so an error does not repeat it.
    fn parse(url: &str, is_insecure: bool) -> Result<Self, Usage> {
        let wrong = |why: &str| Usage(format!("the server's URL {why}; write it as http://127.0.0.1:7717"));
        let base = Url::parse(url).map_err(|error| wrong(&format!("is not valid ({error})")))?;
        if !matches!(base.scheme(), "http" | "https") {
            return Err(wrong("begins with neither http: nor https:"));
        }
        if !base.username().is_empty() || base.password().is_some() {
            return Err(wrong("holds a user or a password: the server takes a token (--token-file)"));
        }
        if base.query().is_some() || base.fragment().is_some() {
            return Err(wrong("holds a query or a fragment"));
        }
        let address = Self { base };
        if address.base.scheme() == "http" && !address.is_local() && !is_insecure {
            return Err(Usage(format!(
                "{address} is another machine without encryption: who listens on the way can read the token. Use https, or a \
                 tunnel to this machine; --insecure allows it"
            )));
        }
        Ok(address)
    }

    /// Whether it is this machine.
    pub(super) fn is_local(&self) -> bool {
        is_local(&self.base)
    }

    /// Whether a server that listens there is this one.
    pub(super) fn is_at(&self, listening: SocketAddr) -> bool {
        let here = self.is_local().then(|| match self.base.host()? {
            Host::Domain(_) => Some(None),
            Host::Ipv4(ip) => Some(Some(IpAddr::V4(ip))),
            Host::Ipv6(ip) => Some(Some(IpAddr::V6(ip))),
        });
        let is_port = self.base.port_or_known_default() == Some(listening.port());
        let is_any = listening.ip().is_unspecified();
        let is_ip = match here.flatten() {
            Some(Some(ip)) => is_any || ip == listening.ip(),
            Some(None) => is_any || listening.ip().is_loopback(),
            None => false,
        };
        is_port && is_ip
    }

    /// A client for it.
    ///
    /// # Errors
    /// As of [`client`].
    pub(super) fn client(&self) -> Result<HttpClient, HttpError> {
        client(&self.base)
    }

    /// The address of a route, and its query.
    ///
    /// # Errors
    /// If a part has no form in an address.
    pub(super) fn of_route(&self, path: &[&str], query: &[(&str, &str)]) -> Result<Url, Usage> {
        // An address takes these for steps of a path, however they are written.
        if let Some(step) = path.iter().find(|part| matches!(**part, "." | ".." | "")) {
            return Err(Usage(format!("`{step}` cannot be named to a server")));
        }
        let mut url = self.base.clone();
        url.path_segments_mut().expect("http has a path").pop_if_empty().push("v1").extend(path);
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        Ok(url)
    }
}

/// Whether the address is on this machine.
pub(crate) fn is_local(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == LOCALHOST,
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    }
}

/// A client for the address. What is for this machine goes through no proxy, and its name is not looked up.
///
/// # Errors
/// If the certificates of the platform cannot be loaded.
pub(crate) fn client(url: &Url) -> Result<HttpClient, HttpError> {
    if !is_local(url) {
        return shared();
    }
    let port = url.port_or_known_default().unwrap_or_default();
    let here = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
    let named = url.host_str() == Some(LOCALHOST);
    let addresses = named.then(|| here.map(|ip| SocketAddr::new(ip, port)).to_vec());
    HttpClient::new(&Settings { proxy: Proxy::Direct, addresses, ..Settings::default() })
}

/// As it is named to people, and given again.
impl std::fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.base.as_str().trim_end_matches('/'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S13.14: a token goes over TLS, stays on this machine, or goes where the user allowed it.
    #[test]
    fn a_token_goes_over_tls_or_stays_on_this_machine() {
        for good in
            ["http://127.0.0.1:7717", "http://localhost/", "http://[::1]:1/agents/", "https://a.example"]
        {
            assert!(ServerAddress::parse(good, false).is_ok(), "{good}");
        }
        for bad in [
            "http://a.example",
            "http://127.0.0.1.a.example",
            "http://localhost.a.example",
            "http://10.0.0.1",
        ] {
            let why = ServerAddress::parse(bad, false).unwrap_err().to_string();
            assert!(why.contains("--insecure"), "{why}");
            assert!(ServerAddress::parse(bad, true).is_ok(), "{bad}");
        }
        for bad in ["x", "127.0.0.1:7717", "localhost:7717", "ftp://127.0.0.1", "http://127.0.0.1/?a=b"] {
            assert!(ServerAddress::parse(bad, true).is_err(), "{bad}");
        }
        let why = ServerAddress::parse("https://anna:hunter2@a.example", false).unwrap_err().to_string();
        assert!(why.contains("--token-file") && !why.contains("hunter2"), "{why}");
    }

    /// S13.14
    #[test]
    fn a_route_is_below_the_address_and_a_name_is_one_part_of_it() {
        let address = ServerAddress::parse("https://a.example/agents/", false).unwrap();
        let route = |session| address.of_route(&["sessions", session, "stop"], &[("wait", "quiet")]);
        assert_eq!(
            route("ses_1").unwrap().as_str(),
            "https://a.example/agents/v1/sessions/ses_1/stop?wait=quiet"
        );
        assert_eq!(route("a/b ?").unwrap().path(), "/agents/v1/sessions/a%2Fb%20%3F/stop");
        assert!(route("..").is_err() && route(".").is_err() && route("").is_err());
        assert_eq!(address.to_string(), "https://a.example/agents");
    }

    /// S13.14
    #[test]
    fn the_token_of_this_user_is_for_the_server_that_made_it() {
        let made: SocketAddr = "127.0.0.1:7717".parse().unwrap();
        let is_for = |url| ServerAddress::parse(url, true).unwrap().is_at(made);
        assert!(is_for("http://127.0.0.1:7717") && is_for("http://localhost:7717/"));
        assert!(!is_for("http://127.0.0.1:7718") && !is_for("http://127.0.0.2:7717"));
        assert!(!is_for("http://a.example:7717") && !is_for("http://[::1]:7717"));
        let everywhere: SocketAddr = "0.0.0.0:7717".parse().unwrap();
        assert!(ServerAddress::parse("http://127.0.0.1:7717", false).unwrap().is_at(everywhere));
    }
}
