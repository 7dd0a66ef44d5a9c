//! A server over Streamable HTTP, in the test's own process.

use std::{
    io,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::broadcast,
    task::{JoinHandle, JoinSet},
};

use super::{
    McpManners, ServerStart, Speaks,
    brain::{Brain, Step},
    now_ns,
};
use crate::request::{self, Request};

/// A server that listens until it is dropped.
#[derive(Debug)]
pub struct HttpServer {
    url: String,
    mind: Arc<Mind>,
    task: JoinHandle<()>,
}

#[derive(Debug)]
struct Mind {
    brain: Mutex<Brain>,
    seen: Mutex<Vec<(u64, McpSeen)>>,
    news: broadcast::Sender<News>,
    /// The number of the session that is known now.
    session: AtomicU64,
}

/// What goes to those who listen. Exhaustive: a notice, or the end of their streams.
#[derive(Clone, Debug)]
enum News {
    Notice(Value),
    End,
}

/// Notices that a slow listener may be behind.
const NEWS: usize = 64;

/// What the server saw. Exhaustive: a message, or the end of an exchange before its answer.
#[derive(Clone, Debug, PartialEq)]
pub enum McpSeen {
    /// A message.
    Got(Value),
    /// The client gave up the exchange of this request.
    GaveUp(Value),
}

impl HttpServer {
    /// Starts one on a free port.
    ///
    /// # Errors
    /// If there is no port.
    ///
    /// # Cancel safety
    /// Nothing is left behind.
    pub async fn start(manners: McpManners) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}/mcp", listener.local_addr()?);
        let brain = Mutex::new(Brain::new(manners));
        let news = broadcast::Sender::new(NEWS);
        let mind = Arc::new(Mind { brain, seen: Mutex::new(Vec::new()), news, session: AtomicU64::new(1) });
        let for_task = Arc::clone(&mind);
        let task = tokio::spawn(async move {
            // Dropped with this task: a server that is gone answers on no connection that it still had.
            let mut connections = JoinSet::new();
            while let Ok((socket, _)) = listener.accept().await {
                let mind = Arc::clone(&for_task);
                connections.spawn(async move {
                    if serve(socket, &mind).await.is_err() {
                        // The client is gone.
                    }
                });
            }
        });
        Ok(Self { url, mind, task })
    }

    /// Where it listens.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Ends the streams of those who listen for changes.
    pub fn hang_up(&self) {
        if self.mind.news.send(News::End).is_err() {
            // Nobody listens.
        }
    }

    /// Knows no session any more, as after a restart of its own.
    pub fn forget(&self) {
        self.mind.session.fetch_add(1, Ordering::SeqCst);
    }

    /// What it saw so far, with the time of the world's clock in nanoseconds.
    #[must_use]
    pub fn seen(&self) -> Vec<(u64, McpSeen)> {
        self.mind.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Mind {
    fn note(&self, seen: McpSeen) {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).push((now_ns(), seen));
    }

    fn hear(&self, message: &Value) -> Vec<Step> {
        self.note(McpSeen::Got(message.clone()));
        self.brain.lock().unwrap_or_else(PoisonError::into_inner).hear(message)
    }

    fn start(&self) -> ServerStart {
        self.brain.lock().unwrap_or_else(PoisonError::into_inner).manners.start
    }

    fn speaks(&self) -> Speaks {
        self.brain.lock().unwrap_or_else(PoisonError::into_inner).manners.speaks
    }
}

async fn serve(mut socket: TcpStream, mind: &Mind) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let mut buffer = Vec::new();
    while let Some(Request { method, body, session, .. }) = request::read(&mut socket, &mut buffer).await? {
        let known = mind.session.load(Ordering::SeqCst).to_string();
        match method.as_str() {
            _ if session.is_some_and(|session| session != known) => {
                socket.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n").await?;
            }
            "POST" => answer(&mut socket, mind, &body).await?,
            "DELETE" => socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await?,
            _ => {
                socket.write_all(b"HTTP/1.1 405 Method Not Allowed\r\ncontent-length: 0\r\n\r\n").await?;
            }
        }
    }
    Ok(())
}

async fn answer(socket: &mut TcpStream, mind: &Mind, body: &[u8]) -> io::Result<()> {
    let Ok(message) = serde_json::from_slice::<Value>(body) else {
        return socket.write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n").await;
    };
    let news = mind.news.subscribe();
    let steps = mind.hear(&message);
    if message["id"].is_null() {
        return socket.write_all(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n").await;
    }
    if message["method"] == "tools/call" {
        return stream(socket, mind, &message, steps).await;
    }
    let said = steps.into_iter().find_map(|step| match step {
        Step::Say(said) => Some(said),
        Step::Tell(_) | Step::Raw(_) | Step::Status(_) | Step::Die(..) => None,
    });
    let Some(said) = said else { return gave_up(socket, mind, &message).await };
    if message["method"] == "subscriptions/listen" && said["method"].is_string() {
        return tell(socket, mind, &message, said, news).await;
    }
    let session = match mind.speaks() {
        Speaks::Older if message["method"] == "initialize" => {
            format!("mcp-session-id: {}\r\n", mind.session.load(Ordering::SeqCst))
        }
        Speaks::Older | Speaks::Newest => String::new(),
    };
    let text = said.to_string();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n{session}content-length: {}\r\n\r\n",
        text.len()
    );
    socket.write_all((head + &text).as_bytes()).await
}

const STREAM: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

async fn event(socket: &mut TcpStream, said: &Value) -> io::Result<()> {
    let event = format!("event: message\ndata: {said}\n\n");
    socket.write_all(format!("{:x}\r\n{event}\r\n", event.len()).as_bytes()).await
}

/// Tells a listener what changes, until it or the server has enough of that.
async fn tell(
    socket: &mut TcpStream,
    mind: &Mind,
    request: &Value,
    first: Value,
    mut news: broadcast::Receiver<News>,
) -> io::Result<()> {
    socket.write_all(STREAM.as_bytes()).await?;
    let mut said = first;
    loop {
        event(socket, &said).await?;
        said = tokio::select! {
            biased;
            // Whichever loses has read nothing.
            ended = gave_up(socket, mind, request) => return ended,
            news = news.recv() => match news {
                Ok(News::Notice(notice)) => notice,
                Ok(News::End) | Err(_) => return Err(io::ErrorKind::ConnectionAborted.into()),
            },
        };
    }
}

/// Answers a call with a stream of events; where there is no answer, the stream stays open, and silent.
async fn stream(socket: &mut TcpStream, mind: &Mind, call: &Value, steps: Vec<Step>) -> io::Result<()> {
    if mind.start() == ServerStart::Wedge {
        return gave_up(socket, mind, call).await;
    }
    if let [Step::Status(status)] = steps[..] {
        let page = "<h1>Do as I say</h1>";
        let head = format!(
            "HTTP/1.1 {status} Down\r\ncontent-type: text/html\r\ncontent-length: {}\r\n\r\n",
            page.len()
        );
        return socket.write_all((head + page).as_bytes()).await;
    }
    socket.write_all(STREAM.as_bytes()).await?;
    let mut is_over = false;
    for step in steps {
        match step {
            Step::Say(said) => {
                is_over |= !said["id"].is_null();
                event(socket, &said).await?;
            }
            Step::Tell(notice) => {
                if mind.news.send(News::Notice(notice)).is_err() {
                    // Whoever listened is gone.
                }
            }
            Step::Raw(_) | Step::Status(_) => {}
            // A server that ends: the connection is lost.
            Step::Die(..) => return Err(io::ErrorKind::ConnectionReset.into()),
        }
    }
    if is_over { socket.write_all(b"0\r\n\r\n").await } else { gave_up(socket, mind, call).await }
}

/// Waits until the client gives up.
async fn gave_up(socket: &mut TcpStream, mind: &Mind, request: &Value) -> io::Result<()> {
    let mut byte = [0; 1];
    let ended = socket.read(&mut byte).await;
    mind.note(McpSeen::GaveUp(json!({"id": request["id"], "method": request["method"]})));
    ended.and(Err(io::ErrorKind::ConnectionAborted.into()))
}
