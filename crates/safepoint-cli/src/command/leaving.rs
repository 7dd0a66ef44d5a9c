//! The end of a command that shows turns: how long what stdout has yet to take is waited for, and what is said of the rest.
//!
//! **Invariants** (S11.7)
//! - Whoever asked for the end of the program has it within [`BEGINS`] and [`ENDS`], whoever reads stdout or does not.
//! - What stdout did not take is told in bytes, and the exit code is not that of a success.

use std::{pin::Pin, process::ExitCode, time::Duration};

use safepoint::{ids::SessionId, receipt::Ending};

use crate::{
    args::OnDisconnect,
    exit,
    output::{self, Left},
    render::screen::Screen,
    signals::Signals,
};

/// For how long more is written to stdout once the end was asked for.
const BEGINS: Duration = Duration::from_secs(1);
/// What a reader that has taken something in that time has beyond it, for what it has begun to take.
const ENDS: Duration = Duration::from_secs(1);
/// How long the last words on stderr may take: perhaps nobody reads that either.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// What is over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Over<'a> {
    pub(crate) code: ExitCode,
    /// How the last turn ended; none if there was none.
    pub(crate) ending: Option<Ending>,
    /// The session, where it is kept.
    pub(crate) kept: Option<&'a SessionId>,
    pub(crate) on_disconnect: OnDisconnect,
}

impl Over<'_> {
    /// Waits until all is written, however slowly it is read; for a moment only once somebody has asked for the end of the
    /// program. Says what is lost, and gives the exit code.
    pub(crate) async fn leave(self, signals: &mut Signals, screen: &Screen) -> ExitCode {
        signals.turns_are_over();
        let mut written = std::pin::pin!(screen.written());
        let Some(got) = signals.asked_to_end(written.as_mut()).await else {
            return screen.judged(self.code, self.on_disconnect);
        };
        soon(written, signals, screen).await;
        let Some(left) = screen.left() else { return screen.judged(self.code, self.on_disconnect) };
        let words = self.told(left);
        let told = tokio::task::spawn_blocking(move || output::tell(words));
        if tokio::time::timeout(LAST_WORDS, told).await.is_err() {
            // Nobody reads it: there is nobody to tell.
        }
        if self.code == ExitCode::SUCCESS { exit::with(got.exit_code()) } else { self.code }
    }

    fn told(&self, left: Left) -> String {
        let outcome = match self.ending {
            None => "no turn began",
            Some(Ending::Done) => "the run completed",
            Some(Ending::Failed) => "the run failed",
            Some(Ending::Stopped) => "the run was stopped",
            Some(Ending::Suspended) => "the run waits for a decision",
        };
        let cut = if left.is_line_cut { "; the last line is incomplete" } else { "" };
        let whole = match self.kept {
            Some(id) => format!("safepoint trace {id} --json has all of it"),
            None => "it was not kept (--session NAME keeps a run)".to_owned(),
        };
        let (bytes, more) = (left.bytes, if left.is_more { " or more" } else { "" });
        format!(
            "safepoint: {outcome}, but its reader did not take {bytes} bytes{more} of the output in time{cut}; {whole}"
        )
    }
}

/// Waits for what can be written soon. Another signal ends that at once.
async fn soon(mut written: Pin<&mut impl Future<Output = ()>>, signals: &mut Signals, screen: &Screen) {
    let before = screen.taken();
    for time in [BEGINS, ENDS] {
        tokio::select! {
            biased;
            () = written.as_mut() => return,
            // Losing any of these loses nothing: what is not written is counted.
            _ = signals.next() => break,
            () = tokio::time::sleep(time) => {}
        }
        screen.give_up();
        if screen.taken() == before {
            break;
        }
    }
    screen.give_up();
}
