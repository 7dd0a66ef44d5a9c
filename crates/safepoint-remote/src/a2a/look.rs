//! When the adapter reads a task, beside its stream: when nothing came for a while, when the stream ended,
//! when a piece of the answer has no place, and when its end must be known whole.
//!
//! **Invariants**: the adapter reads a named task within [`Bounds::quiet`] of its stream's end or silence,
//! whatever the stream does. Pauses grow while nothing is new and while reads fail; the first read that
//! succeeds ends the growth by failure. The adapter does not repeat a request that fails every time. After an
//! end that a stream reported, the number of reads and their time are bounded.

use std::{future::pending, pin::Pin, time::Duration};

use futures_core::future::BoxFuture;
use serde_json::Value;
use tokio::time::{Instant, Sleep, sleep_until};

use super::{bounds::Bounds, http::Broke};
use crate::exchange::doubled;

/// When the adapter reads the task.
#[derive(Default)]
pub(super) struct Watch {
    state: LookState,
    /// Reads in a row that showed nothing new.
    still: u32,
    /// Reads in a row that failed beside a stream.
    failed: u32,
    /// Reads after an end that a stream reported, and until when the adapter may make another.
    last: Option<(u32, Instant)>,
    /// Since when a part of the answer waits for a read to show what is missing before it.
    held: Option<Instant>,
    /// Failures in a row, of reads and of streams.
    pub(super) tried: u32,
    /// Subscriptions in a row that brought nothing.
    mute: u32,
    /// Whether subscriptions to the task's stream are of no use, and were given up.
    pub(super) is_stream_given_up: bool,
    pub(super) sight: Sight,
}

/// Whether reads show the answer: they do as far as is known, or they fail, or they fail every time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Sight {
    #[default]
    Clear,
    Blind,
    Shut,
}

#[derive(Default)]
enum LookState {
    #[default]
    Off,
    Due(Pin<Box<Sleep>>, Why),
    Asking(BoxFuture<'static, Result<Value, Broke>>),
}

/// Why a read is due: because of a silence, which any event ends, or in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    Silence,
    Wanted,
}

/// What the watch reports: a read is due, or a read was answered.
pub(super) enum Watched {
    Due,
    Looked(Result<Value, Broke>),
}

/// How many subscriptions in a row may bring nothing.
const MOST_MUTE: u32 = 2;
/// How many reads the adapter makes of a task that its stream calls completed, before it reports the answer
/// as known.
const LAST_LOOKS: u32 = 5;
/// The longest pause between two reads.
const LONGEST: Duration = Duration::from_secs(30);

impl Watch {
    pub(super) async fn next(&mut self) -> Watched {
        match &mut self.state {
            LookState::Off => pending().await,
            LookState::Due(sleep, _) => {
                sleep.await;
                Watched::Due
            }
            LookState::Asking(look) => Watched::Looked(look.await),
        }
    }

    pub(super) fn off(&mut self) {
        self.state = LookState::Off;
    }

    pub(super) fn ask(&mut self, look: BoxFuture<'static, Result<Value, Broke>>) {
        self.state = LookState::Asking(look);
    }

    /// A read is due after this time, or sooner.
    pub(super) fn want(&mut self, after: Duration) {
        let at = Instant::now() + after;
        match &self.state {
            LookState::Asking(_) => {}
            LookState::Due(sleep, Why::Wanted) if sleep.deadline() <= at => {}
            LookState::Off | LookState::Due(..) => self.due(at, Why::Wanted),
        }
    }

    /// The stream sent an event: its silence begins now.
    pub(super) fn word(&mut self, bounds: &Bounds) {
        (self.still, self.failed, self.mute) = (0, 0, 0);
        match &mut self.state {
            LookState::Due(sleep, Why::Silence) => sleep.as_mut().reset(Instant::now() + bounds.quiet),
            LookState::Off => self.silence(bounds),
            LookState::Due(_, Why::Wanted) | LookState::Asking(_) => {}
        }
    }

    /// There is a stream, and it sends nothing now.
    pub(super) fn silence(&mut self, bounds: &Bounds) {
        self.due(
            Instant::now() + doubled(bounds.quiet, self.still.max(self.failed), LONGEST.max(bounds.quiet)),
            Why::Silence,
        );
    }

    /// The stream reported an end, and not all of the answer: the adapter reads the task once more. False
    /// after enough reads, or enough time.
    pub(super) fn last_look(&mut self, bounds: &Bounds) -> bool {
        let (looks, until) = self.last.unwrap_or((0, Instant::now() + bounds.answer_time));
        let pause = if looks == 0 { Duration::ZERO } else { bounds.wait(looks) };
        let is_worth = looks < LAST_LOOKS && Instant::now() + pause <= until;
        if is_worth {
            self.last = Some((looks + 1, until));
            self.want(pause);
        }
        is_worth
    }

    /// Whether a part of the answer waits, and for no longer than this.
    pub(super) fn holds(&mut self, is_held: bool, most: Duration) -> bool {
        let since = if is_held { Some(*self.held.get_or_insert_with(Instant::now)) } else { None };
        self.held = since.filter(|since| since.elapsed() < most);
        self.held.is_some()
    }

    /// A read was answered, and brought more of the answer, or not.
    pub(super) fn saw(&mut self, is_new: bool) {
        (self.tried, self.failed) = (0, 0);
        self.still = if is_new { 0 } else { self.still.saturating_add(1) };
    }

    /// A read failed beside the stream.
    pub(super) fn missed(&mut self) {
        (self.tried, self.failed) = (0, self.failed.saturating_add(1));
    }

    /// How long to wait before the next read of a task without a stream.
    pub(super) fn pause(&self, bounds: &Bounds) -> Duration {
        doubled(bounds.look_every, self.still.saturating_sub(1), LONGEST.max(bounds.look_every))
    }

    /// A subscription ended that brought nothing, because it closed or because it was silent for too long.
    pub(super) fn was_mute(&mut self, is_silent: bool) {
        self.mute += 1;
        self.is_stream_given_up |= self.mute >= MOST_MUTE || is_silent;
    }

    fn due(&mut self, at: Instant, why: Why) {
        self.state = LookState::Due(Box::pin(sleep_until(at)), why);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn due(watch: &mut Watch) -> Duration {
        let began = Instant::now();
        match watch.next().await {
            Watched::Due => began.elapsed(),
            Watched::Looked(_) => panic!("no read was requested"),
        }
    }

    /// S10.43: the adapter reads the task within five seconds of a stream's silence, and then with growing
    /// pauses.
    #[tokio::test(start_paused = true)]
    async fn a_silence_is_looked_into_with_growing_pauses() {
        let (mut watch, bounds) = (Watch::default(), Bounds::default());
        watch.word(&bounds);
        for wanted in [5, 10, 20, 30, 30] {
            assert_eq!(due(&mut watch).await.as_secs(), wanted);
            watch.saw(false);
            watch.silence(&bounds);
        }
        watch.word(&bounds);
        assert_eq!(due(&mut watch).await.as_secs(), 5, "a word begins anew");
    }

    /// S10.43: the pauses between reads that fail grow too; the first read that succeeds ends that.
    #[tokio::test(start_paused = true)]
    async fn looks_that_fail_put_off_only_one_another() {
        let (mut watch, bounds) = (Watch::default(), Bounds::default());
        watch.word(&bounds);
        for wanted in [5, 10, 20, 30, 30] {
            assert_eq!(due(&mut watch).await.as_secs(), wanted);
            watch.missed();
            watch.silence(&bounds);
        }
        watch.saw(false);
        watch.silence(&bounds);
        assert_eq!(due(&mut watch).await.as_secs(), 10);
        assert_eq!(watch.pause(&bounds).as_secs(), 1, "nor do they where there is no stream any more");
    }

    /// S10.42: after an end the adapter makes five reads, and begins none when the time of an answer is over.
    #[tokio::test(start_paused = true)]
    async fn after_an_end_the_number_of_reads_is_bounded() {
        let bounds = Bounds::default();
        for (each, looks) in [(0, 5), (29, 2), (30, 1)] {
            let (mut watch, mut made) = (Watch::default(), 0);
            while watch.last_look(&bounds) {
                due(&mut watch).await;
                watch.off();
                tokio::time::advance(Duration::from_secs(each)).await;
                made += 1;
            }
            assert_eq!(made, looks, "{each} s for each");
        }
    }

    /// S10.43: events do not delay a read that is due, and a second request for it does not either.
    #[tokio::test(start_paused = true)]
    async fn a_look_that_is_wanted_is_not_put_off() {
        let (mut watch, bounds) = (Watch::default(), Bounds::default());
        watch.want(Duration::from_secs(1));
        watch.word(&bounds);
        watch.want(Duration::from_secs(3));
        assert_eq!(due(&mut watch).await.as_secs(), 1);
    }

    /// S10.43: the adapter reads a task without a stream with growing pauses while nothing is new.
    #[tokio::test(start_paused = true)]
    async fn a_task_without_a_stream_is_looked_at_less_and_less() {
        let (mut watch, bounds) = (Watch::default(), Bounds::default());
        let mut pauses = Vec::new();
        for _ in 0..7 {
            watch.saw(false);
            pauses.push(watch.pause(&bounds).as_secs());
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 30, 30]);
        watch.saw(true);
        assert_eq!(watch.pause(&bounds).as_secs(), 1);
    }

    /// S10.43: the adapter gives up a subscription that brings nothing: at once if it was silent, else the
    /// second in a row.
    #[test]
    fn a_subscription_that_brings_nothing_is_given_up() {
        let mut watch = Watch::default();
        watch.was_mute(false);
        assert!(!watch.is_stream_given_up);
        watch.was_mute(false);
        assert!(watch.is_stream_given_up);
        let mut watch = Watch::default();
        watch.was_mute(true);
        assert!(watch.is_stream_given_up);
    }
}
