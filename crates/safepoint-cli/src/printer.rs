//! Both outputs on a thread of their own: a reader that is slow or gone holds up nobody, and its going is noticed.
//!
//! **Invariants**
//! - Where stdout and stderr are one terminal, everything is written in the order in which it was said.
//! - Where they are not, what is for people is written at once: it does not wait behind a stdout that nobody reads.

use std::{
    io::{self, Write as _},
    sync::{Mutex, MutexGuard, PoisonError, mpsc},
};

use tokio::sync::watch;

/// Writes to stdout and stderr.
pub(crate) struct Printer {
    /// None: no more is to be written.
    pieces: Mutex<Option<mpsc::Sender<Piece>>>,
    gone: watch::Receiver<bool>,
    order: Order,
}

/// Whether the two outputs are seen together. Exhaustive: they are or they are not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Both are one terminal.
    Together,
    /// They go to different places.
    Apart,
}

enum Piece {
    Out(Vec<u8>),
    Err(Vec<u8>),
}

impl Printer {
    pub(crate) fn start(order: Order) -> Self {
        let (pieces, received) = mpsc::channel::<Piece>();
        let (tell, gone) = watch::channel(false);
        std::thread::spawn(move || {
            for piece in received {
                match piece {
                    Piece::Out(bytes) => {
                        let mut out = io::stdout().lock();
                        if out.write_all(&bytes).and_then(|()| out.flush()).is_err() {
                            tell.send_replace(true);
                        }
                    }
                    Piece::Err(bytes) => to_stderr(&bytes),
                }
            }
        });
        Self { pieces: Mutex::new(Some(pieces)), gone, order }
    }

    /// For whoever reads stdout.
    pub(crate) fn print(&self, bytes: impl Into<Vec<u8>>) {
        self.send(Piece::Out(bytes.into()));
    }

    /// For people.
    pub(crate) fn tell(&self, bytes: impl Into<Vec<u8>>) {
        match self.order {
            Order::Together => self.send(Piece::Err(bytes.into())),
            Order::Apart => to_stderr(&bytes.into()),
        }
    }

    /// Resolves when nobody reads stdout any more.
    pub(crate) fn closed(&self) -> impl Future<Output = ()> + use<> {
        let mut gone = self.gone.clone();
        async move {
            while !*gone.borrow_and_update() {
                if gone.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
            }
        }
    }

    /// Resolves when all of it is written, or nobody reads it any more: a reader that pauses loses nothing.
    pub(crate) fn written(&self) -> impl Future<Output = ()> + use<> {
        // The thread ends when there is no more to write, and with it goes the sender of `gone`.
        drop(self.lock().take());
        let mut gone = self.gone.clone();
        async move { while gone.changed().await.is_ok() {} }
    }

    fn send(&self, piece: Piece) {
        if let Some(pieces) = self.lock().as_ref()
            && pieces.send(piece).is_err()
        {
            // It is being finished.
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<mpsc::Sender<Piece>>> {
        self.pieces.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn to_stderr(bytes: &[u8]) {
    if io::stderr().lock().write_all(bytes).is_err() {
        // Nobody reads it.
    }
}
