//! Commands on kept sessions, through the store alone: they work before, while and after an owner lives.

use std::{io::Write as _, path::PathBuf, process::ExitCode, sync::Arc};

use anyhow::Context as _;
use clap::{Args, Subcommand};
use safepoint::{
    approval::{ApprovalRequest, Decision},
    ids::{ApprovalId, SessionId},
    store::{self, ApprovalState, Decided, Entry, Error, Store, Verdict},
};
use serde_json::{Value, json};

use crate::{
    args::Usage,
    conversation::{existing_store, open_store},
    told::Told,
};

/// Exit codes of control commands.
pub(crate) mod code {
    pub(crate) const NO_SUCH: u8 = 3;
    pub(crate) const TOO_LATE: u8 = 4;
    pub(crate) const CONFLICT: u8 = 5;
}

/// Where, and in which form.
#[derive(Clone, Debug, Args)]
pub(crate) struct Where {
    /// The store's file; default: $XDG_DATA_HOME/safepoint/store.db, or the same under ~/.local/share
    #[arg(long, value_name = "PATH")]
    pub(crate) store: Option<PathBuf>,
    /// One JSON object a line on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

/// `safepoint approvals`.
#[derive(Clone, Debug, Args)]
pub(crate) struct ApprovalsArgs {
    /// The session
    session: String,
    #[command(flatten)]
    place: Where,
}

/// `safepoint approve`, `deny`, `respond`.
#[derive(Clone, Debug, Args)]
pub(crate) struct DecideArgs {
    /// The session
    session: String,
    /// The approval, as `safepoint approvals` names it
    approval: String,
    /// Other arguments instead, as JSON (approve)
    #[arg(long, value_name = "JSON")]
    args: Option<String>,
    /// What the model is told (deny, respond)
    #[arg(long, value_name = "TEXT")]
    message: Option<String>,
    #[command(flatten)]
    place: Where,
}

/// `safepoint store`.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// Verifies the chain of every session, and names the first bad record of each
    Check(Where),
    /// What is readable of a session's journal: one JSON object a record, a damaged one in its place
    Export(ExportArgs),
}

/// `safepoint store export`.
#[derive(Clone, Debug, Args)]
pub(crate) struct ExportArgs {
    /// The session
    session: String,
    /// The store's file; default: $XDG_DATA_HOME/safepoint/store.db, or the same under ~/.local/share
    #[arg(long, value_name = "PATH")]
    store: Option<PathBuf>,
}

/// What a decision is. Exhaustive: the three commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Approve,
    Deny,
    Respond,
}

/// Lists the approvals of a session, the open ones first.
pub(crate) async fn approvals(args: ApprovalsArgs) -> anyhow::Result<ExitCode> {
    let store = open_store(args.place.store)?;
    let session = SessionId::from(args.session);
    let rows = match store.approvals(&session).await {
        Err(Error::NoSession(_)) => return Ok(no_session(&session)),
        rows => rows?,
    };
    let mut told = Told::default();
    for row in rows {
        let asked: Option<ApprovalRequest> = serde_json::from_slice(&row.asked.bytes).ok();
        let state = match &row.state {
            ApprovalState::Open if row.asked.expires <= jiff::Timestamp::now() => "expired".to_owned(),
            ApprovalState::Open => "open".to_owned(),
            ApprovalState::Decided { principal, .. } => format!("decided by {principal}"),
            ApprovalState::Withdrawn => "withdrawn".to_owned(),
            ApprovalState::Expired => "expired".to_owned(),
        };
        let (tool, arguments) = asked.map_or((String::new(), Value::Null), |asked| (asked.tool, asked.args));
        if args.place.json {
            let fields = json!({"approval_id": row.asked.id, "state": state, "tool": tool, "args": arguments,
                "digest": row.asked.digest, "asked_at": row.at, "expires_at": row.asked.expires});
            told.say("approval", Some(session.as_str()), fields)?;
        } else {
            println!("{}  {state}  {tool} {arguments}", row.asked.id);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Decides one approval; the first decision counts, from whichever process.
pub(crate) async fn decide(verb: Verb, args: DecideArgs) -> anyhow::Result<ExitCode> {
    let decision = decision(verb, &args)?;
    let store = open_store(args.place.store)?;
    let (session, id) = (SessionId::from(args.session), ApprovalId::from(args.approval));
    let row = match store.approval(&session, &id).await {
        Err(Error::NoSession(_)) => return Ok(no_session(&session)),
        Ok(None) => {
            eprintln!("safepoint: no approval {id} in {session}; `safepoint approvals {session}` lists them");
            return Ok(ExitCode::from(code::NO_SUCH));
        }
        Ok(Some(row)) => row,
        Err(error) => return Err(error.into()),
    };
    let bytes = serde_json::to_vec(&decision)?;
    let principal = std::env::var("USER").unwrap_or_else(|_unset| "somebody at a terminal".into());
    let answer =
        store::Decision { id: id.clone(), digest: row.asked.digest, principal, bytes: bytes.clone() };
    let (code, said) = match store.decide(&session, answer).await? {
        Decided::Taken => (0, format!("taken; `safepoint resume {session}` goes on, unless its owner lives")),
        Decided::AlreadyDecided { bytes: other, principal, .. } if other == bytes => {
            (0, format!("already so, by {principal}"))
        }
        Decided::AlreadyDecided { principal, at, .. } => {
            (code::TOO_LATE, format!("already decided otherwise by {principal} at {at}"))
        }
        Decided::Withdrawn => (code::TOO_LATE, "a stop took this question back".into()),
        Decided::Expired => (code::TOO_LATE, "this question has expired".into()),
        Decided::OtherArguments { .. } => {
            (code::CONFLICT, "the question is about other arguments now".into())
        }
        Decided::Unknown => (code::NO_SUCH, "there is no such question".into()),
    };
    if args.place.json {
        let fields = json!({"approval_id": id, "code": code, "said": said});
        Told::default().say("decided", Some(session.as_str()), fields)?;
    } else {
        eprintln!("safepoint: {said}");
    }
    Ok(ExitCode::from(code))
}

fn decision(verb: Verb, args: &DecideArgs) -> anyhow::Result<Decision> {
    let message = args.message.clone();
    Ok(match (verb, &args.args) {
        (Verb::Approve, None) => Decision::Approve,
        (Verb::Approve, Some(text)) => {
            let args =
                serde_json::from_str(text).map_err(|error| Usage(format!("--args is not JSON: {error}")))?;
            Decision::ApproveWith { args }
        }
        (_, Some(_)) => return Err(Usage("--args belongs to approve".into()).into()),
        (Verb::Deny, None) => Decision::Deny { message: message.unwrap_or_default() },
        (Verb::Respond, None) => Decision::Respond {
            result: message.ok_or_else(|| Usage("respond needs --message: the result of the call".into()))?,
        },
    })
}

/// `safepoint store check`.
pub(crate) async fn check(place: Where) -> anyhow::Result<ExitCode> {
    let store = open_store(place.store)?;
    let mut older = None;
    let mut bad = 0;
    let mut told = place.json.then(Told::default);
    loop {
        let rows = store.list(PAGE, older.take()).await.context("the sessions cannot be listed")?;
        for row in &rows {
            bad += usize::from(!is_sound(&store, &row.id, told.as_mut()).await?);
        }
        match rows.last() {
            Some(last) if rows.len() == PAGE => older = Some(last.older()),
            _ => break,
        }
    }
    Ok(ExitCode::from(u8::from(bad > 0)))
}

/// How many sessions are listed at once.
const PAGE: usize = 256;

async fn is_sound(
    store: &Arc<dyn Store>,
    session: &SessionId,
    told: Option<&mut Told>,
) -> anyhow::Result<bool> {
    let (sound, said) = match store.check(session).await? {
        Verdict::Sound(sound) => (true, format!("{} records, sound", sound.records)),
        Verdict::Flawed(damage) => (false, damage.to_string()),
    };
    match told {
        Some(told) => told.say("checked", Some(session.as_str()), json!({"sound": sound, "said": said}))?,
        None => println!("{session}  {said}"),
    }
    Ok(sound)
}

/// `safepoint store export`: nothing else is on stdout.
pub(crate) async fn export(args: ExportArgs) -> anyhow::Result<ExitCode> {
    let session = SessionId::from(args.session);
    let Some(store) = existing_store(args.store)? else { return Ok(no_session(&session)) };
    let mut out = std::io::BufWriter::new(std::io::stdout());
    let (mut damaged, mut written, mut told) = (0, Ok(()), Told::default());
    let done = store::export(&*store, &session, |entry| {
        damaged += usize::from(entry.record.is_err());
        if written.is_ok() {
            written = writeln!(out, "{}", exported(&mut told, &session, entry));
        }
    });
    match done.await {
        Err(Error::NoSession(_)) => return Ok(no_session(&session)),
        done => done?,
    }
    written.and_then(|()| out.flush()).context("stdout cannot be written")?;
    if damaged > 0 {
        eprintln!("safepoint: {damaged} records cannot be read; they are told in their places");
    }
    Ok(ExitCode::from(u8::from(damaged > 0)))
}

fn exported(told: &mut Told, session: &SessionId, entry: Entry) -> Value {
    let mut line = told.line("record", Some(session.as_str()), json!({"position": entry.position}));
    let (name, value) = match entry.record {
        Err(damage) => ("damage", json!(damage.to_string())),
        Ok(record) => {
            line["path"] = json!(record.path);
            line["kind"] = json!(record.kind);
            line["version"] = json!(record.version);
            match serde_json::from_slice::<Value>(&record.bytes) {
                Ok(value) => ("record", value),
                Err(_not_json) => ("bytes", json!(record.bytes)),
            }
        }
    };
    line[name] = value;
    line
}

pub(crate) fn no_session(session: &SessionId) -> ExitCode {
    eprintln!("safepoint: there is no session {session}; `safepoint sessions ls` lists them");
    ExitCode::from(code::NO_SUCH)
}
