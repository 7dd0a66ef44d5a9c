//! The queue in front of a writing thread: in order, and in as few pieces as possible.
//!
//! **Invariants**
//! - Pieces leave in the order in which they came; neighbours that continue one text leave as one piece.
//! - Waiting text takes little more than its own bytes, however small its pieces were (S12.4).

use std::{
    collections::VecDeque,
    sync::{
        Arc, Condvar, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use super::{Piece, Stream};
use crate::sync::lock;

/// How much may wait before the reader counts as behind, in bytes. Text that is repeated at its end is then
/// dropped, and the reader gets the size of the gap.
const BEHIND: usize = 4 << 20;

/// The bound, in bytes, up to which lost output is counted.
const COUNTED: u64 = 1 << 20;

/// The input of the thread.
pub(super) enum Sent {
    Piece(Stream, Piece),
    /// No caller hurries any more.
    Calm,
}

/// How a piece was queued. Exhaustive: alone, or joined to the piece before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Put {
    Alone,
    Joined,
}

/// Pieces between their senders and the one thread that writes.
#[derive(Default)]
pub(super) struct Queue {
    /// Held to queue, to take, or to count; pieces are written after it is released. No other lock is taken
    /// under it. The thread that writes looks for work and waits under it, so no piece is missed.
    state: Mutex<QueueState>,
    /// There is a piece, or the end: for the thread that writes.
    changed: Condvar,
    /// The queue is closed and everything was written.
    done: Condvar,
    /// How many bytes stdout has taken so far.
    pub(super) taken: AtomicU64,
}

#[derive(Default)]
struct QueueState {
    waiting: VecDeque<Sent>,
    bytes: usize,
    is_closed: bool,
    /// The piece that the thread writes now, and how much stdout had taken before it.
    writing: Option<(Arc<Sent>, u64)>,
    /// How many bytes for stdout were given up, and whether they were all counted.
    given_up: u64,
    is_uncounted: bool,
}

/// What stdout did not take in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Left {
    pub(crate) bytes: u64,
    /// Whether it is more than that: counting stops at [`COUNTED`], so that the end does not wait for it.
    pub(crate) is_more: bool,
    /// Whether the last line of JSON is incomplete.
    pub(crate) is_line_cut: bool,
}

impl Queue {
    /// Queues a piece; a closed queue drops it.
    pub(super) fn put(&self, sent: Sent) -> Put {
        let mut state = lock(&self.state);
        if state.is_closed {
            return Put::Alone;
        }
        let sent = match (state.waiting.back_mut(), sent) {
            (Some(Sent::Piece(stream, last)), Sent::Piece(other, piece)) if *stream == other => {
                let before = last.bytes();
                let left = last.join(piece);
                let more = last.bytes() - before;
                state.bytes += more;
                let Some(piece) = left else { return Put::Joined };
                Sent::Piece(other, piece)
            }
            (_, sent) => sent,
        };
        state.bytes += sent.bytes();
        state.waiting.push_back(sent);
        drop(state);
        self.changed.notify_one();
        Put::Alone
    }

    /// The next piece; none once the queue is closed and empty. The piece before it counts as written. Blocks
    /// the thread.
    pub(super) fn take(&self) -> Option<Arc<Sent>> {
        let mut state = lock(&self.state);
        state.writing = None;
        loop {
            if let Some(sent) = state.waiting.pop_front() {
                state.bytes = state.bytes.saturating_sub(sent.bytes());
                let sent = Arc::new(sent);
                state.writing = Some((Arc::clone(&sent), self.taken()));
                return Some(sent);
            }
            if state.is_closed {
                self.done.notify_all();
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Takes no more pieces.
    pub(super) fn close(&self) {
        lock(&self.state).is_closed = true;
        self.changed.notify_one();
    }

    /// Waits until everything is written, at most this long. Blocks the thread.
    pub(super) fn close_and_wait(&self, most: Duration) {
        self.close();
        let is_unwritten = |state: &mut QueueState| !state.waiting.is_empty() || state.writing.is_some();
        drop(self.done.wait_timeout_while(lock(&self.state), most, is_unwritten));
    }

    /// Takes no more pieces; drops and counts those that wait.
    pub(super) fn give_up(&self) {
        let mut state = lock(&self.state);
        state.is_closed = true;
        let waiting = std::mem::take(&mut state.waiting);
        state.bytes = 0;
        for sent in &waiting {
            let left = COUNTED.saturating_sub(state.given_up);
            match sent.written_bytes(left) {
                Some(bytes) => state.given_up += bytes,
                None => {
                    (state.given_up, state.is_uncounted) = (COUNTED, true);
                    break;
                }
            }
        }
        self.changed.notify_one();
    }

    /// What stdout did not take, of what was given up and of what is written now.
    pub(super) fn left(&self) -> Option<Left> {
        let state = lock(&self.state);
        let (mut bytes, mut is_more, mut is_line_cut) = (state.given_up, state.is_uncounted, false);
        if let Some((sent, before)) = &state.writing {
            let (whole, taken) = (sent.written_bytes(COUNTED), self.taken() - before);
            is_more |= whole.is_none();
            bytes += whole.map_or(1, |whole| whole.saturating_sub(taken));
            let is_begun = taken > 0 && whole.is_none_or(|whole| taken < whole);
            is_line_cut = is_begun && matches!(**sent, Sent::Piece(_, Piece::Line(_)));
        }
        (bytes > 0).then_some(Left { bytes, is_more, is_line_cut })
    }

    /// How many bytes stdout has taken so far.
    pub(super) fn taken(&self) -> u64 {
        // Relaxed: a count that only grows. `left` may read it while a piece is being written, and then
        // counts bytes as left that were just taken.
        self.taken.load(Ordering::Relaxed)
    }

    /// Whether the waiting bytes have reached the bound.
    pub(super) fn is_behind(&self) -> bool {
        lock(&self.state).bytes >= BEHIND
    }
}

impl Sent {
    fn bytes(&self) -> usize {
        match self {
            Self::Piece(_, piece) => piece.bytes(),
            Self::Calm => 0,
        }
    }

    /// The bytes that stdout gets of it, if they are no more than `most`; else none.
    fn written_bytes(&self, most: u64) -> Option<u64> {
        match self {
            Self::Piece(Stream::Out, piece) => piece.written_bytes(most),
            Self::Piece(Stream::Err, _) | Self::Calm => Some(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{JsonLine, Text};
    use super::*;

    fn said(text: &str) -> Sent {
        Sent::Piece(Stream::Out, Piece::Said(Text::Shared(text.into())))
    }

    fn line(seq: u64, round: u64, text: &str) -> Sent {
        let fields = json!({"type": "text_delta", "seq": seq, "round": round});
        Sent::Piece(
            Stream::Out,
            Piece::Line(JsonLine::from(fields).saying("text", Text::Shared(text.into()))),
        )
    }

    /// The pieces that the queue returns after all of these were queued.
    fn through(all: Vec<Sent>) -> Vec<String> {
        let queue = Queue::default();
        for sent in all {
            queue.put(sent);
        }
        queue.close();
        let taken = std::iter::from_fn(|| queue.take()).map(|sent| match &*sent {
            Sent::Piece(stream, piece) => {
                let mut out = Vec::new();
                piece.write_to(&mut out, *stream).unwrap();
                String::from_utf8(out).unwrap()
            }
            Sent::Calm => "calm".to_owned(),
        });
        let taken: Vec<String> = taken.collect();
        assert_eq!(lock(&queue.state).bytes, 0);
        taken
    }

    /// S12.4: text that waits behind text is one piece with it; nothing changes its place.
    #[test]
    fn text_that_waits_is_joined_and_keeps_its_place() {
        let words = || Sent::Piece(Stream::Out, Piece::Words("\n".into()));
        assert_eq!(
            through(vec![said("a"), said("b"), words(), said("c"), Sent::Calm, said("d")]),
            ["ab", "\n", "c", "calm", "d"]
        );
        assert_eq!(
            through(vec![line(0, 1, "a"), line(1, 1, "b"), line(1, 2, "c")]),
            [
                "{\"round\":1,\"seq\":0,\"text\":\"ab\",\"type\":\"text_delta\"}\n",
                "{\"round\":2,\"seq\":1,\"text\":\"c\",\"type\":\"text_delta\"}\n"
            ]
        );
    }

    /// S12.4: a joined piece can still be written and dropped.
    #[test]
    fn no_piece_grows_without_end() {
        let piece = "x".repeat(1000);
        let taken = through((0..1000).map(|_| said(&piece)).collect());
        assert!(taken.len() > 100 && taken.iter().all(|piece| piece.len() <= 4 << 10), "{}", taken.len());
        assert_eq!(taken.concat().len(), 1_000_000);
    }

    /// S12.4: a reader is behind once this much waits, and no longer once it has read.
    #[test]
    fn a_reader_that_does_not_read_is_behind() {
        let queue = Queue::default();
        while !queue.is_behind() {
            queue.put(said(&"x".repeat(100_000)));
        }
        let waits: usize = lock(&queue.state).waiting.iter().map(Sent::bytes).sum();
        assert!((BEHIND..BEHIND + 200_000).contains(&waits), "{waits}");
        drop(queue.take());
        drop(queue.take());
        assert!(!queue.is_behind());
    }

    /// S11.7: given-up pieces are counted as stdout would have got them, and so is the rest of a piece that
    /// it has begun.
    #[test]
    fn what_is_left_is_counted_in_bytes_of_stdout() {
        let queue = Queue::default();
        let words = Sent::Piece(Stream::Err, Piece::Words("for people".into()));
        for sent in [line(0, 1, "\"a\""), said("grüße"), words] {
            queue.put(sent);
        }
        let begun = queue.take().unwrap();
        assert_eq!(begun.written_bytes(COUNTED), Some(55));
        queue.taken.fetch_add(7, Ordering::Relaxed);
        assert_eq!(queue.left(), Some(Left { bytes: 48, is_more: false, is_line_cut: true }));
        queue.give_up();
        assert_eq!(queue.left(), Some(Left { bytes: 48 + 7, is_more: false, is_line_cut: true }));
        queue.taken.fetch_add(48, Ordering::Relaxed);
        assert_eq!(queue.left(), Some(Left { bytes: 7, is_more: false, is_line_cut: false }));
        assert!(queue.take().is_none());
        assert_eq!(queue.left(), Some(Left { bytes: 7, is_more: false, is_line_cut: false }));
    }

    /// S11.7: the end does not wait until output without a reader is counted.
    #[test]
    fn what_is_left_is_counted_so_far() {
        let queue = Queue::default();
        let long = "\"".repeat(3 << 20);
        for sent in [line(0, 1, &long), line(1, 1, &long), said("a")] {
            queue.put(sent);
        }
        let begun = queue.take().unwrap();
        assert_eq!(begun.written_bytes(COUNTED), None);
        assert_eq!(queue.left(), Some(Left { bytes: 1, is_more: true, is_line_cut: false }));
        queue.taken.fetch_add(7, Ordering::Relaxed);
        queue.give_up();
        assert_eq!(queue.left(), Some(Left { bytes: COUNTED + 1, is_more: true, is_line_cut: true }));
    }
}
