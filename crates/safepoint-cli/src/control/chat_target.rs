//! A chat as the target of requests from other processes.

use std::{sync::Arc, time::Instant};

use futures_util::future::BoxFuture;
use safepoint::{
    ids::{CallId, ItemId},
    raw::lasting,
    session::{SessionEvent, TurnStopAck, TurnView},
    stop::StopAck,
};
use serde_json::json;

use super::{
    about::About,
    convert,
    inlet::Inlet,
    item_reply, offline,
    protocol::{Ask, ModeArg, Reply, StopAsk, Wait},
    server::{LastReply, Replies, Target},
};
use crate::{exit::code, render::chat::queue::Origin, session::host::Host};

/// The session of a chat.
pub(super) struct ChatTarget {
    pub(super) host: Arc<Host>,
    pub(super) inlet: Inlet,
    pub(super) about: About,
}

impl Target for ChatTarget {
    fn answer(self: Arc<Self>, ask: Ask, replies: Replies) -> BoxFuture<'static, LastReply> {
        Box::pin(async move {
            match ask {
                Ask::Look => Ok(Some(self.inlet.look())),
                Ask::Show => Ok(Some(self.show())),
                Ask::Push(push) => {
                    let put = |text, policy, id| self.host.push(text, policy, id, Origin::Elsewhere);
                    self.inlet.take(push, put, &replies).await
                }
                Ask::Withdraw { item } => self.withdraw(&item).await.map(Some),
                Ask::Stop(stop) => self.stop(stop, &replies).await,
            }
        })
    }
}

impl ChatTarget {
    fn show(&self) -> Reply {
        let turn = self.host.session.current_turn();
        let waiting: Vec<_> = self
            .host
            .waiting()
            .into_iter()
            .map(|(ticket, text)| json!({ "item": item_reply::name(&ticket), "text": text }))
            .collect();
        let detail = self.about.detail(json!({
            "turn": turn.as_ref().map(|turn| turn.turn.to_string()),
            "run": turn.as_ref().map(|turn| turn.run.id().as_str().to_owned()),
            "alive": turn.as_ref().map(|turn| turn.run.alive()).unwrap_or_default(),
            "waiting": waiting,
        }));
        let state = turn.map_or("idle".to_owned(), |turn| format!("{} running", turn.turn));
        Reply::new(code::ACCEPTED, "running", format!("{}, {state}", self.about)).detail(detail)
    }

    async fn withdraw(&self, item: &str) -> anyhow::Result<Reply> {
        if let Some(place) = self.inlet.place() {
            return offline::withdraw(place, item).await;
        }
        let id: ItemId = convert::parsed(item)?;
        let name = id.to_string();
        if self.host.pushed(id).is_none() {
            return Ok(item_reply::never_was(&name));
        }
        Ok(match self.host.session.withdraw(id).await {
            Some(text) => item_reply::withdrawn(&name, Some(text)),
            None => item_reply::not_waiting(&name),
        })
    }

    async fn stop(&self, stop: StopAsk, replies: &Replies) -> LastReply {
        let turn = self.host.session.current_turn();
        if stop.run.is_some() || stop.call.is_some() {
            return self.stop_part(stop, turn, replies).await;
        }
        let (request, of_turn) = stop.session_stop()?;
        let asked = self.host.session.stop(request).asked().await;
        if let Some(request) = of_turn {
            self.host.session.stop_turn(None, request).asked().await;
        }
        let reply = asked_reply(asked);
        let is_idle_wait = matches!(stop.mode, ModeArg::WhenIdle { .. });
        if stop.wait == Wait::No || asked == StopAck::TooLate && !is_idle_wait {
            return Ok(Some(reply));
        }
        replies.first(reply);
        let began = Instant::now();
        let ended = replies.unless_gone(self.host.session.done()).await;
        let said = format!("ended after {}", lasting(began.elapsed()));
        Ok(ended.map(|_exit| Reply::new(code::ACCEPTED, "ended", said)))
    }

    /// One run or one call of the session; the session continues.
    async fn stop_part(&self, stop: StopAsk, turn: Option<TurnView>, replies: &Replies) -> LastReply {
        let request = stop.request()?;
        let is_it = |turn: &TurnView| stop.run.as_deref().is_none_or(|run| run == turn.run.id().as_str());
        let Some(turn) = turn.filter(is_it) else { return Ok(Some(not_running(&stop))) };
        let asked = match &stop.call {
            Some(call) => match turn.run.stop_call(&CallId::from(call.as_str()), request) {
                Some(asked) => asked,
                None => return Ok(Some(no_such_call(call))),
            },
            None => match self.host.session.stop_turn(Some(turn.turn), request).asked().await {
                TurnStopAck::Stopping(_) => StopAck::First,
                // A named turn is never held.
                TurnStopAck::NoTurn | TurnStopAck::Held | TurnStopAck::Mismatch(_) => StopAck::TooLate,
            },
        };
        let reply = asked_reply(asked);
        if stop.wait == Wait::No || asked == StopAck::TooLate || stop.call.is_some() {
            return Ok(Some(reply));
        }
        replies.first(reply);
        let mut events = self.host.session.events();
        while let Some(event) = events.next().await {
            match event.kind {
                SessionEvent::TurnEnded { turn: of, .. } if stop.wait == Wait::Settled && of == turn.turn => {
                    break;
                }
                SessionEvent::TurnQuiet { turn: of, .. } if of == turn.turn => break,
                _ => {}
            }
        }
        Ok(Some(Reply::new(code::ACCEPTED, "ended", format!("{} has ended", turn.turn))))
    }
}

/// No running run has this id; names the call if one was given.
pub(super) fn not_running(stop: &StopAsk) -> Reply {
    match &stop.call {
        Some(call) => no_such_call(call),
        None => Reply::new(code::NONE_SUCH, "no_such_run", "run not found: it is not running"),
    }
}

pub(super) fn no_such_call(call: &str) -> Reply {
    Reply::new(code::NONE_SUCH, "no_such_call", format!("call {call} not found: it is not running"))
}

pub(super) fn asked_reply(asked: StopAck) -> Reply {
    match asked {
        StopAck::First => Reply::new(code::ACCEPTED, "first", "stop requested"),
        StopAck::Strengthened => {
            Reply::new(code::ACCEPTED, "strengthened", "stop requested, sooner than before")
        }
        StopAck::Unchanged => Reply::new(code::ACCEPTED, "nothing_added", "stop already requested"),
        StopAck::TooLate => Reply::new(code::TOO_LATE, "too_late", "already ended"),
    }
}
