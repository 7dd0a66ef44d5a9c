//! The end of a command that shows turns: how long it waits for stdout to take the rest, and how it reports
//! what is lost.
//!
//! **Invariants** (S11.7)
//! - The program ends within [`BEGINS`] and [`ENDS`] of the request, also without a reader of stdout.
//! - Bytes that stdout did not take are counted and reported, and the exit code is not that of a success.

use std::{pin::Pin, process::ExitCode, time::Duration};

use safepoint::{ids::SessionId, receipt::Ending};

use crate::{
    args::run::OnDisconnect,
    exit,
    output::{self, Left},
    render::screen::Screen,
    signals::Signals,
};

/// How long new pieces are written to stdout after the request to end.
const BEGINS: Duration = Duration::from_secs(1);
/// How much longer a reader that took something in that time has to take the piece that it has begun.
const ENDS: Duration = Duration::from_secs(1);
/// How long the last message on stderr may take: stderr may have no reader either.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// The end of a command: its code, its last turn, its session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CommandEnd<'a> {
    pub(crate) code: ExitCode,
    /// How the last turn ended; none if there was none.
    pub(crate) ending: Option<Ending>,
    /// The session, if it is stored.
    pub(crate) kept: Option<&'a SessionId>,
    pub(crate) on_disconnect: OnDisconnect,
}

impl CommandEnd<'_> {
    /// Waits until a slow reader has all the output, or only a moment after a request to end the program.
    /// Reports what is lost, and returns the exit code.
    pub(crate) async fn leave(self, signals: &mut Signals, screen: &Screen) -> ExitCode {
        signals.turns_are_over();
        let mut written = std::pin::pin!(screen.written());
        let Some(got) = signals.asked_to_end(written.as_mut()).await else {
            return screen.judged(self.code, self.on_disconnect);
        };
        soon(written, signals, screen).await;
        let Some(left) = screen.printer.left() else { return screen.judged(self.code, self.on_disconnect) };
        let words = self.unwritten_note(left);
        let writing = tokio::task::spawn_blocking(move || output::tell(words));
        if tokio::time::timeout(LAST_WORDS, writing).await.is_err() {
            // Without a reader of stderr there is nowhere to report.
        }
        if self.code == ExitCode::SUCCESS { exit::with(got.exit_code()) } else { self.code }
    }

    fn unwritten_note(&self, left: Left) -> String {
        let outcome = match self.ending {
            None => "no turn began",
            Some(Ending::Done) => "the run completed",
            Some(Ending::Failed) => "the run failed",
            Some(Ending::Stopped) => "the run was stopped",
            Some(Ending::Suspended) => "the run waits for a decision",
        };
        let cut = if left.is_line_cut { "; the last line is incomplete" } else { "" };
        let whole = match self.kept {
            Some(id) => format!("`safepoint trace {id} --json` has all of it"),
            None => "it was not stored (--session NAME stores a run)".to_owned(),
        };
        let (bytes, more) = (left.bytes, if left.is_more { " or more" } else { "" });
        format!(
            "safepoint: {outcome}, but its reader did not take {bytes} bytes{more} of the output in time{cut}; {whole}"
        )
    }
}

/// Waits for what can be written soon. Another signal ends that at once.
async fn soon(mut written: Pin<&mut impl Future<Output = ()>>, signals: &mut Signals, screen: &Screen) {
    let before = screen.printer.taken();
    for time in [BEGINS, ENDS] {
        tokio::select! {
            biased;
            // First: what is written is not counted as left.
            () = written.as_mut() => return,
            // Losing any of these loses nothing: what is not written is counted.
            _ = signals.next() => break,
            () = tokio::time::sleep(time) => {}
        }
        screen.printer.give_up();
        if screen.printer.taken() == before {
            break;
        }
    }
    screen.printer.give_up();
}
