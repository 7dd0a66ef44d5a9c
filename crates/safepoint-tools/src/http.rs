//! `http_get`: fetches a text over HTTP, bounded in size, time and redirects.
//!
//! **Invariants**: nothing is looked up or sent before its origin was permitted, at each redirect anew; what is connected
//! to is an address that was judged.

use std::{borrow::Cow, net::SocketAddr, time::Duration};

use ::http::header;
use safepoint::{
    ToolContext, ToolResult,
    stop::Failure,
    tool::{EffectClass, FnTool, from_fn},
};
use safepoint_http::{HttpClient, HttpError, Proxy, Response, Settings};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::time::Instant;
use url::Url;

use crate::{files, limits, root::refusal};

mod permit;
mod range;

pub use range::is_public;

#[derive(Deserialize, JsonSchema)]
struct HttpArgs {
    /// The address, with `http://` or `https://`.
    url: String,
}

/// Fetches texts. A stop drops the exchange, which closes its connection.
///
/// Each origin is asked about, as `http_get/reach`, and a yes holds for the session; an address that is not public, as
/// `http_get/private`, takes a rule of that name. Proxies of the environment are not used: what they connect to could not
/// be judged.
#[must_use]
pub fn http_get() -> FnTool {
    from_fn(
        "http_get",
        "Fetches a text over HTTP and returns status, type and body.",
        |cx, args: HttpArgs| async move { fetch(&cx, parse(&args.url)?).await },
    )
    // By HTTP's own definition a GET asks for nothing to be changed.
    .with(|spec| spec.effect(EffectClass::ReadOnly))
}

fn parse(url: &str) -> Result<Url, Failure> {
    let url = Url::parse(url).map_err(|error| refusal(format!("`url` is not an address: {error}")))?;
    fetchable(url)
}

fn fetchable(url: Url) -> Result<Url, Failure> {
    match url.scheme() {
        "http" | "https" => Ok(url),
        other => Err(refusal(format!("`url` must begin with http:// or https://, not {other}:"))),
    }
}

/// The addresses that may be connected to. A person is not asked about an origin that no answer could open.
async fn permitted(cx: &ToolContext, at: &Url, left: &mut Remaining) -> ToolResult<Vec<SocketAddr>> {
    if permit::is_known(at) {
        let found = left.within(cx, permit::resolve(at)).await??;
        let permitted = permit::connect(cx, at, found).await?;
        permit::reach(cx, at).await?;
        return Ok(permitted);
    }
    permit::reach(cx, at).await?;
    let found = left.within(cx, permit::resolve(at)).await??;
    permit::connect(cx, at, found).await
}

async fn fetch(cx: &ToolContext, url: Url) -> ToolResult<String> {
    let shown = url.to_string();
    let mut left = Remaining { time: limits::HTTP_TIME, shown: shown.clone() };
    let mut at = url;
    for _ in 0..=limits::HTTP_REDIRECTS {
        let permitted = permitted(cx, &at, &mut left).await?;
        let client = client(permitted)?;
        let asked = client.get(&at).send();
        let response = left.within(cx, asked).await?.map_err(|error| fault(&shown, &error))?;
        // A user and a password are for the address that names them, and not for where it redirects to.
        let at_last = safepoint_http::apart(&at).map_or(at, |(bare, _known)| bare);
        match moved(&response, &at_last)? {
            Some(next) => at = next,
            None => return left.within(cx, reported(response, &at_last, &shown)).await?.map_err(Into::into),
        }
    }
    Err(refusal(format!("could not fetch {shown}: too many redirects")).into())
}

/// The time that is left to the network. Questions take none of it.
struct Remaining {
    time: Duration,
    shown: String,
}

impl Remaining {
    async fn within<F: Future>(&mut self, cx: &ToolContext, work: F) -> ToolResult<F::Output> {
        let began = Instant::now();
        let done = cx.run(tokio::time::timeout(self.time, work)).await?;
        self.time = self.time.saturating_sub(began.elapsed());
        let (shown, whole) = (&self.shown, limits::HTTP_TIME);
        Ok(done.map_err(|_elapsed| refusal(format!("{shown} gave no whole answer within {whole:?}")))?)
    }
}

fn fault(shown: &str, error: &HttpError) -> Failure {
    refusal(format!("could not fetch {shown}: {error}"))
}

/// Where the answer of an address says that the text is.
fn moved(response: &Response, at: &Url) -> Result<Option<Url>, Failure> {
    let place = response.headers().get(header::LOCATION).filter(|_| response.status().is_redirection());
    let Some(place) = place else { return Ok(None) };
    let next = place.to_str().ok().and_then(|place| at.join(place).ok());
    let next = next.ok_or_else(|| refusal(format!("{at} redirects to no address")))?;
    fetchable(next).map(Some)
}

async fn reported(response: Response, at: &Url, shown: &str) -> Result<String, Failure> {
    let status = response.status();
    let kind = kind_of(&response);
    if !is_text(&kind) {
        return Err(refusal(format!("{shown} answered {status} with {kind}, which is not text")));
    }
    let (bytes, is_whole) = body(response).await.map_err(|error| fault(shown, &error))?;
    if files::is_binary(&bytes[..bytes.len().min(limits::SNIFF_BYTES)]) {
        return Err(refusal(format!("{shown} answered {status} with something that is not text")));
    }
    let moved = if at.as_str() == shown { String::new() } else { format!("\nfrom {at}") };
    let cut = if is_whole { String::new() } else { format!("\n[cut after {} bytes]", bytes.len()) };
    let text = String::from_utf8_lossy(&bytes);
    let lossy = matches!(text, Cow::Owned(_));
    let notice = if lossy { "\n[some bytes are not UTF-8 and are shown as \u{fffd}]" } else { "" };
    Ok(format!("{status}{moved}\n{kind}\n\n{text}{cut}{notice}"))
}

/// The body, and whether that is all of it.
async fn body(mut response: Response) -> Result<(Vec<u8>, bool), HttpError> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        let room = limits::HTTP_BYTES - bytes.len();
        bytes.extend_from_slice(&chunk[..chunk.len().min(room)]);
        if chunk.len() > room {
            return Ok((bytes, false));
        }
    }
    Ok((bytes, true))
}

fn kind_of(response: &Response) -> String {
    let kind = response.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.unwrap_or("no content type").to_owned()
}

fn is_text(kind: &str) -> bool {
    const TEXT: [&str; 6] = ["json", "xml", "javascript", "yaml", "toml", "x-www-form-urlencoded"];
    let kind = kind.to_ascii_lowercase();
    kind == "no content type" || kind.starts_with("text/") || TEXT.iter().any(|text| kind.contains(text))
}

/// A client that can connect to nothing but what was judged.
fn client(addresses: Vec<SocketAddr>) -> Result<HttpClient, Failure> {
    let settings = Settings {
        connect_timeout: limits::HTTP_CONNECT,
        proxy: Proxy::Direct,
        addresses: Some(addresses),
        ..Settings::default()
    };
    HttpClient::new(&settings).map_err(|error| refusal(format!("could not set up HTTP: {error}")))
}
