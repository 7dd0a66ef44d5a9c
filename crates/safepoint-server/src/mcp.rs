//! MCP: an agent as the one tool of a server, over two streams of bytes and at `/mcp/{agent}`.
//!
//! rmcp speaks the protocol. A call is one item of a session, and so is a task: what it did is what the session's own API shows.
//!
//! **Invariants**: a call is answered once its item is at rest, so nothing says stopped before the turn has settled (S13.18); a call
//! whose client is lost is stopped only where its protocol has no other end (S13.3).

mod answers;
mod asked;
mod call;
mod door;
mod head;
mod ids;
mod link;
mod loss;
mod message;
mod params;
mod progress;
mod question;
mod reply;
mod said;
mod sessions;
mod task;
mod tool;

use std::{fmt, sync::Arc};

use axum::http::Method;
use rmcp::{ServiceExt as _, transport::async_rw::AsyncRwTransport};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::watch,
};

use self::{
    ids::OwnIds,
    link::{LinkState, Linked},
    tool::AgentTool,
};
use crate::{
    access::{AccessScope, Principal},
    caller::Caller,
    host::Host,
    routes::table::Route,
    surface::Surface,
};

pub(crate) use sessions::McpSessions;

/// Who acts: the user whose client it is.
const LOCAL: &str = "local";

/// An agent of a host as an MCP server, for one client.
///
/// ```no_run
/// use safepoint_server::{Host, McpServer};
/// async fn serve(host: &Host) {
///     McpServer::new(host, "helper").serve(tokio::io::empty(), tokio::io::sink()).await;
/// }
/// ```
#[must_use = "it answers once it serves"]
pub struct McpServer {
    by: Caller,
    agent: String,
}

impl McpServer {
    /// The agent of this name. The client sees the sessions of the local user with it.
    pub fn new(host: &Host, agent: impl Into<String>) -> Self {
        let agent = agent.into();
        let who = Principal::new(LOCAL, AccessScope::ALL).only_agents([agent.clone()]);
        let by = Caller { host: Arc::clone(&host.inner), load: Arc::default(), who, trace: None };
        Self { by, agent }
    }

    /// Serves until the client has closed the input, and its calls have ended: they are stopped within 2 s, with the reason
    /// `disconnect`. Tasks run on, and open questions stay open.
    ///
    /// # Cancel safety
    /// The client is not served any more, and its calls are stopped.
    pub async fn serve(
        self,
        input: impl AsyncRead + Unpin + Send + 'static,
        output: impl AsyncWrite + Unpin + Send + 'static,
    ) {
        let link = watch::Sender::new(LinkState::Open);
        let tool = AgentTool::new(self.by, self.agent, link.clone());
        let lines = AsyncRwTransport::new_server(input, output);
        // A client that leaves before it has agreed on a version has begun nothing.
        if let Ok(running) = tool.serve(Linked::new(OwnIds::new(lines), link, LinkState::Closed)).await {
            drop(running.waiting().await);
        }
    }
}

impl fmt::Debug for McpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpServer").field("agent", &self.agent).finish_non_exhaustive()
    }
}

/// Those of MCP.
pub(crate) fn routes() -> Vec<Route> {
    let all = ["/mcp/{agent}", "/mcp/{agent}/"].map(|path| {
        [Method::POST, Method::GET, Method::DELETE].map(|method| {
            Route::of_surface(Surface::Mcp, (method, path), reply::answer, |call| {
                Box::pin(door::answer(call))
            })
            .needs_token()
            .always()
        })
    });
    all.into_iter().flatten().collect()
}
