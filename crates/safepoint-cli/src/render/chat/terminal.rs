//! The terminal: its mode, and a thread that writes to it, so that a slow or stopped terminal delays no other task.
//!
//! **Invariants**: at most one frame is unwritten; the mode is restored when this is dropped.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    time::{Duration, Instant},
};

use crossterm::terminal;
use rustix::process::{Signal, kill_current_process_group};
use tokio::sync::Notify;

use super::attention::Attention;
use crate::output::{self, Drawn, Piece, Stream};

const ENTER: &str = "\x1b[?2004h";
const LEAVE: &str = "\x1b[?2004l\x1b[?25h";

/// The terminal in raw mode.
pub(crate) struct Terminal {
    /// What it is sent when it is taken over, and when it is given back.
    marks: (String, String),
    frames: mpsc::Sender<Drawn>,
    written: Arc<Written>,
}

#[derive(Default)]
struct Written {
    /// Whether a frame was sent and not yet written. Set by the sender before it sends, cleared by the thread
    /// after it wrote.
    is_writing: AtomicBool,
    done: Notify,
}

impl Terminal {
    /// Takes the terminal over.
    ///
    /// # Errors
    /// If its mode cannot be changed.
    pub(crate) fn enter(attention: &Attention) -> io::Result<Self> {
        terminal::enable_raw_mode()?;
        let (frames, received) = mpsc::channel::<Drawn>();
        let written = Arc::new(Written::default());
        let done = Arc::clone(&written);
        std::thread::spawn(move || {
            for frame in received {
                // Without a terminal, the hang-up arrives as a signal.
                drop(output::put(Stream::Out, &Piece::Drawn(frame)));
                // Release: pairs with the load in `is_free`. Where a second frame was sent meanwhile, this is
                // early, and one more frame waits in the channel: none is lost, and their order stays. The
                // notification is kept for a waiter that comes later.
                done.is_writing.store(false, Ordering::Release);
                done.done.notify_one();
            }
        });
        let marks = (format!("{ENTER}{}", attention.enter()), format!("{}{LEAVE}", attention.leave()));
        let terminal = Self { marks, frames, written };
        terminal.mark(&terminal.marks.0);
        Ok(terminal)
    }

    fn mark(&self, mark: &str) {
        let mut drawn = Drawn::default();
        drawn.mark(mark);
        self.write(drawn);
    }

    /// Whether another frame may be written.
    pub(crate) fn is_free(&self) -> bool {
        // Acquire: pairs with the store of the thread that writes.
        !self.written.is_writing.load(Ordering::Acquire)
    }

    /// Resolves when a frame was written.
    ///
    /// # Cancel safety
    /// Nothing is lost: the event stays pending.
    pub(crate) async fn written(&self) {
        self.written.done.notified().await;
    }

    pub(crate) fn write(&self, frame: Drawn) {
        // Before the frame is sent, so that the thread clears it after this; the channel orders the two.
        self.written.is_writing.store(true, Ordering::Release);
        if self.frames.send(frame).is_err() {
            // The thread lives as long as the sender.
        }
    }

    /// Gives the terminal back to the shell, and stops this job as its own Ctrl-Z would. It is gone on with by a SIGCONT.
    ///
    /// # Errors
    /// If the mode cannot be changed, or the job not be stopped.
    pub(crate) fn suspend(&self, last: Option<Drawn>) -> io::Result<()> {
        self.leave(last);
        terminal::disable_raw_mode()?;
        Ok(kill_current_process_group(Signal::TSTP)?)
    }

    /// Gives the terminal to another program of this job, which has it until this one takes it over again.
    ///
    /// # Errors
    /// If the mode cannot be changed.
    pub(crate) fn lend(&self, last: Option<Drawn>) -> io::Result<()> {
        self.leave(last);
        terminal::disable_raw_mode()
    }

    /// Takes the terminal over again.
    ///
    /// # Errors
    /// If its mode cannot be changed.
    pub(crate) fn go_on(&self) -> io::Result<()> {
        // What is remembered of the mode is from before; the shell may have set another since.
        terminal::disable_raw_mode()?;
        terminal::enable_raw_mode()?;
        self.mark(&self.marks.0);
        Ok(())
    }

    /// Writes a last frame, but waits for it only a moment.
    pub(crate) fn leave(&self, last: Option<Drawn>) {
        const PATIENCE: Duration = Duration::from_millis(200);
        const LOOK: Duration = Duration::from_millis(2);
        let wait = || {
            let began = Instant::now();
            while !self.is_free() && began.elapsed() < PATIENCE {
                std::thread::sleep(LOOK);
            }
        };
        wait();
        let mut last = last.unwrap_or_default();
        last.mark(&self.marks.1);
        self.write(last);
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
pub(crate) fn size() -> (u16, u16) {
    const USUAL: (u16, u16) = (80, 24);
    terminal::size().ok().filter(|(columns, rows)| *columns > 0 && *rows > 0).unwrap_or(USUAL)
}
