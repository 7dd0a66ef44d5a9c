//! `http_get`: fetches a text over HTTP, bounded in size, time and redirects.

use std::{borrow::Cow, sync::OnceLock};

use reqwest::{Client, Response, Url, header, redirect};
use safepoint::{
    Failure,
    tool::{EffectClass, FnTool, from_fn},
};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{files, limits, root::refusal};

#[derive(Deserialize, JsonSchema)]
struct Args {
    /// The address, with `http://` or `https://`.
    url: String,
}

/// Fetches texts. A stop drops the exchange, which closes its connection.
#[must_use]
pub fn http_get() -> FnTool {
    from_fn(
        "http_get",
        "Fetches a text over HTTP and returns status, type and body.",
        |cx, args: Args| async move {
            let url = parse(&args.url)?;
            let got = cx.run(tokio::time::timeout(limits::HTTP_TIME, fetch(url))).await?;
            let late =
                || refusal(format!("{} gave no whole answer within {:?}", args.url, limits::HTTP_TIME));
            Ok(got.map_err(|_elapsed| late())??)
        },
    )
    // By HTTP's own definition a GET asks for nothing to be changed.
    .with(|spec| spec.effect(EffectClass::ReadOnly))
}

fn parse(url: &str) -> Result<Url, Failure> {
    let url = Url::parse(url).map_err(|error| refusal(format!("`url` is not an address: {error}")))?;
    match url.scheme() {
        "http" | "https" => Ok(url),
        other => Err(refusal(format!("`url` must begin with http:// or https://, not {other}:"))),
    }
}

async fn fetch(url: Url) -> Result<String, Failure> {
    let shown = url.to_string();
    let fault = |error: reqwest::Error| refusal(format!("could not fetch {shown}: {}", in_full(&error)));
    let response = client()?.get(url).send().await.map_err(&fault)?;
    let status = response.status();
    let kind = kind_of(&response);
    if !is_text(&kind) {
        return Err(refusal(format!("{shown} answered {status} with {kind}, which is not text")));
    }
    let place = response.url().to_string();
    let body = body(response).await.map_err(&fault)?;
    if files::is_binary(&body.bytes[..body.bytes.len().min(limits::SNIFF_BYTES)]) {
        return Err(refusal(format!("{shown} answered {status} with something that is not text")));
    }
    let moved = if place == shown { String::new() } else { format!("\nfrom {place}") };
    let cut = if body.whole { String::new() } else { format!("\n[cut after {} bytes]", body.bytes.len()) };
    let text = String::from_utf8_lossy(&body.bytes);
    let lossy = matches!(text, Cow::Owned(_));
    let notice = if lossy { "\n[some bytes are not UTF-8 and are shown as \u{fffd}]" } else { "" };
    Ok(format!("{status}{moved}\n{kind}\n\n{text}{cut}{notice}"))
}

struct Body {
    bytes: Vec<u8>,
    whole: bool,
}

async fn body(mut response: Response) -> reqwest::Result<Body> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        let room = limits::HTTP_BYTES - bytes.len();
        bytes.extend_from_slice(&chunk[..chunk.len().min(room)]);
        if chunk.len() > room {
            return Ok(Body { bytes, whole: false });
        }
    }
    Ok(Body { bytes, whole: true })
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

fn client() -> Result<Client, Failure> {
    static CLIENT: OnceLock<Result<Client, String>> = OnceLock::new();
    let client = CLIENT.get_or_init(|| {
        if rustls::crypto::ring::default_provider().install_default().is_err() {
            // the host program chose a provider before us; its choice stands
        }
        Client::builder()
            .connect_timeout(limits::HTTP_CONNECT)
            .redirect(redirect::Policy::limited(limits::HTTP_REDIRECTS))
            .retry(reqwest::retry::never())
            .build()
            .map_err(|error| in_full(&error))
    });
    client.clone().map_err(|error| refusal(format!("could not set up HTTP: {error}")))
}

/// An error with everything behind it: reqwest's own words leave out what matters.
fn in_full(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str(&format!(": {error}"));
        source = error.source();
    }
    text
}
