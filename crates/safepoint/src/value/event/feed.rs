//! A stream of events that any number of readers follow, each at its own pace, without delaying the run.
//!
//! **Invariants**: sequence numbers are gapless and events are kept in order. Only provisional events are
//! ever dropped, oldest first, and a reader behind them learns how many it missed. What a child run shows is
//! shown above in the same order; locks are taken upwards only.

use std::{
    collections::{VecDeque, hash_map::RandomState},
    fmt,
    future::Future,
    hash::BuildHasher as _,
    pin::Pin,
    sync::{
        Arc, LazyLock, Weak,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};

use futures_core::Stream;
use jiff::Timestamp;
use tokio::sync::Notify;

use super::{Event, EventKind};

use crate::sync::{Mutex, clock};

/// What a feed shows.
pub trait StreamEvent: Clone {
    /// Whether it may be dropped for readers that lag: its content is recorded later.
    fn is_provisional(&self) -> bool;
    /// The bytes of a model's or a tool's text in it: they also bound what is kept for readers that lag.
    fn weight(&self) -> usize;
    /// Tells a reader how many events it missed.
    fn missed(count: u64) -> Self;
}

#[derive(Debug)]
pub(crate) struct Feed<K = EventKind> {
    /// Held to show or to read one event. A child's feed keeps its lock while its relay shows the event
    /// above: in the parent's feed, else in the parent's audit, and in the session's kept feed. Every such
    /// step is towards the root, so two feeds never wait for each other. Nothing is awaited under it.
    state: Mutex<FeedState<K>>,
    grown: Notify,
    retained_deltas: AtomicUsize,
    relay: Option<Relay<K>>,
}

/// Shows elsewhere what a feed shows, in the same order, with the position of its record.
pub(crate) struct Relay<K>(pub(crate) Box<Shows<K>>);

/// Shows an event whose record, if it has one, is at this position.
type Shows<K> = dyn Fn(&K, Option<u64>) -> Took + Send + Sync;

impl<K> fmt::Debug for Relay<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Relay").finish_non_exhaustive()
    }
}

/// Whether an event was shown. Exhaustive: it was; it was here but came too late above; or the stream had
/// ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Took {
    It,
    Late,
    Nothing,
}

#[derive(Debug)]
struct FeedState<K> {
    /// Names this stream among all others, those of other processes too.
    stream: u64,
    events: VecDeque<Event<K>>,
    next: u64,
    deltas: usize,
    /// The weight of all deltas.
    weight: usize,
    is_closed: bool,
    /// Where the readers are, if old events may be forgotten behind all of them.
    #[expect(clippy::box_collection, reason = "most feeds have none, and each idle session has a feed")]
    readers: Option<Box<Vec<Weak<AtomicU64>>>>,
}

/// The total weight of provisional events that are kept for readers that lag; the newest is kept in any case.
const RETAINED_BYTES: usize = 2 << 20;

/// A name that no other stream has: of this process they are numbered, from a number that is random.
fn name_of_stream() -> u64 {
    static FIRST: LazyLock<u64> = LazyLock::new(|| RandomState::new().hash_one(std::process::id()));
    static NEXT: AtomicU64 = AtomicU64::new(0);
    // Relaxed: a number is given out once, and nothing else depends on it.
    FIRST.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed))
}

impl<K: StreamEvent> Feed<K> {
    pub(crate) fn new(retained_deltas: usize) -> Self {
        let (stream, events) = (name_of_stream(), VecDeque::new());
        let state =
            FeedState { stream, events, next: 0, deltas: 0, weight: 0, is_closed: false, readers: None };
        Self {
            state: Mutex::new(state),
            grown: Notify::new(),
            retained_deltas: retained_deltas.into(),
            relay: None,
        }
    }

    /// A feed whose events are also shown elsewhere.
    pub(crate) fn relayed(retained_deltas: usize, relay: Relay<K>) -> Self {
        Self { relay: Some(relay), ..Self::new(retained_deltas) }
    }

    /// A feed of which old events may be [forgotten](Self::forget): they can be read elsewhere.
    pub(crate) fn forgetting(retained_deltas: usize) -> Self {
        let feed = Self::new(retained_deltas);
        feed.state.lock().readers = Some(Box::default());
        feed
    }

    /// Forgets what was shown before the last `parts`, each of which begins with an event that `begins` accepts. The last `most`
    /// events stay, and so does what a reader that is there has still to read, and what follows the first event that `holds` accepts.
    /// A reader that comes later learns how many it missed.
    pub(crate) fn forget(
        &self,
        (parts, most): (usize, usize),
        begins: impl Fn(&K) -> bool,
        holds: impl Fn(&K) -> bool,
    ) {
        let mut state = self.state.lock();
        let begun = state.events.iter().enumerate().rev().filter(|(_, event)| begins(&event.kind));
        let of_parts = begun.take(parts).last().map_or(0, |(place, _)| place);
        let held = state.events.iter().take(of_parts).position(|event| holds(&event.kind));
        let count = held.unwrap_or(of_parts);
        let count = count.min(state.events.len().saturating_sub(most)).min(state.read_by_all());
        let forgotten: Vec<Event<K>> = state.events.drain(..count).collect();
        let deltas = forgotten.iter().filter(|event| event.kind.is_provisional());
        let (mut number, mut weight) = (0, 0);
        deltas.for_each(|event| (number, weight) = (number + 1, weight + event.kind.weight()));
        state.deltas -= number;
        state.weight -= weight;
        drop(state);
        // What they hold is dropped without the lock.
        drop(forgotten);
    }

    /// Sets how many provisional events are kept, before any is shown.
    pub(crate) fn retain(&self, deltas: usize) {
        // Relaxed: what shows events is begun after this.
        self.retained_deltas.store(deltas, Ordering::Relaxed);
    }

    /// Shows an event; after [`Feed::close`] nothing is shown any more.
    pub(crate) fn push(&self, kind: K) {
        self.push_recorded((kind, None));
    }

    /// Shows an event, with the position of its record.
    pub(crate) fn push_recorded(&self, event: (K, Option<u64>)) {
        self.offer(event);
    }

    /// Shows events one after the other, each with the position of its record, and wakes readers once.
    pub(crate) fn push_all(&self, events: impl IntoIterator<Item = (K, Option<u64>)>) {
        self.show(events, false);
    }

    /// Shows an event, and returns whether it was shown.
    pub(crate) fn offer(&self, event: (K, Option<u64>)) -> Took {
        self.show([event], false)
    }

    /// Shows the last event.
    pub(crate) fn close(&self, last: (K, Option<u64>)) {
        self.show([last], true);
    }

    /// Returns whether the last of them was shown.
    fn show(&self, events: impl IntoIterator<Item = (K, Option<u64>)>, is_last: bool) -> Took {
        let mut state = self.state.lock();
        if state.is_closed {
            return Took::Nothing;
        }
        let (mut took, at) = (Took::It, clock::now());
        for (kind, position) in events {
            // Under the lock, so that two events of a child have the same order above as here.
            took = self.relay.as_ref().map_or(Took::It, |Relay(relay)| relay(&kind, position));
            state.push(kind, at, position);
        }
        // Relaxed, as in `retain`.
        state.trim(self.retained_deltas.load(Ordering::Relaxed));
        state.is_closed = is_last;
        drop(state);
        self.grown.notify_waiters();
        took
    }

    pub(crate) fn read(self: &Arc<Self>, from: u64) -> Events<K> {
        let place = self.state.lock().place_at(from);
        Events { feed: Arc::clone(self), next: from, place, growth: None }
    }
}

impl<K> FeedState<K> {
    /// The event of this number, or the next one that is kept.
    fn at_or_behind(&self, seq: u64) -> Option<&Event<K>> {
        // Where none was dropped since, as for a reader that keeps up.
        let behind = usize::try_from(self.next - seq).ok();
        let guess = behind.and_then(|behind| self.events.get(self.events.len().checked_sub(behind)?));
        guess.filter(|event| event.seq == seq).or_else(|| {
            let index = self.events.partition_point(|event| event.seq < seq);
            self.events.get(index)
        })
    }

    /// Where a reader is that begins here, if that matters.
    fn place_at(&mut self, next: u64) -> Option<Arc<AtomicU64>> {
        let readers = self.readers.as_mut()?;
        // Before it grows: of readers that have gone no more is kept than of those that are there.
        if readers.len() == readers.capacity() {
            readers.retain(|reader| reader.strong_count() > 0);
        }
        let place = Arc::new(AtomicU64::new(next));
        readers.push(Arc::downgrade(&place));
        Some(place)
    }

    /// How many events no reader that is there has still to read.
    fn read_by_all(&mut self) -> usize {
        let Some(readers) = &mut self.readers else { return 0 };
        readers.retain(|reader| reader.strong_count() > 0);
        // Relaxed: a reader that reads on meanwhile only keeps more.
        let places = readers.iter().filter_map(Weak::upgrade).map(|place| place.load(Ordering::Relaxed));
        let slowest = places.min().unwrap_or(u64::MAX);
        self.events.partition_point(|event| event.seq < slowest)
    }
}

impl<K: StreamEvent> FeedState<K> {
    fn push(&mut self, kind: K, at: Timestamp, position: Option<u64>) {
        if kind.is_provisional() {
            self.deltas += 1;
            self.weight += kind.weight();
        }
        self.events.push_back(Event { seq: self.next, at, kind, stream: self.stream, position });
        self.next += 1;
    }

    /// Halves the deltas when there are too many, or too large ones, so that the cost of dropping is spread.
    fn trim(&mut self, retained: usize) {
        const SLACK: usize = 2;
        if self.deltas <= retained.saturating_mul(SLACK) && self.weight <= RETAINED_BYTES * SLACK {
            return;
        }
        let (newest, deltas, weight) = (self.next - 1, &mut self.deltas, &mut self.weight);
        self.events.retain(|event| {
            let too_much = *deltas > retained || *weight > RETAINED_BYTES;
            let dropped = too_much && event.kind.is_provisional() && event.seq < newest;
            if dropped {
                *deltas -= 1;
                *weight -= event.kind.weight();
            }
            !dropped
        });
    }
}

/// A reader's place in a stream of events: read it with [`next`](Self::next), or as a
/// [`Stream`](futures_core::Stream).
///
/// ```
/// use safepoint::RunHandle;
/// /// A reader that comes back continues behind the last event that it has seen.
/// async fn read_on(handle: &RunHandle, seen: u64) {
///     let mut events = handle.events_from(seen + 1);
///     while let Some(event) = events.next().await {
///         println!("{}: {:?}", event.seq, event.kind);
///     }
/// }
/// ```
pub struct Events<K = EventKind> {
    feed: Arc<Feed<K>>,
    next: u64,
    /// The same, for the feed.
    place: Option<Arc<AtomicU64>>,
    /// What a reader of the stream waits for: the growth of the feed after its last look.
    growth: Option<Growth>,
}

type Growth = Pin<Box<dyn Future<Output = ()> + Send + Sync>>;

/// A second reader at the same place.
impl<K> Clone for Events<K> {
    fn clone(&self) -> Self {
        let place = self.feed.state.lock().place_at(self.next);
        Self { feed: Arc::clone(&self.feed), next: self.next, place, growth: None }
    }
}

impl<K> fmt::Debug for Events<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events").field("next", &self.next).finish_non_exhaustive()
    }
}

impl<K: StreamEvent> Events<K> {
    /// The next event, or none when the stream has ended: a run's stream ends with its one settling.
    ///
    /// # Cancel safety
    /// Nothing is lost: the reader's place moves only when an event is returned.
    pub async fn next(&mut self) -> Option<Event<K>> {
        loop {
            let feed = Arc::clone(&self.feed);
            // Registered before the look: an event between the two wakes this reader.
            let grown = feed.grown.notified();
            if let Poll::Ready(next) = self.try_next() {
                return next;
            }
            grown.await;
        }
    }

    /// The number of the event that is read next.
    pub(crate) const fn position(&self) -> u64 {
        self.next
    }

    /// The number of the event behind the one with this id, if it is an event of this stream that was shown.
    pub(crate) fn behind(&self, id: &str) -> Option<u64> {
        let (stream, seq) = id.split_once('-')?;
        let (stream, seq) = (u64::from_str_radix(stream, 16).ok()?, seq.parse::<u64>().ok()?);
        let state = self.feed.state.lock();
        (stream == state.stream && seq < state.next).then_some(seq + 1)
    }

    /// Goes back to this event, if a gap led beyond it.
    pub(crate) fn rewind_to(&mut self, seq: u64) {
        self.next = self.next.min(seq);
        self.note_place();
    }

    fn note_place(&self) {
        if let Some(place) = &self.place {
            // Relaxed: see `read_by_all`.
            place.store(self.next, Ordering::Relaxed);
        }
    }

    /// The next event that is there already.
    pub fn now(&mut self) -> Option<Event<K>> {
        if let Poll::Ready(next) = self.try_next() { next } else { None }
    }

    /// The next event, or none at the stream's end; pending if neither has come yet.
    fn try_next(&mut self) -> Poll<Option<Event<K>>> {
        let state = self.feed.state.lock();
        if self.next >= state.next {
            return if state.is_closed { Poll::Ready(None) } else { Poll::Pending };
        }
        let Some(event) = state.at_or_behind(self.next) else { return Poll::Pending };
        if event.seq > self.next {
            let count = event.seq - self.next;
            let kind = K::missed(count);
            let missed = Event { stream: state.stream, ..Event::new(self.next, event.at, kind) };
            self.next = event.seq;
            self.note_place();
            return Poll::Ready(Some(missed));
        }
        self.next += 1;
        self.note_place();
        Poll::Ready(Some(event.clone()))
    }
}

/// The same events as [`Events::next`]: the stream ends where that returns none.
impl<K: StreamEvent + Send + Sync + 'static> Stream for Events<K> {
    type Item = Event<K>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Event<K>>> {
        let this = self.get_mut();
        loop {
            if let Poll::Ready(next) = this.try_next() {
                return Poll::Ready(next);
            }
            let growth = this.growth.get_or_insert_with(|| {
                let feed = Arc::clone(&this.feed);
                Box::pin(async move { feed.grown.notified().await })
            });
            if growth.as_mut().poll(cx).is_ready() {
                this.growth = None;
                continue;
            }
            // Registered before this look: an event between the first look and the registration is seen now, and a later
            // one wakes this reader.
            return this.try_next();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S11.1: readers that have gone leave nothing, also where nothing is forgotten meanwhile.
    #[test]
    fn readers_that_have_gone_leave_nothing() {
        let feed = Arc::new(Feed::<EventKind>::forgetting(1));
        let stays = feed.read(0);
        for _ in 0..10_000 {
            drop(feed.read(0));
        }
        let kept = feed.state.lock().readers.as_ref().map_or(0, |readers| readers.capacity());
        assert!(kept <= 16, "{kept} places");
        drop(stays);
    }
}
