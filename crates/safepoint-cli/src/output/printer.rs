//! Each output on a thread of its own: a reader that is slow or gone holds up nobody, and its going is noticed.
//!
//! **Invariants**
//! - Where stdout and stderr are one terminal, one thread writes everything in the order in which it was said.
//! - Where they are not, what is for people does not wait behind a stdout that nobody reads.
//! - Whoever hurries on a terminal does not wait for text that was said before: what of it is not shown is counted.
//! - Text that waits takes little more than its own bytes; of what is told again at its end only so much waits (S12.4).
//! - What stdout refuses first is what its reader is said to be; after that nothing is written to it.

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
    /// What is for stdout, and for a terminal that is both.
    out: Lane,
    /// What is for people, where that is another place.
    err: Option<Lane>,
    hurries: Arc<AtomicBool>,
}

/// What one thread writes.
struct Lane {
    queue: Arc<Queue>,
    /// What stdout refused first. Its sender goes with the thread.
    refused: watch::Receiver<Option<Unwritten>>,
}

/// Whether the two outputs are seen together. Exhaustive: they are or they are not.
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

    /// A terminal is shown no text of a model, also none that waits here, until [`Self::calm`].
    pub(crate) fn hurry(&self) {
        self.hurries.store(true, Ordering::Relaxed);
    }

    /// What is said from now on is shown.
    pub(crate) fn calm(&self) {
        self.out.queue.put(Sent::Calm);
    }

    /// For whoever reads stdout.
    pub(crate) fn print(&self, piece: Piece) -> Put {
        self.out.queue.put(Sent::Piece(Stream::Out, piece))
    }

    /// Whether its reader is so slow that more of what is told again at its end is not to be printed now.
    pub(crate) fn is_behind(&self) -> bool {
        self.out.queue.is_behind()
    }

    /// For people.
    pub(crate) fn tell(&self, piece: Piece) {
        self.err.as_ref().unwrap_or(&self.out).queue.put(Sent::Piece(Stream::Err, piece));
    }

    /// Resolves when nobody reads stdout any more, or it takes nothing.
    pub(crate) fn closed(&self) -> impl Future<Output = Unwritten> + use<> {
        let mut refused = self.out.refused.clone();
        async move {
            loop {
                if let Some(why) = refused.borrow_and_update().clone() {
                    return why;
                }
                if refused.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
            }
        }
    }

    /// What stdout has refused so far.
    pub(crate) fn refused(&self) -> Option<Unwritten> {
        self.out.refused.borrow().clone()
    }

    /// Resolves when all of it is written, or nobody reads it any more: a reader that pauses loses nothing.
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

    /// Nothing of what waits is begun any more; what is being written may still be taken.
    pub(crate) fn give_up(&self) {
        self.out.queue.give_up();
    }

    /// What stdout, if it has not refused, did not take.
    pub(crate) fn left(&self) -> Option<Left> {
        self.out.queue.left().filter(|_| self.refused().is_none())
    }
}

impl Drop for Printer {
    /// What waits is written all the same; what is for people before whatever is told them next.
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
                    hurried.store(false, Ordering::Relaxed);
                    continue;
                };
                if let Piece::Said(text) = piece
                    && order == Order::Together
                    && hurried.load(Ordering::Relaxed)
                {
                    passed_over += text.as_str().len();
                    continue;
                }
                if passed_over > 0 {
                    tell_passed_over(std::mem::take(&mut passed_over));
                }
                match stream {
                    // Where nobody reads it, there is nobody to tell.
                    Stream::Err => drop(put(*stream, piece)),
                    Stream::Out if tell.borrow().is_some() => {}
                    Stream::Out => {
                        if let Err(why) = put_counted(piece, waiting.counter()) {
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

    /// Nothing more comes. What is given back ends with the thread, when there is no more to write.
    fn close(&self) -> watch::Receiver<Option<Unwritten>> {
        self.queue.close();
        self.refused.clone()
    }
}

fn tell_passed_over(bytes: usize) {
    let words = format!("\n[{bytes} bytes of text that came before the stop are not shown]\n");
    // Where nobody reads it, there is nobody to tell.
    drop(put(Stream::Err, &Piece::Words(words)));
}
