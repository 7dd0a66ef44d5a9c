//! `!cmd`: a command of the person's own, under the guard of all commands.
//!
//! **Invariants**: it is asked of no approver, and no turn's stop is needed to stop it: Esc does, and so does the end of the chat.
//! What is shown of it as it runs is bounded; what the model is given of it has no secret that the program knows.

use std::time::Duration;

use safepoint_tools::process::{CommandSpec, OutputTarget, Process, Processes, SpawnError};
use tokio::{
    sync::{mpsc::UnboundedSender, watch},
    task::JoinHandle,
    time::timeout,
};

use super::{desk::tell, driver::Driver, later::Later};
use crate::{
    render::chat::{
        own::{OwnNews, Ran},
        typing::TypingNews,
    },
    signals::LAST_CAP,
};

/// What is kept of its output, half of it the head and half the tail.
const KEPT: usize = 24 << 10;
/// What is shown of it while it runs.
const SHOWN: usize = 64 << 10;
/// A line that is not over is shown at this length.
const LINE: usize = 4 << 10;

/// A command that runs.
pub(crate) struct OwnCommand {
    /// How long its stop may take; none while none was requested.
    stop: watch::Sender<Option<Duration>>,
    task: JoinHandle<()>,
}

impl Driver {
    pub(super) fn run_own(&mut self, command: String) {
        let (stop, stopped) = watch::channel(None);
        let spec =
            CommandSpec::shell(&command).cwd(&self.desk.root).output(OutputTarget::Capture { budget: KEPT });
        let (processes, later) = (self.processes.clone(), self.later.0.clone());
        let secrets = self.desk.secrets.clone();
        let task = tokio::spawn(async move {
            let news = match run((processes, spec), stopped, &later).await {
                Ok((process, exit)) => {
                    let output = process.output().captured();
                    let file = output.file.filter(|_| output.truncated);
                    let file = file.map(|file| file.display().to_string());
                    let output = secrets.clean(output.text).into();
                    OwnNews::Ended(Ran { command, exit, output, file })
                }
                Err(error) => OwnNews::NotStarted(error.to_string()),
            };
            tell(&later, TypingNews::Own(news));
        });
        self.desk.own = Some(OwnCommand { stop, task });
    }

    /// Requests its stop; the second time at once.
    pub(super) fn stop_own(&mut self) {
        let Some(own) = &self.desk.own else { return };
        let grace = self.times.grace;
        own.stop.send_modify(|cap| *cap = Some(if cap.is_none() { grace } else { Duration::ZERO }));
    }

    pub(super) fn own_is_over(&mut self, news: &OwnNews) {
        if let OwnNews::Ended(_) | OwnNews::NotStarted(_) = news {
            self.desk.own = None;
        }
    }

    /// The chat is over, and so is the command.
    pub(super) async fn end_own(&mut self) {
        let Some(own) = self.desk.own.take() else { return };
        own.stop.send_replace(Some(Duration::ZERO));
        if timeout(LAST_CAP, own.task).await.is_err() {
            // The guard ends what is left of it when this program is gone.
        }
    }
}

/// Runs it to its end, and says what that was.
async fn run(
    (processes, spec): (Processes, CommandSpec),
    mut stopped: watch::Receiver<Option<Duration>>,
    later: &UnboundedSender<Later>,
) -> Result<(Process, String), SpawnError> {
    let mut process = processes.spawn(spec).await?;
    let mut lines = OwnLines { later: later.clone(), held: Vec::new(), left: SHOWN };
    process.on_output(move |chunk| lines.push(chunk));
    let mut cap: Option<Duration> = None;
    let report = loop {
        let ended = async {
            match cap {
                None => process.wait().await,
                Some(cap) => process.stop(cap).await,
            }
        };
        tokio::select! {
            biased;
            // First: what has ended needs no stop. Losing it loses nothing: it is waited for again, and a stop continues.
            report = ended => break report,
            // Losing this one loses nothing: the request stays in the channel.
            changed = stopped.changed() => {
                // Without a chat there is no person whose command it is.
                cap = if changed.is_err() { Some(Duration::ZERO) } else { *stopped.borrow_and_update() };
            }
        }
    };
    let exit = if cap.is_some() { format!("stopped, {}", report.exit) } else { report.exit.to_string() };
    Ok((process, exit))
}

/// What it writes, in whole lines and up to a bound.
struct OwnLines {
    later: UnboundedSender<Later>,
    held: Vec<u8>,
    left: usize,
}

impl OwnLines {
    fn push(&mut self, chunk: &[u8]) {
        if self.left == 0 {
            return;
        }
        let chunk = &chunk[..chunk.len().min(self.left)];
        self.left -= chunk.len();
        self.held.extend_from_slice(chunk);
        let end = self.held.iter().rposition(|byte| *byte == b'\n').map(|at| at + 1);
        let end = end.or((self.held.len() >= LINE || self.left == 0).then_some(self.held.len()));
        if let Some(end) = end {
            self.tell(end);
        }
    }

    fn tell(&mut self, end: usize) {
        let lines: Vec<u8> = self.held.drain(..end).collect();
        let text = String::from_utf8_lossy(&lines).into_owned();
        tell(&self.later, TypingNews::Own(OwnNews::Lines(text)));
    }
}

impl Drop for OwnLines {
    fn drop(&mut self) {
        if !self.held.is_empty() {
            self.tell(self.held.len());
        }
    }
}
