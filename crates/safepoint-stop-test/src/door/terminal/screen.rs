//! A pseudo-terminal, the program in it, and what its screen shows.
//!
//! **Invariants:** whatever the program writes is read, so that it never waits for a reader. The test's end of the terminal has one owner
//! beside the task that reads, and closes with both; no process inherits it.

use std::{
    io,
    num::NonZero,
    os::fd::OwnedFd,
    process::{ExitStatus, Stdio},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures_util::future::{Either, select};
use rustix::{
    io::Errno,
    pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt},
    termios::{Winsize, tcsetwinsize},
};
use tokio::{
    process::{Child, Command},
    sync::watch,
    task::{JoinHandle, yield_now},
    time::{Instant, sleep, timeout, timeout_at},
};

use crate::stage::StageError;

/// Rows and columns: a large screen, on which no receipt is cut and no message is broken.
const ROWS: NonZero<u16> = NonZero::new(50).expect("it is not zero");
const COLUMNS: NonZero<u16> = NonZero::new(160).expect("it is not zero");
/// How much is read in one look.
const AT_ONCE: usize = 16;
/// How often it is looked what the program wrote: well within what the judge takes for one moment.
const LOOK: Duration = Duration::from_millis(5);
/// How long a program that reads no keys is waited for until they are written.
const WRITING: Duration = Duration::from_secs(2);

/// A program in a terminal of its own.
pub(super) struct Screen {
    child: Child,
    ended: Option<(Instant, ExitStatus)>,
    /// None once it is closed.
    end: Option<Arc<OwnedFd>>,
    glass: Arc<Glass>,
    shown: watch::Receiver<Shown>,
    reader: JoinHandle<()>,
}

/// What a screen shows, and since when.
#[derive(Clone, Debug)]
pub(super) struct Shown {
    pub(super) text: String,
    pub(super) at: Instant,
}

/// Where what is read is drawn.
struct Glass {
    /// Held while what can be read at once is read and drawn, which waits for nothing; no other lock is taken under it.
    drawn: Mutex<vt100::Parser<Queries>>,
    shown: watch::Sender<Shown>,
}

/// What a program asked of its terminal, as the answers to it.
#[derive(Default)]
struct Queries(Vec<u8>);

/// What a look came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Read {
    All,
    Some,
    /// No process has the terminal any more.
    Closed,
}

impl Screen {
    /// Starts this command in a terminal: it is the first of a session, and keys are signals for it as long as it leaves that so.
    ///
    /// # Errors
    /// Why this machine gives no terminal, or does not start it.
    pub(super) fn open(command: Command) -> Result<Self, StageError> {
        let (end, child) = started(command).map_err(|error| StageError::NotStarted(error.to_string()))?;
        let (send, shown) = watch::channel(Shown { text: String::new(), at: Instant::now() });
        let drawn = Mutex::new(vt100::Parser::new_with_callbacks(ROWS, COLUMNS, 0, Queries::default()));
        let (end, glass) = (Arc::new(end), Arc::new(Glass { drawn, shown: send }));
        let reader = tokio::spawn(read(Arc::clone(&end), Arc::clone(&glass)));
        Ok(Self { child, ended: None, end: Some(end), glass, shown, reader })
    }

    /// Presses these keys, if the terminal is open.
    ///
    /// # Cancel safety
    /// A part of the keys may have been pressed.
    pub(super) async fn press(&self, keys: &str) {
        let Some(end) = &self.end else { return };
        let write = async {
            let mut left = keys.as_bytes();
            while !left.is_empty() {
                match rustix::io::write(end, left) {
                    Ok(written) => left = &left[written..],
                    Err(Errno::AGAIN | Errno::INTR) => sleep(LOOK).await,
                    Err(_) => return,
                }
            }
        };
        if timeout(WRITING, write).await.is_err() {
            // It reads no keys: what it shows then says so.
        }
    }

    /// Closes the terminal, as a window that is closed: the program is hung up.
    ///
    /// # Cancel safety
    /// The terminal may still be open.
    pub(super) async fn hang_up(&mut self) {
        if !self.is_open() {
            return;
        }
        self.reader.abort();
        if (&mut self.reader).await.is_err() {
            // It was reading; now it holds the terminal no more.
        }
        self.end = None;
    }

    pub(super) fn is_open(&self) -> bool {
        self.end.is_some()
    }

    /// What it shows now.
    pub(super) fn text(&self) -> String {
        self.shown.borrow().text.clone()
    }

    /// What it shows now; [`Self::changed`] waits for what comes later.
    pub(super) fn look(&mut self) -> Shown {
        self.shown.borrow_and_update().clone()
    }

    /// Waits until it shows something else than at the last look, or the program ends: then when, and how.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(super) async fn changed(&mut self) -> Option<(Instant, ExitStatus)> {
        if self.ended.is_some() {
            return self.ended;
        }
        let changed = async {
            if self.shown.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        // A change that is there at the end of the program is drawn below, too.
        let status = match select(Box::pin(self.child.wait()), Box::pin(changed)).await {
            Either::Left((Ok(status), _)) => status,
            // It is a child of this process, and nothing else waits for it.
            Either::Left((Err(_), changed)) => {
                changed.await;
                return None;
            }
            Either::Right(_) => return None,
        };
        self.ended = Some((Instant::now(), status));
        if let Some(end) = &self.end {
            // What it wrote before its end is there. What it has left may write without end.
            for _ in 0..AT_ONCE {
                if self.glass.look(end) != Read::Some {
                    break;
                }
            }
        }
        self.ended
    }

    /// How it ended, if that was seen.
    pub(super) fn ended(&self) -> Option<(Instant, ExitStatus)> {
        self.ended
    }

    /// Waits until it shows something of which this is so: whether it came, within this time and before the program ended.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(super) async fn until(&mut self, limit: Duration, is_it: impl Fn(&str) -> bool) -> bool {
        let deadline = Instant::now() + limit;
        while !is_it(&self.look().text) {
            if self.ended.is_some() || timeout_at(deadline, self.changed()).await.is_err() {
                return false;
            }
        }
        true
    }

    /// Waits until it has shown the same for this long from now on: whether it did, within the limit and before the program ended.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(super) async fn rests(&mut self, rest: Duration, limit: Duration) -> bool {
        let began = Instant::now();
        loop {
            let rested = self.look().at.max(began) + rest;
            match timeout_at(rested.min(began + limit), self.changed()).await {
                Err(_elapsed) => return Instant::now() >= rested,
                Ok(Some(_ended)) => return false,
                Ok(None) => {}
            }
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

impl Glass {
    /// Reads and draws what is there, and answers what the program asks of its terminal.
    fn look(&self, end: &OwnedFd) -> Read {
        let mut drawn = self.drawn.lock().unwrap_or_else(PoisonError::into_inner);
        let mut bytes = [0; 4096];
        let mut read = Read::Some;
        for _ in 0..AT_ONCE {
            match rustix::io::read(end, &mut bytes) {
                Ok(count @ 1..) => drawn.process(&bytes[..count]),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => read = Read::All,
                Ok(0) | Err(_) => read = Read::Closed,
            }
            if read != Read::Some {
                break;
            }
        }
        let answers = std::mem::take(&mut drawn.callbacks_mut().0);
        if !answers.is_empty() && rustix::io::write(end, &answers).is_err() {
            // It has ended, or reads no keys.
        }
        let text = drawn.screen().contents();
        self.shown.send_if_modified(|shown| {
            let is_new = shown.text != text;
            if is_new {
                *shown = Shown { text, at: Instant::now() };
            }
            is_new
        });
        read
    }
}

impl vt100::Callbacks for Queries {
    fn unhandled_csi(
        &mut self,
        screen: &mut vt100::Screen,
        first: Option<u8>,
        _second: Option<u8>,
        params: &[&[u16]],
        letter: char,
    ) {
        match (first, params, letter) {
            (None, [[5]], 'n') => self.0.extend_from_slice(b"\x1b[0n"),
            // Where the cursor is.
            (None, [[6]], 'n') => {
                let (row, column) = screen.cursor_position();
                self.0.extend_from_slice(format!("\x1b[{};{}R", row + 1, column + 1).as_bytes());
            }
            // What it is: one with colours.
            (None, [] | [[0]], 'c') => self.0.extend_from_slice(b"\x1b[?62;22c"),
            _ => {}
        }
    }
}

/// Reads until no process has the terminal any more.
async fn read(end: Arc<OwnedFd>, glass: Arc<Glass>) {
    loop {
        match glass.look(&end) {
            Read::All => sleep(LOOK).await,
            // Others have their turn, however much it writes.
            Read::Some => yield_now().await,
            Read::Closed => return,
        }
    }
}

/// A terminal, and the command in it.
fn started(mut command: Command) -> io::Result<(OwnedFd, Child)> {
    let own = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let end = openpt(own)?;
    grantpt(&end)?;
    unlockpt(&end)?;
    let size = Winsize { ws_row: ROWS.get(), ws_col: COLUMNS.get(), ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&end, size)?;
    let open = || Ok::<_, io::Error>(Stdio::from(ioctl_tiocgptpeer(&end, own)?));
    command.stdin(open()?).stdout(open()?).stderr(open()?);
    let child = command.spawn()?;
    // The command holds the other end for its children as long as it is there.
    drop(command);
    rustix::io::ioctl_fionbio(&end, true)?;
    Ok((end, child))
}
