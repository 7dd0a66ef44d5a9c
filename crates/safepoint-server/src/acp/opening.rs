//! Everything that is no prompt: the agreement on a version, and sessions that are made, listed, shown and closed.

use std::{path::Path, sync::Arc};

use safepoint::{
    history::Message,
    raw::{JournalFact, line::JournalEncoder, read_journal, store::PageCursor},
    session::SessionStop,
    store::SessionRow,
};
use serde_json::{Value, json};

use super::{desk::Desk, message::Refusal, update::Updates};
use crate::{
    caller::{Kept, SessionMake},
    follow::ShownEvent,
    host::setup::Setup,
    lines::text_of,
    problem::{Answered, Problem},
    routes::sessions::cursor,
};

/// The version of the protocol.
const VERSION: u32 = 1;
/// How many sessions are listed at a time.
const PAGE: usize = 50;

/// Answers a request.
///
/// # Errors
/// Why it is refused.
///
/// # Cancel safety
/// A session may have been made or closed.
pub(super) async fn answer(desk: &Arc<Desk>, method: &str, params: &Value) -> Result<Value, Refusal> {
    match method {
        "initialize" => Ok(agreed(desk)),
        "authenticate" => Ok(json!({})),
        "session/new" => made(desk, params).await,
        "session/load" => {
            let kept = kept(desk, params).await?;
            replay(desk, &kept).await?;
            Ok(json!({}))
        }
        "session/resume" => kept(desk, params).await.map(|_| json!({})),
        "session/list" => listed(desk, params).await,
        "session/close" => closed(desk, params).await,
        other => Err(Refusal::no_method(other)),
    }
}

/// Whatever version the editor speaks, this one is spoken here.
fn agreed(desk: &Desk) -> Value {
    json!({
        "protocolVersion": VERSION,
        "agentInfo": {"name": "safepoint", "title": desk.agent, "version": env!("CARGO_PKG_VERSION")},
        "agentCapabilities": {
            "loadSession": true,
            "promptCapabilities": {"image": false, "audio": false, "embeddedContext": true},
            "mcpCapabilities": {"http": false, "sse": false},
            "sessionCapabilities": {"list": {}, "resume": {}, "close": {}},
        },
        "authMethods": [],
    })
}

async fn made(desk: &Desk, params: &Value) -> Result<Value, Refusal> {
    in_folder(desk, params)?;
    let make = SessionMake { agent: Some(desk.agent.clone()), ..SessionMake::default() };
    let (kept, _) = desk.by.make(make).await?;
    let mut answer = json!({"sessionId": kept.id().as_str()});
    note_ignored(&mut answer, params);
    Ok(answer)
}

/// A session that is there.
async fn kept(desk: &Desk, params: &Value) -> Result<Kept, Refusal> {
    in_folder(desk, params)?;
    session(desk, params).await
}

async fn session(desk: &Desk, params: &Value) -> Result<Kept, Refusal> {
    let session = params["sessionId"].as_str().ok_or_else(|| Refusal::params("`sessionId` is missing"))?;
    Ok(desk.by.session(session).await?)
}

/// The agent's tools work in one folder: a session for another one would not do what its editor shows.
fn in_folder(desk: &Desk, params: &Value) -> Result<(), Refusal> {
    let cwd = params["cwd"].as_str().ok_or_else(|| Refusal::params("`cwd` is missing"))?;
    let Some(folder) = &desk.folder else { return Ok(()) };
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    if real(Path::new(cwd)) == real(folder) {
        return Ok(());
    }
    let here = folder.display();
    Err(Refusal::params(format!(
        "this agent works in {here}, not in {cwd}: start it in the folder of the session"
    )))
}

/// The agent has its own servers: those of the editor are not used, and that is not kept quiet.
fn note_ignored(answer: &mut Value, params: &Value) {
    if params["mcpServers"].as_array().is_some_and(|servers| !servers.is_empty()) {
        answer["_meta"] = json!({"safepoint": {"ignored": ["mcpServers"]}});
    }
}

/// Shows all that is recorded.
async fn replay(desk: &Desk, kept: &Kept) -> Answered<()> {
    let (mut encoder, mut updates) = (JournalEncoder::new(kept.id()), Updates::of_both());
    let mut shown = Vec::new();
    read_journal(desk.by.store(), kept.id(), |step| {
        if let Ok(JournalFact::Fact { grown, .. }) = &step.what {
            shown.extend(asked(grown).map(Updates::said));
        }
        let Some(line) = encoder.step(&step) else { return };
        let kind = line.kind().to_owned();
        let data = serde_json::from_str(&text_of(line)).unwrap_or_default();
        shown.extend(updates.of(&ShownEvent { position: Some(step.position), kind, data }));
    })
    .await?;
    for update in shown {
        desk.outbox.update(kept.id().as_str(), &update).await;
    }
    Ok(())
}

/// What the person said, where a turn begins with it.
fn asked(grown: &[Arc<Message>]) -> Option<&str> {
    let said = grown.iter().rev().find_map(|message| match &**message {
        Message::User(said) => Some(said.text.as_str()),
        Message::Assistant(_) | Message::Results { .. } => None,
    });
    said.filter(|text| !text.is_empty())
}

async fn listed(desk: &Desk, params: &Value) -> Result<Value, Refusal> {
    let mut older = params["cursor"].as_str().map(cursor).transpose()?;
    let folder = desk.folder.as_deref().unwrap_or(Path::new("/")).display().to_string();
    let is_elsewhere = params["cwd"].as_str().is_some() && in_folder(desk, params).is_err();
    let mut sessions = Vec::new();
    if is_elsewhere {
        return Ok(json!({"sessions": sessions}));
    }
    loop {
        let rows = desk.by.store().list(PAGE, older.clone()).await.map_err(Problem::from)?;
        let is_last = rows.len() < PAGE;
        for row in rows {
            older = Some(row.older());
            let setup = Setup::of(&row);
            if desk.by.who.sees(&setup.principal, &setup.agent) {
                sessions.push(info(&row, &folder));
            }
            if sessions.len() == PAGE {
                let next = older.map(|PageCursor { updated, id }| format!("{updated}~{id}"));
                return Ok(json!({"sessions": sessions, "nextCursor": next}));
            }
        }
        if is_last {
            return Ok(json!({"sessions": sessions}));
        }
    }
}

fn info(row: &SessionRow, folder: &str) -> Value {
    let mut info = json!({"sessionId": row.id.as_str(), "cwd": folder, "updatedAt": row.updated.to_string()});
    if !row.title.is_empty() {
        info["title"] = json!(row.title);
    }
    info
}

/// Cancels what is open, and gives the session back once that has settled.
async fn closed(desk: &Arc<Desk>, params: &Value) -> Result<Value, Refusal> {
    let kept = session(desk, params).await?;
    desk.cancel_session(kept.id().as_str()).await;
    if let Some(open) = desk.by.host.opened(kept.id()) {
        drop(open.handle().stop(SessionStop::at_turn_end()));
        desk.by.host.closed(kept.id()).await;
    }
    Ok(json!({}))
}
