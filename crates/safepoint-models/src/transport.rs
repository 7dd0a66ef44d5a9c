//! How requests travel: proxy, trust, times and headers, in types of ours.
//!
//! **Invariants**: models with clones of one transport share its connections; a change begins another pool.

use std::{
    fmt,
    sync::{Arc, OnceLock},
    time::Duration,
};

use safepoint::model::{ModelError, ModelErrorKind};
use safepoint_http::{HttpClient, HttpError, Proxy, Settings};
use url::Url;

use crate::address;

/// How the requests of a model travel. Models that are given clones of one transport share its connections; models
/// without one share those of the process.
///
/// No crypto provider is installed for the program: TLS uses the one that the program has installed, or *ring* for these
/// connections alone.
///
/// ```
/// use std::time::Duration;
/// use safepoint_models::{Transport, openai};
/// let through = Transport::new().proxy("http://proxy.example:3128").connect_timeout(Duration::from_secs(5));
/// let model = openai::model("gpt-5.2").transport(through);
/// ```
#[derive(Clone, Default)]
#[must_use = "a setting returns the changed value"]
pub struct Transport {
    settings: Settings,
    /// What is no proxy, and is refused when a client is made.
    no_proxy: Option<String>,
    pub(crate) read_timeout: Option<Duration>,
    pub(crate) headers: Vec<(String, String)>,
    client: Arc<OnceLock<HttpClient>>,
}

impl Transport {
    /// As without one: the proxy that the environment names (`HTTPS_PROXY` and the like), the platform's certificates.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sends everything through this `http:` or `https:` proxy, with the user and the password that its address names.
    pub fn proxy(self, address: impl Into<String>) -> Self {
        self.proxy_except(address, "")
    }

    /// The same, save for these domains, addresses and networks, separated by commas, as `NO_PROXY` names them.
    pub fn proxy_except(mut self, address: impl Into<String>, except: impl Into<String>) -> Self {
        let address = address.into();
        self.no_proxy = None;
        match Url::parse(&address) {
            Ok(address) => {
                return self.change(|settings| {
                    settings.proxy = Proxy::Server { address, except: except.into() };
                });
            }
            Err(error) => self.no_proxy = Some(format!("{} ({error})", address::shown(&address))),
        }
        self
    }

    /// Uses no proxy, whatever the environment says.
    pub fn direct(mut self) -> Self {
        self.no_proxy = None;
        self.change(|settings| settings.proxy = Proxy::Direct)
    }

    /// Trusts these certificates too, in PEM: those of a company's own authority, for example.
    pub fn certificates(self, pem: impl Into<String>) -> Self {
        self.change(|settings| settings.certificates = pem.into())
    }

    /// Sets the longest wait for a connection: look-up, proxy and TLS included. Default 10 s.
    pub fn connect_timeout(self, most: Duration) -> Self {
        self.change(|settings| settings.connect_timeout = most)
    }

    /// Sets how long nothing may arrive, headers included, in place of [`Patience::idle`](crate::Patience).
    pub fn read_timeout(mut self, most: Duration) -> Self {
        self.read_timeout = Some(most);
        self
    }

    /// Adds a header to each request.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    fn change(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        change(&mut self.settings);
        self.client = Arc::default();
        self
    }

    /// The client of all clones.
    ///
    /// # Errors
    /// If the proxy or a certificate is none, or the certificates of the platform cannot be loaded.
    pub(crate) fn client(&self) -> Result<HttpClient, ModelError> {
        const PROXY_HINT: &str = "it looks like http://proxy.example:3128";
        if let Some(wrong) = &self.no_proxy {
            return Err(refused(format!("the proxy's address is none: {wrong}")).with_hint(PROXY_HINT));
        }
        if let Some(client) = self.client.get() {
            return Ok(client.clone());
        }
        let client = HttpClient::new(&self.settings).map_err(|error: HttpError| {
            refused(format!("the transport cannot be set up: {error}")).with_hint(
                "a proxy is an http: or https: address, and certificates are in PEM; are the system's certificates \
                 installed (ca-certificates)?",
            )
        })?;
        Ok(self.client.get_or_init(|| client).clone())
    }
}

fn refused(message: String) -> ModelError {
    ModelError::new(ModelErrorKind::Refused, message)
}

/// Without passwords and the values of headers.
impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Settings { proxy, connect_timeout, .. } = &self.settings;
        f.debug_struct("Transport")
            .field("proxy", proxy)
            .field("connect_timeout", connect_timeout)
            .field("read_timeout", &self.read_timeout)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S12.41: what is no proxy is refused with a hint, and its password is not shown.
    #[test]
    fn a_proxy_that_is_none_is_refused() {
        for wrong in ["ann:hunter2@proxy", "socks5://ann:hunter2@proxy.invalid:1"] {
            let transport = Transport::new().proxy(wrong);
            let error = transport.client().unwrap_err();
            let shown = format!("{transport:?} {error} {}", error.hint().unwrap());
            assert!(shown.contains("http:") && !shown.contains("hunter2"), "{shown}");
        }
        assert!(Transport::new().proxy("nonsense").direct().client().is_ok());
    }

    /// S12.41: certificates that are none are refused.
    #[test]
    fn certificates_that_are_none_are_refused() {
        let none = "-----BEGIN CERTIFICATE-----\nbm9uZQ==\n-----END CERTIFICATE-----\n";
        let error = Transport::new().certificates(none).client().unwrap_err();
        assert!(error.hint().unwrap().contains("PEM"), "{error}");
    }
}
