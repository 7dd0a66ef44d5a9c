//! A separate network, with separate memory segments and mounts.
//!
//! Root makes them as it is. Any other user makes them inside a user namespace, in which it is the same user.

use std::{
    env,
    ffi::CString,
    fs,
    os::{fd::OwnedFd, unix::ffi::OsStrExt as _},
    path::{Path, PathBuf},
};

use rustix::{
    fs::CWD,
    mount::{
        MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags, mount, mount_bind,
        mount_change, move_mount, open_tree, unmount,
    },
    process::{getegid, geteuid},
    thread::{CapabilitySet, UnshareFlags, capabilities},
};

use super::{Failed, at, during, loopback, repository, sys, sys::Depth};
use crate::{opening::Opening, plan::Plan};

/// Where memory is shared by name.
pub(super) const SHARED_MEMORY: &str = "/dev/shm";
/// Where terminals are.
pub(super) const TERMINALS: &str = "/dev/pts";

/// Enters them, and covers what the command must not see or change.
pub(super) fn enter(plan: &Plan) -> Result<(), Failed> {
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    let held = capabilities(None).map_err(during("read its privileges"))?;
    let is_privileged = held.effective.contains(CapabilitySet::SYS_ADMIN);
    let mut flags = UnshareFlags::NEWNS | UnshareFlags::NEWIPC;
    flags.set(UnshareFlags::NEWUSER, !is_privileged);
    flags.set(UnshareFlags::NEWNET, has_own_network(plan));
    sys::unshare(flags)
        .map_err(during("make namespaces (user.max_user_namespaces, or a rule of AppArmor)"))?;
    if !is_privileged {
        stay(user, group)?;
    }
    let below = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
    mount_change("/", below).map_err(at("part the mounts below", Path::new("/")))?;
    if has_own_network(plan) {
        loopback::bring_up().map_err(during("bring up the loopback"))?;
    }
    if plan.opening != Some(Opening::Files) {
        close(plan)?;
        repository::protect(plan)?;
    }
    hide(plan)?;
    devices(plan)
}

/// Makes everything a mount without writing, but for what may be written. Landlock forbids to write the content of files; it
/// does not know their modes, owners, times and attributes.
fn close(plan: &Plan) -> Result<(), Failed> {
    let here = env::current_dir().map_err(during("find the working directory"))?;
    let open = plan.write.iter().chain([&plan.temporary]).filter(|path| path.exists());
    let open: Vec<(&PathBuf, OwnedFd)> =
        open.map(|path| Ok((path, taken_out(path)?))).collect::<Result<_, Failed>>()?;
    sys::read_only(c"/", Depth::All).map_err(at("protect all below", Path::new("/")))?;
    for (path, tree) in &open {
        move_mount(tree, c"", CWD, path.as_path(), MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)
            .map_err(at("bind", path))?;
    }
    // Where it is was a place in what is covered now.
    env::set_current_dir(&here).map_err(at("enter", &here))
}

/// The mounts at and below a path, beside the tree of all mounts.
fn taken_out(path: &Path) -> Result<OwnedFd, Failed> {
    let flags =
        OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_RECURSIVE;
    open_tree(CWD, path, flags).map_err(at("bind", path))
}

fn has_own_network(plan: &Plan) -> bool {
    plan.opening != Some(Opening::Network)
}

/// Stays who it is in the new user namespace, where it is the only one.
fn stay(user: u32, group: u32) -> Result<(), Failed> {
    let write = |file: &str, text: String| {
        let path = Path::new("/proc/self").join(file);
        fs::write(&path, text).map_err(at("write", &path))
    };
    write("setgroups", "deny".to_owned())?;
    write("uid_map", format!("{user} {user} 1"))?;
    write("gid_map", format!("{group} {group} 1"))
}

/// Puts nothing in the place of what is hidden: an empty directory or an empty file, without rights.
fn hide(plan: &Plan) -> Result<(), Failed> {
    let hidden: Vec<PathBuf> = plan.hide.iter().filter_map(|path| path.canonicalize().ok()).collect();
    if hidden.is_empty() {
        return Ok(());
    }
    if let Some(root) = plan.write.iter().find(|root| hidden.iter().any(|hidden| root.starts_with(hidden))) {
        return Err(Failed(format!("{} lies in a directory that is hidden from commands", root.display())));
    }
    let stage = plan.temporary.as_path();
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("tmpfs", stage, "tmpfs", flags, c"size=64k,mode=0700").map_err(at("mount a tmpfs on", stage))?;
    let (folder, file) = (stage.join("folder"), stage.join("file"));
    fs::create_dir(&folder)
        .and_then(|()| fs::File::create(&file).map(drop))
        .map_err(at("write in", stage))?;
    for empty in [&folder, &file] {
        let closed = std::os::unix::fs::PermissionsExt::from_mode(0o000);
        fs::set_permissions(empty, closed).map_err(at("close", empty))?;
    }
    for path in &hidden {
        let empty = if path.is_dir() { &folder } else { &file };
        mount_bind(empty, path).map_err(at("cover", path))?;
        read_only(path)?;
    }
    unmount(stage, UnmountFlags::DETACH).map_err(at("unmount", stage))
}

/// Separate shared memory and terminals, where there are any: those of others could be read and written.
fn devices(plan: &Plan) -> Result<(), Failed> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    let memory = Path::new(SHARED_MEMORY);
    if has_own_memory(plan) {
        mount("tmpfs", memory, "tmpfs", flags, c"mode=1777").map_err(at("mount a tmpfs on", memory))?;
    }
    let terminals = Path::new(TERMINALS);
    if terminals.is_dir() {
        let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
        mount("devpts", terminals, "devpts", flags, c"newinstance,ptmxmode=0666,mode=0600")
            .map_err(at("mount terminals on", terminals))?;
    }
    Ok(())
}

/// Whether shared memory by name is its own: not where the work itself lies there.
pub(super) fn has_own_memory(plan: &Plan) -> bool {
    let memory = Path::new(SHARED_MEMORY);
    let mut given = plan.write.iter().chain([&plan.temporary]);
    memory.is_dir() && !given.any(|path| path.starts_with(memory))
}

/// Covers a file or directory with itself, so that nothing is written in it, and it is not renamed.
pub(super) fn protect(path: &Path) -> Result<(), Failed> {
    mount_bind(path, path).map_err(at("bind", path))?;
    read_only(path)
}

/// A mount without writing.
fn read_only(path: &Path) -> Result<(), Failed> {
    let name = CString::new(path.as_os_str().as_bytes()).map_err(during("read a path"))?;
    sys::read_only(&name, Depth::One).map_err(at("protect", path))
}
