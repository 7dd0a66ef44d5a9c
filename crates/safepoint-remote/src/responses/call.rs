//! The exchange with a provider about one response: requested once, read until it has ended.
//!
//! **Invariants**: a response is never requested twice. Every wait is kept here, so dropping [`ResponseCall::next`]
//! loses nothing. After a stop whose answer does not count, only an answer of the response is an end.

use std::{
    collections::VecDeque,
    future::pending,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_core::future::BoxFuture;
use futures_util::future::{Either, select};
use safepoint::{
    approval::Decision,
    raw::remote::{RemoteCall, RemoteEnd, RemoteEvent, RemoteStopReply, RemoteTask},
    receipt::StopSupport,
    stop::Failure,
};
use serde_json::Value;
use tokio::time::sleep;

use super::{
    Provider, limits,
    reading::{ResponseState, Standing},
};
use crate::{
    cancel::Phase,
    conversation_ids::Turn,
    exchange::{self, Broke},
};

/// The exchange about one response.
pub(super) struct ResponseCall {
    pub(super) provider: Arc<Provider>,
    pub(super) brief: RemoteTask,
    pub(super) grade: StopSupport,
    pub(super) id: Option<String>,
    pub(super) feed: Feed,
    pub(super) events: VecDeque<RemoteEvent>,
    /// Set before the first byte of the request is sent.
    pub(super) sent: Arc<AtomicBool>,
    pub(super) phase: Phase,
    /// The provider's answer to the cancel, once the cancel was sent.
    pub(super) telling: Option<BoxFuture<'static, Answer>>,
    /// The right to run this conversation's work.
    turn: Option<Turn>,
    reported: String,
    tried: u32,
}

/// The source of the next event.
pub(super) enum Feed {
    /// No request was sent.
    Unsent,
    Beginning(BoxFuture<'static, (Turn, Result<Value, Broke>)>),
    Looking(BoxFuture<'static, Result<Value, Broke>>),
    Over,
}

/// A provider's answer to a cancel; a refusal comes with the response as it stood after it.
pub(super) struct Answer {
    pub(super) reply: Result<Value, Broke>,
    pub(super) response: Option<Value>,
}

/// What a step brought. Exhaustive: an answer to the cancel, to the request, or to a look.
enum Came {
    StopReply(Answer),
    Begun(Turn, Result<Value, Broke>),
    Looked(Result<Value, Broke>),
}

impl Feed {
    async fn next(&mut self) -> Came {
        match self {
            Self::Beginning(answer) => {
                let (turn, answer) = answer.await;
                Came::Begun(turn, answer)
            }
            Self::Looking(look) => Came::Looked(look.await),
            Self::Unsent | Self::Over => pending().await,
        }
    }
}

async fn answered(telling: &mut Option<BoxFuture<'static, Answer>>) -> Came {
    match telling {
        Some(answer) => Came::StopReply(answer.await),
        None => pending().await,
    }
}

impl ResponseCall {
    pub(super) fn new(provider: Arc<Provider>, brief: RemoteTask, grade: StopSupport) -> Self {
        let id = brief.task.clone();
        Self {
            provider,
            brief,
            grade,
            id,
            feed: Feed::Unsent,
            events: VecDeque::new(),
            sent: Arc::default(),
            phase: Phase::Working,
            telling: None,
            turn: None,
            reported: String::new(),
            tried: 0,
        }
    }

    /// Makes one step; `events` then has its events.
    ///
    /// Dropping this loses nothing: each wait is kept in its place, and polled again.
    pub(super) async fn step(&mut self) {
        if matches!(self.feed, Feed::Unsent) {
            match self.id {
                Some(_) => self.look(Duration::ZERO),
                None => self.feed = Feed::Beginning(self.begin()),
            }
            return;
        }
        let came = {
            let telling = pin!(answered(&mut self.telling));
            let feed = pin!(self.feed.next());
            // The answer to a cancel first; what the feed has stays in the feed.
            match select(telling, feed).await {
                Either::Left((came, _)) | Either::Right((came, _)) => came,
            }
        };
        match came {
            Came::StopReply(answer) => {
                self.telling = None;
                let reply = self.answered(answer);
                self.events.push_back(RemoteEvent::StopReply(reply));
            }
            Came::Begun(turn, answer) => {
                self.turn = Some(turn);
                self.begun(answer);
            }
            Came::Looked(looked) => self.looked(looked),
        }
    }

    fn begin(&self) -> BoxFuture<'static, (Turn, Result<Value, Broke>)> {
        let (provider, sent) = (Arc::clone(&self.provider), Arc::clone(&self.sent));
        let (text, conversation) = (self.brief.text.clone(), self.brief.conversation.clone());
        Box::pin(async move {
            let (turn, earlier) = provider.known.turn(&conversation).await;
            let mut body = provider.fields.clone();
            body.insert("model".into(), provider.model.clone().into());
            body.insert("input".into(), text.into());
            body.insert("background".into(), true.into());
            body.insert("store".into(), true.into());
            if let Some(earlier) = earlier {
                body.insert("previous_response_id".into(), earlier.into());
            }
            // Before the first byte: a stop that finds it unset knows that nothing was sent. Relaxed: the
            // same task reads it.
            sent.store(true, Ordering::Relaxed);
            (turn, provider.http.begin(&body.into()).await)
        })
    }

    fn begun(&mut self, answer: Result<Value, Broke>) {
        match answer.map(|value| Standing::read(&value)) {
            Ok(Some(standing)) => {
                self.id = Some(standing.id.clone());
                self.events.push_back(RemoteEvent::Begun { task: standing.id.clone() });
                self.take(standing, RemoteEnd::Reported);
                if self.phase != Phase::Working && !matches!(self.feed, Feed::Over) {
                    // Before this, no cancel was possible.
                    self.tell();
                }
            }
            Ok(None) => {
                let why = "the provider's answer is no response: it may have begun one";
                self.over(RemoteEvent::Lost(Failure::new(why)));
            }
            Err(broke) => {
                self.over(broke.at_first_request("the provider did not begin a response", "the request"));
            }
        }
    }

    fn looked(&mut self, looked: Result<Value, Broke>) {
        match looked.map(|value| Standing::read(&value)) {
            Ok(Some(standing)) if self.id.as_deref() == Some(&standing.id) => {
                self.tried = 0;
                self.take(standing, RemoteEnd::Reported);
            }
            Ok(Some(_)) => self.missed(&Broke::Foreign("its answer is another response".into())),
            Ok(None) => self.missed(&Broke::Foreign("its answer is no response of this wire".into())),
            Err(broke) => self.missed(&broke),
        }
    }

    /// A read failed.
    fn missed(&mut self, broke: &Broke) {
        self.tried += 1;
        if !broke.may_pass() || self.tried > limits::TRIES {
            let why = format!("it is unknown what became of the response: {broke}");
            return self.over(RemoteEvent::Lost(Failure::new(why)));
        }
        let pause = exchange::doubled(limits::PAUSE, self.tried - 1, limits::LONGEST_PAUSE);
        self.look(broke.wait(pause));
    }

    /// Handles the provider's report of the response; `end` grades a report that it completed.
    pub(super) fn take(&mut self, standing: Standing, end: RemoteEnd) {
        let Standing { id, state, text } = standing;
        if let Some(news) = text.strip_prefix(self.reported.as_str()).filter(|news| !news.is_empty()) {
            self.events.push_back(RemoteEvent::Text(news.to_owned()));
            self.reported.clone_from(&text);
        }
        match (state, self.phase) {
            (ResponseState::Working(_), _) => self.look(self.provider.look_every),
            (ResponseState::Completed, _) => {
                self.provider.known.note(&self.brief.conversation, &id);
                self.over(RemoteEvent::Done(Some(text), end));
            }
            // The end of the response is not the end of the work.
            (
                ResponseState::Cancelled | ResponseState::Failed(_) | ResponseState::Incomplete(_),
                Phase::Doubted,
            ) => {
                self.look(self.provider.look_every);
            }
            (ResponseState::Cancelled, _) => self.over(RemoteEvent::Ended { word: "cancelled".into() }),
            (ResponseState::Failed(why), _) => self.over(RemoteEvent::Failed(Failure::new(why))),
            (ResponseState::Incomplete(why), _) => {
                self.over(RemoteEvent::Failed(Failure::new(format!("the response was cut: {why}"))));
            }
        }
    }

    /// Reads the response after this time.
    pub(super) fn look(&mut self, after: Duration) {
        let (provider, id) = (Arc::clone(&self.provider), self.id.clone().unwrap_or_default());
        self.feed = Feed::Looking(Box::pin(async move {
            sleep(after).await;
            provider.http.look(&id).await
        }));
    }

    pub(super) fn over(&mut self, said: RemoteEvent) {
        self.feed = Feed::Over;
        self.events.push_back(said);
    }
}

impl RemoteCall for ResponseCall {
    fn next(&mut self) -> BoxFuture<'_, RemoteEvent> {
        Box::pin(async move {
            loop {
                if let Some(said) = self.events.pop_front() {
                    return said;
                }
                self.step().await;
            }
        })
    }

    /// The provider asks no questions.
    fn answer(&mut self, _question: String, _decision: Decision) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }

    fn stop(&mut self) -> BoxFuture<'_, RemoteStopReply> {
        Box::pin(self.part())
    }
}
