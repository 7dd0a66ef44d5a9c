//! Stdout on a thread of its own: a reader that is slow or gone holds up nobody, and its going is noticed.

use std::{
    io::{self, Write as _},
    sync::mpsc,
    thread::JoinHandle,
    time::{Duration, Instant},
};

use tokio::sync::watch;

/// Writes to stdout in order.
pub(crate) struct Printer {
    lines: Option<mpsc::Sender<Vec<u8>>>,
    gone: watch::Receiver<bool>,
    thread: Option<JoinHandle<()>>,
}

impl Printer {
    pub(crate) fn start() -> Self {
        let (lines, received) = mpsc::channel::<Vec<u8>>();
        let (tell, gone) = watch::channel(false);
        let thread = std::thread::spawn(move || {
            let mut out = io::stdout().lock();
            for bytes in received {
                if out.write_all(&bytes).and_then(|()| out.flush()).is_err() {
                    if tell.send(true).is_err() {
                        // The program is ending anyway.
                    }
                    return;
                }
            }
        });
        Self { lines: Some(lines), gone, thread: Some(thread) }
    }

    pub(crate) fn print(&self, bytes: impl Into<Vec<u8>>) {
        if let Some(lines) = &self.lines
            && lines.send(bytes.into()).is_err()
        {
            // The reader is gone; `closed` tells.
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

    /// Gives what is still to be written a moment: a reader that never reads does not keep the program.
    pub(crate) fn finish(mut self) {
        const PATIENCE: Duration = Duration::from_millis(500);
        const LOOK: Duration = Duration::from_millis(5);
        self.lines = None;
        let began = Instant::now();
        if let Some(thread) = self.thread.take() {
            while !thread.is_finished() && began.elapsed() < PATIENCE {
                std::thread::sleep(LOOK);
            }
        }
    }
}
