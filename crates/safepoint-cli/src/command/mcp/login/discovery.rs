//! Where a server of tools lets people log in: its own metadata, and that of its authorization server.

use serde::Deserialize;
use url::Url;

use crate::settings::login::oauth;

/// An authorization server, as far as a login needs it.
pub(super) struct Authority {
    pub(super) issuer: String,
    pub(super) authorization: Url,
    pub(super) token: Url,
    pub(super) registration: Option<Url>,
    /// What the token is asked for.
    pub(super) resource: String,
    /// Whether an answer names who gives it.
    pub(super) names_issuer: bool,
    scopes: Vec<String>,
}

/// What a server of tools says of itself.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ResourceMetadata {
    resource: Option<String>,
    authorization_servers: Vec<String>,
    scopes_supported: Vec<String>,
}

/// What an authorization server says of itself.
#[derive(Deserialize)]
struct AuthorityMetadata {
    issuer: String,
    authorization_endpoint: String,
    token_endpoint: String,
    registration_endpoint: Option<String>,
    #[serde(default)]
    code_challenge_methods_supported: Vec<String>,
    #[serde(default)]
    authorization_response_iss_parameter_supported: bool,
}

impl Authority {
    /// Looks where a login at this server is to be had.
    ///
    /// # Errors
    /// If there is no such place, or it is not one that a login may go to.
    pub(super) async fn of(server: &Url) -> Result<Self, String> {
        let challenge = oauth::challenge(server).await?.unwrap_or_default();
        let about = about(server, parameter(&challenge, "resource_metadata")).await?;
        let resource = about.resource.unwrap_or_else(|| server.to_string());
        if !covers(&resource, server) {
            return Err("it names itself as another server, so no login starts".to_owned());
        }
        // Servers of before that metadata are their own authorization server.
        let issuer = about.authorization_servers.first().cloned().unwrap_or_else(|| root(server));
        let found = metadata(&issuer).await?;
        if !found.code_challenge_methods_supported.iter().any(|method| method == "S256") {
            return Err(format!("{issuer} knows no PKCE with S256, so a code could be stolen on its way"));
        }
        let scopes = match parameter(&challenge, "scope") {
            Some(scope) => scope.split_whitespace().map(str::to_owned).collect(),
            None => about.scopes_supported,
        };
        Ok(Self {
            authorization: oauth::address(&found.authorization_endpoint)?,
            token: oauth::address(&found.token_endpoint)?,
            registration: found.registration_endpoint.as_deref().map(oauth::address).transpose()?,
            names_issuer: found.authorization_response_iss_parameter_supported,
            issuer: found.issuer,
            resource,
            scopes,
        })
    }

    /// What is asked for, where the person names nothing.
    pub(super) fn scopes(&self) -> Option<String> {
        Some(self.scopes.join(" ")).filter(|scopes| !scopes.is_empty())
    }
}

/// The metadata of a server of tools, from where it says, else from where it usually is.
async fn about(server: &Url, named: Option<String>) -> Result<ResourceMetadata, String> {
    const USUAL: &str = "/.well-known/oauth-protected-resource";
    let mut places = Vec::new();
    if let Some(named) = named {
        places.push(oauth::address(&named)?);
    }
    let path = server.path().trim_end_matches('/');
    places.push(with_path(server, &format!("{USUAL}{path}")));
    places.push(with_path(server, USUAL));
    for place in places {
        if let Some(found) = oauth::get(&place).await? {
            return Ok(found);
        }
    }
    Ok(ResourceMetadata::default())
}

/// The metadata of an authorization server, where the standards have it.
async fn metadata(issuer: &str) -> Result<AuthorityMetadata, String> {
    let at = oauth::address(issuer)?;
    let path = at.path().trim_end_matches('/');
    let places = [
        format!("/.well-known/oauth-authorization-server{path}"),
        format!("/.well-known/openid-configuration{path}"),
        format!("{path}/.well-known/openid-configuration"),
    ];
    for place in places {
        let found: Option<AuthorityMetadata> = oauth::get(&with_path(&at, &place)).await?;
        let Some(found) = found else { continue };
        if found.issuer.trim_end_matches('/') != issuer.trim_end_matches('/') {
            return Err(format!("{issuer} says that it is another authorization server"));
        }
        return Ok(found);
    }
    Err(format!("{issuer} has no metadata of an authorization server"))
}

fn with_path(address: &Url, path: &str) -> Url {
    let mut address = address.clone();
    address.set_path(path);
    address.set_query(None);
    address.set_fragment(None);
    address
}

fn root(address: &Url) -> String {
    with_path(address, "").as_str().trim_end_matches('/').to_owned()
}

/// Whether this server is what the resource names, or lies below it.
fn covers(resource: &str, server: &Url) -> bool {
    let Ok(resource) = Url::parse(resource) else { return false };
    let (own, base) = (server.path().trim_end_matches('/'), resource.path().trim_end_matches('/'));
    let is_below = own == base || own.strip_prefix(base).is_some_and(|rest| rest.starts_with('/'));
    resource.origin() == server.origin() && is_below
}

/// A parameter of a `WWW-Authenticate` header.
fn parameter(header: &str, name: &str) -> Option<String> {
    let (_, rest) = header.split_once(&format!("{name}=\""))?;
    rest.split_once('"').map(|(value, _)| value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_only_what_it_is_reached_at() {
        let server = Url::parse("https://a.example/mcp/one").unwrap();
        for good in ["https://a.example/mcp/one", "https://a.example/mcp/", "https://a.example"] {
            assert!(covers(good, &server), "{good}");
        }
        for bad in ["https://b.example/mcp/one", "https://a.example/mc", "http://a.example/mcp/one", "x"] {
            assert!(!covers(bad, &server), "{bad}");
        }
    }

    #[test]
    fn a_header_says_where_and_for_what() {
        let header = "Bearer error=\"x\", resource_metadata=\"https://a.example/m\", scope=\"a b\"";
        assert_eq!(parameter(header, "resource_metadata").as_deref(), Some("https://a.example/m"));
        assert_eq!(parameter(header, "scope").as_deref(), Some("a b"));
        assert_eq!(parameter("Bearer", "scope"), None);
    }
}
