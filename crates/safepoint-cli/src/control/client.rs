//! The report of a running session, requested by another process.

use std::path::Path;

use serde_json::Value;
use tokio::{io::BufReader, net::UnixStream, time::timeout};

use super::{
    protocol::{self, ACK_TIMEOUT, Ask, Reply, Request, VERSION},
    socket_dir,
};
use crate::render::text::one_line;

/// What one session that runs says of itself.
pub(crate) struct Running {
    pub(crate) session: String,
    /// In one line.
    pub(crate) said: String,
    pub(crate) detail: Value,
    /// Whether its process answers.
    pub(crate) is_answering: bool,
}

/// Every session that runs, oldest first.
///
/// # Errors
/// If the directory of the sockets cannot be used.
///
/// # Cancel safety
/// Nothing is lost.
pub(crate) async fn running() -> anyhow::Result<Vec<Running>> {
    let asked = socket_dir::sessions()?
        .into_iter()
        .map(|(session, path)| async move { shown_of(session, &path).await });
    Ok(futures_util::future::join_all(asked).await.into_iter().flatten().collect())
}

/// Makes a living owner of a stored session check its store at once; otherwise the owner finds out by itself.
/// Returns a note if the owner lives and does not answer.
pub(crate) async fn notify_owner(session: &str) -> Option<String> {
    let (_, path) = socket_dir::sessions().ok()?.into_iter().find(|(id, _)| id == session)?;
    ask(&path, Ask::Look).await?.err().map(silent)
}

/// What a session says of itself, or that it says nothing; none if it is gone.
async fn shown_of(session: String, path: &Path) -> Option<Running> {
    let (said, detail, is_answering) = match ask(path, Ask::Show).await? {
        Ok(Reply { message, detail, .. }) => (message, detail, true),
        Err(pid) => (silent(pid), serde_json::json!({ "pid": pid }), false),
    };
    Some(Running { session, said, detail, is_answering })
}

/// What a session replies, or which process does not reply in time; none if it is gone.
async fn ask(path: &Path, ask: Ask) -> Option<Result<Reply, Option<i32>>> {
    let mut stream = socket_dir::connect(path).await?;
    let pid = owner(&stream);
    let asked = async {
        protocol::write(&mut stream, &Request { v: VERSION, ask }).await.ok()?;
        let line = protocol::read_line(&mut BufReader::new(stream)).await.ok()??;
        serde_json::from_slice(&line).ok()
    };
    timeout(ACK_TIMEOUT, asked).await.map_or(Some(Err(pid)), |reply| reply.map(Ok))
}

/// The process at the other end, where the system says it.
pub(super) fn owner(stream: &UnixStream) -> Option<i32> {
    stream.peer_cred().ok().and_then(|peer| peer.pid())
}

pub(super) fn silent(pid: Option<i32>) -> String {
    match pid {
        Some(pid) => format!("its owner (pid {pid}) does not answer"),
        None => "its owner does not answer".to_owned(),
    }
}

/// The details that add to the message, one per line.
pub(crate) fn details(detail: &Value) -> Vec<String> {
    let Some(fields) = detail.as_object().filter(|fields| fields.contains_key("pid")) else {
        return Vec::new();
    };
    let lines = |(name, value): (&String, &Value)| {
        let parts = match value {
            Value::Array(parts) => parts.iter().map(in_words).collect(),
            value => vec![in_words(value)],
        };
        let said = parts.into_iter().filter(|said| !said.is_empty());
        said.map(|said| format!("{name:<8} {said}")).collect::<Vec<_>>()
    };
    fields.iter().flat_map(lines).collect()
}

/// What a value says, for people: no braces and no quotes. Nothing of what is not there.
fn in_words(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => one_line(text),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::Array(parts) => parts.iter().map(in_words).collect::<Vec<_>>().join(", "),
        Value::Object(fields) => fields.values().map(in_words).collect::<Vec<_>>().join("  "),
    }
}
