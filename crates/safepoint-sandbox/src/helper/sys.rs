//! The calls that have no safe form. Everything here runs in a process with one thread.

use std::io;

use rustix::thread::UnshareFlags;

/// Moves this process into new namespaces.
pub(super) fn unshare(flags: UnshareFlags) -> io::Result<()> {
    debug_assert!(!flags.contains(UnshareFlags::FILES), "the table of descriptors stays as it is");
    // SAFETY: the table of descriptors is not parted, and there is no other thread.
    unsafe { rustix::thread::unshare_unsafe(flags) }.map_err(Into::into)
}

/// Marks every descriptor but the first three so that the command does not get it.
pub(super) fn close_at_exec() -> io::Result<()> {
    const FIRST: libc::c_uint = 3;
    // SAFETY: no descriptor is closed now, so none that is in use here is.
    let marked =
        unsafe { libc::syscall(libc::SYS_close_range, FIRST, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    if marked == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Brings up the network interface of this name.
pub(super) fn bring_up(socket: std::os::fd::BorrowedFd<'_>, name: &[u8]) -> io::Result<()> {
    use std::os::fd::AsRawFd as _;
    // SAFETY: all bytes zero is a value of this structure: an empty name and no flags.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // The last byte stays zero: it ends the name.
    let room = request.ifr_name.len() - 1;
    for (to, from) in request.ifr_name[..room].iter_mut().zip(name) {
        *to = from.cast_signed() as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = libc::IFF_UP as libc::c_short;
    // SAFETY: the request is readable, and has the name and the flags that this call reads.
    let done = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS as _, &raw const request) };
    if done == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Makes the mount at a path, or all below it, a mount without writing. What else it forbids stays as it is.
pub(super) fn read_only(path: &std::ffi::CStr, depth: Depth) -> io::Result<()> {
    let flags = match depth {
        Depth::One => 0,
        Depth::All => libc::AT_RECURSIVE,
    };
    let change =
        libc::mount_attr { attr_set: libc::MOUNT_ATTR_RDONLY, attr_clr: 0, propagation: 0, userns_fd: 0 };
    // SAFETY: the path ends with a zero byte, and the change is readable in the size that is said.
    let done = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            path.as_ptr(),
            flags,
            &raw const change,
            size_of::<libc::mount_attr>(),
        )
    };
    if done == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// How far a change of mounts goes. Exhaustive: one mount, or all below it too.
#[derive(Clone, Copy)]
pub(super) enum Depth {
    One,
    All,
}
