//! Exchanges with an authorization server: bounded, and only over TLS or with this machine.

use std::time::Duration;

use http::{
    HeaderValue, Method,
    header::{ACCEPT, CONTENT_TYPE},
};
use safepoint_http::{Response, shared};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::timeout;
use url::{Host, Url, form_urlencoded};

use super::Tokens;
use crate::visible::one_line;

/// For so long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(30);
/// Bytes of an answer.
const MOST: usize = 256 << 10;
/// Letters of an error that another server says.
const SAID: usize = 200;

/// An address that a secret may go to: over TLS, or on this machine.
///
/// # Errors
/// If it is none.
pub(crate) fn address(text: &str) -> Result<Url, String> {
    let wrong = |why: &str| format!("{}: {why}", one_line(text, SAID));
    let address = Url::parse(text).map_err(|error| wrong(&error.to_string()))?;
    let is_here = match address.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    };
    match address.scheme() {
        "https" => Ok(address),
        "http" if is_here => Ok(address),
        _ => Err(wrong("a login goes over https: only")),
    }
}

/// Reads a document; none where there is none.
///
/// # Errors
/// If the server cannot be reached, or says something else.
pub(crate) async fn get<T: DeserializeOwned>(address: &Url) -> Result<Option<T>, String> {
    let (status, body) = send(address, Method::GET, None).await?;
    if !(200..300).contains(&status) {
        return Ok(None);
    }
    Ok(serde_json::from_slice(&body).ok())
}

/// Sends JSON.
///
/// # Errors
/// As [`get`], and the server's own.
pub(crate) async fn post_json<T: DeserializeOwned>(address: &Url, body: &Value) -> Result<T, String> {
    let sent = ("application/json", body.to_string());
    understood(address, send(address, Method::POST, Some(sent)).await?)
}

/// Asks for tokens.
///
/// # Errors
/// As [`get`], and the server's own.
pub(crate) async fn post_form(address: &Url, form: &[(&str, &str)]) -> Result<Tokens, String> {
    let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
    let sent = ("application/x-www-form-urlencoded", body);
    understood(address, send(address, Method::POST, Some(sent)).await?)
}

/// What the answer says; of an error only its name and description, never what else is in it.
fn understood<T: DeserializeOwned>(address: &Url, (status, body): (u16, Vec<u8>)) -> Result<T, String> {
    let host = address.host_str().unwrap_or_default().to_owned();
    if (200..300).contains(&status) {
        return serde_json::from_slice(&body)
            .map_err(|_misread| format!("{host} answered, but not as the protocol says"));
    }
    let said: Value = serde_json::from_slice(&body).unwrap_or_default();
    let word = |name: &str| said[name].as_str().map(|text| one_line(text, SAID));
    let why: Vec<String> = ["error", "error_description"].into_iter().filter_map(word).collect();
    Err(match why.is_empty() {
        true => format!("{host} answered with HTTP {status}"),
        false => format!("{host} answered {}", why.join(": ")),
    })
}

/// How a server without a token answers: its header that says where a login is to be had.
///
/// # Errors
/// If it cannot be reached.
pub(crate) async fn challenge(server: &Url) -> Result<Option<String>, String> {
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#.to_owned();
    let answered = exchange(server, Method::POST, Some(("application/json", ping))).await?;
    let header = answered.headers().get(http::header::WWW_AUTHENTICATE);
    Ok(header.and_then(|value| value.to_str().ok()).map(str::to_owned))
}

async fn send(
    address: &Url,
    method: Method,
    body: Option<(&'static str, String)>,
) -> Result<(u16, Vec<u8>), String> {
    let read = async {
        let mut response = exchange(address, method, body).await?;
        let mut read = Vec::new();
        while let Some(bytes) = response.chunk().await.map_err(|error| error.to_string())? {
            read.extend_from_slice(&bytes);
            if read.len() > MOST {
                return Err(format!("{} answered with more than {MOST} bytes", host(address)));
            }
        }
        Ok((response.status().as_u16(), read))
    };
    timeout(PATIENCE, read)
        .await
        .unwrap_or_else(|_elapsed| Err(format!("{} did not answer in time", host(address))))
}

async fn exchange(
    address: &Url,
    method: Method,
    body: Option<(&'static str, String)>,
) -> Result<Response, String> {
    let client = shared().map_err(|error| error.to_string())?;
    let accepted = HeaderValue::from_static("application/json, text/event-stream");
    let mut request = client.request(method, address).header(ACCEPT, accepted);
    if let Some((kind, body)) = body {
        request = request.header(CONTENT_TYPE, HeaderValue::from_static(kind)).body(body);
    }
    let sent = timeout(PATIENCE, request.send()).await;
    let sent = sent.map_err(|_elapsed| format!("{} did not answer in time", host(address)))?;
    sent.map_err(|error| format!("{} cannot be reached: {}", host(address), error.root_cause()))
}

fn host(address: &Url) -> &str {
    address.host_str().unwrap_or("the server")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S12.63
    #[test]
    fn a_login_goes_over_tls_or_stays_on_this_machine() {
        for good in ["https://a.example/x", "http://127.0.0.1:8/", "http://localhost/", "http://[::1]:1/"] {
            assert!(address(good).is_ok(), "{good}");
        }
        for bad in
            ["http://a.example/", "http://127.0.0.1.a.example/", "file:///x", "x", "javascript:alert(1)"]
        {
            assert!(address(bad).is_err(), "{bad}");
        }
    }
}
