//! The connection to one server, kept by one task: brought up, watched, ended, and brought up again when it is wanted.
//!
//! **Invariants**
//! - There is at most one process of a server at a time: the next is started when the last is gone or its survivors
//!   were named.
//! - Every wait here has an end: bringing up is bounded, and a caller that waits for it may be dropped.

use std::{
    convert::Infallible,
    pin::pin,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use futures_util::future::{Either, select};
use safepoint::stop::{Scope, StopHandle};
use tokio::{
    sync::{Notify, watch},
    time::{sleep, timeout},
};

use super::{McpError, Server, error::Kind, exchange::Live};
use crate::{
    limits,
    process::{CommandReport, Processes},
};

mod changes;
mod connected;

use connected::Connected;

/// What is said of a server that wants to know who asks.
pub(super) const UNAUTHORIZED: &str = "asks for authorization: it needs a login (`mcp login`), or a header, such as `authorization = \"Bearer …\"`";

/// One server and how it stands with it.
pub(super) struct Link {
    pub(super) server: Server,
    processes: Option<Processes>,
    state: watch::Sender<LinkState>,
    wanted: Notify,
    pub(super) changes: watch::Sender<u64>,
    /// Written by the task that keeps the connection, copied by others; no other lock is taken under it. It follows
    /// `state`: for a moment a lost connection shows the end of the process before.
    end: Mutex<Option<CommandReport>>,
}

/// How it stands. Exhaustive: it can be used, it cannot now, or never again.
#[derive(Clone)]
enum LinkState {
    Down { failures: u64, why: Option<McpError> },
    Up { live: Live, pid: Option<i32> },
    Closed,
}

/// The pauses between tries: none, then longer and longer ones.
#[derive(Debug, Default)]
pub(super) struct Pauses {
    next: Duration,
}

impl Pauses {
    pub(super) fn take(&mut self) -> Duration {
        let now = self.next;
        self.next = (now * 2).clamp(limits::MCP_PAUSE, limits::MCP_PAUSE_LONG);
        now
    }

    /// A server that was well may be tried again at once; one that dies early may not.
    fn lived(&mut self, time: Duration) {
        if time >= limits::MCP_WELL {
            self.next = Duration::ZERO;
        }
    }
}

impl Link {
    pub(super) fn new(server: Server) -> Self {
        let mark = || Processes::new(format!("mcp_{}", uuid::Uuid::new_v4().simple()));
        let processes = server.command().map(|_| server.processes.clone().unwrap_or_else(mark));
        Self {
            server,
            processes,
            state: watch::Sender::new(LinkState::Down { failures: 0, why: None }),
            wanted: Notify::new(),
            changes: watch::Sender::new(0),
            end: Mutex::new(None),
        }
    }

    /// A connection that can be used; a lost one is brought up again.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(super) async fn live(&self) -> Result<Live, McpError> {
        let mut state = self.state.subscribe();
        let seen = self.failures();
        loop {
            match state.borrow_and_update().clone() {
                LinkState::Up { live, .. } if !live.peer.is_transport_closed() => return Ok(live),
                LinkState::Down { failures, why: Some(why) } if failures > seen => return Err(why),
                LinkState::Closed => {
                    return Err(McpError::new(&self.server.name, Kind::Closed, "was closed"));
                }
                LinkState::Up { .. } | LinkState::Down { .. } => self.wanted.notify_one(),
            }
            if state.changed().await.is_err() {
                // It cannot be: the sender is held by `self`.
            }
        }
    }

    /// The connection, if it can be used now, and the number of its process.
    pub(super) fn up(&self) -> Option<(Live, Option<i32>)> {
        match &*self.state.borrow() {
            LinkState::Up { live, pid } => Some((live.clone(), *pid)),
            LinkState::Down { .. } | LinkState::Closed => None,
        }
    }

    /// Why that connection was lost, if that comes out soon.
    pub(super) async fn why_lost(&self, number: u64) -> Option<String> {
        let mut state = self.state.subscribe();
        let is_over =
            |state: &LinkState| !matches!(state, LinkState::Up { live, .. } if live.number == number);
        let over = timeout(limits::MCP_LAST_WORDS * 2, state.wait_for(is_over)).await;
        match &*over.ok()?.ok()? {
            LinkState::Down { why, .. } => why.as_ref().map(|why| why.what().to_owned()),
            LinkState::Up { .. } | LinkState::Closed => None,
        }
    }

    /// How its last process ended.
    pub(super) fn last_end(&self) -> Option<CommandReport> {
        self.end.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn failures(&self) -> u64 {
        match &*self.state.borrow() {
            LinkState::Down { failures, .. } => *failures,
            LinkState::Up { .. } | LinkState::Closed => 0,
        }
    }

    /// Tries until it stands, or until trying has no point. The first time it has to stand at once.
    async fn bring_up(&self, scope: &Scope, number: u64, pauses: &mut Pauses) -> Result<Connected, McpError> {
        let tries = if number == 1 { 1 } else { limits::MCP_TRIES };
        let mut tried = 0;
        loop {
            sleep(pauses.take()).await;
            tried += 1;
            match connected::open(self, scope, number).await {
                Ok(connected) => return Ok(connected),
                Err(error) if tried >= tries || error.is_timeout() || error.is_description() => {
                    return Err(error);
                }
                Err(error) => tracing::debug!(%error, "tried again"),
            }
        }
    }
}

/// Keeps the connection until its scope is stopped.
pub(super) async fn keep(link: Arc<Link>, scope: Scope, stop: StopHandle) {
    let mut pauses = Pauses::default();
    let mut number = 0;
    loop {
        number += 1;
        match scope.run(link.bring_up(&scope, number, &mut pauses)).await {
            Err(_absorbed_here) => break,
            Ok(Err(why)) => {
                let failures = link.failures() + 1;
                link.state.send_replace(LinkState::Down { failures, why: Some(why) });
            }
            Ok(Ok(mut connected)) => {
                let began = Instant::now();
                let (live, pid) = (connected.live.clone(), connected.pid());
                let hearing = changes::hear(live.peer.clone(), &link.changes);
                link.state.send_replace(LinkState::Up { live, pid });
                let watched = scope.run(beside(hearing, connected.watch())).await;
                let why = match &watched {
                    Ok(why) => Some(McpError::new(&link.server.name, Kind::Unreachable, why.clone())),
                    Err(_absorbed_here) => None,
                };
                link.state.send_replace(LinkState::Down { failures: 0, why });
                let end = connected.end().await;
                *link.end.lock().unwrap_or_else(PoisonError::into_inner) = end;
                if watched.is_err() {
                    break;
                }
                pauses.lived(began.elapsed());
            }
        }
        if scope.run(link.wanted.notified()).await.is_err() {
            break;
        }
    }
    link.state.send_replace(LinkState::Closed);
    // The task that settles its own scope is the last of it: a wait for quiet waits for this task's end.
    let _first_and_only = stop.settle();
}

/// Polls the first as long as the other runs.
async fn beside<T>(endless: impl Future<Output = Infallible>, work: impl Future<Output = T>) -> T {
    // The work is polled first: its end is not missed. Dropping the other loses notices of a connection that has ended.
    match select(pin!(work), pin!(endless)).await {
        Either::Left((done, _)) => done,
        Either::Right((never, _)) => match never {},
    }
}
