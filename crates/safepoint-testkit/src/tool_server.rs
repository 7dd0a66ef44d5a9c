//! Tools as HTTP calls: an agent of any language calls them, each call is counted, and what became of it is known.
//!
//! **Invariants:** a call has one end: it was answered, or its connection was closed by the peer before that. Dropping the server closes
//! all connections.

use std::{
    io,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use serde_json::Value;
use tokio::{sync::watch, time::Instant};

use crate::{
    http::{self, Connection, Serving},
    sync::lock,
};

/// A server whose tools work until they are released.
///
/// ```
/// # use safepoint_testkit::tool_server::ToolServer;
/// # async fn of() -> std::io::Result<()> {
/// let tools = ToolServer::start().await?;
/// // An agent's tool posts its arguments to `{url}/pay`, and has its result once the call is released.
/// println!("{}/pay", tools.url());
/// assert!(tools.calls().is_empty());
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct ToolServer {
    address: SocketAddr,
    shared: Arc<ServedCalls>,
    _serving: Serving,
}

/// A call of a tool.
#[derive(Clone, Debug)]
pub struct ServedCall {
    /// Its place among the calls, from 0.
    pub id: usize,
    /// The tool: the last part of the path.
    pub name: String,
    /// Its arguments; null if they are no JSON.
    pub arguments: Value,
    /// When it arrived.
    pub at: Instant,
    end: watch::Receiver<Option<ToolEnd>>,
}

/// How a call ended. Exhaustive: there is no other way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolEnd {
    /// It was answered then.
    Answered(Instant),
    /// The peer closed its connection then, before there was an answer.
    Closed(Instant),
}

#[derive(Debug, Default)]
struct ServedCalls {
    /// Held for one look or one addition; no other lock is taken under it.
    calls: Mutex<Vec<ServedCall>>,
    /// How many calls are released.
    released: watch::Sender<usize>,
}

/// What a released call answers.
const RESULT: &str = "done";

impl ToolServer {
    /// Starts a server on a free loopback port.
    ///
    /// # Errors
    /// If no port can be had.
    ///
    /// # Cancel safety
    /// Nothing is served if dropped.
    pub async fn start() -> io::Result<Self> {
        let listener = http::bind(http::LOOPBACK)?;
        let address = listener.local_addr()?;
        let shared = Arc::<ServedCalls>::default();
        Ok(Self { address, _serving: Serving::start(listener, &shared, serve), shared })
    }

    /// The URL before the names of the tools, without a slash at its end.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// All calls so far, in order.
    #[must_use]
    pub fn calls(&self) -> Vec<ServedCall> {
        lock(&self.shared.calls).clone()
    }

    /// The first calls, this many, are answered once they are there: each has done its work.
    pub fn release(&self, calls: usize) {
        self.shared.released.send_replace(calls);
    }
}

impl ServedCall {
    /// How it ended, if it has.
    #[must_use]
    pub fn end(&self) -> Option<ToolEnd> {
        *self.end.borrow()
    }

    /// Waits until it has ended.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn ended(&self) {
        if self.end.clone().wait_for(Option::is_some).await.is_err() {
            // The server is gone, and the connection with it.
        }
    }
}

impl ServedCalls {
    fn begin(&self, name: &str, body: &[u8]) -> (usize, watch::Sender<Option<ToolEnd>>) {
        let (ends, end) = watch::channel(None);
        let mut calls = lock(&self.calls);
        let (id, name) = (calls.len(), name.rsplit('/').next().unwrap_or_default().to_owned());
        let arguments = serde_json::from_slice(body).unwrap_or_default();
        calls.push(ServedCall { id, name, arguments, at: Instant::now(), end });
        (id, ends)
    }
}

async fn serve(mut connection: Connection, shared: Arc<ServedCalls>) -> io::Result<()> {
    while let Some(request) = connection.request().await? {
        let (id, ends) = shared.begin(&request.path, &request.body);
        let mut released = shared.released.subscribe();
        // Biased: what was closed has no answer, also if both are so.
        let is_closed = tokio::select! {
            biased;
            () = connection.closed() => true,
            _ = released.wait_for(|released| *released > id) => false,
        };
        if is_closed {
            ends.send_replace(Some(ToolEnd::Closed(Instant::now())));
            return Ok(());
        }
        connection.respond("200 OK", "text/plain", RESULT).await?;
        ends.send_replace(Some(ToolEnd::Answered(Instant::now())));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpStream,
    };

    use super::*;
    use crate::wait::bounded;

    async fn call(tools: &ToolServer) -> TcpStream {
        let mut socket = TcpStream::connect(tools.address).await.unwrap();
        let request = "POST /pay HTTP/1.1\r\nhost: here\r\ncontent-length: 13\r\n\r\n{\"what\":\"it\"}";
        socket.write_all(request.as_bytes()).await.unwrap();
        socket
    }

    async fn first(tools: &ToolServer) -> ServedCall {
        loop {
            match tools.calls().into_iter().next() {
                Some(call) => return call,
                None => tokio::task::yield_now().await,
            }
        }
    }

    #[tokio::test]
    async fn a_call_that_is_released_is_answered() {
        let tools = ToolServer::start().await.unwrap();
        let mut socket = call(&tools).await;
        let call = bounded("the call arrives", first(&tools)).await;
        assert_eq!((call.name.as_str(), &call.arguments["what"]), ("pay", &Value::from("it")));
        assert_eq!(call.end(), None);
        tools.release(1);
        bounded("the call ends", call.ended()).await;
        assert!(matches!(call.end(), Some(ToolEnd::Answered(_))), "{:?}", call.end());
        let mut answer = [0; 15];
        bounded("the answer comes", socket.read_exact(&mut answer)).await.unwrap();
        assert_eq!(&answer, b"HTTP/1.1 200 OK");
    }

    #[tokio::test]
    async fn a_call_whose_connection_is_closed_has_no_answer() {
        let tools = ToolServer::start().await.unwrap();
        let socket = call(&tools).await;
        let call = bounded("the call arrives", first(&tools)).await;
        drop(socket);
        bounded("the call ends", call.ended()).await;
        assert!(matches!(call.end(), Some(ToolEnd::Closed(_))), "{:?}", call.end());
    }
}
