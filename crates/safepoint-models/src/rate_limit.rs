//! A rate limit that all runs under one key share: requests and tokens a minute, in the order of the calls.
//!
//! **Invariants**: calls are let through in the order in which they came; a call that is dropped while it waits takes
//! nothing and delays nothing; nothing is awaited under the lock.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures_util::{StreamExt as _, future::BoxFuture, stream};
use safepoint::{
    History, Model, Usage,
    model::{Conversation, Delta, DeltaStream, ModelError, ModelSpec, Parameters},
};
use tokio::{
    sync::Semaphore,
    time::{Instant, sleep_until},
};

const MINUTE: Duration = Duration::from_secs(60);

/// What a provider allows one key in a minute, for all calls of all runs of all agents that share it: clones are the
/// same limit.
///
/// A call that would exceed it waits before anything is sent, behind those that came before it; that is an event
/// ([`EventKind::Waiting`](safepoint::event::EventKind::Waiting)), and a stop ends it at once. Each try counts as a
/// request. Tokens are counted by an estimate of the request when it begins, and by the provider's own figures, input and
/// output, when they come. While the provider makes one call wait before another try, as with `Retry-After`, none of the
/// others begins; nor does one while a refusal that was final says how long to wait
/// ([`ModelError::retry_after`]).
///
/// The limits are those of a bucket that is full at the beginning and is refilled evenly, as providers keep them.
///
/// ```
/// use safepoint_models::{RateLimit, anthropic};
/// let limit = RateLimit::new("anthropic").requests_per_minute(50).tokens_per_minute(40_000);
/// let large = limit.limit(anthropic::model("claude-opus-4-5"));
/// let small = limit.limit(anthropic::model("claude-haiku-4-5"));
/// ```
#[derive(Clone, Debug)]
#[must_use = "it limits the models that it is given"]
pub struct RateLimit {
    /// Whose limit it is, for people.
    what: Arc<str>,
    requests: Option<u64>,
    tokens: Option<u64>,
    shared: Arc<LimitState>,
}

#[derive(Debug)]
struct LimitState {
    /// One call at a time waits for room; the others wait for it, in order.
    turn: Semaphore,
    began: Instant,
    /// Locked to read or to change the figures, and for nothing else.
    level: Mutex<Level>,
}

/// How far the buckets are used up: the time, since the beginning, at which each is full again.
#[derive(Debug, Default)]
struct Level {
    requests: Duration,
    tokens: Duration,
    /// Before this nothing begins: the provider asked for it.
    paused: Duration,
}

impl RateLimit {
    /// A limit that allows everything until it is given a figure. `provider` is whose limit it is, for the event.
    pub fn new(provider: &str) -> Self {
        let shared = LimitState {
            turn: Semaphore::new(1),
            began: Instant::now(),
            level: Mutex::new(Level::default()),
        };
        let what = format!("the rate limit of {provider}").into();
        Self { what, requests: None, tokens: None, shared: Arc::new(shared) }
    }

    /// Allows this number of requests a minute, at least one. Set before the limit is cloned: a clone keeps its own figures.
    pub fn requests_per_minute(mut self, requests: u32) -> Self {
        self.requests = Some(u64::from(requests.max(1)));
        self
    }

    /// Allows this number of tokens a minute, at least one. A call that needs more than that in one minute waits until all are
    /// free. Set before the limit is cloned: a clone keeps its own figures.
    pub fn tokens_per_minute(mut self, tokens: u64) -> Self {
        self.tokens = Some(tokens.max(1));
        self
    }

    /// The model, under this limit.
    pub fn limit(&self, model: impl Model) -> impl Model {
        Limited { model, limit: self.clone() }
    }

    /// Takes room for a request of `tokens` tokens, if no call waits and there is room.
    fn take_now(&self, tokens: u64) -> bool {
        let Ok(_turn) = self.shared.turn.try_acquire() else { return false };
        self.take(tokens).is_ok()
    }

    /// Waits for room for a request of `tokens` tokens, and takes it.
    ///
    /// # Cancel safety
    /// Dropped, it has taken nothing, and the next call has its place.
    async fn take_in_turn(&self, tokens: u64) {
        // It is never closed.
        let Ok(_turn) = self.shared.turn.acquire().await else { return };
        while let Err(due) = self.take(tokens) {
            sleep_until(due).await;
        }
    }

    /// Takes room, or says when there may be some.
    fn take(&self, tokens: u64) -> Result<(), Instant> {
        let now = self.shared.began.elapsed();
        let (request, tokens) = (time_of(1, self.requests), time_of(tokens, self.tokens).min(MINUTE));
        let mut level = self.level();
        let requests_after = level.requests.max(now) + request;
        let tokens_after = level.tokens.max(now) + tokens;
        let due = requests_after.max(tokens_after).saturating_sub(MINUTE).max(level.paused);
        if due > now {
            return Err(self.shared.began + due);
        }
        (level.requests, level.tokens) = (requests_after, tokens_after);
        Ok(())
    }

    /// Counts another try of a call.
    fn charge_again(&self, tokens: u64) {
        let now = self.shared.began.elapsed();
        let mut level = self.level();
        level.requests = level.requests.max(now) + time_of(1, self.requests);
        level.tokens = level.tokens.max(now) + time_of(tokens, self.tokens).min(MINUTE);
    }

    /// Corrects what was counted of a call.
    fn correct(&self, counted: u64, used: u64) {
        let now = self.shared.began.elapsed();
        let (counted, used) = (time_of(counted, self.tokens).min(MINUTE), time_of(used, self.tokens));
        let mut level = self.level();
        level.tokens = (level.tokens.max(now) + used).saturating_sub(counted);
    }

    /// The provider asks to wait so long.
    fn pause(&self, time: Duration) {
        let until = self.shared.began.elapsed().saturating_add(time);
        let mut level = self.level();
        level.paused = level.paused.max(until);
    }

    fn level(&self) -> MutexGuard<'_, Level> {
        self.shared.level.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How long a bucket that gets `per_minute` units a minute takes to refill `units` of them.
fn time_of(units: u64, per_minute: Option<u64>) -> Duration {
    let Some(per_minute) = per_minute else { return Duration::ZERO };
    let nanos = u128::from(units) * MINUTE.as_nanos() / u128::from(per_minute);
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// A model under a limit.
struct Limited<M> {
    model: M,
    limit: RateLimit,
}

impl<M: Model> Model for Limited<M> {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn accepts(&self, spec: &ModelSpec) -> Result<(), ModelError> {
        self.model.accepts(spec)
    }

    fn open(&self, spec: ModelSpec) -> Box<dyn Conversation> {
        let tools = spec.tools.iter().map(|tool| tool.description.len() + tool.parameters.to_string().len());
        let fixed = spec.system.as_ref().map_or(0, |system| system.len()) + tools.sum::<usize>();
        Box::new(LimitedConversation {
            conversation: self.model.open(spec),
            limit: self.limit.clone(),
            fixed,
        })
    }

    fn check(&self, parameters: &Parameters) -> Result<(), ModelError> {
        self.model.check(parameters)
    }
}

struct LimitedConversation {
    conversation: Box<dyn Conversation>,
    limit: RateLimit,
    /// Bytes of the instructions and tools.
    fixed: usize,
}

impl Conversation for LimitedConversation {
    fn stream(&mut self, history: &History) -> DeltaStream {
        let call = LimitedCall {
            reply: self.conversation.stream(history),
            limit: self.limit.clone(),
            estimate: Usage::floor_of_bytes(
                self.fixed + usize::try_from(history.sent().bytes()).unwrap_or(usize::MAX),
            ),
            step: CallStep::Asked,
            tries: 0,
        };
        stream::unfold(call, |mut call| async move {
            let next = call.next().await?;
            Some((next, call))
        })
        .boxed()
    }

    fn release(&mut self) -> Option<BoxFuture<'static, ()>> {
        self.conversation.release()
    }

    fn never_blocks(&self) -> bool {
        self.conversation.never_blocks()
    }
}

/// A call on its way through the limit.
struct LimitedCall {
    reply: DeltaStream,
    limit: RateLimit,
    /// Tokens of the request, roughly.
    estimate: u64,
    step: CallStep,
    tries: u32,
}

enum CallStep {
    Asked,
    Waits,
    /// It is let through, and this many tokens are counted of its last try.
    Begun(u64),
}

impl LimitedCall {
    async fn next(&mut self) -> Option<Result<Delta, ModelError>> {
        if let CallStep::Asked = self.step
            && !self.limit.take_now(self.estimate)
        {
            self.step = CallStep::Waits;
            return Some(Ok(Delta::Waiting { what: Arc::clone(&self.limit.what) }));
        }
        if let CallStep::Waits = self.step {
            self.limit.take_in_turn(self.estimate).await;
        }
        if !matches!(self.step, CallStep::Begun(_)) {
            self.step = CallStep::Begun(self.estimate);
        }
        let next = self.reply.next().await?;
        match &next {
            Ok(delta) => self.count(delta),
            // The call is over, and the next ones would be refused as well.
            Err(error) => self.limit.pause(error.retry_after().unwrap_or_default()),
        }
        Some(next)
    }

    fn count(&mut self, delta: &Delta) {
        let CallStep::Begun(counted) = &mut self.step else { return };
        match delta {
            Delta::Sent => {
                self.tries += 1;
                if self.tries > 1 {
                    self.limit.charge_again(self.estimate);
                    *counted = self.estimate;
                }
            }
            Delta::Retrying { after, .. } => self.limit.pause(*after),
            Delta::Usage(usage) => {
                let used = usage.total();
                self.limit.correct(*counted, used);
                *counted = used;
            }
            _ => {}
        }
    }
}
