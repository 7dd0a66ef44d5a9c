//! The runtime's side of one command under a keeper.

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    os::unix::net::UnixStream as StdStream,
    sync::Arc,
    time::{Instant, SystemTime},
};

use rustix::process::Signal;
use tokio::{net::UnixStream, time::sleep};

use super::{
    SpawnError,
    child::{End, Started},
    launch::Guard,
    report::{Exit, Hold, Member, ProcessRecord},
    spec::{COMMAND_MARK, CommandSpec, RUN_MARK},
    stdio::Theirs,
    tree,
    wire::{self, Account, Frames, Order, Rungs, SpawnOrder, Stage, Word},
};
use crate::limits;

/// A command whose tree a keeper holds. Dropping it closes the keeper's socket, and so kills the tree.
#[derive(Debug)]
pub(super) struct Held {
    line: Line,
    mark: String,
    /// The lifeline of the guard must stay open while anything of it is wanted.
    _guard: Arc<Guard>,
}

impl Held {
    /// Has the guard start a keeper, and the keeper the command.
    pub(super) async fn start(
        guard: Arc<Guard>,
        run: &str,
        spec: &CommandSpec,
        theirs: Theirs,
    ) -> Result<(Self, Started), SpawnError> {
        let mark = uuid::Uuid::new_v4().simple().to_string();
        let order = order(run, &mark, spec)?;
        let line = Line::open(&guard, theirs).await?;
        let mut held = Self { line, mark, _guard: guard };
        let Some(Word::Ready) = held.line.next().await else { return Err(SpawnError::GuardLost) };
        if held.line.write(&order).await.is_err() {
            return Err(held.lost_at_start().await);
        }
        match held.line.next().await {
            Some(Word::Started { pid, start, containment, at }) => {
                let record = ProcessRecord { run: run.to_owned(), pid, start };
                Ok((held, Started { record, at, containment }))
            }
            Some(Word::Refused { stage, errno }) => Err(refusal(spec, stage, errno)),
            _ => Err(held.lost_at_start().await),
        }
    }

    /// Asks for the ladder. If the keeper is gone, [`Held::next`] finds out.
    pub(super) async fn order(&mut self, rungs: Rungs) {
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
            match self.line.next().await {
                Some(Word::Exited { exit, running, at }) => return End::Command { exit, running, at },
                Some(Word::Ended(account)) => return End::Tree(account),
                Some(Word::Ready | Word::Started { .. } | Word::Refused { .. }) => {}
                None => return End::Tree(Box::new(self.after_keeper().await)),
            }
        }
    }

    /// The keeper is gone without an account. The guard kills the orphans that come to it; we look for the mark, in
    /// case that the guard is gone too.
    async fn after_keeper(&self) -> Account {
        let survivors = kill_marked(&self.mark).await;
        Account {
            exit: Exit::Unknown,
            ended_at: SystemTime::now(),
            rungs: Vec::new(),
            left_behind: Vec::new(),
            survivors,
            hold: Hold::KeeperLost,
        }
    }

    async fn lost_at_start(&self) -> SpawnError {
        // Whether it had been started is not known; afterwards it has not.
        drop(kill_marked(&self.mark).await);
        SpawnError::KeeperLost
    }
}

/// Kills whatever carries the command's mark, and gives what is alive nevertheless.
pub(super) async fn kill_marked(mark: &str) -> Vec<Member> {
    let deadline = Instant::now() + limits::KILL;
    let mut pause = limits::SWEEP;
    loop {
        let alive = tree::marked(COMMAND_MARK, mark);
        if alive.is_empty() || Instant::now() >= deadline {
            return alive;
        }
        for member in &alive {
            tree::signal(member, Signal::KILL);
        }
        sleep(pause).await;
        pause = (pause * 2).min(limits::SWEEP_SLOW);
    }
}

fn order(run: &str, mark: &str, spec: &CommandSpec) -> Result<Vec<u8>, SpawnError> {
    let cwd = match &spec.cwd {
        Some(cwd) => {
            Some(std::path::absolute(cwd).map_err(|source| SpawnError::Cwd { path: cwd.clone(), source })?)
        }
        // A working directory that is gone is the guard's too.
        None => std::env::current_dir().ok(),
    };
    let mut env = spec.env.clone();
    env.push((RUN_MARK.into(), Some(run.into())));
    env.push((COMMAND_MARK.into(), Some(mark.into())));
    wire::frame(&Order::Spawn(Box::new(SpawnOrder {
        program: spec.program.clone(),
        args: spec.args.clone(),
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
    }
}

/// The socket to a keeper.
#[derive(Debug)]
struct Line {
    socket: UnixStream,
    frames: Frames,
}

impl Line {
    /// Hands the other end to the guard, with the descriptors of the command.
    async fn open(guard: &Guard, theirs: Theirs) -> Result<Self, SpawnError> {
        let (ours, keepers) = StdStream::pair().map_err(SpawnError::Io)?;
        ours.set_nonblocking(true).map_err(SpawnError::Io)?;
        let keepers = OwnedFd::from(keepers);
        let fds = [keepers.as_fd(), theirs.stdin.as_fd(), theirs.stdout.as_fd(), theirs.stderr.as_fd()];
        guard.hand_over(fds).await.map_err(|_gone| SpawnError::GuardLost)?;
        let socket = UnixStream::from_std(ours).map_err(SpawnError::Io)?;
        Ok(Self { socket, frames: Frames::default() })
    }

    /// The next message; none once the keeper is gone, or talks nonsense.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    async fn next(&mut self) -> Option<Word> {
        let mut bytes = [0; 4096];
        loop {
            if let Some(word) = self.frames.next().ok()? {
                return Some(word);
            }
            self.socket.readable().await.ok()?;
            match self.socket.try_read(&mut bytes) {
                Ok(0) => return None,
                Ok(read) => self.frames.push(&bytes[..read]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return None,
            }
        }
    }

    /// Writes it whole. A stop's frame is far smaller than the socket's buffer, so it goes out in one piece or waits
    /// before its first byte; the first order is written by a start that takes the command with it when it is dropped.
    async fn write(&self, mut frame: &[u8]) -> io::Result<()> {
        while !frame.is_empty() {
            self.socket.writable().await?;
            match self.socket.try_write(frame) {
                Ok(written) => frame = &frame[written..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
