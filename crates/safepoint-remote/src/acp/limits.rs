//! Every bound and default time of ACP agents, by name.

use std::time::Duration;

/// How long an agent may take from its start until it can be asked something. Many are fetched by a package runner first.
pub(super) const START: Duration = Duration::from_secs(60);
/// How long a stop may take in all.
pub(super) const STOP: Duration = Duration::from_secs(2);
/// The share of a stop in which the agent may end its turn by itself: one part in this many.
pub(super) const GRACE_SHARE: u32 = 2;
/// The share of the rest of a stop for our report of it: one part in this many.
pub(super) const ACCOUNT_SHARE: u32 = 10;
/// How long a look at the agent's connections may delay a stop.
pub(super) const LOOK: Duration = Duration::from_millis(50);
/// How long all such looks may take before the agent is ended, at most half of the time that is left of a stop.
pub(super) const LOOKS: Duration = Duration::from_secs(1);
/// How long an agent may take to end by itself after its input was closed.
pub(super) const EXIT: Duration = Duration::from_millis(500);
/// The share of a stop for the exit of an agent that has answered, and so knows that it is to end: one part
/// in this many.
pub(super) const EXIT_SHARE: u32 = 20;
/// The share of the time for SIGTERM that SIGINT has before it: one part in this many.
pub(super) const INTERRUPT_SHARE: u32 = 24;
/// How long the ladder may take in all for an agent that was not stopped and did not end by itself.
pub(super) const LADDER: Duration = Duration::from_secs(2);
/// How long what an agent wrote before its end may still be read.
pub(super) const LAST_WORDS: Duration = Duration::from_millis(200);

/// The largest message of an agent that is read; a larger one is passed over.
pub(super) const MESSAGE_BYTES: usize = 8 << 20;
/// Bytes of an agent's standard error that are kept, half of them its head and half its tail.
pub(super) const ERROR_BYTES: usize = 16 << 10;
/// Events that the engine has not taken yet; an agent that sends more waits.
pub(super) const BACKLOG: usize = 64;
/// Bytes of these.
pub(super) const BACKLOG_BYTES: usize = 1 << 20;
/// Bytes that an agent has not read yet; the adapter reads no more requests of an agent until it has read
/// these.
pub(super) const OUTBOX_BYTES: usize = 1 << 20;
/// Bytes of earlier messages for an agent that has lost its session; the newest are kept.
pub(super) const EARLIER_BYTES: usize = 64 << 10;
/// The number of open questions; further questions are refused.
pub(super) const QUESTIONS: usize = 64;
/// Tool calls of an agent whose names are remembered.
pub(super) const TITLES: usize = 256;
/// Characters of a title, a name or a word that are shown.
pub(super) const SHOWN_CHARS: usize = 200;
