//! How much a remote agent may send, and how long it may take.

use std::time::Duration;

use crate::exchange::doubled;

/// How much a remote agent may send, and how long it may take.
#[derive(Clone, Debug)]
pub struct Bounds {
    /// Bytes of its card. Default 1 MiB.
    pub card_bytes: usize,
    /// Time for its card, from the first look for it. Default 10 s.
    pub card_time: Duration,
    /// Bytes of an answer, or of one event of a stream. Default 8 MiB.
    pub answer_bytes: usize,
    /// Time for an answer that is not a stream, except the answer to a message. Default 30 s.
    pub answer_time: Duration,
    /// How long a stream may be silent before the adapter subscribes again. Default 120 s.
    pub idle: Duration,
    /// How long no event of a task may arrive before the adapter also reads the task. Default 5 s.
    pub quiet: Duration,
    /// How long a new subscription may show no sign of life before the adapter only reads the task. Default
    /// 10 s.
    pub deaf: Duration,
    /// How many times in a row the adapter retries a broken connection. Default 10, about two minutes: an
    /// outage of a minute loses no work.
    pub tries: u32,
    /// The wait before the first retry, doubled for each next one up to 30 s. Default 200 ms.
    pub pause: Duration,
    /// How often the adapter reads a task without a stream; less often where a stream is expected and nothing
    /// is new. Default 1 s.
    pub look_every: Duration,
}

/// The longest wait before a retry.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

impl Default for Bounds {
    fn default() -> Self {
        Self {
            card_bytes: 1 << 20,
            card_time: Duration::from_secs(10),
            answer_bytes: 8 << 20,
            answer_time: Duration::from_secs(30),
            idle: Duration::from_secs(120),
            quiet: Duration::from_secs(5),
            deaf: Duration::from_secs(10),
            tries: 10,
            pause: Duration::from_millis(200),
            look_every: Duration::from_secs(1),
        }
    }
}

impl Bounds {
    /// The wait before the retry of this number, from 1.
    pub(super) fn wait(&self, tried: u32) -> Duration {
        doubled(self.pause, tried.saturating_sub(1), LONGEST_PAUSE)
    }
}
