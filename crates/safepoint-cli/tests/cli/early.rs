//! A signal from the moment on at which the program receives signals: at every point of the start it stops
//! what would begin.

use std::{
    fs,
    process::{Child, Stdio},
    time::{Duration, Instant},
};

use rustix::process::Signal;

use crate::{Practice, safepoint, signal};

/// A command that leaves a mark when it has ended.
fn script(mark: &str) -> String {
    let command = format!("sleep 0.3; touch {mark}");
    let call = serde_json::json!({"name": "shell", "args": {"command": command}});
    serde_json::json!({"replies": [{"calls": [call]}, {"text": "never"}]}).to_string()
}

/// Waits until the program catches interrupts, and then for `looks` more checks.
fn wait_for_catch(child: &Child, looks: usize) {
    let status = format!("/proc/{}/status", child.id());
    let catches = || {
        let text = fs::read_to_string(&status).unwrap();
        let caught = text.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap().trim().to_owned();
        u64::from_str_radix(&caught, 16).unwrap() & (1 << (Signal::INT.as_raw() - 1)) != 0
    };
    let deadline = Instant::now() + Duration::from_secs(20);
    while !catches() {
        assert!(Instant::now() < deadline, "it never listened");
    }
    (0..looks).for_each(|_| assert!(catches()));
}

/// S2.1, S1.7, S3.1: an interrupt that comes while the run starts is never swallowed, with a session or without: nothing
/// runs to its end after it, and the exit code is its own.
/// anthropics/claude-agent-sdk-typescript#429: an interrupt during the start resolved, and did nothing.
/// openai/codex#4721: interrupted, and the exit code was 0.
#[test]
fn an_interrupt_at_any_moment_of_the_start_stops_what_would_begin() {
    const MOMENTS: usize = 14;
    const LOOKS: usize = 40;
    for moment in 0..MOMENTS {
        for more in [&["--grace", "0"][..], &["--grace", "30s"], &["--grace", "0", "--session", "s"]] {
            let folder = tempfile::tempdir().unwrap();
            let mark = folder.path().join("mark");
            let server = Practice::start(&script(mark.to_str().unwrap()));
            let args = ["run", "go", "--model", "openai:x", "--base-url", &server.url, "--tools", "shell"];
            let args = [&args[..], &["--approve", "auto"], more].concat();
            let mut command = safepoint(&args);
            let home = folder.path();
            command
                .env("HOME", home)
                .env("XDG_RUNTIME_DIR", home)
                .stdout(Stdio::null())
                .stderr(Stdio::piped());
            let child = command.spawn().unwrap();
            wait_for_catch(&child, moment * LOOKS);
            signal(&child, Signal::INT);
            let ended = child.wait_with_output().unwrap();
            let said = String::from_utf8_lossy(&ended.stderr).into_owned();
            assert_eq!(ended.status.code(), Some(130), "{more:?} at {moment}: {said}");
            // A call that runs when a graceful stop is asked may end; no model is asked after it.
            let rounds =
                server.logged().iter().filter(|line| line.to_string().contains("chat/completions")).count();
            assert!(rounds <= 1, "{more:?} at {moment}: {said}");
            assert!(!mark.exists() || more[1] != "0", "{more:?} at {moment}: {said}");
        }
    }
}
