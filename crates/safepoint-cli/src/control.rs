//! Talking to a running session from another terminal: a local socket of its owner, and the commands that use it.
//!
//! **Invariants**: only the same user reaches a session; whatever comes over the socket is bounded and may be wrong.

mod about;
mod chat_target;
pub(crate) mod client;
mod convert;
mod exchange;
mod inlet;
pub(crate) mod item_reply;
mod left;
pub(crate) mod list;
mod offline;
mod offline_items;
mod protocol;
mod replies;
mod run_target;
mod server;
mod serving;
mod socket_dir;
pub(crate) mod state;

use std::sync::Arc;

use safepoint::store::Store;

pub(crate) use client::notify_owner;
pub(crate) use convert::refused;
pub(crate) use exchange::talk;
pub(crate) use inlet::Inlet;
pub(crate) use protocol::{Afterwards, Ask, ModeArg, PushAsk, Reply, StopAsk, Wait};
pub(crate) use replies::Replies;
pub(crate) use run_target::{Begins, Turns};
pub(crate) use server::Server;
#[cfg(feature = "serve")]
pub(crate) use serving::SERVED_AT;
pub(crate) use serving::served;

use crate::session::host::Host;
use about::About;

/// The file in [`folder`] with the token that `safepoint serve` makes for its user: it is for the servers that are
/// [`served`] there.
pub(crate) const SERVE_TOKEN: &str = "serve.token";

/// Opens the socket of a chat.
///
/// # Errors
/// If it cannot be opened.
///
/// # Cancel safety
/// A socket that was opened is closed again.
pub(crate) async fn open_chat(
    host: &Arc<Host>,
    model: String,
    kept: Option<&Arc<dyn Store>>,
) -> anyhow::Result<Server> {
    let kept = kept.map(|store| (Arc::clone(store), host.id.clone()));
    let inlet = Inlet::new(host.session.clone(), kept);
    let target = chat_target::ChatTarget { host: Arc::clone(host), inlet, about: About::new("chat", model) };
    Server::open(host.id.as_str(), Arc::new(target)).await
}

/// Opens the socket of a run.
///
/// # Errors
/// If it cannot be opened.
///
/// # Cancel safety
/// A socket that was opened is closed again.
pub(crate) async fn open_run(session: &str, turns: &Arc<Turns>, model: String) -> anyhow::Result<Server> {
    let target = run_target::RunTarget { turns: Arc::clone(turns), about: About::new("run", model) };
    Server::open(session, Arc::new(target)).await
}

/// The folder of the sockets, which is made if need be.
///
/// # Errors
/// If it cannot be made, or is not this user's alone.
pub(crate) fn folder() -> anyhow::Result<std::path::PathBuf> {
    socket_dir::folder()
}
