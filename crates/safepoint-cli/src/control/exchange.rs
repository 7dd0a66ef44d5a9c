//! One talk with a session: with its owner where one answers, with its store where one keeps it, and what is shown of it.
//!
//! **Invariants**: an item goes to a living owner first, and to the store only if that owner does not say that it has it;
//! under one id, so that it is one item whichever way it came.

use std::process::ExitCode;

use tokio::{
    io::BufReader,
    net::UnixStream,
    time::{Instant, timeout_at},
};

use super::{
    client::{notify_owner, owner, silent},
    item_reply,
    offline::{self, StoredTarget},
    offline_items::{self, Waits},
    protocol::{self, ACK_TIMEOUT, Ask, PushAsk, Reply, Request, VERSION, Wait},
    replies::Replies,
    socket_dir,
};
use crate::{
    args::{control::Common, names},
    exit::{NoSession, Usage, code},
};

/// Asks, and shows each reply; the exit code is the last one's.
pub(crate) async fn talk(common: &Common, ask: anyhow::Result<Ask>) -> anyhow::Result<ExitCode> {
    let over = common.timeout.map(|timeout| Instant::now() + timeout);
    let mut talk = Exchange { common, over, replies: Replies::new(&common.place, &common.session) };
    match async { talk.go(ask?).await }.await {
        // A client that reads lines of JSON gets this as one as well.
        Err(error) if common.place.json => talk.replies.last(&Reply::failed(&error)),
        done => done,
    }
}

struct Exchange<'a> {
    common: &'a Common,
    /// When the caller stops waiting.
    over: Option<Instant>,
    replies: Replies<'a>,
}

/// How a talk with an owner ended. Exhaustive: with its last word, or without.
enum ExchangeEnd {
    Last(Reply),
    /// The caller's time is over.
    Over,
    /// It lives, and has said nothing.
    Silent(Option<i32>),
    /// It went away; what it had said by then.
    Gone(Option<Reply>),
}

impl Exchange<'_> {
    async fn go(&mut self, ask: Ask) -> anyhow::Result<ExitCode> {
        let ask = match (offline::kept(self.common).await?, ask) {
            (Some(place), Ask::Push(push)) => return self.push(&place, push).await,
            (Some(place), ask) => match offline::through_store(&place, self.common, &ask).await? {
                Some(reply) => return self.replies.last(&reply),
                None => ask,
            },
            (None, ask) => ask,
        };
        let Some(stream) = reached(&self.common.session).await? else {
            let session = &self.common.session;
            names::check(session)?;
            let message = NoSession(session.as_str().into()).to_string();
            return self.replies.last(&Reply::new(code::NONE_SUCH, "no_such_session", message));
        };
        match self.ask(stream, ask).await? {
            ExchangeEnd::Last(reply) => self.replies.last(&reply),
            ExchangeEnd::Over => self.replies.last(&Reply::timed_out()),
            ExchangeEnd::Silent(pid) => self.replies.last(&unheard(&self.common.session, pid)),
            ExchangeEnd::Gone(_) => anyhow::bail!("the session went away before it answered"),
        }
    }

    /// Pushes an item to a stored session: the owner records it first and takes it; the store does where no
    /// owner answers.
    async fn push(&mut self, place: &StoredTarget, mut asked: PushAsk) -> anyhow::Result<ExitCode> {
        let is_named = asked.client_id.is_some();
        asked.client_id.get_or_insert_with(|| format!("cli_{}", uuid::Uuid::now_v7().simple()));
        let (mut waits, mut but) = (None, None);
        match self.owner_of(place).await? {
            None => {}
            Some(stream) => match self.ask(stream, Ask::Push(asked.clone())).await? {
                ExchangeEnd::Last(reply) => return self.replies.last(&reply),
                ExchangeEnd::Over => return self.replies.last(&Reply::timed_out()),
                ExchangeEnd::Silent(pid) => but = Some(silent(pid)),
                ExchangeEnd::Gone(said) => {
                    let item =
                        said.as_ref().and_then(|reply| item_reply::number(reply.detail["item"].as_str()?));
                    waits = item.map(|number| Waits::of(place, &asked, number));
                }
            },
        }
        let waits = match waits {
            Some(waits) => waits,
            None => {
                let (mut reply, waits) = offline_items::push(place, &asked).await?;
                reply.session = place.session.to_string();
                let Some(waits) = waits else { return self.replies.last(&reply) };
                // It is in by an owner who could not say so any more, and may have given it back.
                if !is_named
                    && reply.status == "same"
                    && let Some(rests) = waits.rests().await?
                {
                    return self.replies.last(&rests);
                }
                if but.is_none() {
                    but = notify_owner(place.session.as_str()).await;
                }
                let reply = reply.but(but);
                if asked.wait == Wait::No {
                    return self.replies.last(&reply);
                }
                self.replies.show(&Reply { last: false, ..reply })?;
                waits
            }
        };
        let reply = waits.rest(self.over).await?;
        self.replies.last(&reply)
    }

    /// The living owner of a stored session, if this process can reach it and the store names it.
    async fn owner_of(&self, place: &StoredTarget) -> anyhow::Result<Option<UnixStream>> {
        let holder = place.store.open(&place.session).await?.holder;
        let found = socket_dir::sessions()?.into_iter().find(|(id, _)| id == place.session.as_str());
        let (Some(holder), Some((_, path))) = (holder, found) else { return Ok(None) };
        let is_it = |pid: i32| u32::try_from(pid) == Ok(holder.owner.pid);
        Ok(socket_dir::connect(&path).await.filter(|stream| owner(stream).is_some_and(is_it)))
    }

    /// Asks an owner, and shows all but its last word.
    async fn ask(&mut self, mut stream: UnixStream, ask: Ask) -> anyhow::Result<ExchangeEnd> {
        let (began, over, pid) = (Instant::now(), self.over, owner(&stream));
        let waits = ask.wait() != Wait::No;
        let request = Request { v: VERSION, ask };
        match timeout_at(began + ACK_TIMEOUT, protocol::write(&mut stream, &request)).await {
            Ok(Ok(())) => {}
            Ok(Err(_gone)) => return Ok(ExchangeEnd::Gone(None)),
            Err(_silent) => return Ok(ExchangeEnd::Silent(pid)),
        }
        // The first word comes soon, whatever is waited for.
        let mut deadline = Some(over.map_or(began + ACK_TIMEOUT, |over| over.min(began + ACK_TIMEOUT)));
        let (mut reader, mut said) = (BufReader::new(stream), None);
        loop {
            let line = match deadline {
                None => protocol::read_line(&mut reader).await,
                Some(deadline) => match timeout_at(deadline, protocol::read_line(&mut reader)).await {
                    Ok(line) => line,
                    Err(_over) if over.is_some_and(|over| over <= deadline) => return Ok(ExchangeEnd::Over),
                    Err(_silent) => return Ok(ExchangeEnd::Silent(pid)),
                },
            };
            let Ok(Some(line)) = line else { return Ok(ExchangeEnd::Gone(said)) };
            let reply: Reply = serde_json::from_slice(&line)?;
            if reply.last {
                return Ok(ExchangeEnd::Last(reply));
            }
            self.replies.show(&reply)?;
            said = Some(reply);
            deadline = if waits { over } else { deadline };
        }
    }
}

/// The session that is meant, if it runs: its id, or an end of it that no other has.
async fn reached(named: &str) -> anyhow::Result<Option<UnixStream>> {
    const LEAST: usize = 4;
    let sessions = socket_dir::sessions()?;
    if let Some((_, path)) = sessions.iter().find(|(id, _)| id == named) {
        return Ok(socket_dir::connect(path).await);
    }
    let mut ending = sessions.iter().filter(|(id, _)| named.len() >= LEAST && id.ends_with(named));
    match (ending.next(), ending.next()) {
        (Some((_, path)), None) => Ok(socket_dir::connect(path).await),
        (Some(_), Some(_)) => {
            Err(Usage(format!("more than one session ends in {named}; give more of the id")).into())
        }
        (None, _) => Ok(None),
    }
}

/// The request was sent, and the owner did not acknowledge it.
fn unheard(session: &str, pid: Option<i32>) -> Reply {
    let end = pid
        .map_or(String::new(), |pid| format!(", kill -CONT {pid} if it was paused, or kill {pid} ends it"));
    let message = format!(
        "{}: it is not known whether it takes this; see `safepoint sessions show {session}`{end}. \
         For a stored session, pass --store: then this waits in the store",
        silent(pid)
    );
    Reply::new(code::OTHER, "not_answering", message).detail(serde_json::json!({ "owner": pid }))
}
