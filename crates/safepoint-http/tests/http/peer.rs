//! The other side of a connection. Every wait has an end.

use std::time::Duration;

use safepoint_http::{HttpClient, Proxy, Settings};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    time::timeout,
};
use url::Url;

/// It in time.
pub(crate) async fn soon<T>(what: impl Future<Output = T>) -> T {
    timeout(Duration::from_secs(20), what).await.expect("it is there in time")
}

/// A listener, and its address with this path.
pub(crate) async fn listen() -> (TcpListener, Url) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/", listener.local_addr().unwrap());
    (listener, Url::parse(&address).unwrap())
}

/// A client that uses no proxy, whatever the environment says.
pub(crate) fn direct() -> HttpClient {
    HttpClient::new(&Settings { proxy: Proxy::Direct, ..Settings::default() }).unwrap()
}

/// One connection.
pub(crate) struct Peer<S = TcpStream> {
    pub(crate) stream: S,
    read: Vec<u8>,
}

impl Peer {
    pub(crate) async fn accept(listener: &TcpListener) -> Self {
        Self::of(soon(listener.accept()).await.unwrap().0)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Peer<S> {
    pub(crate) fn of(stream: S) -> Self {
        Self { stream, read: Vec::new() }
    }

    /// The next request, to the end of its headers, and as many bytes of its body as it says.
    pub(crate) async fn request(&mut self) -> String {
        let head = loop {
            if let Some(end) = self.read.windows(4).position(|window| window == b"\r\n\r\n") {
                break end + 4;
            }
            assert!(self.more().await, "the connection ended before a request");
        };
        let text = String::from_utf8(self.read[..head].to_vec()).unwrap();
        let length = text.lines().find_map(|line| line.strip_prefix("content-length: "));
        let length: usize = length.map_or(0, |length| length.parse().unwrap());
        while self.read.len() < head + length {
            assert!(self.more().await, "the connection ended in a body");
        }
        let rest = self.read.split_off(head + length);
        String::from_utf8(std::mem::replace(&mut self.read, rest)).unwrap()
    }

    /// The same, however long it takes.
    pub(crate) async fn closes(&mut self) {
        let mut bytes = [0; 1];
        assert_eq!(self.stream.read(&mut bytes).await.unwrap_or(0), 0);
    }

    async fn more(&mut self) -> bool {
        let mut bytes = [0; 4096];
        let count = soon(self.stream.read(&mut bytes)).await.unwrap_or(0);
        self.read.extend_from_slice(&bytes[..count]);
        count > 0
    }

    /// Waits until the client has ended the connection.
    pub(crate) async fn ended(&mut self) {
        while self.more().await {}
    }

    pub(crate) async fn say(&mut self, text: &str) {
        soon(self.stream.write_all(text.as_bytes())).await.unwrap();
    }

    pub(crate) async fn answer(&mut self, body: &str) {
        self.say(&format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len())).await;
    }
}
