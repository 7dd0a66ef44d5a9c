//! Webhooks: an address is called when a question opens and when a session is at rest.
//!
//! Each delivery is signed as Standard Webhooks says (`webhook-id`, `webhook-timestamp`, `webhook-signature`), and is sent again until
//! it is taken. The same news has the same id, also after a restart: a receiver that keeps ids gets each once.
//!
//! **Invariants**: a receiver of any speed delays no run; what waits for it is bounded.

use std::{
    collections::VecDeque,
    fmt,
    pin::pin,
    sync::{Arc, Weak},
    time::Duration,
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use futures_core::future::BoxFuture;
use futures_util::future::{Either, select};
use hmac::{Hmac, KeyInit as _, Mac as _};
use jiff::Timestamp;
use safepoint::ids::SessionId;
use serde_json::{Value, json};
use sha2::Sha256;
use tokio::time::{Instant, sleep_until, timeout};

use crate::{
    access::Principal,
    board::{BoardReader, BoardStep},
    caller::Caller,
    host::{HostState, read},
    load::Load,
};

/// How long one attempt may take.
const ATTEMPT: Duration = Duration::from_secs(10);
/// How long after an attempt that failed the next one comes; after the last the delivery is given up.
const AGAIN: [Duration; 8] = [
    Duration::from_secs(1),
    Duration::from_secs(5),
    Duration::from_secs(30),
    Duration::from_secs(120),
    Duration::from_secs(600),
    Duration::from_secs(1_800),
    Duration::from_secs(3_600),
    Duration::from_secs(7_200),
];
/// How many deliveries wait; the oldest is given up for one more.
const MOST: usize = 10_000;
/// How often the sessions are looked for again, where the list of them broke off.
const PAUSE: Duration = Duration::from_secs(1);

/// One attempt to deliver.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HookAttempt {
    /// Where to.
    pub url: String,
    /// The headers of the delivery: its id, its time and its signature.
    pub headers: Vec<(&'static str, String)>,
    /// The JSON.
    pub body: Vec<u8>,
}

/// What carries an attempt to its address: it answers with the status. It must not follow redirects.
pub type HookSender = Arc<
    dyn Fn(HookAttempt) -> BoxFuture<'static, Result<u16, Box<dyn std::error::Error + Send + Sync>>>
        + Send
        + Sync,
>;

/// An address that is called.
///
/// ```
/// use safepoint_server::{HookSender, Webhook};
/// fn hook(sender: HookSender) -> Webhook {
///     Webhook::new("https://example.com/hooks/agents", b"a secret that both sides know".to_vec(), sender)
/// }
/// ```
#[derive(Clone)]
pub struct Webhook {
    url: String,
    secret: Vec<u8>,
    sender: HookSender,
}

impl Webhook {
    /// Calls this address by this sender, signed with a secret that the receiver knows.
    pub fn new(url: impl Into<String>, secret: impl Into<Vec<u8>>, sender: HookSender) -> Self {
        Self { url: url.into(), secret: secret.into(), sender }
    }

    fn attempt(&self, waiting: &Waiting) -> HookAttempt {
        let at = Timestamp::now().as_second();
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.secret).expect("a key has any length");
        mac.update(format!("{}.{at}.", waiting.id).as_bytes());
        mac.update(&waiting.body);
        let signature = format!("v1,{}", BASE64_STANDARD.encode(mac.finalize().into_bytes()));
        let headers = vec![
            ("webhook-id", waiting.id.clone()),
            ("webhook-timestamp", at.to_string()),
            ("webhook-signature", signature),
        ];
        HookAttempt { url: self.url.clone(), headers, body: waiting.body.clone() }
    }
}

/// A delivery that has not been taken.
struct Waiting {
    id: String,
    body: Vec<u8>,
    failed: usize,
    next: Instant,
}

/// What waits for one receiver.
struct Deliveries {
    hook: Webhook,
    waiting: VecDeque<Waiting>,
    /// The newest ids that were added, oldest first.
    known: VecDeque<String>,
    /// Whether the sessions were listed: what is at rest in a later list came to rest since.
    has_listed: bool,
    /// The attempt that is being made.
    flying: Option<BoxFuture<'static, (Waiting, bool)>>,
    load: Arc<Load>,
}

impl Deliveries {
    fn add(&mut self, id: String, mut news: Value) {
        if self.known.contains(&id) {
            return;
        }
        if self.known.len() == MOST {
            self.known.pop_front();
        }
        self.known.push_back(id.clone());
        news["id"] = json!(id);
        if self.waiting.len() >= MOST {
            self.waiting.pop_front();
            Load::count(&self.load.hooks_given_up);
        }
        self.waiting.push_back(Waiting {
            id,
            body: news.to_string().into(),
            failed: 0,
            next: Instant::now(),
        });
    }

    /// Makes the attempt that is due, and the next ones.
    ///
    /// # Cancel safety
    /// Nothing is lost: an attempt that was begun is continued at the next call.
    async fn progress(&mut self) {
        loop {
            if let Some(flying) = &mut self.flying {
                let (waiting, is_taken) = flying.await;
                self.flying = None;
                self.attempted(waiting, is_taken);
            }
            let next = self.waiting.iter().map(|waiting| waiting.next).min();
            let Some(next) = next else { return std::future::pending().await };
            sleep_until(next).await;
            let at = self.waiting.iter().position(|waiting| waiting.next <= Instant::now());
            let Some(waiting) = at.and_then(|at| self.waiting.remove(at)) else { continue };
            let sends = timeout(ATTEMPT, (self.hook.sender)(self.hook.attempt(&waiting)));
            self.flying = Some(Box::pin(async move { (waiting, matches!(sends.await, Ok(Ok(200..=299)))) }));
        }
    }

    fn attempted(&mut self, mut waiting: Waiting, is_taken: bool) {
        if is_taken {
            return Load::count(&self.load.hooks_delivered);
        }
        match AGAIN.get(waiting.failed) {
            Some(after) => {
                waiting.next = Instant::now() + *after;
                waiting.failed += 1;
                self.waiting.push_back(waiting);
            }
            None => Load::count(&self.load.hooks_given_up),
        }
    }
}

/// Delivers until the host drains. What was not delivered then is found again at the next start, as far as it is still so.
pub(crate) async fn deliver(host: Weak<HostState>, hook: Webhook) {
    let Some(load) = host.upgrade().map(|host| Arc::clone(&host.load)) else { return };
    let mut deliveries = Deliveries {
        hook,
        waiting: VecDeque::new(),
        known: VecDeque::new(),
        has_listed: false,
        flying: None,
        load: Arc::clone(&load),
    };
    loop {
        let Some(host) = host.upgrade().filter(|host| !host.is_draining()) else { return };
        let who = Principal::new("webhook", []).seeing_all();
        let by = Caller { host, load: Arc::clone(&load), who, trace: None };
        let Ok(reader) = BoardReader::start(&by).await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        drop(by);
        follow(reader, &mut deliveries).await;
    }
}

/// Follows the board to its end.
async fn follow(mut reader: BoardReader, deliveries: &mut Deliveries) {
    loop {
        let step = {
            let (step, progress) = (pin!(reader.step()), pin!(deliveries.progress()));
            // News first. An attempt that was begun is continued at the next turn of the loop.
            match select(step, progress).await {
                Either::Left((step, _)) => step,
                Either::Right(((), _)) => continue,
            }
        };
        match step {
            Some(BoardStep::List { sessions, approvals }) => {
                for approval in approvals {
                    opened(deliveries, serde_json::to_value(approval).unwrap_or_default());
                }
                // A list that is not the first comes where changes were missed.
                let missed = if deliveries.has_listed { sessions } else { Vec::new() };
                for session in missed {
                    rests(reader.host(), deliveries, serde_json::to_value(session).unwrap_or_default()).await;
                }
                deliveries.has_listed = true;
            }
            Some(BoardStep::Approval(approval)) => opened(deliveries, approval),
            Some(BoardStep::Session(session)) => rests(reader.host(), deliveries, session).await,
            // What opened in it, and its last rest, were news before.
            Some(BoardStep::Removal(_) | BoardStep::KeepAlive) => {}
            Some(BoardStep::Bye(_)) | None => return,
        }
    }
}

fn opened(deliveries: &mut Deliveries, mut approval: Value) {
    let id = format!("approval.open:{}", approval["id"].as_str().unwrap_or_default());
    approval["type"] = json!("approval");
    deliveries.add(id, json!({"type": "approval.open", "at": approval["asked_at"], "approval": approval}));
}

/// The session has come to rest: its last turn has ended, and nothing waits.
async fn rests(host: &HostState, deliveries: &mut Deliveries, session: Value) {
    let state = session["state"].as_str().unwrap_or_default();
    let is_at_rest = matches!(state, "idle" | "open" | "stopped" | "failed" | "crashed")
        && session["turn"].is_null()
        && session["waiting"].as_array().is_none_or(Vec::is_empty);
    if !is_at_rest {
        return;
    }
    let id = SessionId::from(session["id"].as_str().unwrap_or_default());
    let Ok(turns) = read::turns(&*host.store, &id).await else { return };
    let Some((turn, read)) = turns.last_key_value() else { return };
    let answer = read.answer(safepoint::ids::TurnId::new(*turn));
    let Some(outcome) = answer.outcome else { return };
    let name = format!("session.rest:{id}:{turn}:{outcome}");
    let turn =
        json!({"id": answer.id, "outcome": outcome, "quiet": answer.quiet, "survivors": answer.survivors});
    let news = json!({"type": "session.rest", "at": session["updated"], "session": session, "turn": turn});
    deliveries.add(name, news);
}

impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Webhook").field("url", &self.url).finish_non_exhaustive()
    }
}
