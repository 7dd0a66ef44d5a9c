//! Every bound and default time of responses in the background, by name.

use std::time::Duration;

/// How often a response is looked at.
pub(super) const LOOK_EVERY: Duration = Duration::from_secs(2);
/// Time for one answer of the provider.
pub(super) const ANSWER: Duration = Duration::from_secs(30);
/// Bytes of one answer.
pub(super) const ANSWER_BYTES: usize = 8 << 20;
/// How often in a row a look that gave nothing is tried again: for some two minutes.
pub(super) const TRIES: u32 = 10;
/// The wait before the first of these, doubled for each next one.
pub(super) const PAUSE: Duration = Duration::from_millis(200);
/// The longest of these.
pub(super) const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// How often a provider that hangs up on being told to stop is told again.
pub(super) const TELLS: u32 = 3;
/// How much of an answer that is none is shown.
pub(super) const SHOWN: usize = 200;
