//! Webhooks of the server, each to an address that was judged: what a name leads to is looked up, and connected to only if it is public
//! or the settings say that it may be private.

use std::{error::Error, net::SocketAddr, sync::Arc};

use futures_util::FutureExt as _;
use http::{HeaderName, HeaderValue, header};
use safepoint_http::{HttpClient, Proxy, Settings};
use safepoint_server::{HookAttempt, Webhook};
use safepoint_tools::is_public;
use url::{Host, Url};

use crate::{
    exit::Usage,
    settings::server::{WebAddress, WebhookSettings},
};

/// A webhook of the config file.
///
/// # Errors
/// If its secret is not there.
pub(super) fn webhook(settings: &WebhookSettings) -> Result<Webhook, Usage> {
    let WebhookSettings { url: WebAddress(url), secret_env, private } = settings.clone();
    let secret = std::env::var(&secret_env).ok().filter(|secret| !secret.is_empty()).ok_or_else(|| {
        Usage(format!("the webhook {url} has no secret: set {secret_env}, which secret_env of it names"))
    })?;
    if url.scheme() != "https" && !private {
        return Err(Usage(format!("the webhook {url} must be https, unless `private = true`")));
    }
    let text = url.to_string();
    let sender = move |attempt: HookAttempt| {
        let url = url.clone();
        async move { send(&url, private, attempt).await }.boxed()
    };
    Ok(Webhook::new(text, secret, Arc::new(sender)))
}

async fn send(url: &Url, private: bool, attempt: HookAttempt) -> Result<u16, Box<dyn Error + Send + Sync>> {
    let found = addresses(url).await?;
    if let Some(address) = found.iter().find(|address| !private && !is_public(address.ip())) {
        return Err(format!("{} is not public, and `private` of the webhook is not set", address.ip()).into());
    }
    // Exactly what was judged: a second look-up might find another address.
    let settings = Settings { proxy: Proxy::Direct, addresses: Some(found), ..Settings::default() };
    let json = HeaderValue::from_static("application/json");
    let mut request =
        HttpClient::new(&settings)?.post(url).header(header::CONTENT_TYPE, json).body(attempt.body);
    for (name, value) in attempt.headers {
        request = request.header(HeaderName::from_static(name), HeaderValue::try_from(value)?);
    }
    Ok(request.send().await?.status().as_u16())
}

async fn addresses(url: &Url) -> Result<Vec<SocketAddr>, Box<dyn Error + Send + Sync>> {
    let port = url.port_or_known_default().unwrap_or_default();
    let found: Vec<SocketAddr> = match url.host() {
        Some(Host::Ipv4(address)) => vec![(address, port).into()],
        Some(Host::Ipv6(address)) => vec![(address, port).into()],
        Some(Host::Domain(name)) => tokio::net::lookup_host((name, port)).await?.collect(),
        None => Vec::new(),
    };
    if found.is_empty() { Err(format!("{url} leads to no address").into()) } else { Ok(found) }
}
