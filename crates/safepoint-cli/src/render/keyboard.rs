//! The terminal's own input, line by line: stdin may be the prompt.

use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::OpenOptionsExt as _,
};

use rustix::{
    fs::OFlags,
    termios::{QueueSelector, tcflush},
};
use tokio::net::unix::pipe::Receiver;

use crate::output::Stream;

/// The keyboard of the controlling terminal.
pub(crate) struct Keyboard {
    /// A terminal is read as a pipe is: a few bytes whenever there are some.
    terminal: Receiver,
    typed: Vec<u8>,
}

impl Keyboard {
    /// Whether a person can see and answer an approval.
    pub(crate) fn is_there() -> bool {
        Stream::Err.is_terminal() && open().is_ok()
    }

    /// The keyboard, with what was typed before now thrown away.
    pub(crate) fn open_empty() -> Option<Self> {
        let file = open().ok()?;
        tcflush(&file, QueueSelector::IFlush).ok()?;
        Some(Self { terminal: Receiver::from_file_unchecked(file).ok()?, typed: Vec::new() })
    }

    /// The next line; none at the end of input. Dropped while it waits, it has taken no line.
    pub(crate) async fn line(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.typed.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.typed.drain(..=end).collect();
                return Some(String::from_utf8_lossy(&line).into_owned());
            }
            self.terminal.readable().await.ok()?;
            let mut bytes = [0; 1024];
            match self.terminal.try_read(&mut bytes) {
                Ok(0) => return None,
                Ok(count) => self.typed.extend_from_slice(&bytes[..count]),
                // Not ready after all: it waits again.
                Err(error)
                    if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
                Err(_gone) => return None,
            }
        }
    }
}

fn open() -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let flags = i32::try_from(flags.bits()).map_err(io::Error::other)?;
    OpenOptions::new().read(true).write(true).custom_flags(flags).open("/dev/tty")
}
