//! The commands that talk to a running session from elsewhere. What is asked is judged before the session is looked for.

use std::{io::Read as _, path::Path, process::ExitCode, time::Duration};

use serde_json::Value;
use tokio::{io::BufReader, net::UnixStream, time::timeout};

use super::{
    exchange::{TO_HEAR, talk},
    protocol::{self, Ask, PushAsk, Reply, Request, VERSION, Wait},
    socket_dir,
};
use crate::{
    args::{
        control::{OrWord, PolicyWord, PushArgs, SteerArgs, StopArgs, WithdrawArgs},
        duration::parse as duration,
    },
    control::protocol::{Afterwards, ModeWord, StopAsk},
    exit::Usage,
    render::text::one_line,
};

pub(crate) async fn push(args: PushArgs) -> anyhow::Result<ExitCode> {
    let common = args.common.clone();
    talk(&common, pushed(args)).await
}

/// What is to be pushed, judged before anybody is asked.
fn pushed(args: PushArgs) -> anyhow::Result<Ask> {
    let push = PushAsk {
        text: text(&args.text)?,
        policy: args.policy,
        at: args.at,
        within_ms: args.within.map(millis),
        delay_ms: args.delay.map(millis),
        turn: args.turn,
        client_id: args.id,
        or: OrWord::Queue,
        wait: if args.wait { Wait::Settled } else { Wait::No },
    };
    push.policy().map_err(Usage)?;
    Ok(Ask::Push(push))
}

pub(crate) async fn steer(args: SteerArgs) -> anyhow::Result<ExitCode> {
    let ask = text(&args.text).map(|text| {
        Ask::Push(PushAsk {
            text,
            policy: PolicyWord::Steer,
            at: None,
            within_ms: None,
            delay_ms: None,
            turn: None,
            client_id: None,
            or: args.or,
            wait: if args.wait { Wait::Settled } else { Wait::No },
        })
    });
    talk(&args.common, ask).await
}

pub(crate) async fn withdraw(args: WithdrawArgs) -> anyhow::Result<ExitCode> {
    talk(&args.common, Ok(Ask::Withdraw { item: args.item })).await
}

pub(crate) async fn stop(args: StopArgs) -> anyhow::Result<ExitCode> {
    let ask = asked(&args).and_then(|stop| {
        stop.check().map_err(Usage)?;
        Ok(Ask::Stop(stop))
    });
    talk(&args.common, ask.map_err(Into::into)).await
}

const USUAL_GRACE: Duration = Duration::from_secs(5);

/// The stop that is asked.
fn asked(args: &StopArgs) -> Result<StopAsk, Usage> {
    let mode = mode(args);
    let within_ms = match (args.within.as_deref(), &mode) {
        (Some("never"), _) => None,
        (Some(text), _) => Some(millis(duration(text).map_err(|why| Usage(format!("--within: {why}")))?)),
        (None, ModeWord::Points(_)) if args.at.is_none() => Some(millis(USUAL_GRACE)),
        (None, _) => None,
    };
    Ok(StopAsk {
        mode,
        within_ms,
        scope: args.scope,
        run: args.run.clone(),
        call: args.call.clone(),
        cleanup_cap_ms: args.cleanup_cap.map(millis),
        afterwards: if args.abandon { Afterwards::Abandoned } else { Afterwards::Resumable },
        because: args.because.clone(),
        wait: match args.wait.as_deref() {
            None => Wait::No,
            Some("quiet") => Wait::Quiet,
            Some(_settled) => Wait::Settled,
        },
    })
}

fn mode(args: &StopArgs) -> ModeWord {
    match (args.now, args.when_idle, args.at.as_deref()) {
        (true, ..) => ModeWord::Now,
        (false, Some(idle), _) => ModeWord::WhenIdle { ms: millis(idle) },
        (false, None, None) => ModeWord::Points("any".to_owned()),
        (false, None, Some(at)) => {
            // A session that ends at a safe point ends at its turn's end in any case.
            let points: Vec<&str> =
                at.split(',').map(str::trim).filter(|name| *name != "turn-end" && !name.is_empty()).collect();
            if points.is_empty() { ModeWord::TurnEnd } else { ModeWord::Points(points.join(",")) }
        }
    }
}

/// What one session that runs says of itself.
pub(crate) struct Running {
    pub(crate) session: String,
    /// In one line.
    pub(crate) said: String,
    pub(crate) detail: Value,
    pub(crate) answers: Answers,
}

/// Whether its process answers. Exhaustive: it does, or it lives and does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answers {
    Yes,
    No,
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

/// Has the owner of a kept session look at its store at once, if one lives here; else it finds out by itself. Says so
/// if it lives and does not answer.
pub(crate) async fn nudge(session: &str) -> Option<String> {
    let (_, path) = socket_dir::sessions().ok()?.into_iter().find(|(id, _)| id == session)?;
    let mut stream = socket_dir::connect(&path).await?;
    let pid = owner(&stream);
    let asked = async {
        protocol::write(&mut stream, &Request { v: VERSION, ask: Ask::Look }).await.ok()?;
        protocol::read_line(&mut BufReader::new(stream)).await.ok()
    };
    timeout(TO_HEAR, asked).await.is_err().then(|| silent(pid))
}

/// What a session says of itself, or that it says nothing; none if it is gone.
async fn shown_of(session: String, path: &Path) -> Option<Running> {
    let mut stream = socket_dir::connect(path).await?;
    let pid = owner(&stream);
    let asked = async {
        protocol::write(&mut stream, &Request { v: VERSION, ask: Ask::Show }).await.ok()?;
        let line = protocol::read_line(&mut BufReader::new(stream)).await.ok()??;
        serde_json::from_slice::<Reply>(&line).ok()
    };
    match timeout(TO_HEAR, asked).await {
        Ok(reply) => {
            let Reply { message, detail, .. } = reply?;
            Some(Running { session, said: message, detail, answers: Answers::Yes })
        }
        Err(_silent) => {
            let detail = serde_json::json!({ "pid": pid });
            Some(Running { session, said: silent(pid), detail, answers: Answers::No })
        }
    }
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

/// The details that say more than the message does, each in a line of its own, or in one a part of it.
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

/// What is to be said.
fn text(given: &str) -> anyhow::Result<String> {
    let mut text = given.to_owned();
    if given == "-" {
        text.clear();
        std::io::stdin().read_to_string(&mut text)?;
        text.truncate(text.trim_end_matches(['\r', '\n']).len());
    }
    if text.trim().is_empty() {
        return Err(Usage("there is nothing in it: say something".into()).into());
    }
    Ok(text)
}

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
