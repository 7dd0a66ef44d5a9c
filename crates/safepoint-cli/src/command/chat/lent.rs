//! Another program has the terminal for a while: the external editor, or the pager. The turn continues meanwhile.
//!
//! **Invariants**: while it has the terminal, no key is read here, nothing is drawn, and a Ctrl-C is that program's; one at a time.

use std::{
    io,
    os::unix::process::ExitStatusExt as _,
    process::ExitStatus,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use crossterm::event::{Event as Key, EventStream};
use futures_util::StreamExt as _;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, Signal, kill_process},
    stdio::stdin,
    termios::{OptionalActions, tcgetattr, tcsetattr},
};
use tokio::{io::AsyncWriteExt as _, process::Command};

use super::driver::Driver;
use crate::{output::Drawn, render::chat::surface::Pane, sync::lock};

/// Whether another program has the terminal.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lent(
    /// Held for one look or change, also by the thread of signals; nothing is awaited under it.
    Arc<Mutex<Loan>>,
);

#[derive(Debug, Default)]
struct Loan {
    is_lent: bool,
    /// The process that has it, while there is one.
    pid: Option<Pid>,
    /// When a Ctrl-C ended the last one: the signal came to this program too, which may take it up a moment later.
    interrupted: Option<Instant>,
}

/// For so long after a Ctrl-C has ended the other program, this program's own signal of it may be still on its way.
const ON_ITS_WAY: Duration = Duration::from_millis(500);
/// What a shell answers for a command that a Ctrl-C ended.
const INTERRUPTED: i32 = 130;

impl Lent {
    pub(crate) fn is_lent(&self) -> bool {
        lock(&self.0).is_lent
    }

    /// Whether an interrupt is the other program's. While the terminal is this program's, a Ctrl-C is a key and no signal.
    pub(crate) fn takes_interrupt(&self) -> bool {
        let mut loan = lock(&self.0);
        loan.is_lent || loan.interrupted.take().is_some_and(|at| at.elapsed() < ON_ITS_WAY)
    }

    /// Ends the other program: the chat is over.
    pub(super) fn end(&self) {
        let pid = lock(&self.0).pid;
        if pid.is_some_and(|pid| kill_process(pid, Signal::TERM).is_err()) {
            // It has ended.
        }
    }

    /// Runs the program that has the terminal, with this text as its input if there is one.
    pub(super) async fn run(&self, program: &mut Command, input: Option<String>) -> io::Result<ExitStatus> {
        let mut child = program.spawn()?;
        lock(&self.0).pid = child.id().and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
        if let (Some(mut pipe), Some(input)) = (child.stdin.take(), input)
            && pipe.write_all(input.as_bytes()).await.is_err()
        {
            // It was left before it had read all.
        }
        let status = child.wait().await;
        let by_ctrl_c = |status: &ExitStatus| {
            status.signal() == Some(Signal::INT.as_raw()) || status.code() == Some(INTERRUPTED)
        };
        let mut loan = lock(&self.0);
        loan.pid = None;
        loan.interrupted = status.as_ref().is_ok_and(by_ctrl_c).then(Instant::now);
        drop(loan);
        status
    }
}

/// The keys of the terminal; none while it is another program's.
#[derive(Default)]
pub(crate) struct Keys(Option<EventStream>);

impl Keys {
    /// The next key; pending while the terminal is another program's.
    ///
    /// # Cancel safety
    /// Nothing is lost: a key stays in the stream.
    pub(crate) async fn next(&mut self) -> Option<io::Result<Key>> {
        match &mut self.0 {
            Some(keys) => keys.next().await,
            None => std::future::pending().await,
        }
    }

    /// Asks the terminal to announce once more what it holds. The reader learns of new bytes alone, and forgets them where a
    /// change of size, or the end of an earlier reader, comes in the same moment: a key would then wait for the next one.
    pub(crate) fn look_again(&self) {
        let stdin = stdin();
        let mut asked = [PollFd::new(&stdin, PollFlags::IN)];
        let holds =
            self.0.is_some() && poll(&mut asked, Some(&Timespec::default())).is_ok_and(|ready| ready > 0);
        if holds
            && let Ok(mode) = tcgetattr(stdin)
            && tcsetattr(stdin, OptionalActions::Now, &mode).is_err()
        {
            // The terminal is gone, which its end says.
        }
    }

    pub(crate) fn take(&mut self) {
        self.0 = Some(EventStream::new());
    }

    /// The thread that waits for keys ends: another program reads them.
    fn leave(&mut self) {
        self.0 = None;
    }
}

impl Driver {
    /// What is left to say goes up, and the pane goes away.
    pub(super) fn last_frame(&mut self) -> Option<Drawn> {
        let (links, above) = (self.state.take_links(), self.state.take_above());
        self.surface.frame_with(&above, &links, Pane::default())
    }

    /// Gives the terminal to another program, until [`Self::take_back_terminal`].
    ///
    /// # Errors
    /// If the mode of the terminal cannot be changed; it is to be taken back then as well.
    pub(super) fn lend_terminal(&mut self) -> io::Result<()> {
        let last = self.last_frame();
        lock(&self.desk.lent.0).is_lent = true;
        self.desk.keys.leave();
        self.terminal.lend(last)
    }

    /// The terminal is this program's again.
    pub(super) fn take_back_terminal(&mut self) {
        lock(&self.desk.lent.0).is_lent = false;
        self.desk.keys.take();
        // A key that was meant for the other program answers nothing.
        self.state.pressed = Some(Instant::now());
        self.go_on();
    }
}
