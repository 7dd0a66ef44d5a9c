//! A guard that cannot read `/proc`.

use std::{os::unix::fs::PermissionsExt, process::Command};

use safepoint_testkit::skipped;
use safepoint_tools::process::{CommandSpec, Containment, ControlGroups, Processes};

use super::support::{
    NO_CAP, PATIENCE, alive_of, guard_program, is_alive, ladder, started, unique, until, written_pid,
};

/// A program that is the guard in a world without a process table, or why no such world can be made.
fn blind_guard(place: &std::path::Path) -> Result<std::path::PathBuf, String> {
    let world = "mount -t tmpfs none /proc";
    let tried = Command::new("unshare").args(["-m", "sh", "-c", world]).output();
    let tried = tried.map_err(|error| format!("unshare: {error}"))?;
    if !tried.status.success() {
        return Err(String::from_utf8_lossy(&tried.stderr).trim().to_owned());
    }
    let program = place.join("guard");
    let script =
        format!("#!/bin/sh\nexec unshare -m sh -c '{world}; exec {} \"$@\"' sh \"$@\"\n", guard_program());
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).unwrap();
    Ok(program)
}

/// S4.9, S3.6: where `/proc` cannot be read the sweep is blind, and the report declares the lower grade; a stop still
/// ends the command and its group, and is not waited for without end.
#[tokio::test]
async fn a_guard_without_a_process_table_declares_the_lower_grade() {
    let place = tempfile::tempdir().unwrap();
    // Needs the right to make a mount namespace; the grade itself is pinned beside the keeper as well.
    let program = match blind_guard(place.path()) {
        Ok(program) => program,
        Err(why) => return skipped(format_args!("no world without a process table may be made here: {why}")),
    };
    let run = unique("blind");
    let processes = Processes::guarded_by(run.clone(), program);
    for line in
        ["sleep 1000 & echo ready; wait", "trap '' INT TERM; sleep 1000 & echo ready; while :; do wait; done"]
    {
        let spec = CommandSpec::shell(line).control_groups(ControlGroups::LeaveAlone).ladder(ladder(50, 50));
        let mut process = started(&processes, spec).await;
        assert_eq!(process.containment(), Containment::ProcessGroup);
        let report = tokio::time::timeout(PATIENCE, process.stop(NO_CAP)).await.expect("it ends");
        assert_eq!(
            (report.containment, report.survivors.len()),
            (Containment::ProcessGroup, 0),
            "{report:?}"
        );
        until("nothing of it is alive", || alive_of(&run).is_empty());
    }
    let line = "setsid sh -c 'trap \"\" INT TERM; echo far=$$ ready; while :; do sleep 0.01; done' & wait";
    let spec = CommandSpec::shell(line).control_groups(ControlGroups::LeaveAlone);
    let short =
        safepoint_tools::process::Ladder { kill: std::time::Duration::from_millis(200), ..ladder(50, 50) };
    let mut process = started(&processes, spec.ladder(short)).await;
    let report =
        tokio::time::timeout(PATIENCE, process.stop(NO_CAP)).await.expect("it does not wait for ever");
    // The keeper does not see what left the group. The runtime does, and kills it when that is due.
    let far = written_pid(&process, "far");
    assert!(!report.survivors.is_empty() || !is_alive(far), "it is named or gone: {report:?}");
    until("it is gone", || !is_alive(far));
}
