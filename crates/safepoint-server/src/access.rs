//! Who may do what: tokens with scopes, and the checks of each request before its body is read (S13.10).

use std::{fmt, path::PathBuf, sync::Arc};

use axum::http::{HeaderMap, Method, StatusCode, header, request::Parts};

use crate::{
    audit::AuditLog,
    problem::{Answered, Problem},
};

#[cfg(feature = "jwks")]
mod jwks;
pub(crate) mod page;
mod principal;
mod token;

#[cfg(feature = "jwks")]
pub use jwks::{Jwks, KeyFetch};
use page::Page;
pub use principal::{AccessScope, Principal};
pub use token::{NewToken, TokenFile, TokenRow};

/// The types of a body: JSON, and the name that A2A has for it. No page sends either without being asked.
const TYPES: [&str; 2] = ["application/json", "application/a2a+json"];

type Login = Arc<dyn Fn(&Parts) -> Option<Principal> + Send + Sync>;

/// Who may use a server, from which pages, and under which names the server is reached.
///
/// ```
/// use safepoint_server::Access;
/// let access = Access::tokens("/etc/agents/tokens.toml").host("agents.example.com");
/// ```
#[derive(Clone)]
#[must_use = "hand it to `router` or `Server::bind`"]
pub struct Access {
    login: Login,
    hosts: Vec<String>,
    origins: Vec<String>,
    port: Option<u16>,
    audit: Option<AuditLog>,
    #[cfg(feature = "jwks")]
    provider: Option<Arc<Jwks>>,
}

impl Access {
    /// By the tokens of this file, which is read again when it changes. A file that is not there, or cannot be read, has no
    /// token.
    pub fn tokens(path: impl Into<PathBuf>) -> Self {
        Self::token_file(TokenFile::new(path))
    }

    /// The same, by a file that says to its [listener](TokenFile::on_broken) why it cannot be read.
    pub fn token_file(file: TokenFile) -> Self {
        Self::by(move |parts| file.principal(bearer(&parts.headers)?))
    }

    /// By the tokens of this file too.
    pub fn or_tokens(self, path: impl Into<PathBuf>) -> Self {
        let (first, file) = (self.login, TokenFile::new(path));
        let login = move |parts: &Parts| first(parts).or_else(|| file.principal(bearer(&parts.headers)?));
        Self { login: Arc::new(login), ..self }
    }

    /// By a login of your own: it names who sends this request, or none.
    pub fn by(login: impl Fn(&Parts) -> Option<Principal> + Send + Sync + 'static) -> Self {
        Self {
            login: Arc::new(login),
            hosts: Vec::new(),
            origins: Vec::new(),
            port: None,
            audit: None,
            #[cfg(feature = "jwks")]
            provider: None,
        }
    }

    /// By the tokens of this identity provider too.
    #[cfg(feature = "jwks")]
    pub fn or_jwks(self, provider: Jwks) -> Self {
        Self { provider: Some(Arc::new(provider)), ..self }
    }

    /// A name beside the loopback's under which the server is reached, as the header `Host` has it: with the port, unless it
    /// is the protocol's own.
    pub fn host(mut self, host: impl Into<String>) -> Self {
        self.hosts.push(host.into().to_ascii_lowercase());
        self
    }

    /// The origin of a page elsewhere that may call, such as `https://app.example.com`. Its browser is answered what it asks
    /// before (CORS); the page sends a token as every client does.
    pub fn origin(mut self, origin: impl Into<String>) -> Self {
        self.origins.push(origin.into().to_ascii_lowercase());
        self
    }

    /// The page elsewhere that sends this, if it may call.
    pub(crate) fn page(&self, headers: &HeaderMap) -> Option<Page> {
        let origin = headers.get(header::ORIGIN)?;
        let named = origin.to_str().ok()?.to_ascii_lowercase();
        self.origins.contains(&named).then(|| Page(origin.clone()))
    }

    /// Each request is written to this log when it is answered.
    pub fn audited(self, log: AuditLog) -> Self {
        Self { audit: Some(log), ..self }
    }

    pub(crate) fn audit(&self) -> Option<&AuditLog> {
        self.audit.as_ref()
    }

    /// On the loopback, only this port is ours.
    pub(crate) fn on_port(mut self, port: u16) -> Self {
        self.port = Some(port);
        self
    }

    /// Checks what can be checked without the body and without a token: the host, the origin and the type, in this order.
    pub(crate) fn check(&self, parts: &Parts) -> Answered<()> {
        let host = self.check_host(parts)?;
        self.check_origin(&parts.headers, &host)?;
        check_type(parts)
    }

    /// Who sends this.
    pub(crate) async fn principal(&self, parts: &Parts) -> Answered<Principal> {
        if let Some(who) = (self.login)(parts) {
            return Ok(who);
        }
        #[cfg(feature = "jwks")]
        if let (Some(provider), Some(token)) = (&self.provider, bearer(&parts.headers))
            && let Some(who) = provider.principal(token).await
        {
            return Ok(who);
        }
        let detail = "a valid token is needed: `Authorization: Bearer spt_…`";
        Err(Problem::new(StatusCode::UNAUTHORIZED, "no_token", detail))
    }

    /// A page that a name of its own leads here (DNS rebinding) has that name in `Host`.
    fn check_host(&self, parts: &Parts) -> Answered<String> {
        let mut named = parts.headers.get_all(header::HOST).iter();
        let host = match (named.next(), named.next(), parts.uri.authority()) {
            (Some(host), None, _) => host.to_str().unwrap_or_default().to_ascii_lowercase(),
            (None, None, Some(authority)) => authority.as_str().to_ascii_lowercase(),
            _ => String::new(),
        };
        if self.hosts.contains(&host) || self.is_loopback(&host) {
            return Ok(host);
        }
        let detail = format!("this server is not called `{host}`");
        Err(Problem::new(StatusCode::MISDIRECTED_REQUEST, "host", detail))
    }

    fn is_loopback(&self, host: &str) -> bool {
        const NAMES: [&str; 3] = ["127.0.0.1", "localhost", "[::1]"];
        NAMES.iter().any(|name| match host.strip_prefix(name) {
            Some("") => self.port.is_none_or(|port| port == 80),
            Some(rest) => rest
                .strip_prefix(':')
                .and_then(|port| port.parse::<u16>().ok())
                .is_some_and(|port| self.port.is_none_or(|own| own == port)),
            None => false,
        })
    }

    fn check_origin(&self, headers: &HeaderMap, host: &str) -> Answered<()> {
        let Some(origin) = headers.get(header::ORIGIN) else { return Ok(()) };
        let origin = origin.to_str().unwrap_or_default().to_ascii_lowercase();
        let own = ["http://", "https://"].iter().any(|scheme| origin.strip_prefix(scheme) == Some(host));
        if own || self.origins.contains(&origin) {
            return Ok(());
        }
        let detail = format!("pages of `{origin}` may not call this server");
        Err(Problem::new(StatusCode::FORBIDDEN, "origin", detail))
    }
}

/// A body of any other type is refused: forms and plain text are what any page can send without being asked.
fn check_type(parts: &Parts) -> Answered<()> {
    if matches!(parts.method, Method::GET | Method::HEAD | Method::DELETE) {
        return Ok(());
    }
    let length = parts.headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok());
    let has_body =
        parts.headers.contains_key(header::TRANSFER_ENCODING) || length.is_some_and(|length| length != "0");
    let named = parts.headers.get(header::CONTENT_TYPE).map(|named| named.to_str().unwrap_or_default());
    let is_json = |named: &str| {
        let essence = named.split(';').next().unwrap_or_default().trim();
        TYPES.iter().any(|json| essence.eq_ignore_ascii_case(json))
    };
    if named.map_or(!has_body, is_json) {
        return Ok(());
    }
    let detail = "a body must be application/json";
    Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "media_type", detail))
}

/// The token of a request; one in the address is never looked at.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access")
            .field("hosts", &self.hosts)
            .field("origins", &self.origins)
            .finish_non_exhaustive()
    }
}
