//! The commands that talk to a running session from elsewhere.

use std::{
    io::Read as _,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use tokio::{
    io::BufReader,
    time::{Instant, timeout, timeout_at},
};

use super::{
    args::{Common, PushArgs, SteerArgs, StopArgs, WithdrawArgs},
    place, stored,
    wire::{self, Ask, OrWord, PolicyWord, PushAsk, Reply, Request, VERSION, Wait, code},
};
use crate::args::Usage;

/// How long a session may take to say that it has heard.
const TO_HEAR: Duration = Duration::from_secs(10);

pub(crate) async fn push(args: PushArgs) -> anyhow::Result<ExitCode> {
    let wait = if args.wait { Wait::Settled } else { Wait::No };
    let push = PushAsk {
        text: text(&args.text)?,
        policy: args.policy,
        at: args.at,
        within_ms: args.within.map(millis),
        delay_ms: args.delay.map(millis),
        turn: args.turn,
        client_id: args.id,
        or: OrWord::Queue,
        wait,
    };
    talk(&args.common, Ask::Push(push), wait).await
}

pub(crate) async fn steer(args: SteerArgs) -> anyhow::Result<ExitCode> {
    let wait = if args.wait { Wait::Settled } else { Wait::No };
    let push = PushAsk {
        text: text(&args.text)?,
        policy: PolicyWord::Steer,
        at: None,
        within_ms: None,
        delay_ms: None,
        turn: None,
        client_id: None,
        or: args.or,
        wait,
    };
    talk(&args.common, Ask::Push(push), wait).await
}

pub(crate) async fn withdraw(args: WithdrawArgs) -> anyhow::Result<ExitCode> {
    talk(&args.common, Ask::Withdraw { item: args.item }, Wait::No).await
}

pub(crate) async fn stop(args: StopArgs) -> anyhow::Result<ExitCode> {
    let stop = args.ask()?;
    let wait = stop.wait;
    talk(&args.common, Ask::Stop(stop), wait).await
}

/// What one session that runs says of itself.
pub(crate) struct Running {
    pub(crate) session: String,
    /// In one line.
    pub(crate) said: String,
    pub(crate) detail: serde_json::Value,
}

/// Every session that runs, oldest first.
///
/// # Errors
/// If the directory of the sockets cannot be used.
///
/// # Cancel safety
/// Nothing is lost.
pub(crate) async fn running() -> anyhow::Result<Vec<Running>> {
    let mut found = Vec::new();
    for (session, path) in place::sessions()? {
        if let Some(reply) = shown_of(&path).await {
            found.push(Running { session, said: reply.message, detail: reply.detail });
        }
    }
    Ok(found)
}

/// Has the owner of a kept session look at its store at once, if one lives here; else it finds out by itself.
pub(super) async fn nudge(session: &str) {
    const PATIENCE: Duration = Duration::from_millis(200);
    let asked = async {
        let (_, path) = place::sessions().ok()?.into_iter().find(|(id, _)| id == session)?;
        let mut stream = place::connect(&path).await?;
        wire::write(&mut stream, &Request { v: VERSION, ask: Ask::Look }).await.ok()?;
        wire::read_line(&mut BufReader::new(stream)).await.ok()
    };
    if timeout(PATIENCE, asked).await.is_err() {
        // It looks by itself before long.
    }
}

/// What a session says of itself; none if it is gone or does not answer.
async fn shown_of(path: &Path) -> Option<Reply> {
    const PATIENCE: Duration = Duration::from_secs(1);
    let asked = async {
        let mut stream = place::connect(path).await?;
        wire::write(&mut stream, &Request { v: VERSION, ask: Ask::Show }).await.ok()?;
        let line = wire::read_line(&mut BufReader::new(stream)).await.ok()??;
        serde_json::from_slice(&line).ok()
    };
    timeout(PATIENCE, asked).await.ok().flatten()
}

/// The socket of the session that is meant: its id, or an end of it that no other has.
fn meant(named: &str) -> anyhow::Result<Option<PathBuf>> {
    const LEAST: usize = 4;
    let sessions = place::sessions()?;
    if let Some((_, path)) = sessions.iter().find(|(id, _)| id == named) {
        return Ok(Some(path.clone()));
    }
    let mut ending = sessions.iter().filter(|(id, _)| named.len() >= LEAST && id.ends_with(named));
    match (ending.next(), ending.next()) {
        (Some((_, path)), None) => Ok(Some(path.clone())),
        (Some(_), Some(_)) => {
            Err(Usage(format!("more than one session ends in {named}: write more of it")).into())
        }
        (None, _) => Ok(None),
    }
}

/// Asks, and shows each reply; the exit code is the last one's.
async fn talk(common: &Common, ask: Ask, wait: Wait) -> anyhow::Result<ExitCode> {
    if let Some(reply) = stored::through_store(common, &ask, wait).await? {
        show(common, &reply)?;
        return Ok(ExitCode::from(reply.code));
    }
    let stream = match meant(&common.session)? {
        Some(path) => place::connect(&path).await,
        None => None,
    };
    let Some(mut stream) = stream else {
        let message = format!("no session {} is running (safepoint sessions ls lists them)", common.session);
        show(common, &Reply::new(code::NONE_SUCH, "no_such_session", message))?;
        return Ok(ExitCode::from(code::NONE_SUCH));
    };
    wire::write(&mut stream, &Request { v: VERSION, ask }).await?;
    let mut reader = BufReader::new(stream);
    let deadline = match (wait, common.timeout) {
        (_, Some(timeout)) => Some(Instant::now() + timeout),
        (Wait::No, None) => Some(Instant::now() + TO_HEAR),
        (Wait::Settled | Wait::Quiet, None) => None,
    };
    loop {
        let line = match deadline {
            None => wire::read_line(&mut reader).await,
            Some(deadline) => match timeout_at(deadline, wire::read_line(&mut reader)).await {
                Ok(line) => line,
                Err(_over) => {
                    show(
                        common,
                        &Reply::new(
                            code::TIMED_OUT,
                            "timed_out",
                            "it was asked; its end was not seen in time",
                        ),
                    )?;
                    return Ok(ExitCode::from(code::TIMED_OUT));
                }
            },
        };
        let Some(line) = line? else { anyhow::bail!("the session went away before it answered") };
        let reply: Reply = serde_json::from_slice(&line)?;
        show(common, &reply)?;
        if reply.last {
            return Ok(ExitCode::from(reply.code));
        }
    }
}

fn show(common: &Common, reply: &Reply) -> anyhow::Result<()> {
    let message = crate::screen::plain(&reply.message);
    match (common.json, reply.code) {
        (true, _) => println!("{}", serde_json::to_string(reply)?),
        (false, code::ACCEPTED) => {
            println!("{message}");
            for line in details(&reply.detail) {
                println!("  {line}");
            }
        }
        (false, _) => eprintln!("safepoint: {message}"),
    }
    Ok(())
}

/// The details that say more than the message does.
pub(crate) fn details(detail: &serde_json::Value) -> Vec<String> {
    let Some(fields) = detail.as_object().filter(|fields| fields.contains_key("pid")) else {
        return Vec::new();
    };
    let line = |(name, value): (&String, &serde_json::Value)| {
        let text = match value {
            serde_json::Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        (!value.is_null()).then(|| format!("{name:<8} {}", crate::screen::plain(&text)))
    };
    fields.iter().filter_map(line).collect()
}

fn text(given: &str) -> anyhow::Result<String> {
    if given != "-" {
        return Ok(given.to_owned());
    }
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
