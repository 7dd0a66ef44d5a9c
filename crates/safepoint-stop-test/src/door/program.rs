//! A command that answers one prompt, its last argument, and ends.

use std::{process::ExitStatus, time::Duration};

use futures_util::future::BoxFuture;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::time::{Instant, timeout};

use super::{
    FIRST, Started, Told, no_such_way,
    process::{Process, command},
};
use crate::{
    claims::Said,
    stage::{StageError, TrialStage},
};

/// A program that was started.
pub(super) struct Program {
    process: Process,
    /// Which signals it was sent.
    sent: Vec<Signal>,
    ended: Option<(Instant, ExitStatus)>,
}

/// A way to stop: a signal, how often, and whether to all of its group, as a terminal does.
struct Way {
    name: &'static str,
    signal: Signal,
    times: usize,
    is_of_terminal: bool,
}

/// How long a person takes to press a key again: two signals at once are one.
const SECOND_PRESS: Duration = Duration::from_millis(250);

const WAYS: [Way; 5] = [
    Way { name: "sigint", signal: Signal::INT, times: 1, is_of_terminal: true },
    Way { name: "sigint-twice", signal: Signal::INT, times: 2, is_of_terminal: true },
    Way { name: "sigterm", signal: Signal::TERM, times: 1, is_of_terminal: false },
    Way { name: "sighup", signal: Signal::HUP, times: 1, is_of_terminal: true },
    Way { name: "sigkill", signal: Signal::KILL, times: 1, is_of_terminal: false },
];

pub(super) fn ways() -> Vec<String> {
    WAYS.iter().map(|way| way.name.to_owned()).collect()
}

impl Program {
    pub(super) fn start(line: &str, stage: &TrialStage) -> Result<Self, StageError> {
        let mut command = command(line, stage);
        command.arg(FIRST);
        Ok(Self { process: Process::start_heard(command)?, sent: Vec::new(), ended: None })
    }

    /// Waits until it has ended.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    async fn exit(&mut self) -> (Instant, ExitStatus) {
        if let Some(ended) = self.ended {
            return ended;
        }
        match self.process.child.wait().await {
            Ok(status) => *self.ended.insert((Instant::now(), status)),
            // It is a child of this process, and nothing else waits for it.
            Err(_) => std::future::pending().await,
        }
    }

    fn send(&mut self, way: &Way) {
        self.sent.push(way.signal);
        let pid = self.process.child.id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
        let send = if way.is_of_terminal { kill_process_group } else { kill_process };
        if pid.is_some_and(|pid| send(pid, way.signal).is_err()) {
            // It has ended meanwhile: that is what is seen next.
        }
    }
}

impl Started for Program {
    fn stop<'a>(&'a mut self, name: &'a str) -> BoxFuture<'a, Result<(), StageError>> {
        Box::pin(async move {
            let way = WAYS.iter().find(|way| way.name == name).ok_or_else(|| no_such_way(name))?;
            if self.sent.is_empty() {
                // What it wrote of its work before the stop says nothing of what is left.
                self.process.forget_words();
            }
            for time in 0..way.times {
                if time > 0 && timeout(SECOND_PRESS, self.exit()).await.is_ok() {
                    break;
                }
                self.send(way);
            }
            Ok(())
        })
    }

    fn told(&mut self) -> BoxFuture<'_, Told> {
        Box::pin(async move {
            let (at, status) = self.exit().await;
            self.process.is_heard().await;
            let named = Some(self.process.text()).filter(|text| !text.is_empty()).into_iter().collect();
            Told { at, named, ..Told::now(said(status)) }
        })
    }

    fn next(&mut self) -> BoxFuture<'_, Result<bool, String>> {
        Box::pin(async { Err("a program of one prompt takes no next message".to_owned()) })
    }

    fn crash(&mut self) -> Option<String> {
        use std::os::unix::process::ExitStatusExt as _;
        let signal = self.ended?.1.signal()?;
        let is_sent = self.sent.iter().any(|sent| sent.as_raw() == signal);
        (!is_sent).then(|| format!("signal {signal}"))
    }

    fn words(&self) -> String {
        self.process.words()
    }
}

/// What its exit says: 0 that it is done; 130 and 143, by custom, that it was stopped; a signal says nothing.
fn said(status: ExitStatus) -> Said {
    match status.code() {
        Some(0) => Said::Done,
        Some(129 | 130 | 143) => Said::Stopped,
        Some(_) => Said::Failed,
        None => Said::Nothing,
    }
}
