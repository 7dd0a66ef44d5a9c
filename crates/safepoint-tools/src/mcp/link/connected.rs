//! One connection: the handshake, the watch over process and line, and the end of both.

use std::pin::pin;

use futures_util::future::{BoxFuture, Either, FutureExt as _, select};
use rmcp::{
    RoleClient,
    model::{ClientCapabilities, ClientConfig, Implementation, ProtocolVersion},
    service::{
        ClientInitializeError, ClientLifecycleMode, ClientServiceExt as _, RunningService,
        RunningServiceCancellationToken,
    },
    transport::Transport,
};
use safepoint::stop::Scope;
use tokio::time::timeout;

use super::{
    super::{
        address,
        exchange::{Farewells, Live},
        http::{self, Sent},
        notices::Notices,
        server::{Endpoint, Protocol},
        stdio::Pipes,
        watched::Watched,
    },
    Kind, Link, McpError, UNAUTHORIZED,
};
use crate::{
    limits,
    process::{CommandReport, Process},
};

/// Characters of a version that a message quotes.
const VERSION_CHARS: usize = 40;

type Running = RunningService<RoleClient, ClientConfig>;

/// A connection that stands.
pub(super) struct Connected {
    pub(super) live: Live,
    line: Line,
    process: Option<Process>,
}

/// The line to the server.
struct Line {
    over: BoxFuture<'static, ()>,
    cut: Option<RunningServiceCancellationToken>,
}

/// Starts or reaches the server. One that cannot be asked what it speaks is tried again in the older way.
pub(super) async fn open(link: &Link, scope: &Scope, number: u64) -> Result<Connected, McpError> {
    let once = |mode| once(link, scope, number, mode);
    let newest = vec![ProtocolVersion::V_2026_07_28];
    match link.server.protocol {
        Protocol::Initialize => once(ClientLifecycleMode::Initialize).await,
        Protocol::Newest => once(ClientLifecycleMode::Discover { preferred_versions: newest }).await,
        Protocol::Auto => {
            let auto = ClientLifecycleMode::Auto { preferred_versions: newest, legacy_version: None };
            match once(auto).await {
                Err(error) if error.is_wrong() => once(ClientLifecycleMode::Initialize).await,
                other => other,
            }
        }
    }
}

async fn once(
    link: &Link,
    scope: &Scope,
    number: u64,
    mode: ClientLifecycleMode,
) -> Result<Connected, McpError> {
    let wrong = |kind, what: String| McpError::new(&link.server.name, kind, what);
    let notices = Notices::default();
    if let Endpoint::Http { url, headers, token } = &link.server.endpoint {
        let transport =
            http::transport(url, headers, token.clone()).map_err(|what| wrong(Kind::Description, what))?;
        let running = shake_hands(link, transport, &notices, mode).await?;
        return Ok(Connected::new(running, notices, number, None));
    }
    let (Some(command), Some(processes)) = (link.server.command(), &link.processes) else {
        return Err(wrong(Kind::Description, "is neither a program nor an address".to_owned()));
    };
    let started = processes.spawn_under(scope, command).await;
    let mut process =
        started.map_err(|error| wrong(Kind::Unreachable, format!("could not be started: {error}")))?;
    let (Some(stdin), Some(stdout)) = (process.take_stdin(), process.take_stdout()) else {
        return Err(wrong(Kind::Unreachable, "could not be started: it has no pipes".to_owned()));
    };
    let shaken = {
        let hands = pin!(shake_hands(link, Pipes::new(stdin, stdout), &notices, mode));
        // The handshake is polled first: a server that answered and then ended was reached. The process is not lost
        // with its wait: `end` waits again.
        match select(hands, pin!(process.wait())).await {
            Either::Left((shaken, _)) => shaken,
            Either::Right((report, _)) => {
                Err(wrong(Kind::Wrong, format!("ended ({}) before it could be used", report.exit)))
            }
        }
    };
    match shaken {
        Ok(running) => Ok(Connected::new(running, notices, number, Some(process))),
        Err(error) => {
            end(&mut process).await;
            Err(error.with_last_words(&process.output().last_words()))
        }
    }
}

async fn shake_hands<T>(
    link: &Link,
    transport: T,
    notices: &Notices,
    mode: ClientLifecycleMode,
) -> Result<Running, McpError>
where
    T: Transport<RoleClient> + 'static,
{
    let watched = Watched { inner: transport, notices: notices.clone(), changes: link.changes.clone() };
    let us = Implementation::new("safepoint", env!("CARGO_PKG_VERSION"));
    let mut config = ClientConfig::new(ClientCapabilities::default(), us);
    config.protocol_version = ProtocolVersion::V_2025_11_25;
    let wrong = |kind, what: String| McpError::new(&link.server.name, kind, what);
    let limit = link.server.start;
    match timeout(limit, config.serve_with_lifecycle(watched, mode)).await {
        Ok(Ok(running)) => known(&link.server.name, running),
        Ok(Err(error)) => Err(refused(&link.server.name, &error)),
        Err(_elapsed) => Err(wrong(Kind::Slow, format!("was not ready within {limit:?}"))),
    }
}

/// The client does not talk to a server of an unknown version, whose words have an unknown meaning.
fn known(server: &str, running: Running) -> Result<Running, McpError> {
    let Some(info) = running.peer().peer_info() else { return Ok(running) };
    let spoken = &info.protocol_version;
    if ProtocolVersion::KNOWN_VERSIONS.contains(spoken) {
        return Ok(running);
    }
    let shown: String = spoken.as_str().chars().take(VERSION_CHARS).collect();
    let known: Vec<&str> = ProtocolVersion::KNOWN_VERSIONS.iter().map(ProtocolVersion::as_str).collect();
    let what = format!("speaks version {shown:?} of the protocol; known here are {}", known.join(", "));
    Err(McpError::new(server, Kind::Wrong, what))
}

/// What a failed handshake says.
fn refused(server: &str, error: &ClientInitializeError) -> McpError {
    let error = match error {
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => &**fallback,
        other => other,
    };
    let ClientInitializeError::TransportError { error: inner, .. } = error else {
        return McpError::new(
            server,
            Kind::Wrong,
            format!("could not agree with us: {}", address::scrubbed(&error.to_string())),
        );
    };
    let why = http::in_full(inner.error.as_ref());
    match http::was_sent(inner.error.as_ref()) {
        Some(Sent::Unauthorized) => McpError::new(server, Kind::Wrong, UNAUTHORIZED),
        Some(Sent::No) => McpError::new(server, Kind::Unreachable, format!("cannot be reached: {why}")),
        Some(Sent::Answered { ours, .. }) => McpError::new(server, Kind::Wrong, ours),
        Some(Sent::Perhaps) | None => {
            McpError::new(server, Kind::Wrong, format!("could not be talked to: {why}"))
        }
    }
}

impl Connected {
    fn new(running: Running, notices: Notices, number: u64, process: Option<Process>) -> Self {
        let live = Live { peer: running.peer().clone(), notices, farewells: Farewells::default(), number };
        let cut = Some(running.cancellation_token());
        let over = async move {
            if let Err(error) = running.waiting().await {
                tracing::debug!(%error, "the connection to an MCP server ended badly");
            }
        };
        Self { live, line: Line { over: over.boxed(), cut }, process }
    }

    pub(super) fn pid(&self) -> Option<i32> {
        self.process.as_ref().map(Process::pid)
    }

    /// Waits until it is lost, and says how.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(super) async fn watch(&mut self) -> String {
        let Self { line, process, .. } = self;
        let Some(process) = process else {
            line.end().await;
            return "the connection was closed".to_owned();
        };
        // Either may be first, and the other is waited for with a bound: an end is reported with what is known of both.
        let ended = match select(pin!(line.end()), pin!(process.wait())).await {
            Either::Left(((), waiting)) => timeout(limits::MCP_LAST_WORDS, waiting).await.ok(),
            Either::Right((report, reading)) => {
                // What it wrote before its end is still read: a result that was written is a result.
                if timeout(limits::MCP_LAST_WORDS, reading).await.is_err() {
                    // Another process has its pipe; the line is cut below.
                }
                Some(report)
            }
        };
        let words = process.output().last_words();
        match ended {
            Some(report) => format!("ended ({}){words}", report.exit),
            None => format!("closed its output{words}"),
        }
    }

    /// Ends the line, then the process: its input is closed, and what does not end by itself climbs the ladder.
    pub(super) async fn end(self) -> Option<CommandReport> {
        let Self { live, mut line, process } = self;
        if timeout(limits::MCP_LAST_WORDS, live.farewells.sent()).await.is_err() {
            // A server that takes nothing any more is not waited for.
        }
        line.cut().await;
        drop(line);
        match process {
            Some(mut process) => {
                let report = end(&mut process).await;
                if report.survivors.is_empty() {
                    live.notices.gone();
                }
                Some(report)
            }
            None => None,
        }
    }
}

impl Line {
    /// Resolves when the line is over; never again after that.
    async fn end(&mut self) {
        if self.cut.is_none() {
            return std::future::pending().await;
        }
        (&mut self.over).await;
        self.cut = None;
    }

    async fn cut(&mut self) {
        let Some(cut) = self.cut.take() else { return };
        cut.cancel();
        if timeout(limits::MCP_EXIT, &mut self.over).await.is_err() {
            // A farewell that takes long is not waited for.
        }
    }
}

async fn end(process: &mut Process) -> CommandReport {
    match timeout(limits::MCP_EXIT, process.wait()).await {
        Ok(report) => report,
        Err(_elapsed) => process.stop(limits::MCP_LADDER).await,
    }
}
