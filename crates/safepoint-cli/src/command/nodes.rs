//! `safepoint nodes`: who holds the sessions of a store, and the request that one leaves. Through the store alone.

use std::process::ExitCode;

use anyhow::Context as _;
use safepoint::{
    raw::store::{Leaving, Liveness, NodeRow, NodeState},
    store::Store,
};
use serde_json::{Value, json};

use super::store::show_outcome;
use crate::{
    args::{
        nodes::{DrainArgs, NodesCommand},
        store::StoreArgs,
    },
    control::list::ago,
    exit::code,
    output,
    render::{reply_json::ReplyLines, text::one_line},
    settings::store::existing_store,
};

/// Runs the command.
pub(crate) async fn nodes(command: NodesCommand) -> anyhow::Result<ExitCode> {
    match command {
        NodesCommand::Ls(place) => list(place).await,
        NodesCommand::Drain(args) => drain(args).await,
    }
}

async fn list(place: StoreArgs) -> anyhow::Result<ExitCode> {
    let rows = match existing_store(place.store.clone()).await? {
        Some(store) => store.nodes().await.context("cannot list the nodes")?,
        None => Vec::new(),
    };
    let mut lines = ReplyLines::default();
    for row in &rows {
        if place.json {
            lines.say("node", None, fields(row))?;
        } else {
            output::say(line(row))?;
        }
    }
    if rows.is_empty() && !place.json {
        output::tell("no nodes");
    }
    Ok(ExitCode::SUCCESS)
}

async fn drain(DrainArgs { node: named, place }: DrainArgs) -> anyhow::Result<ExitCode> {
    let said = |number: u8, status: &str, said: String| {
        let fields = json!({"code": number, "status": status, "message": said, "detail": {}, "last": true});
        show_outcome(&place, ("reply", None), fields, (number, &said))
    };
    let none = || said(code::NONE_SUCH, "no_such_node", no_node(&named));
    let Some(store) = existing_store(place.store.clone()).await? else { return none() };
    if let Some(row) = present(&*store, &named).await? {
        store.leave(&row.node.id, Leaving::Draining).await.context("the node is not asked")?;
        return said(
            code::ACCEPTED,
            "asked",
            format!("{} drains: other nodes take its sessions", shown(&row)),
        );
    }
    match store.nodes().await?.iter().rev().find(|row| is_named(row, &named)) {
        Some(row) => said(code::TOO_LATE, "ended", format!("{} has ended: it is {}", shown(row), state(row))),
        None => none(),
    }
}

/// The node of this name, or of this id, that has not ended.
///
/// # Errors
/// The store's.
///
/// # Cancel safety
/// Nothing is lost.
pub(super) async fn present(store: &dyn Store, named: &str) -> anyhow::Result<Option<NodeRow>> {
    let rows = store.nodes().await.context("cannot list the nodes")?;
    Ok(rows.into_iter().find(|row| row.state.is_present() && is_named(row, named)))
}

pub(super) fn no_node(named: &str) -> String {
    format!("node {} not found; `safepoint nodes ls` lists them", one_line(named))
}

fn is_named(row: &NodeRow, named: &str) -> bool {
    row.node.name == named || row.node.id.as_str() == named
}

fn shown(row: &NodeRow) -> String {
    one_line(&row.node.name)
}

/// How it stands, for people.
fn state(row: &NodeRow) -> &'static str {
    match (row.state, row.node.owner.life()) {
        (NodeState::Serving | NodeState::Draining, Liveness::Dead) => "dead",
        (NodeState::Serving, _) => "serving",
        (NodeState::Draining, _) => "draining",
        (NodeState::Buried, _) => "buried",
        (NodeState::Gone, _) => "gone",
    }
}

/// How many sessions it has. One that has left or was buried has none, whatever it said last.
fn load(row: &NodeRow) -> u32 {
    if row.state.is_present() { row.load } else { 0 }
}

fn line(row: &NodeRow) -> String {
    const NAME: usize = 37;
    const STATE: usize = 9;
    let node = &row.node;
    let pools = if node.pools.is_empty() { String::new() } else { format!(", for {}", node.pools.join(" ")) };
    let when =
        row.ended.map_or_else(|| format!("joined {}", ago(row.since)), |at| format!("ended {}", ago(at)));
    let about = one_line(&format!("{}{pools}", node.owner));
    format!("{:<NAME$}  {:<STATE$}  {:>6} sessions  {when:<16}  {about}", shown(row), state(row), load(row))
}

fn fields(row: &NodeRow) -> Value {
    let node = &row.node;
    json!({
        "node": node.id, "name": node.name, "state": state(row), "load": load(row), "room": node.room,
        "pools": node.pools, "address": node.address, "since": row.since, "expires_at": row.expires,
        "lease_ms": u64::try_from(node.ttl.as_millis()).unwrap_or(u64::MAX), "ended_at": row.ended,
        "owner": {"pid": node.owner.pid, "host": node.owner.host},
    })
}
