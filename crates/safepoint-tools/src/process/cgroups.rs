//! Where control groups of version 2 are on this machine, and how one is ended and taken away.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// Where the group of this process is mounted.
pub(super) fn own() -> io::Result<PathBuf> {
    let groups = fs::read_to_string("/proc/self/cgroup")?;
    mounted(Path::new(version_two(&groups).ok_or_else(missing)?))
}

/// The group that a process is in, below the root of all groups; none if it is gone.
pub(super) fn of(pid: i32) -> Option<PathBuf> {
    version_two(&fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?).map(PathBuf::from)
}

/// Where this group is mounted.
pub(super) fn mounted(group: &Path) -> io::Result<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    let (root, mount) = mounts.lines().find_map(mount_of_version_two).ok_or_else(missing)?;
    let below = group.strip_prefix(root).map_err(|_outside| missing())?;
    Ok(Path::new(mount).join(below))
}

/// SIGKILL to everything in it, at once and without a race; false if the kernel did not get the order.
pub(super) fn kill(group: &Path) -> bool {
    fs::write(group.join("cgroup.kill"), "1").is_ok()
}

pub(super) fn remove(group: &Path) {
    if fs::remove_dir(group).is_err() {
        // it still holds a survivor, and shows where that is
    }
}

fn version_two(groups: &str) -> Option<&str> {
    groups.lines().find_map(|line| line.strip_prefix("0::"))
}

fn missing() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "no control groups of version 2")
}

/// Root and mount point of a mount, if it is one of version 2.
fn mount_of_version_two(line: &str) -> Option<(&str, &str)> {
    const ROOT: usize = 3;
    let (mount, kind) = line.split_once(" - ")?;
    let mut fields = mount.split(' ').skip(ROOT);
    (kind.split(' ').next() == Some("cgroup2")).then_some((fields.next()?, fields.next()?))
}
