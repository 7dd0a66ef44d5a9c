//! A daemon that takes work from agents, as some real agents have. It lives outside their tree, before and
//! after them, and continues the work when its caller is gone.

use std::{
    any::Any,
    fs,
    io::{BufRead as _, BufReader, Read, Write},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket},
    os::unix::net::{UnixListener, UnixStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use crate::wait;

/// The variable that makes a hub of a process that calls [`serve_if_asked`](super::serve_if_asked): its
/// folder.
pub(super) const ASKED: &str = "SAFEPOINT_TEST_HUB";

/// What an address begins with at which datagrams are taken.
const UDP: &str = "udp:";

const BEAT: Duration = Duration::from_millis(5);

/// A hub that runs as a separate process. Dropping it ends it.
#[derive(Debug)]
pub struct Hub {
    process: Child,
    folder: PathBuf,
}

impl Hub {
    /// Starts one in this folder: `command` is this same program, set to call
    /// [`serve_if_asked`](super::serve_if_asked).
    ///
    /// # Panics
    /// If it cannot be started.
    #[must_use]
    pub fn start(mut command: Command, folder: &Path) -> Self {
        command.env(ASKED, folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = command.spawn().expect("a hub starts");
        let hub = Self { process, folder: folder.to_owned() };
        wait::until("the hub listens", || hub.port("port").is_some() && hub.port("datagrams").is_some());
        hub
    }

    /// Where it listens in the file system.
    #[must_use]
    pub fn path(&self) -> String {
        socket(&self.folder).display().to_string()
    }

    /// Where it listens by TCP.
    ///
    /// # Panics
    /// Never: it listened before it was handed out.
    #[must_use]
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port("port").expect("it listens"))
    }

    /// Where it takes datagrams, at this address of this machine. Written as `hand_over` reads it.
    ///
    /// # Panics
    /// Never: it listened before it was handed out.
    #[must_use]
    pub fn datagrams(&self, ip: IpAddr) -> String {
        let port = self.port("datagrams").expect("it listens");
        format!("{UDP}{}", SocketAddr::new(ip, port))
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// How far the work that it was given has come; none before it was given any.
    #[must_use]
    pub fn count(&self) -> Option<u64> {
        fs::read_to_string(self.folder.join("count")).ok()?.trim().parse().ok()
    }

    /// Waits until its work has continued from here.
    ///
    /// # Panics
    /// If it does not.
    pub fn continues(&self) {
        let before = self.count();
        wait::until("the hub's work continues", || self.count().is_some_and(|count| Some(count) > before));
    }

    fn port(&self, file: &str) -> Option<u16> {
        fs::read_to_string(self.folder.join(file)).ok()?.trim().parse().ok()
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        let ended = self.process.kill().and_then(|()| self.process.wait());
        if let Err(error) = ended {
            eprintln!("the hub does not end: {error}");
        }
    }
}

fn socket(folder: &Path) -> PathBuf {
    folder.join("hub")
}

/// Runs as the hub, without end.
pub(super) fn serve(folder: &Path) -> ! {
    let near = UnixListener::bind(socket(folder)).expect("a socket in the file system");
    let far = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = far.local_addr().expect("it has an address").port();
    write(&folder.join("port"), &port.to_string());
    let datagrams = UdpSocket::bind("[::]:0").or_else(|_no_ipv6| UdpSocket::bind("127.0.0.1:0"));
    let datagrams = datagrams.expect("a port");
    let port = datagrams.local_addr().expect("it has an address").port();
    write(&folder.join("datagrams"), &port.to_string());
    let by_datagram = folder.join("count");
    thread::spawn(move || take_datagrams(&datagrams, &by_datagram));
    let (count, beside) = (folder.join("count"), folder.join("count"));
    thread::spawn(move || near.incoming().flatten().for_each(|caller| take(caller, count.clone())));
    far.incoming().flatten().for_each(|caller| take(caller, beside.clone()));
    // Exit: the hub is a whole program and has no caller to return to.
    std::process::exit(0)
}

/// Each caller sends one word, which begins a work without an end.
fn take(caller: impl Read + Write + Send + 'static, count: PathBuf) {
    thread::spawn(move || {
        let mut caller = BufReader::new(caller);
        let mut word = String::new();
        if caller.read_line(&mut word).is_err() || caller.get_mut().write_all(b"taken\n").is_err() {
            return;
        }
        thread::spawn(move || work(&count));
        // Its end changes nothing.
        while caller.read_line(&mut word).is_ok_and(|read| read > 0) {}
    });
}

/// The same by datagrams, over one socket for all callers.
fn take_datagrams(socket: &UdpSocket, count: &Path) {
    const LONGEST: usize = 64;
    while let Ok((_, caller)) = socket.recv_from(&mut [0; LONGEST]) {
        if socket.send_to(b"taken\n", caller).is_ok() {
            let count = count.to_owned();
            thread::spawn(move || work(&count));
        }
    }
}

/// Work without an end.
fn work(count: &Path) {
    for number in 0_u64.. {
        write(count, &number.to_string());
        thread::sleep(BEAT);
    }
}

/// Whole, or not at all: it is read meanwhile.
fn write(path: &Path, text: &str) {
    let new = path.with_extension("new");
    fs::write(&new, text).and_then(|()| fs::rename(&new, path)).expect("the folder takes a file");
}

/// An agent's end: it hands its work over, and holds the line.
pub(super) fn hand_over(hub: &str) -> std::io::Result<HubLine> {
    if let Some(address) = hub.strip_prefix(UDP) {
        return sent(address.parse().map_err(std::io::Error::other)?);
    }
    if hub.starts_with('/') { said(UnixStream::connect(hub)?) } else { said(TcpStream::connect(hub)?) }
}

/// A line that is held: a socket of any kind.
pub(super) type HubLine = Box<dyn Any + Send>;

fn sent(hub: SocketAddr) -> std::io::Result<HubLine> {
    let any = if hub.is_ipv4() { IpAddr::V4(Ipv4Addr::UNSPECIFIED) } else { Ipv6Addr::UNSPECIFIED.into() };
    let line = UdpSocket::bind((any, 0))?;
    line.connect(hub)?;
    line.send(b"work\n")?;
    line.recv(&mut [0; 6])?;
    Ok(Box::new(line))
}

fn said<S: Read + Write + Send + 'static>(mut line: S) -> std::io::Result<HubLine> {
    line.write_all(b"work\n")?;
    line.read_exact(&mut [0; 6])?;
    Ok(Box::new(line))
}
