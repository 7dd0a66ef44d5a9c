//! How long an exchange waits, how often it is tried, and how large one event may be.

use std::time::Duration;

use crate::retry::Retry;

/// How an exchange is bounded.
///
/// ```
/// use std::time::Duration;
/// use safepoint_models::{Patience, Retry, openai};
/// let hurried = Patience { idle: Duration::from_secs(20), retry: Retry::never(), ..Patience::default() };
/// let model = openai::model("gpt-5.2").patience(hurried);
/// ```
#[derive(Clone, Debug)]
pub struct Patience {
    /// How long nothing may arrive, headers included. Default 120 s.
    pub idle: Duration,
    /// How often and how long to wait before another try.
    pub retry: Retry,
    /// Bytes of one event of the stream; a larger one ends the reply as one that is too long does. Default 8 MiB.
    pub event_bytes: usize,
}

impl Default for Patience {
    fn default() -> Self {
        const IDLE: Duration = Duration::from_secs(120);
        Self { idle: IDLE, retry: Retry::default(), event_bytes: 8 << 20 }
    }
}
