//! Sudden deaths: of the runtime, of the guard, of a keeper, of everything at once.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use safepoint_testkit::wait;
use safepoint_tools::process::{
    CommandSpec, Exit, Hold, ProcessRecord, Processes, TreeMember, reap_survivors,
};

use super::{
    roles::{LEFT, Runtime},
    support::{self, guarded, started, until, written_pid},
};

const ONE_SECOND: Duration = Duration::from_secs(1);

/// S4.9: if the runtime alone is killed, the tree is gone within 1 s. anthropics/claude-code#29096: orphaned children.
///
/// Each tree is gone, however busy the machine is; that nothing waits for as long as a second is seen where it is not.
#[test]
fn a_killed_runtime_takes_its_trees_with_it_within_a_second() {
    wait::until("the trees of a killed runtime are gone within a second", || {
        let runtime = Runtime::start();
        assert!(runtime.commands.iter().all(|pid| support::is_alive(*pid)));
        support::kill(runtime.pid(), Signal::KILL);
        let took = until("every tree and the guard are gone", || runtime.is_gone());
        println!("runtime killed, trees gone after {took:?}");
        if took < ONE_SECOND { Ok(()) } else { Err(took) }
    });
}

/// S4.9: the commands have sessions of their own. anomalyco/opencode#3057 is the other half: who is meant must hear it.
#[test]
fn an_interrupt_of_the_runtimes_group_does_not_reach_the_commands() {
    let runtime = Runtime::start();
    let group = Pid::from_raw(runtime.pid()).unwrap();
    for signal in [Signal::INT, Signal::INT] {
        kill_process_group(group, signal).unwrap();
    }
    // The far ends would have ended on the signal, had it reached the ones that are not deaf.
    let sleeper = runtime.commands[5];
    assert!(support::is_alive(sleeper) && support::is_alive(runtime.guard));
    support::kill(runtime.guard, Signal::INT);
    support::kill(runtime.guard, Signal::TERM);
    support::kill(runtime.guard, Signal::HUP);
    assert!(support::is_alive(runtime.guard), "the guard is deaf to what people send");
    assert!(runtime.commands.iter().all(|pid| support::is_alive(*pid)));
}

/// S4.9: if the guard dies the commands die too, and it is said.
#[tokio::test]
async fn a_killed_guard_takes_the_commands_with_it_and_is_reported() {
    let processes = guarded("guard");
    let line =
        "setsid sh -c 'trap \"\" INT TERM HUP; echo far=$$ ready; while :; do sleep 0.01; done' & wait";
    let mut process = started(&processes, CommandSpec::shell(line)).await;
    let far = written_pid(&process, "far");
    support::kill(processes.guard_pid().unwrap().cast_signed(), Signal::KILL);
    let report = process.wait().await;
    assert_eq!((report.hold, report.exit), (Hold::GuardLost, Exit::Signal(9)));
    assert!(!support::exists(far) && report.survivors.is_empty(), "{report:?}");
}

/// S4.9
#[tokio::test]
async fn a_killed_guard_is_replaced_for_the_next_command() {
    let processes = guarded("again");
    processes.spawn(CommandSpec::shell("true")).await.unwrap().wait().await;
    let first = processes.guard_pid().unwrap().cast_signed();
    support::kill(first, Signal::KILL);
    until("it is dead", || !support::is_alive(first));
    let mut process = processes.spawn(CommandSpec::shell("exit 9")).await.unwrap();
    assert_eq!(process.wait().await.exit, Exit::Code(9));
    assert_ne!(processes.guard_pid().unwrap().cast_signed(), first);
}

/// S4.9: the guard kills what a keeper's death has orphaned, and no report claims to know how the command
/// ended.
#[tokio::test]
async fn a_killed_keeper_leaves_nothing_and_is_reported() {
    let processes = guarded("keeper");
    let line =
        "setsid sh -c 'trap \"\" INT TERM HUP; echo far=$$ ready; while :; do sleep 0.01; done' & wait";
    let mut process = started(&processes, CommandSpec::shell(line)).await;
    let far = written_pid(&process, "far");
    let keeper = support::parent(process.pid()).unwrap();
    support::kill(keeper, Signal::KILL);
    let report = process.wait().await;
    assert_eq!((report.hold, report.exit), (Hold::KeeperLost, Exit::Unknown));
    assert_eq!(report.survivors, []);
    until("the far process is gone", || !support::exists(far));
    let keeper = support::own_control_group().map(|group| group.join(format!("safepoint-{keeper}")));
    if keeper.is_none() {
        safepoint_testkit::skipped(
            "there are no control groups here: whether one is taken away is not looked at",
        );
    }
    let guard = processes.guard_pid().unwrap().cast_signed();
    drop((process, processes));
    until("the guard is gone", || !support::is_alive(guard));
    assert!(keeper.is_none_or(|group| !group.exists()), "its control group is taken away");
}

/// S4.9: a command does not outlive its keeper even with neither the guard nor the runtime alive to kill it.
#[tokio::test]
async fn a_command_dies_with_its_keeper_without_anybodys_help() {
    let processes = guarded("tied");
    let process = started(
        &processes,
        CommandSpec::shell("trap '' INT TERM HUP; echo ready; while :; do sleep 0.01; done"),
    )
    .await;
    let (command, guard) = (process.pid(), processes.guard_pid().unwrap().cast_signed());
    let keeper = support::parent(command).unwrap();
    support::kill(guard, Signal::STOP);
    until("the guard is suspended", || support::is_suspended(guard));
    support::kill(keeper, Signal::KILL);
    until("the command is dead", || !support::is_alive(command));
    support::kill(guard, Signal::CONT);
}

/// S4.9: no process is left to kill the tree; the next start finds it by its mark.
#[test]
fn what_outlived_runtime_guard_and_keepers_is_found_by_its_mark() {
    let _alone = LEFT.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let runtime = Runtime::start();
    let own = ProcessRecord { run: runtime.run.clone(), ..record_of(runtime.commands[2]) };
    // Suspended first, so that none of them can do its work when the others die; the guard before its
    // keepers, because it would resume them. The runtime dies last: once it is dead and its guard is not, a
    // search for what killed runtimes have left wakes the guard.
    let keepers = support::children(runtime.guard);
    assert_eq!(keepers.len(), 3);
    let holders: Vec<i32> =
        [runtime.pid(), runtime.guard].into_iter().chain(keepers.iter().copied()).collect();
    for pid in &holders {
        support::kill(*pid, Signal::STOP);
        until("it is suspended", || support::is_suspended(*pid));
    }
    for pid in holders.iter().rev() {
        support::kill(*pid, Signal::KILL);
    }
    until("all holders are dead", || {
        !support::is_alive(runtime.guard) && keepers.iter().all(|k| !support::is_alive(*k))
    });
    let far = runtime.commands[3];
    assert!(support::is_alive(far), "a process in its own session outlived all of them");
    let reaped = reap_survivors(&[own]);
    assert_eq!(reaped.survivors, []);
    assert!(reaped.killed.iter().any(|member| member.pid == far), "{reaped:?}");
    assert_eq!(support::alive_of(&runtime.run), [] as [i32; 0]);
}

/// S4.9: pid and start time and mark, all three: a number that was given away is not enough.
#[tokio::test]
async fn a_process_that_is_not_the_recorded_one_is_spared() {
    let processes = guarded("spared");
    let mut process = started(&processes, CommandSpec::shell("echo ready; exec sleep 1000")).await;
    let record = process.record().clone();
    let wrong = [
        ProcessRecord { start: record.start + 1, ..record.clone() },
        ProcessRecord { run: "another".into(), ..record.clone() },
    ];
    assert_eq!(reap_survivors(&wrong), safepoint_tools::process::Reaped::default());
    assert!(support::is_alive(process.pid()));
    let reaped = reap_survivors(&[record]);
    let killed: Vec<_> = reaped.killed.iter().map(|TreeMember { pid, .. }| *pid).collect();
    assert_eq!(killed, [process.pid()]);
    assert_eq!(process.wait().await.exit, Exit::Signal(9));
}

/// S4.9: a runtime inside a command of another does not end itself when it cleans up after that other one.
#[test]
fn this_process_and_its_ancestors_are_spared() {
    let own = record_of(std::process::id().cast_signed());
    let mark = std::env::var("SAFEPOINT_RUN").unwrap_or_default();
    let reaped = reap_survivors(&[ProcessRecord { run: mark, ..own }]);
    assert!(reaped.survivors.is_empty());
}

fn record_of(pid: i32) -> ProcessRecord {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let start = stat.rsplit_once(')').unwrap().1.split_ascii_whitespace().nth(19).unwrap().parse().unwrap();
    ProcessRecord { run: String::new(), pid, start }
}

/// S4.9: without an opt-in no program is ever started as a guard by surprise.
#[tokio::test]
async fn a_program_that_has_not_opted_in_gets_the_lower_grade() {
    let processes = Processes::new(support::unique("plain"));
    let mut process = processes.spawn(CommandSpec::shell("exit 2")).await.unwrap();
    let report = process.wait().await;
    assert_eq!(report.containment, safepoint_tools::process::Containment::ProcessGroup);
    assert_eq!((report.exit, processes.guard_pid()), (Exit::Code(2), None));
}
