//! Ways out. Each is tried free first, so that it is known to be one, and then confined.

use std::path::Path;

use super::{
    attempts,
    support::{Programs, Site, User, copied, said},
};

/// A way out.
struct Escape {
    name: &'static str,
    how: How,
    free: Free,
}

/// How it is tried. Exhaustive: by a line of shell, which succeeds if it got out, or by an attempt of this program.
enum How {
    Shell(&'static str),
    Attempt,
}

/// Who gets out by it without a sandbox.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Free {
    Everyone,
    Root,
    /// No one here, or it would harm the machine.
    NotTried,
}

use Free::{Everyone, NotTried, Root};

const fn sh(name: &'static str, line: &'static str) -> Escape {
    Escape { name, how: How::Shell(line), free: Everyone }
}

const fn by(name: &'static str) -> Escape {
    Escape { name, how: How::Attempt, free: Everyone }
}

const fn only(free: Free, escape: Escape) -> Escape {
    Escape { free, ..escape }
}

const FILES: [Escape; 35] = [
    sh("a new file beside the root", "echo x > $OUT/new"),
    sh("a path that climbs", "echo x > ../outside/new"),
    sh("a path through its own root directory", "echo x > /proc/self/root$OUT/new"),
    sh("a path through its parent's directory", "echo x > /proc/$$/cwd/../outside/new"),
    sh("a dotfile", "echo x >> $HOME/.bashrc"),
    sh("a key of ssh", "echo x >> $HOME/.ssh/authorized_keys"),
    sh("truncation by opening", ": > $OUT/file"),
    sh("truncation by name", "truncate -s 0 $OUT/file"),
    sh("removal", "rm -f $OUT/file"),
    sh("a rename outside", "mv $OUT/file $OUT/other"),
    sh("a rename out", "mv inside $OUT/inside"),
    sh("a rename in", "mv $OUT/file taken"),
    sh("a hard link to what is outside", "ln $OUT/file link && echo x >> link"),
    sh("a hard link outside", "ln inside $OUT/link"),
    sh("a symbolic link to a file", "ln -s $OUT/file link && echo x >> link"),
    sh("a symbolic link to a directory", "ln -s $OUT link && echo x > link/new"),
    sh("a symbolic link outside", "ln -s /etc $OUT/link"),
    sh("a directory", "mkdir $OUT/new"),
    sh("a pipe", "mkfifo $OUT/new"),
    sh("a mode", "chmod 777 $HOME/.ssh"),
    sh("a time", "touch -d 2001-01-01 $OUT/file"),
    only(Root, sh("an owner", "chown 1 $OUT/file")),
    sh("shared memory of others", "cat $(tail -1 bait)"),
    sh("the folder of all temporary files", "f=$(mktemp -p ${OUT%/*}/.. escape.XXXXXX) && rm $f"),
    sh("the store, read", "grep -r secret $OUT/store"),
    sh("the store, written", "echo x > $OUT/store/store.db"),
    sh("the store, moved away", "mv $OUT/store $OUT/other"),
    sh("a hook of git", "echo x > .git/hooks/pre-commit"),
    sh("another folder for the hooks of git", "echo ../evil > .git/commondir"),
    sh("a program in the configuration of git", "echo '[core] fsmonitor = evil' >> .git/config"),
    sh(
        "another repository in the place of this one",
        "mv .git old && mkdir -p .git/hooks && echo x > .git/hooks/pre-commit",
    ),
    only(Root, sh("a job of cron", "f=/etc/cron.d/safepoint-escape; echo > $f && rm $f")),
    only(
        Root,
        sh("a setting of the kernel", "f=/proc/sys/kernel/core_pattern; v=$(cat $f); echo \"$v\" > $f"),
    ),
    only(
        NotTried,
        sh(
            "a disk",
            "d=$(ls /dev/vd? /dev/sd? /dev/nvme?n? /dev/xvd? 2>/dev/null | head -1); head -c 1 $d | grep -qa ''",
        ),
    ),
    only(Root, sh("a device of its own", "mknod disk b 1 0 && rm disk")),
];

const PROCESSES: [Escape; 19] = [
    sh("a signal", "kill -9 $VICTIM && sleep 0.1"),
    sh("a signal that only asks", "kill -0 $VICTIM"),
    sh("the environment of another process", "grep -qa . /proc/$VICTIM/environ"),
    sh("the root directory of another process", "ls /proc/$VICTIM/root/"),
    sh("the working directory of another process", "ls /proc/$VICTIM/cwd/"),
    sh("the files of another process", "ls -l /proc/$VICTIM/fd/0"),
    sh("the memory of another process", "true 3<>/proc/$VICTIM/mem"),
    sh("a limit of another process", "prlimit --pid $VICTIM --nofile=10:10"),
    sh("a priority of another process", "renice -n 19 -p $VICTIM"),
    only(Root, sh("the namespaces of another process", "nsenter -t $VICTIM -m true")),
    sh("a user namespace", "unshare -U true"),
    sh("a user namespace with mounts", "unshare -Um true"),
    only(Root, sh("mounts", "unshare -m true")),
    only(Root, sh("a mount", "mkdir m && mount -t tmpfs none m && umount m")),
    only(NotTried, sh("a mount with writing", "mount -o remount,bind,rw / && echo x > $OUT/new")),
    only(NotTried, sh("an end of what covers", "umount $OUT/store && grep secret $OUT/store/store.db")),
    only(Root, sh("another root directory", "chroot / true")),
    only(
        Root,
        sh(
            "another control group",
            "d=$(find /sys/fs/cgroup -maxdepth 2 -name cgroup.procs | head -1) && echo $$ > $d",
        ),
    ),
    sh(
        "a daemon that stays",
        "setsid sh -c 'echo x > $OUT/late && echo x > $OUT/later' > /dev/null 2>&1 & wait; test -e $OUT/later",
    ),
];

const CALLS: [Escape; 23] = [
    by("ptrace"),
    by("memory of another process, by a call"),
    by("a descriptor of another process"),
    by("a key of the user"),
    by("memory segments of another process"),
    by("io_uring"),
    only(Root, by("the input of a terminal")),
    by("a terminal of the user"),
    only(Root, by("a program of the kernel")),
    only(NotTried, by("faults of memory")),
    only(NotTried, by("the other form of a call")),
    only(Root, by("a file by its handle")),
    by("TCP"),
    by("TCP over IPv6"),
    by("UDP"),
    by("an abstract socket"),
    by("a socket of another program"),
    by("a socket for datagrams of another program"),
    by("a pair of datagrams"),
    only(Root, by("a raw socket")),
    only(Root, by("packets")),
    only(NotTried, by("a virtual machine's socket")),
    by("events of the kernel"),
];

/// S4.27, S4.28: whatever a command tries, nothing outside of the root changes, and it reaches no other program.
#[test]
fn no_file_is_changed_outside() {
    each(&FILES);
}

/// S4.28
#[test]
fn no_process_is_reached() {
    each(&PROCESSES);
}

/// S4.28
#[test]
fn no_call_leads_out() {
    each(&CALLS);
}

fn each(escapes: &[Escape]) {
    let Some(programs) = Programs::new() else { return };
    let mut out = Vec::new();
    for user in User::all() {
        for escape in escapes {
            out.extend(
                tried(&programs, user, escape).err().map(|why| format!("{user:?}: {}: {why}", escape.name)),
            );
        }
    }
    assert!(out.is_empty(), "{}", out.join("\n"));
}

/// An error says how it got out, or that it is no way out at all.
fn tried(programs: &Programs, user: User, escape: &Escape) -> Result<(), String> {
    let is_way = match escape.free {
        Everyone => true,
        Root => user.is_root(),
        NotTried => false,
    };
    if is_way {
        let place = Site::new(programs, user);
        let _bait = attempts::bait(&place);
        let (program, args) = program(programs, escape);
        let output = place.free(&program, &args);
        if !output.status.success() {
            return Err(format!("not even free: {}", said(&output)));
        }
    }
    let mut place = Site::new(programs, user);
    let _bait = attempts::bait(&place);
    let before = place.world();
    let (program, args) = program(programs, escape);
    let output = place.confined(&program, &args);
    if output.status.success() {
        return Err(format!("it got out: {}", said(&output)));
    }
    if said(&output).contains("nothing was run") {
        return Err(format!("it was not run: {}", said(&output)));
    }
    let after = place.world();
    match before == after {
        true => Ok(()),
        false => Err(format!("something changed: {before:#?}, then {after:#?}")),
    }
}

fn program(programs: &Programs, escape: &Escape) -> (std::path::PathBuf, Vec<&'static str>) {
    match escape.how {
        How::Shell(line) => (Path::new("/bin/sh").to_owned(), vec!["-c", line]),
        How::Attempt => (programs.path("attempt"), attempts::args(escape.name)),
    }
}

/// S4.27: a descriptor that the helper was started with is not the command's.
#[test]
fn no_descriptor_is_inherited() {
    let Some(programs) = Programs::new() else { return };
    let place = Site::new(&programs, User::Own);
    let line = "exec 9>>$OUT/file; exec \"$@\"";
    let helper = programs.path("helper");
    let confinement = place.confinement();
    let args = confinement.command("/bin/sh", ["-c", "echo x >&9"]);
    let args: Vec<&str> = args.iter().map(|arg| arg.to_str().unwrap()).collect();
    let start = ["-c", line, "sh", helper.to_str().unwrap()];
    let output = place.free(Path::new("/bin/sh"), &[&start[..], &args[..]].concat());
    assert!(!output.status.success(), "{}", said(&output));
    assert_eq!(std::fs::read_to_string(place.path("outside/file")).unwrap(), "secret file");
}

/// S4.27: a program that runs as its owner runs as the user that starts it.
#[test]
fn a_program_of_another_user_gives_no_rights() {
    use std::os::unix::fs::PermissionsExt as _;
    let Some(programs) = Programs::new() else { return };
    if !User::Own.is_root() {
        return;
    }
    let place = Site::new(&programs, User::Nobody);
    let program = place.path("root/id");
    copied(Path::new("/usr/bin/id"), &program);
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o4755)).unwrap();
    let own = place.free(&program, &["-u"]);
    assert_eq!(own.stdout, b"0\n", "free, it is root's: {}", said(&own));
    let own = place.confined(&program, &["-u"]);
    assert_eq!(own.stdout, b"65534\n", "{}", said(&own));
}
