//! A command without a guard: a process group, and a search for what has left it. The declared lower grade.
//!
//! **Invariants** The grade never says more than it holds: what cleared its environment *and* left the group is not
//! found, which is what [`Containment::ProcessGroup`] tells the reader.

use std::{
    ffi::OsString,
    process::Stdio,
    time::{Duration, Instant, SystemTime},
};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{
    process::{Child, Command},
    time::{sleep, timeout_at},
};

use super::{
    SpawnError,
    contacts::Root,
    escalation::{self, EscalationTimes},
    fresh,
    report::{Climbed, Containment, Exit, Hold, ProcessRecord, Rung, TreeMember},
    spec::{Background, CommandSpec, marked},
    started::{End, Started},
    stdio::Theirs,
    tree,
    wire::{Account, Rungs},
};
use crate::limits;

/// A command whose tree only this process guards.
#[derive(Debug)]
pub(super) struct ProcessGroup {
    started: Started,
    child: Child,
    leader: Pid,
    mark: String,
    background: Background,
    left_behind_after: Duration,
    kill_time: Duration,
    exit: Option<Exit>,
    climb: Option<EscalationTimes>,
    account: Account,
    clear_at: Option<Instant>,
    pause: Duration,
    gone: bool,
}

impl ProcessGroup {
    pub(super) fn start(
        run: &str,
        spec: &CommandSpec,
        env: Vec<(OsString, OsString)>,
        theirs: Theirs,
    ) -> Result<(Self, Started), SpawnError> {
        let mark = uuid::Uuid::new_v4().simple().to_string();
        let child = spawn(marked(env, run, &mark), spec, theirs)?;
        let pid =
            child.id().and_then(|pid| Pid::from_raw(pid.cast_signed())).ok_or(SpawnError::KeeperLost)?;
        let number = pid.as_raw_nonzero().get();
        let start = tree::stat(number).map_or(0, |stat| stat.member.start);
        let record = ProcessRecord { run: run.to_owned(), pid: number, start };
        let started = Started { record, at: SystemTime::now(), containment: Containment::ProcessGroup };
        let group = Self {
            started: started.clone(),
            child,
            leader: pid,
            mark,
            background: spec.background,
            left_behind_after: spec.left_behind,
            kill_time: spec.ladder.kill,
            exit: None,
            climb: None,
            account: Account::of(Hold::Kept),
            clear_at: None,
            pause: limits::SWEEP,
            gone: false,
        };
        Ok((group, started))
    }

    pub(super) fn started(&self) -> &Started {
        &self.started
    }

    pub(super) fn root(&self) -> Root {
        Root::Group { leader: self.leader.as_raw_nonzero().get(), mark: self.mark.clone() }
    }

    pub(super) fn order(&mut self, rungs: Rungs) {
        let now = Instant::now();
        self.clear_at = None;
        match &mut self.climb {
            Some(climb) => climb.join(now, rungs),
            None => self.climb = Some(EscalationTimes::new(now, rungs)),
        }
    }

    /// Waits, climbs and sweeps until there is something to say.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(super) async fn next(&mut self) -> End {
        loop {
            self.act();
            let over = self.climb.as_ref().is_some_and(|climb| climb.is_over(Instant::now()));
            if over || self.exit.is_some() {
                let alive = self.alive();
                if over || alive.is_empty() {
                    self.gone = alive.is_empty();
                    return End::Tree(Box::new(self.account.end(self.exit, alive)));
                }
            }
            if let Some(end) = self.wait().await {
                return end;
            }
        }
    }

    async fn wait(&mut self) -> Option<End> {
        let until = self.climb.as_ref().map(EscalationTimes::next_at).or(self.clear_at);
        if self.exit.is_some() || self.climb.as_ref().is_some_and(EscalationTimes::kills) {
            sleep(self.pause).await;
            self.pause = (self.pause * 2).min(limits::SWEEP_SLOW);
            if self.exit.is_some() {
                return None;
            }
        }
        let status = match until {
            Some(until) => timeout_at(until.into(), self.child.wait()).await.ok()?,
            None => self.child.wait().await,
        };
        let exit = status.map_or(Exit::Unknown, exit_of);
        self.exit = Some(exit);
        self.pause = limits::SWEEP;
        if self.climb.is_none() && self.background == Background::Keep {
            return Some(End::Command { exit, running: self.alive(), at: SystemTime::now() });
        }
        if self.climb.is_none() {
            self.clear_at = Some(escalation::after(Instant::now(), self.left_behind_after));
        }
        None
    }

    fn act(&mut self) {
        let now = Instant::now();
        if self.clear_at.is_some_and(|at| now >= at) {
            self.clear_at = None;
            self.account.left_behind = self.alive();
            self.climb = Some(EscalationTimes::killing(now, self.kill_time));
        }
        let Some(climb) = &mut self.climb else { return };
        if let Some(rung) = climb.climb(now) {
            self.account.rungs.push(Climbed { rung, at: SystemTime::now() });
            match rung {
                Rung::Interrupt => self.send(Signal::INT),
                Rung::Terminate => self.send(Signal::TERM),
                Rung::Kill => {}
            }
        }
        if self.climb.as_ref().is_some_and(EscalationTimes::kills) {
            self.send(Signal::KILL);
        }
    }

    /// To the group at once while its leader holds its number, then to the processes that left it.
    fn send(&self, signal: Signal) {
        if self.exit.is_none() && kill_process_group(self.leader, signal).is_err() {
            // the leader is just ending
        }
        let leader = self.leader.as_raw_nonzero().get();
        for member in self.alive() {
            let in_group =
                self.exit.is_none() && tree::stat(member.pid).is_some_and(|stat| stat.group == leader);
            if signal == Signal::KILL || !in_group {
                tree::signal(&member, signal);
            }
        }
    }

    fn alive(&self) -> Vec<TreeMember> {
        // Once the leader is reaped its number may be given away, but not while a group of that number has members.
        let mut alive = tree::in_group(self.leader.as_raw_nonzero().get(), &self.mark);
        alive.truncate(limits::REPORTED_PROCESSES);
        alive
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        if !self.gone {
            self.send(Signal::KILL);
        }
    }
}

fn spawn(env: Vec<(OsString, OsString)>, spec: &CommandSpec, theirs: Theirs) -> Result<Child, SpawnError> {
    let mut command = Command::new(&spec.program);
    command.args(&spec.args).process_group(0).env_clear().envs(env);
    fresh::hear_signals(command.as_std_mut());
    command
        .stdin(Stdio::from(theirs.stdin))
        .stdout(Stdio::from(theirs.stdout))
        .stderr(Stdio::from(theirs.stderr));
    if let Some(cwd) = &spec.cwd {
        // Asked before, because afterwards it would be unknown whether the program or the directory is missing.
        let fault = match std::fs::metadata(cwd) {
            Ok(found) if found.is_dir() => None,
            Ok(_) => Some(std::io::ErrorKind::NotADirectory.into()),
            Err(source) => Some(source),
        };
        if let Some(source) = fault {
            return Err(SpawnError::Cwd { path: cwd.clone(), source });
        }
        command.current_dir(cwd);
    }
    command.spawn().map_err(|source| SpawnError::Program { program: spec.program.clone(), source })
}

fn exit_of(status: std::process::ExitStatus) -> Exit {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, Some(signal)) => Exit::Signal(signal),
        (None, None) => Exit::Unknown,
    }
}
