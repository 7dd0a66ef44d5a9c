//! One thread per output: a slow or closed reader blocks no caller, and its close is noticed.
//!
//! **Invariants**
//! - Where stdout and stderr are one terminal, one thread writes everything in the order of the calls.
//! - Where they are not, output for people does not wait behind a stdout without a reader.
//! - A caller that hurries on a terminal does not wait for earlier text; the part that is not shown is
//!   counted.
//! - Waiting text takes little more than its own bytes; text that is repeated at its end waits only up to a
//!   bound (S12.4).
//! - The first write that stdout refuses decides what is reported of its reader; later writes are skipped.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::sync::watch;

use super::{
    Piece, Stream, Unwritten, put, put_counted,
    queue::{Left, Put, Queue, Sent},
};

/// Writes to stdout and stderr.
pub(crate) struct Printer {
    /// For stdout, and for a terminal that is both outputs.
    out: Lane,
    /// For people, where stderr is another place.
    err: Option<Lane>,
    hurries: Arc<AtomicBool>,
}

/// The queue of one thread, and what its output refused.
struct Lane {
    queue: Arc<Queue>,
    /// The first write that stdout refused. The thread owns the sender.
    refused: watch::Receiver<Option<Unwritten>>,
}

/// Whether both outputs are one terminal. Exhaustive: they are or they are not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Both are one terminal.
    Together,
    /// They go to different places.
    Apart,
}

impl Printer {
    pub(crate) fn start(order: Order) -> Self {
        let hurries = Arc::new(AtomicBool::new(false));
        let err = (order == Order::Apart).then(|| Lane::start(order, &hurries));
        Self { out: Lane::start(order, &hurries), err, hurries }
    }

    /// A terminal gets no model text, including text that waits here, until [`Self::calm`].
    pub(crate) fn hurry(&self) {
        // Relaxed: a piece that is being written may still be shown; nothing else depends on the flag.
        self.hurries.store(true, Ordering::Relaxed);
    }

    /// Text from now on is shown.
    pub(crate) fn calm(&self) {
        self.out.queue.put(Sent::Calm);
    }

    /// Queues a piece for stdout.
    pub(crate) fn print(&self, piece: Piece) -> Put {
        self.out.queue.put(Sent::Piece(Stream::Out, piece))
    }

    /// Whether the reader is so slow that text which is repeated at its end is not printed now.
    pub(crate) fn is_behind(&self) -> bool {
        self.out.queue.is_behind()
    }

    /// Queues a piece for people.
    pub(crate) fn tell(&self, piece: Piece) {
        self.err.as_ref().unwrap_or(&self.out).queue.put(Sent::Piece(Stream::Err, piece));
    }

    /// Resolves when stdout has no reader any more, or refuses a write.
    pub(crate) fn closed(&self) -> impl Future<Output = Unwritten> + use<> {
        let mut refused = self.out.refused.clone();
        async move {
            let why = refused.wait_for(Option::is_some).await.ok().and_then(|why| why.clone());
            match why {
                Some(why) => why,
                // Everything was taken.
                None => std::future::pending().await,
            }
        }
    }

    /// The error of stdout so far.
    pub(crate) fn refused(&self) -> Option<Unwritten> {
        self.out.refused.borrow().clone()
    }

    /// Resolves when all of it is written, or stdout has no reader any more; a reader that pauses loses
    /// nothing.
    pub(crate) fn written(&self) -> impl Future<Output = ()> + use<> {
        let lanes = [Some(&self.out), self.err.as_ref()];
        let ends: Vec<_> = lanes.into_iter().flatten().map(Lane::close).collect();
        async move {
            for mut end in ends {
                while end.changed().await.is_ok() {}
            }
        }
    }

    /// How many bytes stdout has taken so far.
    pub(crate) fn taken(&self) -> u64 {
        self.out.queue.taken()
    }

    /// Begins no waiting piece any more; the piece that is being written may still be taken.
    pub(crate) fn give_up(&self) {
        self.out.queue.give_up();
    }

    /// What stdout, if it has not refused, did not take.
    pub(crate) fn left(&self) -> Option<Left> {
        self.out.queue.left().filter(|_| self.refused().is_none())
    }
}

impl Drop for Printer {
    /// Waiting pieces are still written; those for people come before the next line for people.
    fn drop(&mut self) {
        const PATIENCE: Duration = Duration::from_millis(200);
        self.out.queue.close();
        if let Some(err) = &self.err {
            err.queue.close_and_wait(PATIENCE);
        }
    }
}

impl Lane {
    fn start(order: Order, hurries: &Arc<AtomicBool>) -> Self {
        let queue = Arc::new(Queue::default());
        let waiting = Arc::clone(&queue);
        let (tell, refused) = watch::channel(None);
        let hurried = Arc::clone(hurries);
        std::thread::spawn(move || {
            let mut passed_over = 0;
            while let Some(sent) = waiting.take() {
                let Sent::Piece(stream, piece) = &*sent else {
                    // Relaxed: cleared and read by this thread. A new hurry between the call of `calm` and
                    // this is cleared too: text that came after it is shown.
                    hurried.store(false, Ordering::Relaxed);
                    continue;
                };
                if let Piece::Said(text) = piece
                    && order == Order::Together
                    // Relaxed: see `hurry`.
                    && hurried.load(Ordering::Relaxed)
                {
                    passed_over += text.as_str().len();
                    continue;
                }
                if passed_over > 0 {
                    tell_passed_over(std::mem::take(&mut passed_over));
                }
                match stream {
                    // Without a reader of stderr there is nowhere to report.
                    Stream::Err => drop(put(*stream, piece)),
                    Stream::Out if tell.borrow().is_some() => {}
                    Stream::Out => {
                        if let Err(why) = put_counted(piece, &waiting.taken) {
                            tell.send_replace(Some(why));
                        }
                    }
                }
            }
            if passed_over > 0 {
                tell_passed_over(passed_over);
            }
        });
        Self { queue, refused }
    }

    /// Closes the queue. The returned receiver closes when the thread has written everything.
    fn close(&self) -> watch::Receiver<Option<Unwritten>> {
        self.queue.close();
        self.refused.clone()
    }
}

fn tell_passed_over(bytes: usize) {
    let words = format!("\n[{bytes} bytes of text that came before the stop are not shown]\n");
    // Without a reader of stderr there is nowhere to report.
    drop(put(Stream::Err, &Piece::Words(words)));
}
