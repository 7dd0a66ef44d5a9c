//! A server over Streamable HTTP, in the test's own process.

use std::{
    io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use serde_json::{Value, json};
use tokio::sync::broadcast;

use super::{
    McpManners, ServerStart, Speaks,
    brain::{Brain, McpStep},
    now_ns,
};
use crate::{
    http::{
        self, Connection, Serving,
        response::{self, EVENT_STREAM, LAST_CHUNK},
    },
    sync::lock,
};

/// A server that listens until it is dropped.
#[derive(Debug)]
pub struct HttpServer {
    url: String,
    mind: Arc<Mind>,
    _serving: Serving,
}

#[derive(Debug)]
struct Mind {
    start: ServerStart,
    speaks: Speaks,
    /// Held for one message, so that the server answers one at a time. Nothing is awaited under it, and
    /// `seen` is not held with it.
    brain: Mutex<Brain>,
    /// Held for one entry or one copy. The time is read before it is held: two entries at once may be out of
    /// order by a moment.
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

/// The header that names a session.
const SESSION: &str = "mcp-session-id";
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
        let listener = http::bind(http::LOOPBACK)?;
        let url = format!("http://{}/mcp", listener.local_addr()?);
        let (start, speaks, brain) = (manners.start, manners.speaks, Mutex::new(Brain::new(manners)));
        let (seen, news, session) = (Mutex::default(), broadcast::Sender::new(NEWS), AtomicU64::new(1));
        let mind = Arc::new(Mind { start, speaks, brain, seen, news, session });
        let serving = Serving::start(listener, &mind, serve);
        Ok(Self { url, mind, _serving: serving })
    }

    /// Where it listens.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Ends the streams of those who listen for changes.
    pub fn hang_up(&self) {
        if self.mind.news.send(News::End).is_err() {
            // No client listens.
        }
    }

    /// Forgets every session, as after a restart of the server.
    pub fn forget(&self) {
        // SeqCst for simplicity. A request that has read the number before is answered in the old session.
        self.mind.session.fetch_add(1, Ordering::SeqCst);
    }

    /// What it saw so far, with the time of the world's clock in nanoseconds.
    #[must_use]
    pub fn seen(&self) -> Vec<(u64, McpSeen)> {
        lock(&self.mind.seen).clone()
    }
}

impl Mind {
    fn note(&self, seen: McpSeen) {
        lock(&self.seen).push((now_ns(), seen));
    }

    fn hear(&self, message: &Value) -> Vec<McpStep> {
        self.note(McpSeen::Got(message.clone()));
        lock(&self.brain).hear(message)
    }
}

async fn serve(mut connection: Connection, mind: Arc<Mind>) -> io::Result<()> {
    while let Some(request) = connection.request().await? {
        // SeqCst: see `forget`.
        let known = mind.session.load(Ordering::SeqCst).to_string();
        let status = match request.method.as_str() {
            _ if request.header(SESSION).is_some_and(|session| session != known) => "404 Not Found",
            "POST" => {
                answer(&mut connection, &mind, &request.body).await?;
                continue;
            }
            "DELETE" => "200 OK",
            _ => "405 Method Not Allowed",
        };
        connection.write(&response::empty(status)).await?;
    }
    Ok(())
}

async fn answer(connection: &mut Connection, mind: &Mind, body: &[u8]) -> io::Result<()> {
    let Ok(message) = serde_json::from_slice::<Value>(body) else {
        return connection.write(&response::empty("400 Bad Request")).await;
    };
    let news = mind.news.subscribe();
    let steps = mind.hear(&message);
    if message["id"].is_null() {
        return connection.write(&response::empty("202 Accepted")).await;
    }
    if message["method"] == "tools/call" {
        return stream(connection, mind, &message, steps).await;
    }
    let said = steps.into_iter().find_map(|step| match step {
        McpStep::Say(said) => Some(said),
        McpStep::Tell(_) | McpStep::Raw(_) | McpStep::Status(_) | McpStep::Die(..) => None,
    });
    let Some(said) = said else { return gave_up(connection, mind, &message).await };
    if message["method"] == "subscriptions/listen" && said["method"].is_string() {
        return tell(connection, mind, &message, said, news).await;
    }
    // SeqCst: see `forget`.
    let session = mind.session.load(Ordering::SeqCst).to_string();
    let headers = match mind.speaks {
        Speaks::Older if message["method"] == "initialize" => vec![(SESSION, session.as_str())],
        Speaks::Older | Speaks::Newest => Vec::new(),
    };
    let body = said.to_string();
    connection.write(&response::whole("200 OK", "application/json", &headers, body.as_bytes())).await
}

async fn event(connection: &mut Connection, said: &Value) -> io::Result<()> {
    connection.chunk(format!("event: message\ndata: {said}\n\n").as_bytes()).await
}

/// Tells a listener what changes, until it or the server has enough of that.
async fn tell(
    connection: &mut Connection,
    mind: &Mind,
    request: &Value,
    first: Value,
    mut news: broadcast::Receiver<News>,
) -> io::Result<()> {
    connection.write(EVENT_STREAM).await?;
    let mut said = first;
    loop {
        event(connection, &said).await?;
        said = tokio::select! {
            biased;
            // The end of the client first: nothing is written behind it. Whichever loses has read nothing.
            ended = gave_up(connection, mind, request) => return ended,
            news = news.recv() => match news {
                Ok(News::Notice(notice)) => notice,
                Ok(News::End) | Err(_) => return Err(io::ErrorKind::ConnectionAborted.into()),
            },
        };
    }
}

/// Answers a call with a stream of events; where there is no answer, the stream stays open, and silent.
async fn stream(
    connection: &mut Connection,
    mind: &Mind,
    call: &Value,
    steps: Vec<McpStep>,
) -> io::Result<()> {
    if mind.start == ServerStart::Wedge {
        return gave_up(connection, mind, call).await;
    }
    if let [McpStep::Status(status)] = steps[..] {
        return connection.respond(&format!("{status} Down"), "text/html", "<h1>Do as I say</h1>").await;
    }
    connection.write(EVENT_STREAM).await?;
    let mut is_over = false;
    for step in steps {
        match step {
            McpStep::Say(said) => {
                is_over |= !said["id"].is_null();
                event(connection, &said).await?;
            }
            McpStep::Tell(notice) => {
                if mind.news.send(News::Notice(notice)).is_err() {
                    // The listener is gone.
                }
            }
            McpStep::Raw(_) | McpStep::Status(_) => {}
            // A server that ends: the connection is lost.
            McpStep::Die(..) => return Err(io::ErrorKind::ConnectionReset.into()),
        }
    }
    if is_over { connection.write(LAST_CHUNK).await } else { gave_up(connection, mind, call).await }
}

/// Waits until the client gives up.
async fn gave_up(connection: &mut Connection, mind: &Mind, request: &Value) -> io::Result<()> {
    connection.closed().await;
    mind.note(McpSeen::GaveUp(json!({"id": request["id"], "method": request["method"]})));
    Err(io::ErrorKind::ConnectionAborted.into())
}
