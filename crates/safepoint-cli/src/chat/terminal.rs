//! The terminal itself: its mode, and a thread that writes to it, so that one that is slow or stopped holds up nobody.
//!
//! **Invariants**: at most one frame is unwritten; the mode is restored when this is dropped.

use std::{
    io::{self, Write as _},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    time::{Duration, Instant},
};

use crossterm::terminal;
use tokio::sync::Notify;

const ENTER: &str = "\x1b[?2004h";
const LEAVE: &str = "\x1b[?2004l\x1b[?25h";

/// The terminal in raw mode.
pub(super) struct Terminal {
    frames: mpsc::Sender<String>,
    written: Arc<Written>,
}

#[derive(Default)]
struct Written {
    is_writing: AtomicBool,
    told: Notify,
}

impl Terminal {
    /// Takes the terminal over.
    ///
    /// # Errors
    /// If its mode cannot be changed.
    pub(super) fn enter() -> io::Result<Self> {
        terminal::enable_raw_mode()?;
        let (frames, received) = mpsc::channel::<String>();
        let written = Arc::new(Written::default());
        let told = Arc::clone(&written);
        std::thread::spawn(move || {
            for frame in received {
                let mut out = io::stdout().lock();
                if out.write_all(frame.as_bytes()).and_then(|()| out.flush()).is_err() {
                    // Nobody sees it; the hang-up comes as a signal.
                }
                told.is_writing.store(false, Ordering::Release);
                told.told.notify_one();
            }
        });
        let terminal = Self { frames, written };
        terminal.write(ENTER.to_owned());
        Ok(terminal)
    }

    /// Whether another frame may be written.
    pub(super) fn is_free(&self) -> bool {
        !self.written.is_writing.load(Ordering::Acquire)
    }

    /// Resolves when a frame was written.
    ///
    /// # Cancel safety
    /// Nothing is lost: it is told again.
    pub(super) async fn written(&self) {
        self.written.told.notified().await;
    }

    pub(super) fn write(&self, frame: String) {
        self.written.is_writing.store(true, Ordering::Release);
        if self.frames.send(frame).is_err() {
            // The thread lives as long as the sender.
        }
    }

    /// Writes a last frame, but waits for it only a moment.
    pub(super) fn leave(self, last: Option<String>) {
        const PATIENCE: Duration = Duration::from_millis(200);
        const LOOK: Duration = Duration::from_millis(2);
        let wait = || {
            let began = Instant::now();
            while !self.is_free() && began.elapsed() < PATIENCE {
                std::thread::sleep(LOOK);
            }
        };
        wait();
        self.write(format!("{}{LEAVE}", last.unwrap_or_default()));
        wait();
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if terminal::disable_raw_mode().is_err() {
            // The terminal is gone.
        }
    }
}

/// Columns and rows; the usual ones where it does not say.
pub(super) fn size() -> (u16, u16) {
    const USUAL: (u16, u16) = (80, 24);
    terminal::size().ok().filter(|(columns, rows)| *columns > 0 && *rows > 0).unwrap_or(USUAL)
}
