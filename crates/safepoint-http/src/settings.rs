//! How a client connects.

use std::{fmt, net::SocketAddr, time::Duration};

use url::Url;

/// How a client connects.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The longest wait for a connection: look-up, proxy and TLS included. Default 10 s.
    pub connect_timeout: Duration,
    /// What connections go through. Default: what the environment names.
    pub proxy: Proxy,
    /// Certificates in PEM that are trusted besides those of the platform. The platform's are read once for all clients
    /// without others, together with the crypto provider that the program has chosen by then (ring if it has none), and a
    /// later change has no effect on these. Default none.
    pub certificates: String,
    /// The addresses that every name has for this client, in place of a look-up; a port that the URL names, other than its
    /// scheme's own, is used in place of theirs. A proxy's name has them too, so they go with [`Proxy::Direct`]. Default:
    /// names are looked up.
    pub addresses: Option<Vec<SocketAddr>>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(10),
            proxy: Proxy::Environment,
            certificates: String::new(),
            addresses: None,
        }
    }
}

/// What connections go through. Exhaustive: the ways to choose a proxy.
#[derive(Clone)]
pub enum Proxy {
    /// What `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY` say, each also in lower case, when the client is made.
    /// In a CGI program, which has a `REQUEST_METHOD`, none: there a request's header would be `HTTP_PROXY`. This machine (`localhost`
    /// and the addresses of the loopback) is reached through none of them.
    Environment,
    /// No proxy.
    Direct,
    /// This `http:` or `https:` server, with the user and the password that its address names.
    Server {
        /// The server.
        address: Url,
        /// What is reached directly, as `NO_PROXY` names it: domains, addresses and networks, separated by commas.
        except: String,
    },
}

/// Without its password.
impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Environment => f.write_str("Environment"),
            Self::Direct => f.write_str("Direct"),
            Self::Server { address, except } => {
                let server = (address.host_str().unwrap_or_default(), address.port_or_known_default());
                f.debug_struct("Server").field("address", &server).field("except", except).finish()
            }
        }
    }
}
