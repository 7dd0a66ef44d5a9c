//! The commands that talk to a running session from elsewhere.

use std::{
    io::Read as _,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use tokio::{
    io::BufReader,
    net::UnixStream,
    time::{Instant, timeout, timeout_at},
};

use super::{
    args::{Common, PushArgs, SteerArgs, StopArgs, WithdrawArgs},
    place, stored,
    wire::{self, Ask, OrWord, PolicyWord, PushAsk, Reply, Request, VERSION, Wait, code},
};
use crate::{args::Usage, told::Told};

/// How long the owner of a session may take to say that it has heard.
const TO_HEAR: Duration = Duration::from_secs(2);

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
    let asked =
        place::sessions()?.into_iter().map(|(session, path)| async move { shown_of(session, &path).await });
    Ok(futures_util::future::join_all(asked).await.into_iter().flatten().collect())
}

/// Has the owner of a kept session look at its store at once, if one lives here; else it finds out by itself. Says so
/// if it lives and does not answer.
pub(crate) async fn nudge(session: &str) -> Option<String> {
    let (_, path) = place::sessions().ok()?.into_iter().find(|(id, _)| id == session)?;
    let mut stream = place::connect(&path).await?;
    let pid = owner(&stream);
    let asked = async {
        wire::write(&mut stream, &Request { v: VERSION, ask: Ask::Look }).await.ok()?;
        wire::read_line(&mut BufReader::new(stream)).await.ok()
    };
    timeout(TO_HEAR, asked).await.is_err().then(|| silent(pid))
}

/// What a session says of itself, or that it says nothing; none if it is gone.
async fn shown_of(session: String, path: &Path) -> Option<Running> {
    let mut stream = place::connect(path).await?;
    let pid = owner(&stream);
    let asked = async {
        wire::write(&mut stream, &Request { v: VERSION, ask: Ask::Show }).await.ok()?;
        let line = wire::read_line(&mut BufReader::new(stream)).await.ok()??;
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
fn owner(stream: &UnixStream) -> Option<i32> {
    stream.peer_cred().ok().and_then(|peer| peer.pid())
}

fn silent(pid: Option<i32>) -> String {
    match pid {
        Some(pid) => format!("its owner (pid {pid}) does not answer"),
        None => "its owner does not answer".to_owned(),
    }
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
    let mut shown = Shown { common, told: Told::default() };
    if let Some(reply) = stored::through_store(common, &ask, wait).await? {
        return shown.last(&reply);
    }
    let stream = match meant(&common.session)? {
        Some(path) => place::connect(&path).await,
        None => None,
    };
    let Some(mut stream) = stream else {
        let message = format!("no session {} is running (safepoint sessions ls lists them)", common.session);
        return shown.last(&Reply::new(code::NONE_SUCH, "no_such_session", message));
    };
    let began = Instant::now();
    let pid = owner(&stream);
    let over = common.timeout.map(|timeout| began + timeout);
    // The first word comes soon, whatever is waited for.
    let mut deadline = Some(over.map_or(began + TO_HEAR, |over| over.min(began + TO_HEAR)));
    let request = Request { v: VERSION, ask };
    match timeout_at(began + TO_HEAR, wire::write(&mut stream, &request)).await {
        Ok(written) => written?,
        Err(_silent) => return shown.last(&unheard(common, pid)),
    }
    let mut reader = BufReader::new(stream);
    loop {
        let line = match deadline {
            None => wire::read_line(&mut reader).await,
            Some(deadline) => match timeout_at(deadline, wire::read_line(&mut reader)).await {
                Ok(line) => line,
                Err(_over) if over.is_some_and(|over| over <= deadline) => {
                    let message = "it was asked; its end was not seen in time";
                    return shown.last(&Reply::new(code::TIMED_OUT, "timed_out", message));
                }
                Err(_silent) => return shown.last(&unheard(common, pid)),
            },
        };
        let Some(line) = line? else { anyhow::bail!("the session went away before it answered") };
        let reply: Reply = serde_json::from_slice(&line)?;
        if reply.last {
            return shown.last(&reply);
        }
        shown.show(&reply)?;
        deadline = if wait == Wait::No { deadline } else { over };
    }
}

/// It was asked, and nobody knows whether it was heard.
fn unheard(common: &Common, pid: Option<i32>) -> Reply {
    let session = &common.session;
    let end = pid
        .map_or(String::new(), |pid| format!(", kill -CONT {pid} if it was paused, or kill {pid} ends it"));
    let message = format!(
        "{}: whether it takes this is not known; see safepoint sessions show {session}{end}. Of a session that is kept, \
         name the file with --store: then this waits in it",
        silent(pid)
    );
    Reply::new(code::OTHER, "not_answering", message).detail(serde_json::json!({ "owner": pid }))
}

/// Where replies are shown.
struct Shown<'a> {
    common: &'a Common,
    told: Told,
}

impl Shown<'_> {
    fn last(&mut self, reply: &Reply) -> anyhow::Result<ExitCode> {
        self.show(reply)?;
        Ok(ExitCode::from(reply.code))
    }

    fn show(&mut self, reply: &Reply) -> anyhow::Result<()> {
        if self.common.json {
            let session = if reply.session.is_empty() { &self.common.session } else { &reply.session };
            let mut fields = serde_json::json!({"code": reply.code, "status": reply.status, "message": reply.message,
                "detail": reply.detail, "last": reply.last});
            if let Some(run) = reply.detail.get("run") {
                fields["run"] = run.clone();
            }
            self.told.say("reply", Some(session), fields)?;
            return Ok(());
        }
        let message = crate::screen::plain(&reply.message);
        if reply.code == code::ACCEPTED {
            println!("{message}");
            details(&reply.detail).iter().for_each(|line| println!("  {line}"));
        } else {
            eprintln!("safepoint: {message}");
        }
        Ok(())
    }
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
