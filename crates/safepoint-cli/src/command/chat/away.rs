//! Ctrl-Z: the terminal is the shell's for a while, and then the chat's again.

use std::time::Instant;

use super::driver::Driver;
use crate::render::chat::state::Tone;

impl Driver {
    /// The shell has the terminal. The turn continues when this program continues.
    pub(crate) fn suspend(&mut self) {
        let last = self.last_frame();
        self.away = Some(Instant::now());
        if let Err(error) = self.terminal.suspend(last) {
            self.state.tell(Tone::Bad, &format!("it cannot go into the background: {error}"));
            self.go_on();
        }
    }

    /// The terminal is this program's again, in whatever mode and with whatever on it.
    pub(crate) fn go_on(&mut self) {
        self.away = None;
        self.surface.forget();
        self.state.attention.forget();
        if let Err(error) = self.terminal.go_on() {
            self.state.tell(Tone::Bad, &format!("the terminal cannot be taken over again: {error}"));
        }
    }
}
