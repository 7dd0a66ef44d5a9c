//! The runtime's side of one command under a keeper.
//!
//! **Invariants**
//! - No holder stays suspended while its word is waited for: a command can suspend both.
//! - What is due to be killed is killed, also if no keeper does it.

use std::{
    io,
    path::PathBuf,
    sync::Arc,
    time::{Instant, SystemTime},
};

use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    time::sleep,
};

use super::{
    SpawnError, cgroups,
    contacts::Root,
    environment::COMMAND_MARK,
    escalation::EscalationTimes,
    launch::Guard,
    report::{Climbed, Hold, ProcessRecord, Rung, TreeMember},
    spec::{CommandSpec, marked},
    started::{End, Started},
    stdio::Theirs,
    tree,
    wire::{self, Account, Order, Rungs, SpawnOrder, Stage, Word},
};
use crate::limits;

mod line;

use line::Line;

/// A command whose tree a keeper holds. Dropping it closes the keeper's socket, and so kills the tree.
#[derive(Debug)]
pub(super) struct GuardedCommand {
    line: Line,
    run: String,
    mark: String,
    /// The lifeline of the guard must stay open while anything of it is wanted.
    guard: Arc<Guard>,
    keeper: Option<TreeMember>,
    group: Option<PathBuf>,
    started: Option<Started>,
    stop: Option<Stop>,
    /// Whether the order to start is being written: if that is given up, what follows would not be understood.
    is_ordering: bool,
    /// Fires when a child of ours ended or was suspended; none where the runtime gets no signals.
    children: Option<Signal>,
}

/// A ladder that the keeper climbs, and what we do of it.
#[derive(Debug)]
struct Stop {
    climb: EscalationTimes,
    killed: Option<Climbed>,
}

impl GuardedCommand {
    /// Has the guard start a keeper. Nothing of the command has been started then.
    ///
    /// # Cancel safety
    /// The keeper ends if this is dropped.
    pub(super) async fn open(guard: Arc<Guard>, run: &str, theirs: Theirs) -> Result<Self, SpawnError> {
        guard.wake();
        let line = Line::open(&guard, theirs).await?;
        Ok(Self {
            line,
            run: run.to_owned(),
            mark: uuid::Uuid::new_v4().simple().to_string(),
            guard,
            keeper: None,
            group: None,
            started: None,
            stop: None,
            is_ordering: false,
            children: signal(SignalKind::child()).ok(),
        })
    }

    /// Has the keeper start the command.
    ///
    /// # Cancel safety
    /// Whether it was started comes out by [`GuardedCommand::next`].
    pub(super) async fn begin(&mut self, spec: &CommandSpec, env: Env) -> Result<Started, SpawnError> {
        let order = order(spec, marked(env, &self.run, &self.mark))?;
        let Some(Word::Ready(keeper)) = self.hear().await else { return Err(SpawnError::GuardLost) };
        self.keeper = Some(keeper);
        self.is_ordering = true;
        if self.line.write(&order).await.is_err() {
            return Err(self.lost_at_start().await);
        }
        self.is_ordering = false;
        match self.hear().await {
            Some(word @ Word::Started { .. }) => {
                Ok(self.note(word).expect("what was started is known from that word on"))
            }
            Some(Word::Refused { stage, errno }) => Err(refusal(spec, stage, errno)),
            _ => Err(self.lost_at_start().await),
        }
    }

    /// What was started, if anything was.
    pub(super) fn started(&self) -> Option<&Started> {
        self.started.as_ref()
    }

    /// Below whom its tree is.
    pub(super) fn root(&self) -> Root {
        self.keeper.as_ref().map_or(Root::Nowhere, |keeper| Root::Below(keeper.pid))
    }

    /// Asks for the ladder. If the keeper is gone, [`GuardedCommand::next`] finds out.
    pub(super) async fn order(&mut self, rungs: Rungs) {
        let now = Instant::now();
        match &mut self.stop {
            Some(stop) => stop.climb.join(now, rungs),
            None => self.stop = Some(Stop { climb: EscalationTimes::new(now, rungs), killed: None }),
        }
        self.wake_holders();
        if self.is_ordering {
            return self.line.end();
        }
        let Ok(frame) = wire::frame(&Order::Stop(rungs)) else { return };
        if self.line.write(&frame).await.is_err() {
            // its end is read next
        }
    }

    /// What the keeper says next, or what is found when it is gone.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(super) async fn next(&mut self) -> End {
        loop {
            match self.hear().await {
                Some(Word::Exited { exit, running, at }) => return End::Command { exit, running, at },
                Some(Word::Ended(account)) => {
                    self.wake_holders();
                    return End::Tree(Box::new(self.completed(*account)));
                }
                Some(Word::Ready(keeper)) => self.keeper = Some(keeper),
                Some(word @ Word::Started { .. }) => drop(self.note(word)),
                // Of a start that was given up: nothing was started.
                Some(Word::Refused { .. }) => {}
                None => return End::Tree(Box::new(self.after_keeper().await)),
            }
        }
    }

    fn note(&mut self, word: Word) -> Option<Started> {
        if let Word::Started { pid, start, containment, group, at } = word {
            let record = ProcessRecord { run: self.run.clone(), pid, start };
            self.group = group;
            self.started = Some(Started { record, at, containment });
        }
        self.started.clone()
    }

    /// The next word. Meanwhile no holder stays suspended, and what is due to be killed is killed.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    async fn hear(&mut self) -> Option<Word> {
        loop {
            let Self { line, children, stop, .. } = self;
            let look = async {
                match (stop, children) {
                    (Some(_), _) => sleep(limits::PULSE).await,
                    (None, Some(children)) => drop(children.recv().await),
                    (None, None) => std::future::pending().await,
                }
            };
            // A word that is there comes first. A look that is given up is taken again.
            tokio::select! {
                biased;
                word = line.next() => return word,
                () = look => {}
            }
            self.wake_holders();
            self.kill_what_is_due();
        }
    }

    fn wake_holders(&self) {
        self.guard.wake();
        if let Some(keeper) = &self.keeper {
            tree::wake(keeper);
        }
    }

    /// A keeper that is suspended again and again climbs nothing. With the last rung its time is over.
    fn kill_what_is_due(&mut self) {
        let Some(stop) = &mut self.stop else { return };
        stop.climb.climb(Instant::now());
        if self.started.is_none() || !stop.climb.kills() {
            return;
        }
        stop.killed.get_or_insert_with(|| Climbed { rung: Rung::Kill, at: SystemTime::now() });
        if let Some(group) = &self.group {
            cgroups::kill(group);
        }
        let below = self.keeper.as_ref().map(|keeper| tree::descendants(keeper.pid)).unwrap_or_default();
        tree::kill(below.iter().chain(&tree::marked(COMMAND_MARK, &self.mark)));
    }

    /// With the rung that we climbed in the keeper's place.
    fn completed(&mut self, mut account: Account) -> Account {
        let killed = self.stop.as_mut().and_then(|stop| stop.killed.take());
        if account.rungs.iter().all(|climbed| climbed.rung != Rung::Kill) {
            account.rungs.extend(killed);
        }
        account
    }

    /// The keeper is gone without an account. The guard kills the orphans that come to it; we look for the mark, in
    /// case that the guard is gone too.
    async fn after_keeper(&mut self) -> Account {
        self.guard.wake();
        if let Some(group) = &self.group {
            cgroups::kill(group);
        }
        let survivors = kill_marked(&self.mark).await;
        self.completed(Account { survivors, ..Account::of(Hold::KeeperLost) })
    }

    async fn lost_at_start(&self) -> SpawnError {
        // Whether it had been started is not known; afterwards it has not.
        drop(kill_marked(&self.mark).await);
        SpawnError::KeeperLost
    }
}

impl Drop for GuardedCommand {
    /// The keeper sees the end of its socket, and so it must not be suspended.
    fn drop(&mut self) {
        self.wake_holders();
    }
}

/// A whole environment.
pub(super) type Env = Vec<(std::ffi::OsString, std::ffi::OsString)>;

/// Kills whatever carries the command's mark, and gives what is alive nevertheless.
pub(super) async fn kill_marked(mark: &str) -> Vec<TreeMember> {
    let deadline = Instant::now() + limits::KILL;
    let mut pause = limits::SWEEP;
    loop {
        let alive = tree::marked(COMMAND_MARK, mark);
        if alive.is_empty() || Instant::now() >= deadline {
            return alive;
        }
        tree::kill(&alive);
        sleep(pause).await;
        pause = (pause * 2).min(limits::SWEEP_SLOW);
    }
}

fn order(spec: &CommandSpec, env: Env) -> Result<Vec<u8>, SpawnError> {
    let cwd = match &spec.cwd {
        Some(cwd) => {
            Some(std::path::absolute(cwd).map_err(|source| SpawnError::Cwd { path: cwd.clone(), source })?)
        }
        // A working directory that is gone is the guard's too.
        None => std::env::current_dir().ok(),
    };
    let (program, args) = spec.executed();
    wire::frame(&Order::Spawn(Box::new(SpawnOrder {
        program,
        args,
        cwd: cwd.map(Into::into),
        env,
        background: spec.background,
        left_behind: spec.left_behind,
        kill: spec.ladder.kill,
        groups: spec.control_groups,
    })))
    .map_err(SpawnError::Io)
}

fn refusal(spec: &CommandSpec, stage: Stage, errno: i32) -> SpawnError {
    let source = io::Error::from_raw_os_error(errno);
    match stage {
        Stage::Cwd => SpawnError::Cwd { path: spec.cwd.clone().unwrap_or_default(), source },
        Stage::Program => SpawnError::Program { program: spec.program.clone(), source },
        Stage::Lease => SpawnError::LeaseOver,
    }
}
