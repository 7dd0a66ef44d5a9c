//! The owner of a session, identified so precisely that others can tell whether it is still alive.

use std::{fmt, fs, process, sync::OnceLock, time::Duration};

use super::uptime::uptime;

/// A process, on a machine, since a start. Two owners that differ in any part are different processes.
///
/// ```
/// use safepoint::store::OwnerProcess;
/// assert_eq!(OwnerProcess::here().pid, std::process::id());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnerProcess {
    /// The machine's name.
    pub host: String,
    /// Names this start of the machine; empty if unknown.
    pub boot: String,
    /// Names the process-id namespace; empty if unknown.
    pub space: String,
    /// The process id.
    pub pid: u32,
    /// When the process started, in ticks since the machine's start; 0 if unknown.
    pub started: u64,
    /// The owner's control socket, if it has one.
    pub socket: Option<String>,
}

/// Whether an owner is alive. Exhaustive: proof either way, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Liveness {
    /// It is recorded.
    Alive,
    /// It is provably not.
    Dead,
    /// This process cannot tell.
    Unknown,
}

impl OwnerProcess {
    /// This process.
    #[must_use]
    pub fn here() -> Self {
        let pid = process::id();
        Self {
            host: word("/proc/sys/kernel/hostname"),
            boot: boot().to_owned(),
            space: space(),
            pid,
            started: started(pid).unwrap_or(0),
            socket: None,
        }
    }

    /// The uptime of its machine, sleep included, if that is this machine since the same start.
    #[must_use]
    pub fn uptime(&self) -> Option<Duration> {
        if self.boot.is_empty() || self.boot != boot() { None } else { uptime() }
    }

    /// Whether it is alive, as far as this process can tell: only for processes on the same machine, by the
    /// machine's start, the process id and the process's start.
    #[must_use]
    pub fn life(&self) -> Liveness {
        let here = Self::here();
        if self.boot.is_empty() || self.host != here.host {
            return Liveness::Unknown;
        }
        if self.boot != here.boot {
            return Liveness::Dead;
        }
        if self.space.is_empty() || self.space != here.space || self.started == 0 {
            return Liveness::Unknown;
        }
        match started(self.pid) {
            Some(started) if started == self.started => Liveness::Alive,
            Some(_) | None => Liveness::Dead,
        }
    }
}

impl fmt::Display for OwnerProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = if self.host.is_empty() { "this machine" } else { &self.host };
        write!(f, "process {} on {host}", self.pid)
    }
}

/// The same for as long as any process of this machine start runs.
fn boot() -> &'static str {
    static BOOT: OnceLock<String> = OnceLock::new();
    BOOT.get_or_init(|| word("/proc/sys/kernel/random/boot_id"))
}

fn word(path: &str) -> String {
    fs::read_to_string(path).map(|text| text.trim().to_owned()).unwrap_or_default()
}

fn space() -> String {
    fs::read_link("/proc/self/ns/pid").map(|link| link.to_string_lossy().into_owned()).unwrap_or_default()
}

/// When the process started, unless it has ended: a zombie can write nothing more.
fn started(pid: u32) -> Option<u64> {
    /// Counted from the field after the name, which is the third.
    const START: usize = 19;
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may hold anything, parentheses and spaces included; what follows its last one does not.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace();
    let state = fields.clone().next()?;
    if matches!(state, "Z" | "X") {
        return None;
    }
    fields.nth(START)?.parse().ok()
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use super::*;

    /// S7.4: proof of death is the pid and the start time together.
    #[test]
    fn a_process_is_known_by_its_id_and_its_start() {
        let here = OwnerProcess::here();
        assert_eq!(here.life(), Liveness::Alive);
        assert_eq!(
            OwnerProcess { started: here.started + 1, ..here.clone() }.life(),
            Liveness::Dead,
            "the id was reused"
        );
        assert_eq!(OwnerProcess { pid: u32::MAX, ..here.clone() }.life(), Liveness::Dead);
        assert_eq!(OwnerProcess { boot: "an earlier one".into(), ..here.clone() }.life(), Liveness::Dead);
        assert_eq!(OwnerProcess { host: "elsewhere".into(), ..here.clone() }.life(), Liveness::Unknown);
        assert_eq!(
            OwnerProcess { space: "another".into(), ..here.clone() }.life(),
            Liveness::Unknown,
            "a container"
        );
        assert_eq!(OwnerProcess { started: 0, ..here }.life(), Liveness::Unknown);
    }
    /// S7.4: what was killed and not yet waited for can record nothing more.
    #[test]
    fn a_process_that_only_awaits_its_parent_is_dead() {
        let mut child = process::Command::new("cat").stdin(process::Stdio::piped()).spawn().unwrap();
        let owner =
            OwnerProcess { pid: child.id(), started: started(child.id()).unwrap(), ..OwnerProcess::here() };
        assert_eq!(owner.life(), Liveness::Alive);
        child.kill().unwrap();
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while owner.life() != Liveness::Dead {
            assert!(std::time::Instant::now() < deadline, "it was killed long ago");
            std::thread::yield_now();
        }
        child.wait().unwrap();
        assert_eq!(owner.life(), Liveness::Dead);
    }
}
