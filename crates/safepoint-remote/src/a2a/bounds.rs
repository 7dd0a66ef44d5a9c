//! How much a peer may send, and how long it may take.

use std::time::Duration;

/// How much a peer may send, and how long it may take.
#[derive(Clone, Debug)]
pub struct Bounds {
    /// Bytes of its card. Default 1 MiB.
    pub card_bytes: usize,
    /// Time for its card, from the first look for it. Default 10 s.
    pub card_time: Duration,
    /// Bytes of an answer, or of one event of a stream. Default 8 MiB.
    pub answer_bytes: usize,
    /// Time for an answer that is no stream, save that to a message. Default 30 s.
    pub answer_time: Duration,
    /// How long nothing may come on a stream, before it is taken up again. Default 120 s.
    pub idle: Duration,
    /// How long nothing may be said of a task, before it is looked at beside its stream. Default 5 s.
    pub quiet: Duration,
    /// How long a stream that was taken up again may show no sign of life, before the task is only looked at. Default 10 s.
    pub deaf: Duration,
    /// How often in a row a line that broke is taken up again. Default 10, which is some two minutes: an outage of a
    /// minute loses no work.
    pub tries: u32,
    /// The wait before the first of these, doubled for each next one up to 30 s. Default 200 ms.
    pub pause: Duration,
    /// How often a task without a stream is looked at; less often, where it should have one and nothing is new. Default
    /// 1 s.
    pub look_every: Duration,
}

/// The longest wait before a line is taken up again.
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
    /// The wait before the try of this number, from 1 on.
    pub(super) fn wait(&self, tried: u32) -> Duration {
        self.pause.saturating_mul(2_u32.saturating_pow(tried.saturating_sub(1))).min(LONGEST_PAUSE)
    }
}
