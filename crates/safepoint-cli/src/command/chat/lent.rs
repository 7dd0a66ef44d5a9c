//! Another program has the terminal for a while: the external editor, or the pager. The turn continues meanwhile.
//!
//! **Invariants**: while it has the terminal, no key is read here, nothing is drawn, and a Ctrl-C is that program's; one at a time.

use std::{
    io,
    process::ExitStatus,
    sync::{Arc, Mutex},
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
}

impl Lent {
    pub(crate) fn is_lent(&self) -> bool {
        lock(&self.0).is_lent
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
        lock(&self.0).pid = None;
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
        self.state.pressed = Some(std::time::Instant::now());
        self.go_on();
    }
}
