//! What the connections of a server share: its script, its gates, its record.
//!
//! **Invariants**: an exchange's id is its place in the record; a request is recorded before it is answered; no lock is
//! held across an await.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex},
};

use serde_json::{Value, json};
use tokio::{
    sync::{Notify, watch},
    time::Instant,
};

use super::{
    Ask, EmbeddingFault, KeptExchanges, ServerOptions, Strictness, embeddings,
    exchange::{Exchange, Fate},
    kept::KeptResponses,
    log::ServerLog,
    render::{self, Rendering, WireStep},
    route::{self, ServedWire, WireRequest},
    steps,
};
use crate::{
    http::Request,
    script::{Asked, Chosen, Director, Reply, Script},
    sync::lock,
};

/// Replies that are always the same, encoded, by their place and how they were wanted.
type Encoded = HashMap<(usize, Rendering), Arc<[u8]>>;

#[derive(Debug)]
pub(crate) struct Shared {
    director: Director,
    strictness: Strictness,
    recording: KeptExchanges,
    log: Option<ServerLog>,
    /// Held for one entry or one look-up. Of the three locks here a thread holds one at a time, and nothing
    /// is awaited under them.
    state: Mutex<ServerState>,
    /// Two requests that miss at once encode the same bytes twice, and one copy stays.
    ready: Mutex<Encoded>,
    /// Held to keep a response, or to answer about one.
    kept: Mutex<KeptResponses>,
    pub(super) arrived: Notify,
    /// Each open connection has a clone.
    pub(super) open: Arc<()>,
}

#[derive(Debug, Default)]
struct ServerState {
    next: usize,
    exchanges: Vec<Exchange>,
    gates: VecDeque<Queued>,
    /// What goes wrong with the next answers of embeddings.
    embedding_faults: VecDeque<EmbeddingFault>,
}

/// How an exchange is answered.
pub(super) enum ServerAnswer {
    Steps(Vec<WireStep>),
    Gated(steps::Steps),
}

/// An exchange under way.
pub(super) struct Noted {
    pub(super) id: usize,
    /// Who asks, as the request says.
    by: Option<String>,
    pub(super) fate: watch::Sender<Fate>,
}

/// A gate that waits for a request.
pub(super) struct Queued {
    /// Whether it is for a request with this body.
    pub(super) is_for: fn(&Value) -> bool,
    pub(super) steps: steps::Steps,
}

impl std::fmt::Debug for Queued {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Queued").finish_non_exhaustive()
    }
}

impl ServerState {
    /// The oldest gate that is for this request.
    fn gate_for(&mut self, body: &Value) -> Option<steps::Steps> {
        let place = self.gates.iter().position(|queued| (queued.is_for)(body))?;
        self.gates.remove(place).map(|queued| queued.steps)
    }
}

impl Shared {
    pub(super) fn new(script: Script, options: ServerOptions) -> Self {
        Self {
            director: Director::new(script),
            strictness: options.strictness,
            recording: options.recording,
            log: options.log,
            state: Mutex::default(),
            ready: Mutex::default(),
            kept: Mutex::default(),
            arrived: Notify::new(),
            open: Arc::default(),
        }
    }

    pub(super) fn queue(&self, queued: Queued) {
        lock(&self.state).gates.push_back(queued);
    }

    pub(super) fn exchanges(&self) -> Vec<Exchange> {
        lock(&self.state).exchanges.clone()
    }

    pub(super) fn exchange(&self, id: usize) -> Option<Exchange> {
        lock(&self.state).exchanges.get(id).cloned()
    }

    pub(super) fn tell(&self, what: impl FnOnce() -> Value) {
        if let Some(log) = &self.log {
            log.tell(what());
        }
    }

    /// Notes a request, and says how it is answered. A body that is not JSON is none of its provider's
    /// business.
    pub(super) fn take(&self, asked: WireRequest) -> Result<(Noted, ServerAnswer), serde_json::Error> {
        let WireRequest { wire, request } = asked;
        if self.needs_only_a_glance() {
            let how = Rendering::at_a_glance(wire, &request.path, &request.body)?;
            let by = route::authorization(&request.headers);
            let noted = Noted { id: 0, by, fate: watch::channel(Fate::default()).0 };
            let steps = self.scripted(&how, &Asked::default(), &noted);
            return Ok((noted, ServerAnswer::Steps(steps)));
        }
        let body: Arc<Value> = Arc::new(serde_json::from_slice(&request.body)?);
        let how = Rendering::of(wire, &request.path, &body);
        let noted = self.note(wire, request, &body);
        let how = how.of_exchange(noted.id);
        let answer = self.answer(&how, &body, &noted);
        Ok((noted, answer))
    }

    pub(super) fn break_embeddings(&self, fault: EmbeddingFault) {
        lock(&self.state).embedding_faults.push_back(fault);
    }

    /// The same of a request for embeddings, which no script answers.
    pub(super) fn take_embeddings(
        &self,
        asked: WireRequest,
    ) -> Result<(Noted, ServerAnswer), serde_json::Error> {
        let WireRequest { wire, request } = asked;
        let body: Arc<Value> = Arc::new(serde_json::from_slice(&request.body)?);
        let path = request.path.clone();
        let noted = self.note(wire, request, &body);
        if self.strictness == Strictness::Strict
            && let Some(refusal) = embeddings::judge(wire, &path, &body)
        {
            return Ok((noted, ServerAnswer::Steps(vec![render::whole(400, &refusal)])));
        }
        let mut state = lock(&self.state);
        let answer = match state.gate_for(&body) {
            Some(steps) => ServerAnswer::Gated(steps),
            None => ServerAnswer::Steps(embeddings::answer(wire, &body, state.embedding_faults.pop_front())),
        };
        Ok((noted, answer))
    }

    /// Whether the server skips the content of requests: for benchmarks, which must not measure the server.
    fn needs_only_a_glance(&self) -> bool {
        self.strictness == Strictness::Lenient
            && self.recording == KeptExchanges::Off
            && self.log.is_none()
            && self.director.is_blind()
    }

    fn note(&self, wire: ServedWire, request: Request, body: &Arc<Value>) -> Noted {
        let (sender, fate) = watch::channel(Fate::default());
        let path = request.path.clone();
        let by = route::authorization(&request.headers);
        let mut state = lock(&self.state);
        let id = state.next;
        state.next += 1;
        if self.recording == KeptExchanges::On {
            state.exchanges.push(Exchange {
                id,
                wire,
                path: request.path,
                headers: request.headers,
                body: Arc::clone(body),
                bytes: request.body.into(),
                at: Instant::now(),
                fate,
            });
        }
        drop(state);
        self.arrived.notify_waiters();
        self.tell(
            || json!({"type": "request", "id": id, "wire": wire.as_str(), "path": path, "body": **body}),
        );
        Noted { id, by, fate: sender }
    }

    fn answer(&self, how: &Rendering, body: &Value, noted: &Noted) -> ServerAnswer {
        if self.strictness == Strictness::Strict
            && let Some(refusal) = how.wire.judge(body)
        {
            return ServerAnswer::Steps(vec![render::whole(400, &refusal)]);
        }
        if let Some(steps) = lock(&self.state).gate_for(body) {
            return ServerAnswer::Gated(steps);
        }
        ServerAnswer::Steps(self.scripted(how, &Asked::of(body), noted))
    }

    /// The steps of the reply that is due. A plain one is encoded once.
    fn scripted(&self, how: &Rendering, asked: &Asked, noted: &Noted) -> Vec<WireStep> {
        let (place, reply) = match self.director.choose(asked) {
            Chosen::Scripted(place, reply) => (place, reply),
            Chosen::Improvised(reply) => return self.rendered(how, &reply, noted),
        };
        if how.is_kept() {
            return self.rendered(how, reply, noted);
        }
        if !reply.always_the_same() || !how.always_the_same() {
            return render::reply(how, reply);
        }
        let key = (place, how.clone());
        if let Some(bytes) = lock(&self.ready).get(&key) {
            return vec![WireStep::Whole(200, Arc::clone(bytes))];
        }
        let steps = render::reply(how, reply);
        if let [WireStep::Whole(200, bytes)] = steps.as_slice() {
            let bytes = Arc::clone(bytes);
            lock(&self.ready).insert(key, bytes);
        }
        steps
    }

    /// A reply's steps; where the response is kept, all of it, whatever goes wrong on its way to the peer.
    fn rendered(&self, how: &Rendering, reply: &Reply, noted: &Noted) -> Vec<WireStep> {
        if !how.is_kept() {
            return render::reply(how, reply);
        }
        let (steps, events) = render::kept(how, reply);
        if let Some(events) = events {
            self.keep(events, noted.fate.subscribe(), noted.by.clone());
        }
        steps
    }

    pub(super) fn keep(&self, chunks: Vec<Vec<u8>>, fate: watch::Receiver<Fate>, by: Option<String>) {
        lock(&self.kept).keep(chunks, fate, by);
    }

    /// Answers a request about a kept response.
    pub(super) fn kept(&self, ask: &Ask, by: Option<&str>) -> Vec<u8> {
        self.tell(
            || json!({"type": "about_a_response", "response": ask.response, "what": ask.what.as_str()}),
        );
        lock(&self.kept).answer(ask, by)
    }

    pub(super) fn asked_about(&self) -> Vec<Ask> {
        lock(&self.kept).asked()
    }
}
