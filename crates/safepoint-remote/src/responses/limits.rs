//! Every bound and default time of responses in the background, by name.

use std::time::Duration;

/// How often the adapter reads a response.
pub(super) const LOOK_EVERY: Duration = Duration::from_secs(2);
/// Time for one answer of the provider.
pub(super) const ANSWER: Duration = Duration::from_secs(30);
/// Bytes of one answer.
pub(super) const ANSWER_BYTES: usize = 8 << 20;
/// How many times in a row the adapter repeats a read that failed: about two minutes.
pub(super) const TRIES: u32 = 10;
/// The wait before the first retry, doubled for each next one.
pub(super) const PAUSE: Duration = Duration::from_millis(200);
/// The longest wait before a retry.
pub(super) const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// How much of an invalid answer an error shows.
pub(super) const SHOWN: usize = 200;
