//! `watched`: the tests, and an end of those that hang. libtest says of each test that it has been running for over a minute;
//! one that is not over minutes after that is named, what its process does is shown, and the process is ended.

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead as _, BufReader, Read},
    process::{Command, Stdio},
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail};

use crate::cargo;

/// How long a test may run, in minutes, unless `SAFEPOINT_TEST_MINUTES` says it.
const MINUTES: u64 = 5;
/// After how long libtest says that a test runs long.
const SAID_AFTER: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_secs(1);

/// What the output says so far.
struct Seen {
    /// Since when each test has run that is known to run long.
    long: BTreeMap<String, Instant>,
    last: Instant,
}

impl Seen {
    fn new(now: Instant) -> Self {
        Self { long: BTreeMap::new(), last: now }
    }

    fn hear(&mut self, line: &str, now: Instant) {
        self.last = now;
        let Some(rest) = line.strip_prefix("test ") else { return };
        if let Some((name, _)) = rest.split_once(" has been running for over ") {
            self.long.insert(name.to_owned(), now.checked_sub(SAID_AFTER).unwrap_or(now));
        } else if let Some((name, _)) = rest.split_once(" ... ") {
            self.long.remove(name);
        } else if line.starts_with("test result: ") {
            self.long.clear();
        }
    }

    /// What has gone on for too long: tests by name, or nothing that has a name.
    fn hang(&self, limit: Duration, now: Instant) -> Option<Vec<String>> {
        let is_over = |since: &Instant| now.duration_since(*since) >= limit;
        let over: Vec<String> =
            self.long.iter().filter(|(_, since)| is_over(since)).map(|(name, _)| name.clone()).collect();
        (!over.is_empty() || is_over(&self.last)).then_some(over)
    }
}

/// Runs `cargo test` with these arguments, or all tests.
///
/// # Errors
/// If a test fails or hangs.
pub(crate) fn watched(args: &[String]) -> anyhow::Result<()> {
    let minutes = std::env::var("SAFEPOINT_TEST_MINUTES").ok().and_then(|minutes| minutes.parse().ok());
    let limit = Duration::from_secs(60 * minutes.unwrap_or(MINUTES));
    // One run says all that fails.
    let all = ["--workspace", "--no-fail-fast"].map(str::to_owned);
    let args = if args.is_empty() { &all[..] } else { args };
    println!("== cargo test {}", args.join(" "));
    let mut command = cargo::command();
    command.arg("test").args(args).stdout(Stdio::piped());
    if thread::available_parallelism().is_ok_and(|cores| cores.get() == 1) {
        // With one thread libtest says of no test that it runs long.
        command.env("RUST_TEST_THREADS", "2");
    }
    let mut child = command.spawn().context("cargo test could not be started")?;
    let said = child.stdout.take().context("its output is piped")?;
    let seen = Arc::new(Mutex::new(Seen::new(Instant::now())));
    let notices = Arc::clone(&seen);
    let teller = thread::spawn(move || pass_on(said, &notices));
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        thread::sleep(LOOK);
        let hang = seen.lock().unwrap_or_else(PoisonError::into_inner).hang(limit, Instant::now());
        let Some(tests) = hang else { continue };
        let binaries = test_binaries(child.id());
        // A build says nothing for long, and hangs nowhere.
        if binaries.is_empty() {
            continue;
        }
        end(&binaries, &tests, limit);
        child.kill()?;
        child.wait()?;
        bail!(
            "a test hangs: {}",
            if tests.is_empty() { "its name is not known".into() } else { tests.join(", ") }
        );
    };
    drop(teller.join());
    if !status.success() {
        bail!("cargo test failed");
    }
    Ok(())
}

fn pass_on(said: impl Read, seen: &Mutex<Seen>) {
    for line in BufReader::new(said).lines().map_while(Result::ok) {
        seen.lock().unwrap_or_else(PoisonError::into_inner).hear(&line, Instant::now());
        println!("{line}");
    }
}

/// Shows what they do, and ends them.
fn end(binaries: &[u32], tests: &[String], limit: Duration) {
    println!("\n== nothing ended within {limit:?}: {}", tests.join(", "));
    for pid in binaries {
        println!("\n-- process {pid}: {}", link(*pid));
        show_threads(*pid);
        show_stacks(*pid);
        // It ends by abort: with a core, where the machine keeps those.
        let ended = Command::new("kill").args(["-ABRT", &pid.to_string()]).status();
        if !ended.is_ok_and(|status| status.success()) {
            println!("-- it could not be ended");
        }
    }
}

/// Each thread by its name, which is that of its test, and what it waits in.
fn show_threads(pid: u32) {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return };
    for thread in threads.flatten() {
        let of =
            |what: &str| fs::read_to_string(thread.path().join(what)).unwrap_or_default().trim().to_owned();
        let status = of("status");
        let state = status.lines().find_map(|line| line.strip_prefix("State:")).unwrap_or_default().trim();
        let (name, id) = (of("comm"), thread.file_name());
        println!("{:>8} {name:<16} {state:<14} {} {}", id.to_string_lossy(), of("wchan"), of("syscall"));
        let stack = of("stack");
        stack.lines().for_each(|line| println!("           {line}"));
    }
}

/// Where each thread is in the program, if there is a debugger that may look.
fn show_stacks(pid: u32) {
    let args = ["-p", &pid.to_string(), "-batch", "-nx", "-ex", "thread apply all backtrace"];
    match Command::new("gdb").args(args).stdin(Stdio::null()).stderr(Stdio::null()).output() {
        Ok(shown) => println!("{}", String::from_utf8_lossy(&shown.stdout)),
        Err(_no_debugger) => println!("(no gdb here: the stacks of the program are not known)"),
    }
}

/// The test programs below this process, by what they are started from.
fn test_binaries(root: u32) -> Vec<u32> {
    let parents: Vec<(u32, u32)> = processes().filter_map(|pid| Some((pid, parent(pid)?))).collect();
    let mut family = vec![root];
    let mut next = 0;
    while let Some(of) = family.get(next).copied() {
        next += 1;
        family.extend(parents.iter().filter(|(_, parent)| *parent == of).map(|(pid, _)| *pid));
    }
    // Only what cargo has started itself: what the tests start ends with them.
    family.retain(|pid| parent(*pid) == Some(root) && link(*pid).contains("/deps/"));
    family
}

fn processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn parent(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
}

fn link(pid: u32) -> String {
    fs::read_link(format!("/proc/{pid}/exe")).map(|exe| exe.display().to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is said of a test counts until it is said that it ended.
    #[test]
    fn a_test_that_is_not_over_in_time_is_named() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let limit = Duration::from_secs(300);
        let mut seen = Seen::new(start);
        seen.hear("test a::hangs has been running for over 60 seconds", at(61));
        seen.hear("test a::slow has been running for over 60 seconds", at(62));
        seen.hear("test a::slow ... ok", at(90));
        assert_eq!(seen.hang(limit, at(300)), None);
        assert_eq!(seen.hang(limit, at(302)), Some(vec!["a::hangs".to_owned()]));
        seen.hear("test result: FAILED. 1 passed; 1 failed", at(303));
        assert_eq!(seen.hang(limit, at(602)), None);
        assert_eq!(seen.hang(limit, at(604)), Some(Vec::new()), "nothing at all is said");
    }
}
