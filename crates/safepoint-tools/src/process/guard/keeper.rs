//! The keeper of one command: starts it, holds its tree, climbs the ladder, and says what became of it.
//!
//! **Invariants**
//! - The keeper is the subreaper of the tree and reaps everything: "no child is left" is "the tree is gone".
//! - The end of its socket is the end of the process that wanted the command: the tree gets SIGKILL at once.
//! - The keeper does not end while anything of its tree is alive.

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    os::unix::net::UnixStream,
    time::{Duration, Instant, SystemTime},
};

use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, wait};

use super::{cgroup::Cgroup, sys, wait_for};
use crate::{
    limits,
    process::{
        escalation::{self, EscalationTimes},
        lease,
        report::{Climbed, Exit, Hold, Rung, TreeMember},
        runtime::Runtime,
        spec::Background,
        tree,
        wire::{Account, Order, Rungs, SpawnOrder, Stage, Word},
    },
};

mod link;
mod sight;
mod start;

use link::Link;
use sight::Sight;
use start::start;

/// Who must be there for a command to continue, and until when.
pub(super) struct Holders {
    pub(super) guard: Option<Pid>,
    pub(super) runtime: Runtime,
    /// Readable once the lease under which the command runs is over.
    pub(super) timer: OwnedFd,
}

/// Keeps one command; ends this process.
pub(super) fn keep(socket: UnixStream, stdio: [OwnedFd; 3], holders: Holders) -> ! {
    sys::name_process("safepoint-keep");
    let code = match Link::enter(socket, holders).and_then(|link| serve(link, stdio)) {
        Ok(()) => 0,
        Err(_) => 1,
    };
    // Exit: a keeper is forked from the guard and must not return into the loop of the guard. The guard reads no meaning
    // into the code.
    std::process::exit(code)
}

fn serve(mut link: Link, stdio: [OwnedFd; 3]) -> io::Result<()> {
    let own = super::own_pid();
    // Where the process table cannot be read processes cannot be distinguished, and no signal is sent by what is said here.
    let nameless = || TreeMember { pid: own, start: 0, name: String::new() };
    link.say(&Word::Ready(tree::stat(own).map_or_else(nameless, |stat| stat.member)));
    let Some(order) = link.first_order()? else { return Ok(()) };
    if lease::is_over(&link.timer) {
        link.say(&Word::Refused { stage: Stage::Lease, errno: 0 });
        return Ok(());
    }
    match start(&order, stdio, &link.runtime) {
        Ok((child, cgroup)) => Keeper::new(link, &order, child, cgroup).watch(),
        Err((stage, error)) => {
            link.say(&Word::Refused { stage, errno: error.raw_os_error().unwrap_or(libc::EIO) });
            Ok(())
        }
    }
}

/// One command and its tree.
struct Keeper {
    link: Link,
    main: Pid,
    cgroup: Option<Cgroup>,
    sight: Sight,
    background: Background,
    left_behind_after: Duration,
    kill_time: Duration,
    exit: Option<Exit>,
    climb: Option<EscalationTimes>,
    /// When what is left behind is killed.
    clear_at: Option<Instant>,
    pause: Duration,
    account: Account,
    /// Whether the account was given.
    reported: bool,
}

impl Keeper {
    fn new(mut link: Link, order: &SpawnOrder, main: Pid, cgroup: Option<Cgroup>) -> Self {
        let pid = main.as_raw_nonzero().get();
        let sight = Sight::here();
        link.say(&Word::Started {
            pid,
            start: tree::stat(pid).map_or(0, |stat| stat.member.start),
            containment: sight.grade(cgroup.as_ref()),
            group: cgroup.as_ref().map(|cgroup| cgroup.path().to_owned()),
            at: SystemTime::now(),
        });
        Self {
            link,
            main,
            cgroup,
            sight,
            background: order.background,
            left_behind_after: order.left_behind,
            kill_time: order.kill,
            exit: None,
            climb: None,
            clear_at: None,
            pause: limits::SWEEP,
            account: Account::of(Hold::Kept),
            reported: false,
        }
    }

    fn watch(mut self) -> io::Result<()> {
        loop {
            if self.reap() {
                self.tell(Vec::new());
                return Ok(());
            }
            self.take_orders()?;
            self.look_at_holders();
            self.act();
            self.wait()?;
        }
    }

    /// Reaps what has ended; true once nothing is left.
    fn reap(&mut self) -> bool {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.main => self.ended(status),
                Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
                Ok(None) => return false,
                Err(_) => return true,
            }
        }
    }

    fn ended(&mut self, status: WaitStatus) {
        let exit = match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => Exit::Code(code),
            (None, Some(signal)) => Exit::Signal(signal),
            (None, None) => Exit::Unknown,
        };
        self.exit = Some(exit);
        if self.climb.is_some() {
            return;
        }
        match self.background {
            Background::Kill => {
                self.clear_at = Some(escalation::after(Instant::now(), self.left_behind_after));
            }
            Background::Keep => {
                let running = self.alive();
                self.link.say(&Word::Exited { exit, running, at: SystemTime::now() });
            }
        }
    }

    fn take_orders(&mut self) -> io::Result<()> {
        while let Some(order) = self.link.frames.next()? {
            if let Order::Stop(rungs) = order {
                self.clear_at = None;
                self.order(rungs);
            }
        }
        Ok(())
    }

    /// Without a runtime or a guard the command has no owner.
    fn look_at_holders(&mut self) {
        let lost = if self.link.is_guard_lost() {
            Some(Hold::GuardLost)
        } else {
            lease::is_over(&self.link.timer).then_some(Hold::LeaseOver)
        };
        if let Some(lost) = lost
            && self.account.hold == Hold::Kept
        {
            self.account.hold = lost;
        }
        if lost.is_some() || !self.link.open {
            self.kill_all();
        }
    }

    fn act(&mut self) {
        let now = Instant::now();
        if self.clear_at.is_some_and(|at| now >= at) {
            self.clear_at = None;
            self.account.left_behind = self.alive();
            self.climb = Some(EscalationTimes::killing(now, self.kill_time));
        }
        let Some(climb) = &mut self.climb else { return };
        let due = climb.climb(now);
        let (kills, over) = (climb.kills(), climb.is_over(now));
        if let Some(rung) = due {
            self.account.rungs.push(Climbed { rung, at: SystemTime::now() });
            self.pause = limits::SWEEP;
        }
        match due {
            Some(Rung::Interrupt) => self.ask(Signal::INT),
            Some(Rung::Terminate) => self.ask(Signal::TERM),
            Some(Rung::Kill) | None => {}
        }
        if kills {
            self.sweep();
        }
        if over && !self.reported {
            let survivors = self.alive();
            if !survivors.is_empty() {
                self.tell(survivors);
            }
        }
    }

    /// A signal that may be answered: once to each that is there now, and to none that is born later, since that may
    /// be a clean-up. What job control had stopped continues too, or it could not handle the signal.
    fn ask(&self, signal: Signal) {
        self.sight.signal_group(self.main, signal);
        for member in tree::descendants(super::own_pid()) {
            if tree::signal(&member, signal) {
                tree::signal(&member, Signal::CONT);
            }
        }
    }

    /// SIGKILL to whatever is there now. What is forked meanwhile is met by the next sweep.
    fn sweep(&mut self) {
        if let Some(cgroup) = &mut self.cgroup {
            cgroup.kill();
        }
        self.sight.signal_group(self.main, Signal::KILL);
        tree::kill(&tree::descendants(super::own_pid()));
    }

    fn kill_all(&mut self) {
        self.order(Rungs::kill(self.kill_time));
    }

    fn order(&mut self, rungs: Rungs) {
        let now = Instant::now();
        match &mut self.climb {
            Some(climb) => climb.join(now, rungs),
            None => self.climb = Some(EscalationTimes::new(now, rungs)),
        }
    }

    fn wait(&mut self) -> io::Result<()> {
        let kills = self.climb.as_ref().is_some_and(EscalationTimes::kills);
        let until = self.climb.as_ref().map(EscalationTimes::next_at).or(self.clear_at);
        let mut time = until.map(|at| at.saturating_duration_since(Instant::now()));
        if kills {
            time = Some(self.pause);
            self.pause = (self.pause * 2).min(limits::SWEEP_SLOW);
        }
        // Once it is killed, no later order matters.
        let (socket, signals) = (self.link.socket.as_fd(), self.link.signals.as_fd());
        let [readable, signalled] = match (self.link.open, kills) {
            (true, false) => {
                let [readable, signalled, _over] =
                    wait_for([socket, signals, self.link.timer.as_fd()], time)?;
                [readable, signalled]
            }
            (true, true) => wait_for([socket, signals], time)?,
            (false, _) => {
                let [signalled] = wait_for([signals], Some(time.unwrap_or(limits::SWEEP_SLOW)))?;
                [false, signalled]
            }
        };
        if signalled {
            sys::drain_signals(&self.link.signals);
        }
        if readable {
            self.link.read();
        }
        Ok(())
    }

    fn alive(&self) -> Vec<TreeMember> {
        let mut members = tree::descendants(super::own_pid());
        members.extend(self.sight.unseen(self.main, self.exit));
        members.truncate(limits::REPORTED_PROCESSES);
        members
    }

    fn tell(&mut self, survivors: Vec<TreeMember>) {
        if self.reported {
            return;
        }
        self.reported = true;
        let account = self.account.end(self.exit, survivors);
        self.link.say(&Word::Ended(Box::new(account)));
    }
}
