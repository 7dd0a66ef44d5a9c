//! Both outputs on a thread of their own: a reader that is slow or gone holds up nobody, and its going is noticed.
//!
//! **Invariants**
//! - Where stdout and stderr are one terminal, everything is written in the order in which it was said.
//! - Where they are not, what is for people is written at once: it does not wait behind a stdout that nobody reads.
//! - Whoever hurries on a terminal does not wait for text that was said before: what of it is not shown is counted.
//! - Text that waits takes little more than its own bytes; of what is told again at its end only so much waits (S12.4).
//! - What stdout refuses first is what its reader is said to be; after that nothing is written to it.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use tokio::sync::watch;

use super::{
    Piece, Stream, Unwritten, put,
    queue::{Put, Queue, Sent},
};

/// Writes to stdout and stderr.
pub(crate) struct Printer {
    queue: Arc<Queue>,
    /// What stdout refused first.
    refused: watch::Receiver<Option<Unwritten>>,
    order: Order,
    hurries: Arc<AtomicBool>,
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
        let queue = Arc::new(Queue::default());
        let waiting = Arc::clone(&queue);
        let (tell, refused) = watch::channel(None);
        let hurries = Arc::new(AtomicBool::new(false));
        let hurried = Arc::clone(&hurries);
        std::thread::spawn(move || {
            let mut passed_over = 0;
            while let Some(sent) = waiting.take() {
                let Sent::Piece(stream, piece) = sent else {
                    hurried.store(false, Ordering::Relaxed);
                    continue;
                };
                if let Piece::Said(text) = &piece
                    && order == Order::Together
                    && hurried.load(Ordering::Relaxed)
                {
                    passed_over += text.as_str().len();
                    continue;
                }
                if passed_over > 0 {
                    tell_passed_over(std::mem::take(&mut passed_over));
                }
                let is_refused = stream == Stream::Out && tell.borrow().is_some();
                if !is_refused && let (Err(why), Stream::Out) = (put(stream, &piece), stream) {
                    tell.send_replace(Some(why));
                }
            }
            if passed_over > 0 {
                tell_passed_over(passed_over);
            }
        });
        Self { queue, refused, order, hurries }
    }

    /// A terminal is shown no text of a model, also none that waits here, until [`Self::calm`].
    pub(crate) fn hurry(&self) {
        self.hurries.store(true, Ordering::Relaxed);
    }

    /// What is said from now on is shown.
    pub(crate) fn calm(&self) {
        self.queue.put(Sent::Calm);
    }

    /// For whoever reads stdout.
    pub(crate) fn print(&self, piece: Piece) -> Put {
        self.queue.put(Sent::Piece(Stream::Out, piece))
    }

    /// Whether its reader is so slow that more of what is told again at its end is not to be printed now.
    pub(crate) fn is_behind(&self) -> bool {
        self.queue.is_behind()
    }

    /// For people.
    pub(crate) fn tell(&self, piece: Piece) {
        match self.order {
            Order::Together => {
                self.queue.put(Sent::Piece(Stream::Err, piece));
            }
            // Where nobody reads it, there is nobody to tell.
            Order::Apart => drop(put(Stream::Err, &piece)),
        }
    }

    /// Resolves when nobody reads stdout any more, or it takes nothing.
    pub(crate) fn closed(&self) -> impl Future<Output = Unwritten> + use<> {
        let mut refused = self.refused.clone();
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
        self.refused.borrow().clone()
    }

    /// Resolves when all of it is written, or nobody reads it any more: a reader that pauses loses nothing.
    pub(crate) fn written(&self) -> impl Future<Output = ()> + use<> {
        // The thread ends when there is no more to write, and with it goes the sender of `refused`.
        self.queue.close();
        let mut refused = self.refused.clone();
        async move { while refused.changed().await.is_ok() {} }
    }
}

impl Drop for Printer {
    /// What waits is written all the same.
    fn drop(&mut self) {
        self.queue.close();
    }
}

fn tell_passed_over(bytes: usize) {
    let words = format!("\n[{bytes} bytes of text that came before the stop are not shown]\n");
    // Where nobody reads it, there is nobody to tell.
    drop(put(Stream::Err, &Piece::Words(words)));
}
