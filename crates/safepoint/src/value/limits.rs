//! Every bound of a run in one place, each with its default (S12.1).

use std::time::Duration;

use safepoint_model::model::ModelSpec;
use tokio::time::Instant;

/// What stands for "never" where a clock can hold no later moment.
const NEVER: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);

/// The moment that is `time` after `from`; the longest times mean that it never comes.
pub(crate) fn after(from: Instant, time: Duration) -> Instant {
    from.checked_add(time.min(NEVER)).unwrap_or(from)
}

/// A time in whole milliseconds; the longest that there are, where it is longer.
pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// What a run may use up, and how long its parts may take.
///
/// Reaching `max_rounds`, `max_tokens`, `max_cost`, `wall_time` or `model_output_bytes` is a *stop* whose reason
/// names the limit; the others queue, truncate or bound a wait.
///
/// The first four are the run's, over all its attempts: what a stopped, failed or crashed attempt used is used. An agent
/// with other limits may resume a run; what is recorded then says so, and its limits hold from there on (S12.8).
///
/// Each limit has a default, and a `with_…` that sets it:
///
/// ```
/// use std::time::Duration;
/// use safepoint::Limits;
/// let limits = Limits::default().with_max_rounds(10).with_call_timeout(Duration::from_secs(30));
/// assert_eq!((limits.max_rounds, limits.parallel_calls), (10, 8));
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// Model calls of one run, over all its attempts; the calls of the last round still finish. Default 100.
    pub max_rounds: u32,
    /// Tokens of one run and its child runs, input and output together; checked before each model call. Default: none.
    pub max_tokens: Option<u64>,
    /// Money of one run and its child runs in the currency of the configured [`Price`](crate::usage::Price)s; checked before
    /// each model call, and only where a price is configured. Default: none.
    pub max_cost: Option<f64>,
    /// How long a run may work, over all its attempts. Time between attempts does not count, nor time during
    /// which only a person's decision could continue the run. Its end is a `Now`. Default: none.
    pub wall_time: Option<Duration>,
    /// Bytes of one model message in all its fields (text, reasoning, seals, and the names, ids and arguments
    /// of calls), and of what a remote agent sends about one task. Passing it is a `Now`. A model behind a
    /// wire counts them as it decodes, so that the excess is never collected. Default 16 MiB.
    pub model_output_bytes: usize,
    /// Calls of one model message that are checked. Calls beyond the limit are not part of the message; the
    /// model learns how many there were, and the run continues. Default 1,024.
    pub message_calls: usize,
    /// Calls that may run at once; 1 is sequential, and 0 is refused. Further ones queue. Default 8.
    pub parallel_calls: usize,
    /// How many levels of child runs there may be below a run; a call that would open a deeper one fails. The
    /// tightest limit on the way from the root counts. Default 8.
    pub max_depth: u32,
    /// Time limit of a call whose tool names none. Default: none.
    pub call_timeout: Option<Duration>,
    /// Bytes of one call's output that the model is shown; the rest is spilled to a file. Default 64 KiB.
    pub call_output_bytes: usize,
    /// How long a *cooperate* tool may clean up after a stop. Default 5 s.
    pub cleanup_timeout: Duration,
    /// How long a *finish* tool may continue after a stop. Default 5 s.
    pub finish_grace: Duration,
    /// How long one hook may take before the run continues without it. Default 5 s.
    pub callback_timeout: Duration,
    /// How long after the clean-up cap a run may take to be quiet before its survivors are named. Default 2 s.
    pub quiet_timeout: Duration,
    /// How long a cut model call may be read for its bill, if the agent chose
    /// [`OnModelStop::Drain`](crate::model::OnModelStop). Default 30 s.
    pub drain_timeout: Duration,
    /// How long the request may take that tells a provider to cancel a reply, if dropping the connection does
    /// not. Default 2 s.
    pub release_timeout: Duration,
    /// How long an append to the log may take before the run settles without it (S3.4). Default 5 s.
    pub append_timeout: Duration,
    /// How long an unanswered approval stays open; [`Duration::MAX`]: until it is answered. Default 30 days,
    /// so that a person may be away for a while.
    pub approval_expiry: Duration,
    /// Provisional events (text as it streams) kept for readers that lag behind. Default 4,096.
    pub retained_deltas: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_rounds: 100,
            max_tokens: None,
            max_cost: None,
            wall_time: None,
            model_output_bytes: ModelSpec::OUTPUT_BYTES,
            message_calls: 1024,
            parallel_calls: 8,
            max_depth: 8,
            call_timeout: None,
            call_output_bytes: 64 << 10,
            cleanup_timeout: Duration::from_secs(5),
            finish_grace: Duration::from_secs(5),
            callback_timeout: Duration::from_secs(5),
            quiet_timeout: Duration::from_secs(2),
            drain_timeout: Duration::from_secs(30),
            release_timeout: Duration::from_secs(2),
            append_timeout: Duration::from_secs(5),
            approval_expiry: Duration::from_secs(30 * 24 * 60 * 60),
            retained_deltas: 4096,
        }
    }
}

impl Limits {
    /// Sets [`max_rounds`](Self::max_rounds): the model calls of one run.
    #[must_use]
    pub fn with_max_rounds(mut self, max_rounds: u32) -> Self {
        self.max_rounds = max_rounds;
        self
    }

    /// Sets [`max_tokens`](Self::max_tokens): the tokens of one run and its child runs.
    #[must_use]
    pub fn with_max_tokens(mut self, max_tokens: u64) -> Self {
        self.max_tokens = Some(max_tokens);
        self
    }

    /// Sets [`max_cost`](Self::max_cost): the money of one run and its child runs.
    #[must_use]
    pub fn with_max_cost(mut self, max_cost: f64) -> Self {
        self.max_cost = Some(max_cost);
        self
    }

    /// Sets [`wall_time`](Self::wall_time): the time that a run may work.
    #[must_use]
    pub fn with_wall_time(mut self, wall_time: Duration) -> Self {
        self.wall_time = Some(wall_time);
        self
    }

    /// Sets [`model_output_bytes`](Self::model_output_bytes): the bytes of one model message.
    #[must_use]
    pub fn with_model_output_bytes(mut self, model_output_bytes: usize) -> Self {
        self.model_output_bytes = model_output_bytes;
        self
    }

    /// Sets [`message_calls`](Self::message_calls): the calls of one model message that are checked.
    #[must_use]
    pub fn with_message_calls(mut self, message_calls: usize) -> Self {
        self.message_calls = message_calls;
        self
    }

    /// Sets [`parallel_calls`](Self::parallel_calls): the calls that may run at once.
    #[must_use]
    pub fn with_parallel_calls(mut self, parallel_calls: usize) -> Self {
        self.parallel_calls = parallel_calls;
        self
    }

    /// Sets [`max_depth`](Self::max_depth): the levels of child runs below a run.
    #[must_use]
    pub fn with_max_depth(mut self, max_depth: u32) -> Self {
        self.max_depth = max_depth;
        self
    }

    /// Sets [`call_timeout`](Self::call_timeout): the time of a call whose tool names no limit.
    #[must_use]
    pub fn with_call_timeout(mut self, call_timeout: Duration) -> Self {
        self.call_timeout = Some(call_timeout);
        self
    }

    /// Sets [`call_output_bytes`](Self::call_output_bytes): the bytes of one call's output that the model is shown.
    #[must_use]
    pub fn with_call_output_bytes(mut self, call_output_bytes: usize) -> Self {
        self.call_output_bytes = call_output_bytes;
        self
    }

    /// Sets [`cleanup_timeout`](Self::cleanup_timeout): the time that a *cooperate* tool may clean up after a stop.
    #[must_use]
    pub fn with_cleanup_timeout(mut self, cleanup_timeout: Duration) -> Self {
        self.cleanup_timeout = cleanup_timeout;
        self
    }

    /// Sets [`finish_grace`](Self::finish_grace): the time that a *finish* tool may continue after a stop.
    #[must_use]
    pub fn with_finish_grace(mut self, finish_grace: Duration) -> Self {
        self.finish_grace = finish_grace;
        self
    }

    /// Sets [`callback_timeout`](Self::callback_timeout): the time that one hook may take.
    #[must_use]
    pub fn with_callback_timeout(mut self, callback_timeout: Duration) -> Self {
        self.callback_timeout = callback_timeout;
        self
    }

    /// Sets [`quiet_timeout`](Self::quiet_timeout): the time until survivors are named, after the clean-up cap.
    #[must_use]
    pub fn with_quiet_timeout(mut self, quiet_timeout: Duration) -> Self {
        self.quiet_timeout = quiet_timeout;
        self
    }

    /// Sets [`drain_timeout`](Self::drain_timeout): the time that a cut model call may be read for its bill.
    #[must_use]
    pub fn with_drain_timeout(mut self, drain_timeout: Duration) -> Self {
        self.drain_timeout = drain_timeout;
        self
    }

    /// Sets [`release_timeout`](Self::release_timeout): the time of the request that tells a provider to cancel a reply.
    #[must_use]
    pub fn with_release_timeout(mut self, release_timeout: Duration) -> Self {
        self.release_timeout = release_timeout;
        self
    }

    /// Sets [`append_timeout`](Self::append_timeout): the time of an append to the log.
    #[must_use]
    pub fn with_append_timeout(mut self, append_timeout: Duration) -> Self {
        self.append_timeout = append_timeout;
        self
    }

    /// Sets [`approval_expiry`](Self::approval_expiry): the time that an unanswered approval stays open.
    #[must_use]
    pub fn with_approval_expiry(mut self, approval_expiry: Duration) -> Self {
        self.approval_expiry = approval_expiry;
        self
    }

    /// Sets [`retained_deltas`](Self::retained_deltas): the provisional events that are kept for readers that lag behind.
    #[must_use]
    pub fn with_retained_deltas(mut self, retained_deltas: usize) -> Self {
        self.retained_deltas = retained_deltas;
        self
    }

    /// What is wrong with limits under which no run could work, and what to do.
    pub(crate) fn flaw(&self) -> Option<&'static str> {
        if self.parallel_calls == 0 {
            return Some("`parallel_calls` is 0, so no call could ever begin; 1 is one after the other");
        }
        if self.message_calls == 0 {
            return Some(
                "`message_calls` is 0, so no call could ever be looked at; 1 is one in each message",
            );
        }
        if self.append_timeout.is_zero() {
            return Some("`append` is no time at all, so nothing could ever be recorded");
        }
        if self.max_cost.is_some_and(|cost| cost.is_nan() || cost < 0.0) {
            return Some("`max_cost` is no amount of money; give one of at least 0, or none");
        }
        None
    }
}
