//! Starting one command from its keeper.

use std::{
    io,
    os::fd::OwnedFd,
    process::{Command, Stdio},
};

use rustix::process::Pid;

use super::super::{cgroup::Cgroup, sys};
use crate::process::{
    fresh,
    runtime::Runtime,
    spec::ControlGroups,
    wire::{SpawnOrder, Stage},
};

/// Starts the command in its own session and, where one can be had, its own control group.
pub(super) fn start(
    order: &SpawnOrder,
    [stdin, stdout, stderr]: [OwnedFd; 3],
    runtime: &Runtime,
) -> Result<(Pid, Option<Cgroup>), (Stage, io::Error)> {
    let mut command = Command::new(&order.program);
    command
        .args(&order.args)
        .env_clear()
        .envs(order.env.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::from(stdin))
        .stdout(Stdio::from(stdout))
        .stderr(Stdio::from(stderr));
    if let Some(cwd) = &order.cwd {
        std::env::set_current_dir(cwd).map_err(|error| (Stage::Cwd, error))?;
    }
    let (cgroup, door) = match order.groups {
        ControlGroups::Try => Cgroup::create(runtime).ok().unzip(),
        ControlGroups::LeaveAlone => (None, None),
    };
    fresh::hear_signals(&mut command);
    sys::hold(&mut command, door);
    let child = command.spawn().map_err(|error| (Stage::Program, error))?;
    let pid = Pid::from_raw(child.id().cast_signed()).expect("a child's pid is positive");
    Ok((pid, cgroup.filter(|group| group.holds(pid.as_raw_nonzero().get()))))
}
