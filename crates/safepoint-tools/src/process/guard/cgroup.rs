//! A control group for one command, where the machine lets us have one.
//!
//! It is made below the keeper's own group, so that whoever bounds us bounds the command too. That it can be had is
//! seen by having it: nothing is assumed from versions or mounts.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

const PREFIX: &str = "safepoint-";

/// Kills and takes away what a keeper that was killed has left; if something in it is just ending, [`tidy`] will.
pub(super) fn clear(keeper: i32) {
    let Ok(own) = own_group() else { return };
    let path = own.join(format!("{PREFIX}{keeper}"));
    if fs::write(path.join("cgroup.kill"), "1").is_ok() {
        remove(&path);
    }
}

/// Takes away the empty groups of keepers that are gone.
pub(super) fn tidy() {
    let Ok(groups) = own_group().and_then(fs::read_dir) else { return };
    for group in groups.filter_map(Result::ok) {
        let name = group.file_name();
        let keeper =
            name.to_str().and_then(|name| name.strip_prefix(PREFIX)).and_then(|pid| pid.parse::<i32>().ok());
        if keeper.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            remove(&group.path());
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
    pub(super) fn create() -> io::Result<(Self, OwnedFd)> {
        let path = own_group()?.join(format!("{PREFIX}{}", std::process::id()));
        fs::create_dir(&path)?;
        match open(&path) {
            Ok((kill, procs)) => Ok((Self { path, kill }, procs)),
            Err(error) => {
                remove(&path);
                Err(error)
            }
        }
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
        remove(&self.path);
    }
}

fn open(path: &Path) -> io::Result<(File, OwnedFd)> {
    let write = |name: &str| OpenOptions::new().write(true).open(path.join(name));
    Ok((write("cgroup.kill")?, write("cgroup.procs")?.into()))
}

fn remove(path: &Path) {
    if fs::remove_dir(path).is_err() {
        // it still holds a survivor, and shows where that is
    }
}

/// Where the group of this process is mounted.
fn own_group() -> io::Result<PathBuf> {
    let missing = || io::Error::new(io::ErrorKind::Unsupported, "no control groups of version 2");
    let groups = fs::read_to_string("/proc/self/cgroup")?;
    let own = groups.lines().find_map(|line| line.strip_prefix("0::")).ok_or_else(missing)?;
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    let (root, mount) = mounts.lines().find_map(version_two).ok_or_else(missing)?;
    let below = Path::new(own).strip_prefix(root).map_err(|_outside| missing())?;
    Ok(Path::new(mount).join(below))
}

/// Root and mount point of a mount, if it is one of version 2.
fn version_two(line: &str) -> Option<(&str, &str)> {
    const ROOT: usize = 3;
    let (mount, kind) = line.split_once(" - ")?;
    let mut fields = mount.split(' ').skip(ROOT);
    (kind.split(' ').next() == Some("cgroup2")).then_some((fields.next()?, fields.next()?))
}
