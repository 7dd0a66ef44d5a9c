//! `safepoint sessions`: one list of what the store keeps and of what runs.

use std::{collections::HashMap, process::ExitCode, sync::Arc};

use clap::{Args, Subcommand};
use jiff::Timestamp;
use safepoint::{
<<<<<<< HEAD
    ids::SessionId,
    store::{Error, Life, SessionRow, Store},
=======
    ids::{SessionId, TurnId},
    receipt::Receipt,
    store::{ApprovalRow, ApprovalState, Error, ItemState, Life, SessionRow, Store, Use},
>>>>>>> 5bacafa (session: a stop takes back the questions that it means, and nothing revives them; steers that are gone fail nothing; questions wait for 30 days)
};
use serde_json::{Value, json};

mod receipts;
mod show;
mod state;

use state::State;

use crate::{
    args::Usage,
    control::client::{Answers, Running, running},
    conversation::existing_store,
    kept::{Where, code, no_session},
    screen::plain,
    setup::Setup,
    told::Told,
    trace::{cut, one_line},
};

/// How many kept sessions are listed, unless it is said.
const NEWEST: usize = 50;

/// `safepoint sessions`. Exhaustive: three commands.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum SessionsCommand {
    /// The sessions that are kept, newest first, and those that run
    Ls(LsArgs),
    /// How one stands: what it is doing, what waits in it, which questions are open
    Show(OneArgs),
    /// Removes a kept session with all that belongs to it; refused while somebody holds it
    Rm(OneArgs),
}

/// `safepoint sessions ls`.
#[derive(Clone, Debug, Args)]
pub(crate) struct LsArgs {
    /// How many of the kept ones, the newest
    #[arg(long, short = 'n', value_name = "N", default_value_t = NEWEST)]
    most: usize,
    #[command(flatten)]
    place: Where,
}

/// `safepoint sessions show` and `rm`.
#[derive(Clone, Debug, Args)]
pub(crate) struct OneArgs {
    /// The session's id, or an end of it that no other has
    session: String,
    #[command(flatten)]
    place: Where,
}

/// One session of the list.
pub(crate) struct Listed {
    pub(crate) id: String,
    /// In the store; none if it lives in memory alone.
    row: Option<SessionRow>,
    /// What its own process says, if it runs and answers.
    running: Option<Running>,
    waits: Waits,
}

/// What a suspended session waits for. Exhaustive: somebody, or nothing any more, since a stop took its questions back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waits {
    ForSomebody,
    ForNothing,
}

impl Waits {
    /// Looked at only where it matters.
    async fn of(store: Option<&Arc<dyn Store>>, row: &SessionRow) -> anyhow::Result<Self> {
        let Some(store) = store.filter(|_| row.label == SUSPENDED) else { return Ok(Self::ForSomebody) };
        let rows = store.approvals(&row.id).await?;
        let is_left = |row: &ApprovalRow| {
            matches!(row.state, ApprovalState::Open | ApprovalState::Decided { used: Use::Waiting, .. })
        };
        Ok(if rows.iter().any(is_left) { Self::ForSomebody } else { Self::ForNothing })
    }
}

/// How the store names a session that waits for a decision.
const SUSPENDED: &str = "suspended";

/// Runs the command.
pub(crate) async fn sessions(command: SessionsCommand) -> anyhow::Result<ExitCode> {
    match command {
        SessionsCommand::Ls(args) => list(args).await,
        SessionsCommand::Show(args) => show::show(args).await,
        SessionsCommand::Rm(args) => remove(args).await,
    }
}

/// The newest kept sessions, and all that run: newest first.
///
/// # Errors
/// If the store or the directory of the sockets cannot be used.
///
/// # Cancel safety
/// Nothing is lost.
pub(crate) async fn recent(store: Option<&Arc<dyn Store>>, most: usize) -> anyhow::Result<Vec<Listed>> {
    let mut live: HashMap<String, Running> =
        running().await?.into_iter().map(|running| (running.session.clone(), running)).collect();
    let mut rows = match store {
        Some(store) => store.list(most, None).await?,
        None => Vec::new(),
    };
    // One that runs is listed, however old it is.
    if let Some(store) = store {
        for id in live
            .keys()
            .filter(|id| rows.iter().all(|row| row.id.as_str() != **id))
            .cloned()
            .collect::<Vec<_>>()
        {
            match store.open(&SessionId::from(id)).await {
                Ok(row) => rows.push(row),
                Err(Error::NoSession(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    let mut kept = Vec::with_capacity(rows.len());
    for row in rows {
        kept.push(Listed::kept(store, row, &mut live).await?);
    }
    let mut listed: Vec<Listed> = live
        .into_values()
        .map(|running| Listed {
            id: running.session.clone(),
            row: None,
            running: Some(running),
            waits: Waits::ForSomebody,
        })
        .collect();
    listed.sort_by(|one, other| other.id.cmp(&one.id));
    listed.extend(kept);
    Ok(listed)
}

impl Listed {
    async fn kept(
        store: Option<&Arc<dyn Store>>,
        row: SessionRow,
        live: &mut HashMap<String, Running>,
    ) -> anyhow::Result<Self> {
        let (id, waits) = (row.id.as_str().to_owned(), Waits::of(store, &row).await?);
        Ok(Self { running: live.remove(&id), row: Some(row), id, waits })
    }

    /// Whether it is in the store.
    pub(crate) fn is_kept(&self) -> bool {
        self.row.is_some()
    }

    /// Whether somebody is known to be alive who has it.
    fn is_held(&self) -> bool {
        let held = self.row.as_ref().and_then(|row| row.holder.as_ref());
        self.running.is_some() || held.is_some_and(|held| held.owner.life() != Life::Dead)
    }

    fn state(&self) -> State {
        let is_at_work = self.running.as_ref().is_some_and(|running| !running.detail["turn"].is_null());
        let label = self.row.as_ref().map_or("", |row| row.label.as_str());
        if self.running.as_ref().is_some_and(|running| running.answers == Answers::No) {
            return State::NotAnswering;
        }
        match (label, self.is_held()) {
            ("running", true) => State::Running,
            ("running", false) => State::Crashed,
            (SUSPENDED, false) if self.waits == Waits::ForNothing => State::Stopped,
            (SUSPENDED, _) => State::Suspended,
            (_, true) if is_at_work => State::Running,
            ("stopped", false) => State::Stopped,
            ("failed", false) => State::Failed,
            (_, true) => State::Open,
            (_, false) => State::Idle,
        }
    }

    /// Who has it, as far as that can be known.
    pub(crate) fn owner(&self) -> Option<String> {
        let held = self.row.as_ref().and_then(|row| row.holder.as_ref())?;
        match held.owner.life() {
            Life::Alive => Some(held.owner.to_string()),
            Life::Dead => None,
            Life::Unknown => Some(format!("{}, perhaps", held.owner)),
        }
    }

    /// In one line.
    pub(crate) fn line(&self) -> String {
        const ID: usize = 36;
        const STATE: usize = 13;
        let when = self.row.as_ref().map_or_else(|| "not kept".to_owned(), |row| ago(row.updated));
        let more = match (&self.running, self.owner(), &self.row) {
            (Some(running), ..) => one_line(&running.said),
            (None, Some(owner), _) => owner,
            (None, None, Some(row)) => {
                let title = one_line(&row.title);
                if title.is_empty() { format!("{} records", row.head) } else { title }
            }
            (None, None, None) => String::new(),
        };
        format!("{:<ID$}  {:<STATE$}  {when:<10}  {more}", one_line(&self.id), self.state().as_str())
    }

    fn json(&self, told: &mut Told) -> Value {
        let row = self.row.as_ref();
        let holder = row.and_then(|row| row.holder.as_ref());
        let fields = json!({
            "state": self.state().as_str(), "kept": self.is_kept(),
            "created_at": row.map(|row| row.created), "updated_at": row.map(|row| row.updated),
            "title": row.map(|row| &row.title), "records": row.map(|row| row.head),
            "setup": row.map(Setup::read),
            "owner": holder.map(|held| json!({
                "pid": held.owner.pid, "host": held.owner.host, "since": held.since,
                "life": match held.owner.life() {
                    Life::Alive => "alive", Life::Dead => "dead", Life::Unknown => "unknown",
                },
            })),
            "message": self.running.as_ref().map(|running| &running.said),
            "detail": self.running.as_ref().map(|running| &running.detail),
        });
        told.line("session", Some(&self.id), fields)
    }
}

async fn list(args: LsArgs) -> anyhow::Result<ExitCode> {
    let store = existing_store(args.place.store)?;
    let listed = recent(store.as_ref(), args.most).await?;
    let mut told = Told::default();
    for one in &listed {
        if args.place.json {
            println!("{}", one.json(&mut told));
        } else {
            println!("{}", cut(&one.line(), width()));
        }
    }
    if args.place.json {
        return Ok(ExitCode::SUCCESS);
    }
    match listed.iter().filter(|one| one.is_kept()).count() {
        _ if listed.is_empty() => eprintln!("no session is kept, and none runs"),
        count if count >= args.most => eprintln!("the newest {count}; -n N lists more"),
        _ => {}
    }
    Ok(ExitCode::SUCCESS)
}

async fn remove(args: OneArgs) -> anyhow::Result<ExitCode> {
    let store = existing_store(args.place.store)?;
    let Some(one) = meant(store.as_ref(), &args.session).await? else {
        return Ok(no_session(&SessionId::from(args.session)));
    };
    let id = SessionId::from(one.id.as_str());
    let (number, said) = match (&store, one.is_kept()) {
        (Some(store), true) => match store.remove(&id).await {
            Ok(()) => (0, format!("{id} is removed")),
            Err(Error::NoSession(_)) => return Ok(no_session(&id)),
            Err(error @ Error::Held(..)) => (code::CONFLICT, format!("{error}; safepoint stop {id} ends it")),
            Err(error) => return Err(error.into()),
        },
        _ => (code::CONFLICT, format!("{id} is not kept, it runs; safepoint stop {id} ends it")),
    };
    if args.place.json {
        Told::default().say("removed", Some(id.as_str()), json!({"code": number, "said": said}))?;
    } else {
        eprintln!("safepoint: {}", plain(&said));
    }
    Ok(ExitCode::from(number))
}

/// The session that is meant: its id, or an end of it that no other of the newest has.
pub(crate) async fn meant(store: Option<&Arc<dyn Store>>, named: &str) -> anyhow::Result<Option<Listed>> {
    /// Less of an id says too little.
    const LEAST: usize = 4;
    const LOOKED_AT: usize = 1024;
    let mut listed = recent(store, LOOKED_AT).await?;
    if let Some(at) = listed.iter().position(|one| one.id == named) {
        return Ok(Some(listed.swap_remove(at)));
    }
    if let Some(store) = store {
        match store.open(&SessionId::from(named)).await {
            Ok(row) => return Ok(Some(Listed::kept(Some(store), row, &mut HashMap::new()).await?)),
            Err(Error::NoSession(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    listed.retain(|one| named.len() >= LEAST && one.id.ends_with(named));
    match listed.len() {
        0 | 1 => Ok(listed.pop()),
        _ => Err(Usage(format!("more than one session ends in {named}: write more of it")).into()),
    }
}

/// How long ago, in one unit.
fn ago(at: Timestamp) -> String {
    const MINUTE: i64 = 60;
    const HOUR: i64 = 60 * MINUTE;
    const DAY: i64 = 24 * HOUR;
    match Timestamp::now().duration_since(at).as_secs() {
        days @ DAY.. => format!("{} d ago", days / DAY),
        hours @ HOUR.. => format!("{} h ago", hours / HOUR),
        minutes @ MINUTE.. => format!("{} min ago", minutes / MINUTE),
        seconds => format!("{} s ago", seconds.max(0)),
    }
}

/// The columns of stdout, where it is a terminal.
fn width() -> usize {
    rustix::termios::tcgetwinsize(rustix::stdio::stdout())
        .map_or(usize::MAX, |size| usize::from(size.ws_col).max(40))
}
