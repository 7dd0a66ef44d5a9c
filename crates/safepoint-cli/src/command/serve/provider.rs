//! The identity provider of the config file.

use safepoint_server::Access;

use crate::{
    exit::Usage,
    settings::server::{JwksSettings, WebAddress},
};

/// Access by the tokens of the provider too.
///
/// # Errors
/// If its keys would come in the clear from another machine.
#[cfg(feature = "jwks")]
pub(super) fn trusted(access: Access, settings: &JwksSettings) -> Result<Access, Usage> {
    use std::sync::Arc;

    use futures_util::FutureExt as _;
    use safepoint_server::Jwks;

    let JwksSettings { url: WebAddress(url), issuer, audience } = settings.clone();
    let is_here = matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
    if url.scheme() != "https" && !is_here {
        return Err(Usage(format!("url of [server.jwks] must be https: {url}")));
    }
    let fetch = move || {
        let url = url.clone();
        async move {
            let response = safepoint_http::shared()?.get(&url).send().await?;
            if !response.status().is_success() {
                return Err(format!("{url} answered {}", response.status()).into());
            }
            Ok(response.bytes().await?.to_vec())
        }
        .boxed()
    };
    Ok(access.or_jwks(Jwks::new(issuer, audience, Arc::new(fetch))))
}

/// A build that checks no such tokens.
///
/// # Errors
/// Always.
#[cfg(not(feature = "jwks"))]
pub(super) fn trusted(_access: Access, settings: &JwksSettings) -> Result<Access, Usage> {
    let JwksSettings { url: WebAddress(url), issuer, audience } = settings;
    Err(Usage(format!(
        "this build checks no tokens of a provider, as [server.jwks] wants it ({url}, issuer {issuer}, audience {audience}): build \
         it with `--features jwks`"
    )))
}
