//! A daemon that agents hand their work to, as some do that people run: it lives before them and after them, outside of
//! their tree, and goes on with what it was given whatever becomes of whoever gave it.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    os::unix::net::{UnixListener, UnixStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use crate::wait;

/// The variable that makes a hub of a process that calls [`serve_if_asked`](super::serve_if_asked): its folder.
pub(super) const ASKED: &str = "SAFEPOINT_TEST_HUB";

const BEAT: Duration = Duration::from_millis(5);

/// A hub that runs, as a process of its own. Dropping it ends it.
#[derive(Debug)]
pub struct Hub {
    process: Child,
    folder: PathBuf,
}

impl Hub {
    /// Starts one in this folder: `command` is this very program, told to call
    /// [`serve_if_asked`](super::serve_if_asked).
    ///
    /// # Panics
    /// If it cannot be started.
    #[must_use]
    pub fn start(mut command: Command, folder: &Path) -> Self {
        command.env(ASKED, folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = command.spawn().expect("a hub starts");
        let hub = Self { process, folder: folder.to_owned() };
        wait::until("the hub listens", || hub.port().is_some());
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
        format!("127.0.0.1:{}", self.port().expect("it listens"))
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

    /// Waits until its work has gone on from here.
    ///
    /// # Panics
    /// If it does not.
    pub fn goes_on(&self) {
        let before = self.count();
        wait::until("the hub's work goes on", || self.count().is_some_and(|count| Some(count) > before));
    }

    fn port(&self) -> Option<u16> {
        fs::read_to_string(self.folder.join("port")).ok()?.trim().parse().ok()
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

/// Is the hub, for ever.
pub(super) fn serve(folder: &Path) -> ! {
    let near = UnixListener::bind(socket(folder)).expect("a socket in the file system");
    let far = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = far.local_addr().expect("it has an address").port();
    write(&folder.join("port"), &port.to_string());
    let (count, beside) = (folder.join("count"), folder.join("count"));
    thread::spawn(move || near.incoming().flatten().for_each(|caller| take(caller, count.clone())));
    far.incoming().flatten().for_each(|caller| take(caller, beside.clone()));
    std::process::exit(0)
}

/// Whoever calls says one word, and that begins a work without an end.
fn take(caller: impl Read + Write + Send + 'static, count: PathBuf) {
    thread::spawn(move || {
        let mut caller = BufReader::new(caller);
        let mut word = String::new();
        if caller.read_line(&mut word).is_err() || caller.get_mut().write_all(b"taken\n").is_err() {
            return;
        }
        thread::spawn(move || {
            for number in 0_u64.. {
                write(&count, &number.to_string());
                thread::sleep(BEAT);
            }
        });
        // Its end changes nothing.
        while caller.read_line(&mut word).is_ok_and(|read| read > 0) {}
    });
}

/// Whole, or not at all: it is read meanwhile.
fn write(path: &Path, text: &str) {
    let new = path.with_extension("new");
    fs::write(&new, text).and_then(|()| fs::rename(&new, path)).expect("the folder takes a file");
}

/// An agent's end: it hands its work over, and holds the line.
pub(super) fn hand_over(hub: &str) -> std::io::Result<Box<dyn Held>> {
    if hub.starts_with('/') { said(UnixStream::connect(hub)?) } else { said(TcpStream::connect(hub)?) }
}

/// A line that is held.
pub(super) trait Held: Send {}

impl Held for UnixStream {}
impl Held for TcpStream {}

fn said<S: Read + Write + Held + 'static>(mut line: S) -> std::io::Result<Box<dyn Held>> {
    line.write_all(b"work\n")?;
    line.read_exact(&mut [0; 6])?;
    Ok(Box::new(line))
}
