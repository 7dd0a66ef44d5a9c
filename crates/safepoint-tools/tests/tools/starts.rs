//! A stop that meets the start of a command.

use std::{path::Path, time::Duration, time::Instant};

use safepoint::{Receipt, receipt::QuietReport};
use safepoint_testkit::wait;
use serde_json::json;

use super::support::Bench;

/// Ten thousand are tried by hand.
const TRIES: &str = "SAFEPOINT_START_TRIES";
const USUAL_TRIES: u32 = 60;
/// Steps into which the time of a start is divided; a prime, so that the tries meet all of them in no order.
const STEPS: u32 = 9973;

/// S3.6, S4.14: a stop at any moment of a command's start. Once the run is quiet nothing of the command is alive, and
/// what had been started stands in the receipt.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_in_the_middle_of_a_start_is_not_called_quiet_while_the_command_lives() {
    let tries = std::env::var(TRIES).map_or(USUAL_TRIES, |tries| tries.parse().unwrap());
    let bench = Bench::new();
    let span = time_of_a_start(&bench).await * 2;
    let mut lies = Vec::new();
    for number in 0..tries {
        let written = bench.path(&format!("pid-{number}"));
        let running = bench.start("shell", json!({ "command": line_writing(&written) }));
        let moment = span * (number * 7919 % STEPS) / STEPS;
        let began = Instant::now();
        // Every third try waits for the pid, as a user would who sees that it runs.
        let is_it = || if number % 3 == 0 { written.exists() } else { began.elapsed() >= moment };
        wait::so(format_args!("try {number}: it has begun"), is_it).await;
        let quiet = running.stop_whenever().await;
        let pid = pid_in(&written);
        let alive = pid.is_some_and(is_alive) || !bench.alive().is_empty();
        match quiet {
            QuietReport::Quiet(receipt) if alive || !names(&receipt, pid) => lies.push((number, pid, alive)),
            QuietReport::Quiet(_) => {}
            QuietReport::NotQuiet(receipt) => panic!("nothing is there that would not end: {receipt:?}"),
        }
    }
    assert!(lies.is_empty(), "{} of {tries} (try, pid, alive): {lies:?}", lies.len());
}

fn line_writing(place: &Path) -> String {
    format!("echo $$ > {0}.new; mv {0}.new {0}; exec sleep 1000", place.display())
}

async fn time_of_a_start(bench: &Bench) -> Duration {
    // The first one launches the guard, and is slower.
    let mut last = Duration::ZERO;
    for name in ["first", "second"] {
        let written = bench.path(name);
        let running = bench.start("shell", json!({ "command": line_writing(&written) }));
        let began = Instant::now();
        wait::so("it has begun", || written.exists()).await;
        last = began.elapsed();
        drop(running.stop_whenever().await);
    }
    last
}

fn pid_in(place: &Path) -> Option<u32> {
    std::fs::read_to_string(place).ok()?.trim().parse().ok()
}

/// What was never seen to run needs no row.
fn names(receipt: &Receipt, pid: Option<u32>) -> bool {
    pid.is_none_or(|pid| receipt.calls.iter().flat_map(|call| &call.processes).any(|row| row.pid == pid))
}

fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
    String::from_utf8_lossy(&stat).rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}
