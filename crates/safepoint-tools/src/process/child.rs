//! One command that runs: waiting for it, reading it, stopping it.

use std::{fmt, sync::Arc, time::Duration};

use tokio::net::unix::pipe;

use super::{
    SpawnError,
    contacts::Members,
    guarded::{Env, GuardedCommand},
    holder::Holder,
    launch::Guard,
    lease::Under,
    output::Capture,
    process_group::ProcessGroup,
    report::{CommandReport, Containment, ProcessRecord},
    spec::{CommandSpec, Ladder},
    started::{End, Started},
    stdio::{self, Reader, Talk},
    wire::Rungs,
    witness::Witness,
};

/// A command and its tree.
///
/// The caller that waits for it drives it. A command whose output is not taken stands still once its pipe is full.
/// Dropping it asks SIGKILL for the whole tree and returns at once. Where it was started for a call
/// ([`Processes::spawn_in`](super::Processes::spawn_in)), the call's run is not quiet before the tree is gone.
#[must_use = "dropping it kills the command"]
pub struct Process {
    holder: Holder,
    reader: Reader,
    talk: Talk,
    started: Started,
    label: String,
    ladder: Ladder,
    report: Option<CommandReport>,
    ties: Ties,
}

/// Whom a command belongs to.
#[derive(Default)]
pub(super) struct Ties {
    pub(super) witness: Option<Witness>,
    /// The lease under which it lives.
    pub(super) lease: Option<Under>,
}

/// A start under way: what it has begun when it is given up is seen off.
struct Starting {
    held: Option<GuardedCommand>,
    label: String,
    ties: Ties,
}

impl Drop for Starting {
    fn drop(&mut self) {
        if let (Some(held), Some(witness)) = (self.held.take(), self.ties.witness.take()) {
            witness.see_off(Holder::Keeper(Box::new(held)), std::mem::take(&mut self.label), None);
        }
    }
}

impl Process {
    pub(super) async fn under(
        guard: Arc<Guard>,
        run: &str,
        (spec, env): (CommandSpec, Env),
        ties: Ties,
    ) -> Result<Self, SpawnError> {
        let stdio::Stdio { theirs, reader, talk } =
            stdio::set_up(&spec.stdin, &spec.output).map_err(SpawnError::Io)?;
        let held = GuardedCommand::open(guard, run, theirs).await?;
        let mut starting = Starting { held: Some(held), label: spec.label.clone(), ties };
        let Some(held) = &mut starting.held else { return Err(SpawnError::KeeperLost) };
        let began = held.begin(&spec, env).await;
        // Through: what failed has left nothing.
        let (held, ties) = (starting.held.take(), std::mem::take(&mut starting.ties));
        let (Some(held), started) = (held, began?) else { return Err(SpawnError::KeeperLost) };
        Ok(Self::new(Holder::Keeper(Box::new(held)), (reader, talk), started, (spec, ties)))
    }

    pub(super) fn in_group(
        run: &str,
        (spec, env): (CommandSpec, Env),
        ties: Ties,
    ) -> Result<Self, SpawnError> {
        let stdio::Stdio { theirs, reader, talk } =
            stdio::set_up(&spec.stdin, &spec.output).map_err(SpawnError::Io)?;
        let (group, started) = ProcessGroup::start(run, &spec, env, theirs)?;
        Ok(Self::new(Holder::Group(Box::new(group)), (reader, talk), started, (spec, ties)))
    }

    fn new(
        holder: Holder,
        (reader, talk): (Reader, Talk),
        started: Started,
        (spec, ties): (CommandSpec, Ties),
    ) -> Self {
        Self { holder, reader, talk, started, label: spec.label, ladder: spec.ladder, report: None, ties }
    }

    /// What it reads, if it was started with [`Stdin::Pipe`](super::Stdin::Pipe) and this was not taken before.
    /// Dropping it is the end of what it reads.
    pub fn take_stdin(&mut self) -> Option<pipe::Sender> {
        self.talk.stdin.take()
    }

    /// What it writes to standard output, if it was started with [`OutputTarget::Pipe`](super::OutputTarget::Pipe) and this was
    /// not taken before. A command whose pipe is not read stands still once it is full.
    pub fn take_stdout(&mut self) -> Option<pipe::Receiver> {
        self.talk.stdout.take()
    }

    /// The process id of the command.
    #[must_use]
    pub fn pid(&self) -> i32 {
        self.started.record.pid
    }

    /// What a store keeps, so that survivors can be found after a crash.
    #[must_use]
    pub fn record(&self) -> &ProcessRecord {
        &self.started.record
    }

    /// How the tree is held.
    #[must_use]
    pub fn containment(&self) -> Containment {
        self.started.containment
    }

    /// Its tree, to be looked at while it runs.
    #[must_use]
    pub fn members(&self) -> Members {
        Members::of(self.holder.root())
    }

    /// Calls `on_chunk` with each chunk of output as it arrives, standard output and standard error alike.
    pub fn on_output(&mut self, on_chunk: impl FnMut(&[u8]) + Send + 'static) {
        self.reader.on_chunk = Some(Box::new(on_chunk));
    }

    /// What it has written so far; all of it once [`Process::wait`] or [`Process::stop`] has returned.
    pub fn output(&self) -> &Capture {
        &self.reader.capture
    }

    /// Waits until the command has ended and its whole tree is gone, what it left behind included. A declared
    /// background job is waited for only until its command ends; waiting again then waits for its tree.
    ///
    /// # Cancel safety
    /// Nothing is lost: wait again.
    pub async fn wait(&mut self) -> CommandReport {
        if let Some(report) = self.ended() {
            return report;
        }
        let end = self.drive().await;
        self.take(end)
    }

    /// Climbs the ladder of the command's [`Ladder`], no longer than `cap`, and returns as soon as the tree is gone,
    /// or with the survivors. A cap of zero is SIGKILL at once. May be asked again, to climb faster.
    ///
    /// # Cancel safety
    /// The stop continues; wait for it, or ask again.
    pub async fn stop(&mut self, cap: Duration) -> CommandReport {
        if let Some(report) = self.ended() {
            return report;
        }
        let rungs = Rungs::from(self.ladder.within(cap));
        self.holder.order(rungs).await;
        loop {
            if let end @ End::Tree(_) = self.drive().await {
                return self.take(end);
            }
        }
    }

    fn ended(&self) -> Option<CommandReport> {
        self.report.clone().filter(|report| report.background.is_empty())
    }

    /// Reads and waits until the holder says something.
    async fn drive(&mut self) -> End {
        let Self { holder, reader, .. } = self;
        let next = holder.next();
        tokio::pin!(next);
        let end = loop {
            // The holder first, so that endless output cannot hide an end. Neither loses anything: a read that is not
            // ready has taken nothing, and what the holder knows is kept in the holder.
            tokio::select! {
                biased;
                end = &mut next => break end,
                () = reader.read() => {}
            }
        };
        if let End::Tree(_) = end {
            reader.drain();
        }
        end
    }

    fn take(&mut self, end: End) -> CommandReport {
        let report = self.started.report(&self.label, end);
        self.report.insert(report).clone()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.ended().is_some() {
            return;
        }
        if let Some(witness) = self.ties.witness.take() {
            let holder = std::mem::replace(&mut self.holder, Holder::SeenOff);
            let kept = self.ties.lease.take();
            witness.see_off(holder, std::mem::take(&mut self.label), kept);
        }
    }
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Process")
            .field("label", &self.label)
            .field("started", &self.started)
            .finish_non_exhaustive()
    }
}
