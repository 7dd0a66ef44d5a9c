//! The end of a lease under which commands run.

use std::{
    io::{BufRead, BufReader, Lines, Write},
    process::{ChildStdout, Stdio},
    time::Duration,
};

use rustix::process::Signal;
use safepoint_tools::process::{CommandSpec, Processes, SpawnError, boot_time};

use super::{
    roles::{as_role, has_role},
    support::{self, guard_program, started, unique, until, written_pid},
};

/// How long the runtime of the test says that it holds on.
const LEASE: Duration = Duration::from_millis(1000);
const LONG: Duration = Duration::from_secs(600);

/// S4.15, S7.4: a runtime is suspended, and its lease passes. Its commands are dead though it sleeps. When it
/// wakes, it gets the reason, and starts none before the lease is extended.
#[test]
fn commands_are_dead_when_the_lease_is_over_though_their_runtime_sleeps() {
    let mut runtime =
        as_role("leases::leased_role").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let pid = runtime.id().cast_signed();
    let mut lines = BufReader::new(runtime.stdout.take().unwrap()).lines();
    let up = after("up: ", &mut lines);
    let pids: Vec<i32> = up.split(' ').map(|pid| pid.parse().unwrap()).collect();
    assert!(pids.iter().all(|pid| support::is_alive(*pid)));
    writeln!(runtime.stdin.as_mut().unwrap(), "go").unwrap();
    after("leased", &mut lines);
    support::kill(pid, Signal::STOP);
    until("the commands are dead", || pids.iter().all(|pid| !support::is_alive(*pid)));
    assert!(support::is_suspended(pid), "nobody woke the runtime for that");
    support::kill(pid, Signal::CONT);
    assert_eq!(after("hold: ", &mut lines), "LeaseOver");
    assert_eq!(after("next: ", &mut lines), "refused");
    assert_eq!(after("extended: ", &mut lines), "exit 0");
    assert!(runtime.wait().unwrap().success());
}

fn after(word: &str, lines: &mut Lines<BufReader<ChildStdout>>) -> String {
    let line = lines.map(Result::unwrap).find_map(|line| Some(line.split_once(word)?.1.to_owned()));
    line.unwrap_or_else(|| panic!("it never said {word:?}"))
}

#[tokio::test]
async fn leased_role() {
    if !has_role("leased_role") {
        return;
    }
    let processes = Processes::guarded_by(unique("leased"), guard_program());
    let (leased, deadline) = processes.under_lease();
    deadline.extend(boot_time() + LONG);
    let line = "setsid sh -c 'trap \"\" INT TERM; echo far=$$ ready; while :; do sleep 0.01; done' & wait";
    let mut process = started(&leased, CommandSpec::shell(line)).await;
    println!("\nup: {} {}", process.pid(), written_pid(&process, "far"));
    std::io::stdin().read_line(&mut String::new()).unwrap();
    deadline.extend(boot_time() + LEASE);
    println!("leased");
    println!("hold: {:?}", process.wait().await.hold);
    let next = leased.spawn(CommandSpec::shell("true")).await;
    println!("next: {}", if matches!(next, Err(SpawnError::LeaseOver)) { "refused" } else { "started" });
    deadline.extend(boot_time() + LONG);
    let mut again = leased.spawn(CommandSpec::shell("true")).await.unwrap();
    println!("extended: {}", again.wait().await.exit);
}
