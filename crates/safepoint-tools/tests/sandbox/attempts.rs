//! Ways out that no shell has: this test program tries one of them, as a role.

use std::{
    fs, io,
    io::Write as _,
    net::{TcpListener, TcpStream, UdpSocket},
    os::{
        fd::{AsRawFd as _, FromRawFd as _, OwnedFd},
        linux::net::SocketAddrExt as _,
        unix::net::{SocketAddr, UnixDatagram, UnixListener, UnixStream},
    },
    path::PathBuf,
    time::Duration,
};

use super::support::Site;

const ROLE: &str = "sandbox::attempts::attempt";
/// What an abstract socket is called, with the process that it belongs to.
const ABSTRACT: &str = "safepoint-escape-";

/// What is there to be reached, as long as this lives.
pub(crate) struct Bait {
    _tcp: Vec<TcpListener>,
    _udp: UdpSocket,
    _sockets: (UnixListener, UnixListener, UnixDatagram),
    _terminal: OwnedFd,
    memory: PathBuf,
    segment: libc::c_int,
}

impl Drop for Bait {
    fn drop(&mut self) {
        fs::remove_file(&self.memory).unwrap();
        // SAFETY: the segment is ours, and nothing is mapped of it here.
        unsafe { libc::shmctl(self.segment, libc::IPC_RMID, std::ptr::null_mut()) };
    }
}

/// Opens it, and writes down in the root where it is.
pub(crate) fn bait(place: &Site<'_>) -> Bait {
    static ONE: std::sync::Mutex<u32> = std::sync::Mutex::new(0);
    let four = TcpListener::bind("127.0.0.1:0").unwrap();
    let six = TcpListener::bind("[::1]:0").ok();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let number = {
        let mut one = ONE.lock().unwrap();
        *one += 1;
        *one
    };
    let name = format!("{ABSTRACT}{}-{number}", std::process::id());
    let abstract_name = SocketAddr::from_abstract_name(&name).unwrap();
    let sockets = (
        UnixListener::bind_addr(&abstract_name).unwrap(),
        UnixListener::bind(place.path("outside/stream.sock")).unwrap(),
        UnixDatagram::bind(place.path("outside/datagram.sock")).unwrap(),
    );
    for socket in ["outside/stream.sock", "outside/datagram.sock"] {
        fs::set_permissions(place.path(socket), std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    }
    // SAFETY: the flags are valid, and the descriptor is new.
    let terminal = unsafe { OwnedFd::from_raw_fd(libc::posix_openpt(libc::O_RDWR | libc::O_NOCTTY)) };
    // SAFETY: it is the controlling side of a terminal, and the name is read before it can change.
    let terminal_name = unsafe {
        libc::grantpt(terminal.as_raw_fd());
        libc::unlockpt(terminal.as_raw_fd());
        std::ffi::CStr::from_ptr(libc::ptsname(terminal.as_raw_fd())).to_str().unwrap().to_owned()
    };
    fs::set_permissions(&terminal_name, std::os::unix::fs::PermissionsExt::from_mode(0o666)).unwrap();
    let memory = PathBuf::from(format!("/dev/shm/{name}"));
    fs::write(&memory, "secret").unwrap();
    // SAFETY: a new segment of one page that every user may attach.
    let segment = unsafe { libc::shmget(libc::IPC_PRIVATE, 4096, libc::IPC_CREAT | 0o666) };
    let port = |listener: &TcpListener| listener.local_addr().unwrap().port();
    let lines = [
        port(&four).to_string(),
        six.as_ref().map_or_else(|| "0".into(), |six| port(six).to_string()),
        udp.local_addr().unwrap().port().to_string(),
        name,
        terminal_name,
        segment.to_string(),
        memory.display().to_string(),
    ];
    fs::write(place.path("root/bait"), lines.join("\n")).unwrap();
    let tcp = std::iter::once(four).chain(six).collect();
    Bait { _tcp: tcp, _udp: udp, _sockets: sockets, _terminal: terminal, memory, segment }
}

/// The arguments by which this program tries one.
pub(crate) fn args(name: &'static str) -> Vec<&'static str> {
    vec![ROLE, "--exact", "--nocapture", "--test-threads", "1", "--skip", name]
}

/// Not a test of its own: it tries what is named, and says by its exit code whether it got out.
#[test]
fn attempt() {
    let args: Vec<String> = std::env::args().collect();
    let Some(name) = args.iter().position(|arg| arg == "--skip").and_then(|at| args.get(at + 1)) else {
        return;
    };
    let result = try_to(name);
    // Exit: the code is the answer.
    std::process::exit(match result {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("{name}: {error}");
            3
        }
    });
}

fn try_to(name: &str) -> io::Result<()> {
    let bait = fs::read_to_string("bait")?;
    let bait: Vec<&str> = bait.lines().collect();
    let victim: i32 = std::env::var("VICTIM").unwrap().parse().unwrap();
    let out = PathBuf::from(std::env::var_os("OUT").unwrap());
    match name {
        "ptrace" => by_ptrace(victim),
        "memory of another process, by a call" => by_reading(victim),
        "a descriptor of another process" => {
            let process = call(libc::SYS_pidfd_open, [victim.into(), 0, 0, 0])?;
            call(libc::SYS_pidfd_getfd, [process, 0, 0, 0]).map(drop)
        }
        // KEYCTL_GET_KEYRING_ID of the user's keys.
        "a key of the user" => call(libc::SYS_keyctl, [0, -4, 1, 0]).map(drop),
        "memory segments of another process" => {
            let segment = bait[5].parse().unwrap();
            call(libc::SYS_shmat, [segment, 0, libc::SHM_RDONLY.into(), 0]).map(drop)
        }
        "io_uring" => by_ring(),
        "the input of a terminal" => by_typing(),
        "a terminal of the user" => fs::OpenOptions::new().write(true).open(bait[4]).map(drop),
        // BPF_MAP_CREATE without anything: refused as nonsense where it may be asked.
        "a program of the kernel" => nonsense(call(libc::SYS_bpf, [0, 0, 0, 0])),
        "faults of memory" => call(libc::SYS_userfaultfd, [0, 0, 0, 0]).map(drop),
        "the other form of a call" => call(0x4000_0000 | libc::SYS_getpid, [0; 4]).map(drop),
        "a file by its handle" => nonsense(call(libc::SYS_open_by_handle_at, [-1, 0, 0, 0])),
        "TCP" => connect(format!("127.0.0.1:{}", bait[0])),
        "TCP over IPv6" if bait[1] == "0" && is_free() => Ok(()), // this machine has no IPv6
        "TCP over IPv6" => connect(format!("[::1]:{}", bait[1])),
        "UDP" => by_udp(bait[2]),
        "an abstract socket" => {
            let name = SocketAddr::from_abstract_name(bait[3])?;
            UnixStream::connect_addr(&name).map(drop)
        }
        "a socket of another program" => UnixStream::connect(out.join("stream.sock")).map(drop),
        "a socket for datagrams of another program" => {
            UnixDatagram::unbound()?.send_to(b"x", out.join("datagram.sock")).map(drop)
        }
        "a pair of datagrams" => {
            let (one, _other) = UnixDatagram::pair()?;
            one.send_to(b"x", out.join("datagram.sock")).map(drop)
        }
        "a raw socket" => socket(libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_ICMP),
        "packets" => socket(libc::AF_PACKET, libc::SOCK_RAW, 0),
        "a virtual machine's socket" => socket(libc::AF_VSOCK, libc::SOCK_STREAM, 0),
        "events of the kernel" => socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_KOBJECT_UEVENT),
        other => panic!("no attempt is called {other}"),
    }
}

/// Whether no filter was applied to this process.
fn is_free() -> bool {
    fs::read_to_string("/proc/self/status").unwrap().contains("Seccomp:\t0")
}

fn call(number: libc::c_long, [a, b, c, d]: [libc::c_long; 4]) -> io::Result<libc::c_long> {
    // SAFETY: the calls that are made so are given no pointer but null, which the kernel checks.
    let result = unsafe { libc::syscall(number, a, b, c, d) };
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// What is refused only because it is nonsense would have been done.
fn nonsense(result: io::Result<libc::c_long>) -> io::Result<()> {
    match result {
        Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EFAULT | libc::EBADF)) => {
            Ok(())
        }
        other => other.map(drop),
    }
}

fn socket(family: i32, kind: i32, protocol: i32) -> io::Result<()> {
    call(libc::SYS_socket, [family.into(), kind.into(), protocol.into(), 0]).map(drop)
}

fn connect(to: String) -> io::Result<()> {
    let to = to.parse().unwrap();
    TcpStream::connect_timeout(&to, Duration::from_secs(10))?.write_all(b"x")
}

/// A datagram is sent into nothing without an error: the next one reports that it was refused.
fn by_udp(port: &str) -> io::Result<()> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    socket.connect(format!("127.0.0.1:{port}"))?;
    socket.send(b"x")?;
    socket.send(b"x").map(drop)
}

fn by_ptrace(victim: i32) -> io::Result<()> {
    let (seize, none) = (libc::c_long::from(libc::PTRACE_SEIZE), 0);
    call(libc::SYS_ptrace, [seize, victim.into(), none, none]).map(drop)
}

/// Reads a byte of where the program of the other process is.
fn by_reading(victim: i32) -> io::Result<()> {
    let mut byte = 0_u8;
    let to = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    let from = libc::iovec { iov_base: std::ptr::without_provenance_mut(0x40_0000), iov_len: 1 };
    // SAFETY: one byte is written, into `byte`, which lives.
    let read = unsafe { libc::process_vm_readv(victim, &raw const to, 1, &raw const from, 1, 0) };
    match io::Error::last_os_error() {
        // It may look, and there is nothing at that address.
        error if read == -1 && error.raw_os_error() == Some(libc::EFAULT) => Ok(()),
        error if read == -1 => Err(error),
        _ => Ok(()),
    }
}

/// A machine may forbid it to everyone.
fn by_ring() -> io::Result<()> {
    match nonsense(call(libc::SYS_io_uring_setup, [1, 0, 0, 0])) {
        Err(error) if error.raw_os_error() == Some(libc::EPERM) && is_free() => Ok(()),
        other => other,
    }
}

/// Types into a terminal of its own, as root may.
fn by_typing() -> io::Result<()> {
    let terminal = fs::File::options().read(true).write(true).open("/dev/ptmx")?;
    let letter = b'x';
    // SAFETY: one byte is read, from `letter`, which lives.
    let typed = unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCSTI, &raw const letter) };
    if typed == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
