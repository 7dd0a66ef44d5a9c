//! The address on this machine to which the browser comes back.

use std::{io, time::Duration};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    time::timeout,
};
use url::Url;

use super::discovery::Authority;
use crate::visible::one_line;

/// The path that is asked for.
const PATH: &str = "/callback";
/// Bytes of a request, and how long it may take: whatever else comes to this port is not waited for.
const MOST: usize = 16 << 10;
const PATIENCE: Duration = Duration::from_secs(5);
/// Letters of what another server says.
const SAID: usize = 200;

/// A port of this machine, until the browser was there.
pub(super) struct Callback {
    listener: TcpListener,
    port: u16,
}

impl Callback {
    pub(super) async fn listen() -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        Ok(Self { listener, port })
    }

    pub(super) fn address(&self) -> String {
        format!("http://127.0.0.1:{}{PATH}", self.port)
    }

    /// The code that the browser brings. What has another state is none of this login.
    pub(super) async fn code(&self, state: &str, authority: &Authority) -> Result<String, String> {
        loop {
            let (mut socket, _) = self.listener.accept().await.map_err(|error| error.to_string())?;
            let asked = timeout(PATIENCE, self.request(&mut socket)).await.ok().flatten();
            let Some(asked) = asked.filter(|asked| asked.path() == PATH) else {
                answer(&mut socket, "404 Not Found", "There is nothing here.").await;
                continue;
            };
            let of = |name: &str| {
                asked.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
            };
            if of("state").as_deref() != Some(state) {
                answer(&mut socket, "400 Bad Request", "This login was not started here.").await;
                continue;
            }
            let is_other = match of("iss") {
                Some(issuer) => issuer.trim_end_matches('/') != authority.issuer.trim_end_matches('/'),
                None => authority.names_issuer,
            };
            if is_other {
                answer(
                    &mut socket,
                    "400 Bad Request",
                    "This answer is from another server. You are not logged in.",
                )
                .await;
                return Err("the answer is from another authorization server".to_owned());
            }
            let Some(code) = of("code") else {
                answer(&mut socket, "200 OK", "You are not logged in. You can close this page.").await;
                let why = [of("error"), of("error_description")].into_iter().flatten();
                let why: Vec<String> = why.map(|text| one_line(&text, SAID)).collect();
                return Err(format!("it was refused: {}", why.join(": ")));
            };
            answer(&mut socket, "200 OK", "Safepoint has what it needs. You can close this page.").await;
            return Ok(code);
        }
    }

    /// What is asked for; none of what is no request.
    async fn request(&self, socket: &mut TcpStream) -> Option<Url> {
        let mut read = Vec::new();
        while !read.windows(4).any(|end| end == b"\r\n\r\n") {
            let mut bytes = [0; 1024];
            let count = socket.read(&mut bytes).await.ok().filter(|count| *count > 0)?;
            read.extend_from_slice(&bytes[..count]);
            if read.len() > MOST {
                return None;
            }
        }
        let text = String::from_utf8_lossy(&read);
        let target = text.strip_prefix("GET ")?.split(' ').next()?;
        Url::parse(&self.address()).ok()?.join(target).ok()
    }
}

async fn answer(socket: &mut TcpStream, status: &str, text: &str) {
    let page = format!("<!doctype html><meta charset=utf-8><title>Safepoint</title><p>{text}</p>");
    let length = page.len();
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {length}\r\n\
         cache-control: no-store\r\nreferrer-policy: no-referrer\r\nconnection: close\r\n\r\n"
    );
    let written = timeout(PATIENCE, socket.write_all(format!("{head}{page}").as_bytes())).await;
    if written.is_err() {
        // The browser has gone.
    }
}
