//! The principal of a decision: the process as the system identifies it. A person is never claimed, because none was seen.

use std::fs;

/// In words for the record: user, process and when it started, and the terminal that it is on, if it is on one.
pub(crate) fn here() -> String {
    let user = rustix::process::getuid().as_raw();
    let name = name_of(user).map(|name| format!(" ({name})")).unwrap_or_default();
    let pid = std::process::id();
    let stat = fs::read_to_string("/proc/self/stat").ok().and_then(|line| of_stat(&line));
    let (started, terminal) = stat.unwrap_or_default();
    let started = if started == 0 { String::new() } else { format!(" (start {started})") };
    let terminal = terminal.map_or_else(|| "on no terminal".to_owned(), |terminal| format!("on {terminal}"));
    format!("uid {user}{name}, pid {pid}{started}, {terminal}")
}

/// When the process started, in ticks since the machine did, and its terminal.
fn of_stat(line: &str) -> Option<(u64, Option<String>)> {
    const TERMINAL: usize = 4;
    const START_AFTER_TERMINAL: usize = 14;
    let mut fields = line.rsplit_once(')')?.1.split_ascii_whitespace();
    let terminal = fields.nth(TERMINAL)?.parse().ok()?;
    let started = fields.nth(START_AFTER_TERMINAL)?.parse().ok()?;
    Some((started, terminal_of(terminal)))
}

/// The name of a terminal's number, as the kernel packs it.
fn terminal_of(number: u32) -> Option<String> {
    const FIRST_OF_PTS: u32 = 136;
    const LAST_OF_PTS: u32 = 143;
    let (major, minor) = ((number >> 8) & 0xfff, (number & 0xff) | ((number >> 12) & 0xf_ff00));
    match major {
        0 => None,
        FIRST_OF_PTS..=LAST_OF_PTS => Some(format!("/dev/pts/{}", minor + 256 * (major - FIRST_OF_PTS))),
        4 if minor < 64 => Some(format!("/dev/tty{minor}")),
        _ => Some(format!("terminal {major}:{minor}")),
    }
}

/// The user's name, where this machine's own list has it.
fn name_of(user: u32) -> Option<String> {
    let list = fs::read_to_string("/etc/passwd").ok()?;
    let mut users = list.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let found = users.find(|fields| fields.get(2).and_then(|id| id.parse().ok()) == Some(user))?;
    found.first().map(|name| (*name).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S8.11
    #[test]
    fn the_system_says_when_it_started_and_on_which_terminal() {
        let line = "42 (a) b) S 1 42 42 34819 42 0 0 0 0 0 0 0 0 0 20 0 1 0 7777 0 0";
        assert_eq!(of_stat(line), Some((7777, Some("/dev/pts/3".into()))));
        assert_eq!((terminal_of(0), terminal_of(1025)), (None, Some("/dev/tty1".into())));
        assert!(here().starts_with("uid ") && here().contains(&format!("pid {}", std::process::id())));
    }
}
