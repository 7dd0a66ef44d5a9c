//! The sessions of a server: listed, shown, removed.

use std::process::ExitCode;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    client::{ApiRequest, ServerApi},
    failure::ApiError,
    items::names,
};
use crate::{
    args::store::StoreArgs,
    control::{
        Replies,
        list::{ago, row},
        state::State,
    },
    output::{self, Stream, Unwritten},
    render::{
        reply_json::ReplyLines,
        text::{cut, moment, one_line},
    },
};

/// A session, as a server says it. What a later server says beside that is not looked at.
#[derive(Debug)]
pub(super) struct ServerSession {
    pub(super) id: String,
    agent: String,
    pub(super) title: String,
    state: State,
    /// Who has it open: `here`, the server; `elsewhere`, another process; or `no`.
    open: String,
    is_durable: bool,
    /// The turn that runs, as it is said; null: none.
    turn: Value,
    waiting: Vec<String>,
    approvals: u64,
    pub(super) created: Timestamp,
    pub(super) updated: Timestamp,
    /// The id of the last record: its owner's number and its position.
    pub(super) cursor: Option<String>,
}

impl ServerSession {
    /// Reads what a server said of a session.
    pub(super) fn read(said: &Value) -> Result<Self, ApiError> {
        Self::of(said).ok_or_else(|| ApiError::NotOurs("with what is no session".to_owned()))
    }

    fn of(said: &Value) -> Option<Self> {
        let text = |name: &str| said[name].as_str().map(ToOwned::to_owned);
        let open = text("open")?;
        Some(Self {
            id: text("id")?,
            agent: text("agent")?,
            title: text("title")?,
            state: state(said["state"].as_str()?, open != "no")?,
            is_durable: said["durable"].as_bool()?,
            turn: said["turn"].clone(),
            waiting: names(&said["waiting"]),
            approvals: said["approvals"].as_u64()?,
            created: said["created"].as_str()?.parse().ok()?,
            updated: said["updated"].as_str()?.parse().ok()?,
            cursor: text("cursor"),
            open,
        })
    }

    /// As lists on this machine say it.
    pub(super) fn state(&self) -> State {
        self.state
    }

    /// The turn that runs: its id, and whether it was asked to stop.
    fn running(&self) -> Option<(String, bool)> {
        Some((one_line(self.turn["id"].as_str()?), self.turn["stopping"] == true))
    }

    /// What is done in it; none: nothing.
    fn doing(&self) -> Option<String> {
        let turn = self.running().map(|(turn, is_stopping)| {
            let how = if is_stopping { "stopping" } else { "running" };
            let alive = names(&self.turn["alive"]);
            let alive = if alive.is_empty() { String::new() } else { format!(": {}", alive.join(", ")) };
            format!("{turn} {how}{alive}")
        });
        let waits = match self.waiting.len() {
            0 => None,
            1 => Some("1 item waits".to_owned()),
            many => Some(format!("{many} items wait")),
        };
        let parts: Vec<String> = turn.into_iter().chain(waits).collect();
        (!parts.is_empty()).then(|| format!("{} with {}", parts.join(", "), self.agent))
    }

    fn line(&self) -> String {
        const ID: usize = 36;
        let title =
            || if self.title.trim().is_empty() { "nothing was said".to_owned() } else { self.title.clone() };
        row((&self.id, ID), self.state(), &ago(self.updated), &one_line(&self.doing().unwrap_or_else(title)))
    }

    fn json(&self, lines: &mut ReplyLines) -> Value {
        let fields = json!({
            "state": self.state(), "kept": self.is_durable, "created_at": self.created, "updated_at": self.updated,
            "title": self.title, "records": null, "setup": null, "owner": null, "message": self.doing(),
            "detail": {
                "agent": self.agent, "open": self.open, "turn": self.turn, "waiting": self.waiting,
                "approvals": self.approvals,
            },
        });
        lines.line("session", Some(&self.id), fields)
    }
}

/// How a session stands, by a server's word: as lists on this machine say it, where items that wait are said beside it.
fn state(word: &str, is_open: bool) -> Option<State> {
    Some(match word {
        "running" => State::Running,
        "open" => State::Open,
        "queued" if is_open => State::Open,
        "queued" | "idle" => State::Idle,
        "suspended" => State::Suspended,
        "stopped" => State::Stopped,
        "failed" => State::Failed,
        "crashed" => State::Crashed,
        _ => return None,
    })
}

/// `sessions ls --server`.
///
/// # Errors
/// If stdout does not take it.
///
/// # Cancel safety
/// Nothing is lost.
pub(crate) async fn list(server: &ServerApi, most: usize, place: &StoreArgs) -> anyhow::Result<ExitCode> {
    let read = server.pages(&["sessions"], most).await;
    let read = read.and_then(|rows| rows.iter().map(ServerSession::read).collect::<Result<Vec<_>, _>>());
    let listed = match read {
        Ok(listed) => listed,
        Err(error) => return failed(server, &error, "", place),
    };
    let mut lines = ReplyLines::default();
    for one in &listed {
        if place.json {
            output::say_json(one.json(&mut lines))?;
        } else {
            output::say(cut(&one.line(), width()))?;
        }
    }
    if !place.json {
        match listed.len() {
            0 => output::tell(format_args!("no sessions on {} that this token sees", server.name())),
            count if count >= most => output::tell(format_args!("the newest {count}; -n N lists more")),
            _ => {}
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// `sessions show --server`.
///
/// # Errors
/// If stdout does not take it.
///
/// # Cancel safety
/// Nothing is lost.
pub(crate) async fn show(server: &ServerApi, named: &str, place: &StoreArgs) -> anyhow::Result<ExitCode> {
    let look = async |session: &str| {
        let one = server.send(ApiRequest::get(&["sessions", session])).await?.body;
        let asked = server.all(&["sessions", session, "approvals"]).await?;
        Ok((ServerSession::read(&one)?, asked))
    };
    let (one, asked) = match server.of_session(named, look).await {
        Ok((_, looked)) => looked,
        Err(error) => return failed(server, &error, named, place),
    };
    let open = asked.iter().filter(|asked| asked["state"] == "open");
    let open: Vec<&str> = open.filter_map(|asked| asked["id"].as_str()).collect();
    if place.json {
        let mut shown = one.json(&mut ReplyLines::default());
        shown["items_waiting"] = json!(one.waiting.len());
        shown["approvals_open"] = json!(open);
        return output::say_json(shown).map(|()| ExitCode::SUCCESS).map_err(Into::into);
    }
    text(&one, &open)?;
    Ok(ExitCode::SUCCESS)
}

fn text(one: &ServerSession, open: &[&str]) -> Result<(), Unwritten> {
    output::say(format_args!("{}: {}", one_line(&one.id), one.state().shown()))?;
    output::say(format_args!("  created  {}", moment(one.created)))?;
    output::say(format_args!("  changed  {}", moment(one.updated)))?;
    output::say(format_args!("  agent    {}", one_line(&one.agent)))?;
    if !one.title.trim().is_empty() {
        output::say(format_args!("  title    {}", one_line(&one.title)))?;
    }
    if !one.is_durable {
        output::say("  kept     no: it ends with the server")?;
    }
    if one.open == "elsewhere" {
        output::say("  owner    another process than the server")?;
    }
    if !one.waiting.is_empty() {
        output::say(format_args!("  items    {} waiting", one.waiting.len()))?;
    }
    open.iter()
        .try_for_each(|id| output::say(format_args!("  approval {} waits for a decision", one_line(id))))?;
    if let Some((turn, is_stopping)) = one.running() {
        output::say(format_args!("  turn     {turn}{}", if is_stopping { ", stopping" } else { "" }))?;
        let alive = names(&one.turn["alive"]);
        alive.iter().try_for_each(|alive| output::say(format_args!("  alive    {}", one_line(alive))))?;
    }
    Ok(())
}

/// `sessions rm --server`.
///
/// # Errors
/// If stdout does not take it.
///
/// # Cancel safety
/// It may have been removed.
pub(crate) async fn remove(server: &ServerApi, named: &str, place: &StoreArgs) -> anyhow::Result<ExitCode> {
    let remove = async |session: &str| server.send(ApiRequest::delete(&["sessions", session])).await;
    match server.of_session(named, remove).await {
        Ok((id, _)) => {
            let said = format!("removed {id}");
            if place.json {
                ReplyLines::default().say("removed", Some(&id), json!({"code": 0, "said": said}))?;
            } else {
                output::tell(format_args!("safepoint: {said}"));
            }
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => failed(server, &error, named, place),
    }
}

/// Says why a server did not do it, in the form that was asked for; its exit code.
///
/// # Errors
/// If stdout does not take it.
pub(crate) fn failed(
    server: &ServerApi,
    error: &ApiError,
    session: &str,
    place: &StoreArgs,
) -> anyhow::Result<ExitCode> {
    Replies::new(place, session).last(&error.reply(&server.name()))
}

/// The columns of stdout, where it is a terminal.
fn width() -> usize {
    const LEAST: usize = 40;
    Stream::Out.columns().map_or(usize::MAX, |columns| columns.max(LEAST))
}
