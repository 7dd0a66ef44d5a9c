//! The identity provider of the config file.

use safepoint_server::Access;

#[cfg(feature = "jwks")]
use crate::api::address::{client, is_local};
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
    if url.scheme() != "https" && !is_local(&url) {
        return Err(Usage(format!("url of [server.jwks] must be https: {url}")));
    }
    let fetch = move || {
        let url = url.clone();
        async move { keys(&url).await }.boxed()
    };
    Ok(access.or_jwks(Jwks::new(issuer, audience, Arc::new(fetch))))
}

/// The keys that the provider publishes there.
#[cfg(feature = "jwks")]
async fn keys(url: &url::Url) -> Result<Vec<u8>, Box<dyn std::error::Error + Send + Sync>> {
    /// The most that is read.
    const MOST: usize = 1 << 20;
    let mut response = client(url)?.get(url).send().await?;
    if !response.status().is_success() {
        return Err(format!("{url} answered {}", response.status()).into());
    }
    let mut keys = Vec::new();
    while let Some(more) = response.chunk().await? {
        keys.extend_from_slice(&more);
        if keys.len() > MOST {
            return Err(format!("{url} answered more than {MOST} bytes").into());
        }
    }
    Ok(keys)
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

#[cfg(all(test, feature = "jwks"))]
mod tests {
    use std::{
        io::{Read as _, Write as _},
        net::TcpListener,
        thread,
    };

    use super::*;

    /// S13.26: what is no set of keys any more for its size is not read to its end.
    #[tokio::test]
    async fn the_keys_are_read_within_a_bound() {
        for (megabytes, is_read) in [(1, true), (4, false)] {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let url = format!("http://{}/keys", listener.local_addr().unwrap()).parse().unwrap();
            let answers = thread::spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                let (mut head, mut byte) = (Vec::new(), [0]);
                while !head.ends_with(b"\r\n\r\n") {
                    stream.read_exact(&mut byte).unwrap();
                    head.push(byte[0]);
                }
                let body = vec![b' '; megabytes << 20];
                // A reader that has enough closes.
                drop(write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len()));
                drop(stream.write_all(&body));
            });
            let read = keys(&url).await.map(|keys| keys.len()).map_err(|error| error.to_string());
            assert_eq!(read.is_ok(), is_read, "{read:?}");
            answers.join().unwrap();
        }
    }
}
