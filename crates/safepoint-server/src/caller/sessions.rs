//! Sessions: made, and as they are now.

use std::sync::Arc;

use axum::http::StatusCode;
use safepoint::{
    ids::SessionId,
    raw::store::{ApprovalState, ItemState, NewSession},
    store::{Error, SessionRow},
};
use sha2::{Digest as _, Sha256};

use super::{Caller, Kept, is_held, items::ItemPush};
use crate::{
    answer::{OpenAt, RunningTurn, SessionAnswer, SessionState},
    host::{
        HostState, Offered,
        open::{OpenSession, Seen},
        read,
        setup::{EarlierMessage, Setup},
    },
    lines::EventPlace,
    problem::{Answered, Problem},
    surface::Surface,
};

/// A session before it is made.
#[derive(Clone, Debug, Default)]
pub(crate) struct SessionMake {
    /// The agent; it may be left out where the host has one only.
    pub(crate) agent: Option<String>,
    pub(crate) title: String,
    /// The first item: the session never exists without it.
    pub(crate) item: Option<ItemPush>,
    /// The same key of the same principal, with the same content, is the same session.
    pub(crate) key: Option<String>,
    /// What was said before the session: its conversation begins with that.
    pub(crate) earlier: Vec<EarlierMessage>,
    /// The name that a client gives to it, which it is shown by where it is shown to that client.
    pub(crate) named: Option<String>,
}

impl Caller {
    /// Makes a session, and begins its first item.
    ///
    /// # Errors
    /// `no_such_agent`, `other_content`, what its item lacks, and the store's.
    ///
    /// # Cancel safety
    /// It may have been made.
    pub(crate) async fn make(&self, make: SessionMake) -> Answered<(Kept, Seen)> {
        let agent = self.agent(make.agent.as_deref())?;
        let id = make.key.as_ref().map_or_else(SessionId::fresh, |key| self.session_of(key));
        let item = make.item.as_ref().map(ItemPush::encoded).transpose()?;
        let digest = item.as_ref().map(|item| item.digest.clone());
        let (principal, earlier) =
            (self.who.name().to_owned(), make.earlier.iter().map(EarlierMessage::message).collect());
        let setup = Setup { agent, principal, item: digest, earlier, named: make.named };
        let new = NewSession {
            title: make.title,
            setup: setup.write(),
            // Those that have the agent may take it.
            pool: setup.agent.clone(),
            items: Vec::from_iter(item),
            ..NewSession::of(id.clone())
        };
        let (row, seen) = match self.store().create(new).await {
            Ok(row) => (row, Seen::First),
            Err(Error::SessionExists(_)) => (self.store().open(&id).await?, Seen::Again),
            Err(error) => return Err(error.into()),
        };
        if seen == Seen::Again && Setup::of(&row) != setup {
            return Err(Problem::conflict(
                "other_content",
                "this key (`Idempotency-Key`, or the id of a message) was used for other content",
            ));
        }
        let kept = Kept { row, setup };
        if let Some(item) = &make.item {
            if seen == Seen::First {
                self.expect(kept.id(), item);
            }
            self.wake(&kept);
        }
        Ok((kept, seen))
    }

    /// The session that the caller makes with this key.
    pub(crate) fn session_of(&self, key: &str) -> SessionId {
        const DIGITS: usize = 32;
        let principal = self.who.name();
        let digest = Sha256::digest(format!("{}:{principal}:{key}", principal.len()));
        let digits: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        SessionId::from(format!("ses_{}", &digits[..DIGITS]))
    }

    /// The name of an agent that the caller may use; the only one, if none is named.
    ///
    /// # Errors
    /// `no_such_agent`, and `bad_request` where one of several is to be named.
    pub(crate) fn agent(&self, named: Option<&str>) -> Answered<String> {
        let agents = &self.host.agents;
        let found = match named {
            Some(named) => agents.get_key_value(named).map(|(name, _)| name),
            None if agents.len() == 1 => agents.keys().next(),
            None => {
                let names = joined(self.agents());
                return Err(Problem::bad_request(format!(
                    "`agent` is missing, and there are several: {names}"
                )));
            }
        };
        found.filter(|name| self.who.uses(name)).cloned().ok_or_else(|| no_such_agent(self.agents()))
    }
}

impl Caller {
    /// The names of the agents that the caller may use.
    fn agents(&self) -> impl Iterator<Item = &String> {
        self.host.agents.keys().filter(|name| self.who.uses(name))
    }

    /// The agents that the caller may use by this protocol.
    pub(crate) fn agents_on(&self, surface: Surface) -> impl Iterator<Item = (&String, &Offered)> {
        let agents = self.host.agents.iter();
        agents.filter(move |(name, _)| self.host.offers(&self.who, surface, name))
    }
}

/// The agent that was named is none of these, which are those that the caller may use.
pub(crate) fn no_such_agent<'a>(usable: impl Iterator<Item = &'a String>) -> Problem {
    let names = joined(usable);
    let names = if names.is_empty() { "none" } else { &*names };
    let detail = format!("agent not found; this token may use: {names}");
    Problem::new(StatusCode::NOT_FOUND, "no_such_agent", detail)
}

fn joined<'a>(names: impl Iterator<Item = &'a String>) -> String {
    names.map(String::as_str).collect::<Vec<_>>().join(", ")
}

/// The session as it is now, with what only its journal says.
///
/// # Errors
/// The store's.
///
/// # Cancel safety
/// Nothing is lost.
pub(crate) async fn whole(host: &HostState, row: &SessionRow, setup: &Setup) -> Answered<SessionAnswer> {
    let listed = view(host, row, setup).await?;
    // Of any other session nothing is left to resume.
    let may_resume =
        listed.open == OpenAt::No && ["stopped", "failed", "running", "cut"].contains(&&*row.label);
    if !may_resume {
        return Ok(listed);
    }
    let resumable = read::resumable(&*host.store, &row.id).await?;
    Ok(SessionAnswer { resumable: resumable.map(|turn| turn.to_string()), ..listed })
}

/// The session as it is now, as a list says it: no journal is read.
///
/// # Errors
/// The store's.
///
/// # Cancel safety
/// Nothing is lost.
pub(crate) async fn view(host: &HostState, row: &SessionRow, setup: &Setup) -> Answered<SessionAnswer> {
    let here = host.opened(&row.id);
    let store = &*host.store;
    let inbox = store.inbox(&row.id).await?;
    let waiting: Vec<String> = inbox
        .iter()
        .filter(|item| item.state == ItemState::Waiting)
        .map(|item| format!("item-{}", item.number))
        .collect();
    let approvals = store.approvals(&row.id).await?;
    let open = if here.is_some() {
        OpenAt::Here
    } else if is_held(row) {
        OpenAt::Elsewhere
    } else {
        OpenAt::No
    };
    let turn = here.as_ref().and_then(running);
    let resumable = here.as_ref().and_then(|open| open.handle().resumable());
    Ok(SessionAnswer {
        id: row.id.to_string(),
        agent: setup.agent.clone(),
        title: row.title.clone(),
        state: match resumable {
            _ if turn.is_some() => SessionState::Running,
            Some(_) => left(row),
            None => state(row, open, !waiting.is_empty()),
        },
        open,
        durable: host.is_durable,
        turn,
        resumable: resumable.map(|turn| turn.to_string()),
        held: here.as_ref().is_some_and(|open| open.handle().is_holding()),
        waiting,
        approvals: approvals.iter().filter(|row| row.state == ApprovalState::Open).count(),
        created: row.created,
        updated: row.updated,
        cursor: cursor_of(host, row).await?.map(|place| place.to_string()),
    })
}

/// The place of the session's last record.
///
/// # Errors
/// The store's.
///
/// # Cancel safety
/// Nothing is lost.
async fn cursor_of(host: &HostState, row: &SessionRow) -> Answered<Option<EventPlace>> {
    let Some(position) = row.head.checked_sub(1) else { return Ok(None) };
    let tenures = host.store.tenures(&row.id).await?;
    Ok(Some(EventPlace { epoch: read::epoch_at(&tenures, position), position }))
}

fn running(open: &Arc<OpenSession>) -> Option<RunningTurn> {
    let turn = open.handle().current_turn()?;
    Some(RunningTurn {
        id: turn.turn.to_string(),
        run: turn.run.id().to_string(),
        alive: turn.run.alive(),
        stopping: turn.run.stop_requested().is_some(),
    })
}

/// How a session is whose last turn may be resumed.
fn left(row: &SessionRow) -> SessionState {
    match row.label.as_str() {
        "running" | "cut" => SessionState::Crashed,
        "failed" => SessionState::Failed,
        _ => SessionState::Stopped,
    }
}

fn state(row: &SessionRow, open: OpenAt, waits: bool) -> SessionState {
    match (row.label.as_str(), open) {
        ("suspended", _) => SessionState::Suspended,
        ("running", OpenAt::No) | ("cut", _) => SessionState::Crashed,
        ("running", OpenAt::Elsewhere) => SessionState::Running,
        (_, OpenAt::Here) if waits => SessionState::Queued,
        ("stopped", _) => SessionState::Stopped,
        ("failed", _) => SessionState::Failed,
        _ if waits => SessionState::Queued,
        (_, OpenAt::Here | OpenAt::Elsewhere) => SessionState::Open,
        (_, OpenAt::No) => SessionState::Idle,
    }
}
