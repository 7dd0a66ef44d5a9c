//! The sockets that a process holds, by number.

use std::{collections::HashSet, fs, io};

/// The number of a socket, the same in every list of the kernel's.
pub(super) type Inode = u64;

pub(super) type Inodes = HashSet<Inode>;

/// Those of a process.
pub(super) fn of(pid: i32) -> io::Result<Inodes> {
    listed(&format!("/proc/{pid}/fd"))
}

/// Those of this process.
pub(super) fn own() -> Inodes {
    listed("/proc/self/fd").unwrap_or_default()
}

fn listed(folder: &str) -> io::Result<Inodes> {
    let mut inodes = Inodes::new();
    for entry in fs::read_dir(folder)? {
        // One that is closed while we look is none.
        let Some(target) = entry.ok().and_then(|entry| fs::read_link(entry.path()).ok()) else { continue };
        inodes.extend(target.to_str().and_then(socket));
    }
    Ok(inodes)
}

fn socket(target: &str) -> Option<Inode> {
    target.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_socket_is_known_by_its_number_and_a_file_is_none() {
        assert_eq!(
            (socket("socket:[4242]"), socket("/tmp/socket:[1]"), socket("pipe:[7]")),
            (Some(4242), None, None)
        );
        let before = own().len();
        let pair = UnixStream::pair().expect("a pair of sockets");
        assert!(own().len() >= before.saturating_add(2).min(2));
        drop(pair);
    }
}
