//! A control group for one command, where the machine lets us have one.
//!
//! It is made below the keeper's own group, so that a bound on us bounds the command too. That it can be had is
//! seen by having it: nothing is assumed from versions or mounts.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use super::super::{
    cgroups,
    runtime::{self, Runtime},
};

/// Kills and takes away what a keeper that was killed has left; if something in it is just ending, [`tidy`] will.
pub(super) fn clear(runtime: &Runtime, keeper: i32) {
    let Ok(own) = cgroups::own() else { return };
    let path = own.join(runtime.group(keeper));
    if cgroups::kill(&path) {
        cgroups::remove(&path);
    }
}

/// Takes away the empty groups of keepers that are gone.
pub(super) fn tidy() {
    let Ok(groups) = cgroups::own().and_then(fs::read_dir) else { return };
    for group in groups.filter_map(Result::ok) {
        let keeper = group.file_name().to_str().and_then(runtime::of_group).map(|(_, keeper)| keeper);
        if keeper.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            cgroups::remove(&group.path());
        }
    }
}

/// A group that is taken away when this is dropped and nothing is in it any more.
#[derive(Debug)]
pub(super) struct Cgroup {
    path: PathBuf,
    kill: File,
}

impl Cgroup {
    /// Makes one, and gives the file through which a process enters it.
    pub(super) fn create(runtime: &Runtime) -> io::Result<(Self, OwnedFd)> {
        let path = cgroups::own()?.join(runtime.group(std::process::id().cast_signed()));
        fs::create_dir(&path)?;
        match open(&path) {
            Ok((kill, procs)) => Ok((Self { path, kill }, procs)),
            Err(error) => {
                cgroups::remove(&path);
                Err(error)
            }
        }
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether this process is in it.
    pub(super) fn holds(&self, pid: i32) -> bool {
        fs::read_to_string(self.path.join("cgroup.procs"))
            .is_ok_and(|pids| pids.lines().any(|line| line.parse() == Ok(pid)))
    }

    /// SIGKILL to everything in it, at once and without a race.
    pub(super) fn kill(&mut self) {
        if self.kill.write_all(b"1").is_err() {
            // the sweep of the tree does the same work
        }
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        cgroups::remove(&self.path);
    }
}

fn open(path: &Path) -> io::Result<(File, OwnedFd)> {
    let write = |name: &str| OpenOptions::new().write(true).open(path.join(name));
    Ok((write("cgroup.kill")?, write("cgroup.procs")?.into()))
}
