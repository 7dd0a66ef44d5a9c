//! What a question shows of an edit, and the pager, which has the terminal for a while.

use std::{
    io::Write as _,
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use crossterm::event::{Event as Key, EventStream};
use futures_util::StreamExt as _;
use safepoint::approval::ApprovalRequest;

use super::driver::{Driver, Later};
use crate::render::{
    chat::{state::Tone, surface::Pane},
    edit,
};

/// A text that waits for the pager, and whether one is open.
#[derive(Default)]
pub(crate) struct Pager {
    text: Option<String>,
    /// Set by the loop before the pager has the terminal and cleared by it after that; the signal thread reads it.
    pub(crate) is_open: Arc<AtomicBool>,
}

impl Pager {
    pub(crate) fn is_open(&self) -> bool {
        // Relaxed: the loop, which alone writes it, reads its own value.
        self.is_open.load(Ordering::Relaxed)
    }

    pub(crate) fn show(&mut self, text: String) {
        self.text = Some(text);
    }

    /// Whether one is to be opened: no key may be read any more then.
    pub(crate) fn is_due(&self) -> bool {
        self.text.is_some()
    }
}

impl Driver {
    /// Looks at what a call would change. The question can be answered once that is shown.
    pub(crate) fn preview(&self, asked: ApprovalRequest) {
        let (root, later) = (self.crew.edit_root(), self.later.0.clone());
        tokio::spawn(async move {
            let view = edit::looked(root, &asked).await;
            if later.send(Later::Previewed(Box::new(asked), view)).is_err() {
                // The chat is over.
            }
        });
    }

    /// While the pager has the terminal, no key is read here.
    pub(crate) fn turn_page(&mut self, keys: &mut Option<EventStream>) {
        if self.pager.is_due() {
            *keys = None;
            self.open_pager();
        }
        if keys.is_none() && !self.pager.is_open() {
            *keys = Some(EventStream::new());
        }
    }

    /// Gives the terminal to the pager.
    pub(crate) fn open_pager(&mut self) {
        let Some(text) = self.pager.text.take() else { return };
        let above = self.state.take_above();
        let last = self.surface.frame(&above, Pane::default());
        // Relaxed: it pairs with the load in `Driver::answers` and orders nothing; the pager starts after it.
        self.pager.is_open.store(true, Ordering::Relaxed);
        if let Err(error) = self.terminal.lend(last) {
            return self.close_pager(Some(format!("the terminal cannot be handed over: {error}")));
        }
        let later = self.later.0.clone();
        tokio::task::spawn_blocking(move || {
            let failure = page(&text).err();
            if later.send(Later::Paged(failure)).is_err() {
                // The chat is over.
            }
        });
    }

    /// The terminal is the chat's again.
    pub(crate) fn close_pager(&mut self, failure: Option<String>) {
        // Relaxed: it pairs with the load in `Driver::answers` and orders nothing; the pager has ended before it.
        self.pager.is_open.store(false, Ordering::Relaxed);
        if let Some(failure) = failure {
            self.state.tell(Tone::Bad, &failure);
        }
        // A key that was meant for the pager answers nothing.
        self.state.pressed = Some(Instant::now());
        self.go_on();
    }
}

/// Shows a text in the pager until it is left.
fn page(text: &str) -> Result<(), String> {
    let named = std::env::var("PAGER").ok().filter(|pager| !pager.trim().is_empty());
    let pager = named.unwrap_or_else(|| "less".to_owned());
    let fail = |why: String| {
        format!("the pager `{pager}` did not show it: {why}; set PAGER to one that is installed")
    };
    let mut child = Command::new("/bin/sh")
        .args(["-c", &pager])
        .stdin(Stdio::piped())
        .spawn()
        .map_err(|error| fail(error.to_string()))?;
    if let Some(mut input) = child.stdin.take()
        && input.write_all(text.as_bytes()).and_then(|()| input.write_all(b"\n")).is_err()
    {
        // It was left before it had read all.
    }
    let status = child.wait().map_err(|error| fail(error.to_string()))?;
    match status.code() {
        Some(126 | 127) => Err(fail("it is not found".to_owned())),
        _ => Ok(()),
    }
}

/// The next key; none comes while another program has the terminal.
pub(crate) async fn next_key(keys: &mut Option<EventStream>) -> Option<std::io::Result<Key>> {
    match keys {
        Some(keys) => keys.next().await,
        None => std::future::pending().await,
    }
}
