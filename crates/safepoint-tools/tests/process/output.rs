//! Output: bounded in memory, whole in the file, in the order of writing.

use std::{
    fs,
    sync::{Arc, Mutex},
};

use safepoint_tools::process::{CommandSpec, Exit, OutputTarget};

use super::support::{self, guarded, started};

const MEGABYTES: u64 = 100;
const BUDGET: usize = 4096;

/// S4.7: a 100 MB output.
#[tokio::test]
async fn a_hundred_megabytes_stay_within_the_budget() {
    let line = format!("echo first; yes 0123456789abcdef | head -c {} ; echo last", MEGABYTES << 20);
    let spec = CommandSpec::shell(line).output(OutputTarget::Capture { budget: BUDGET });
    let mut process = guarded("huge").spawn(spec).await.unwrap();
    let before = resident_peak();
    let report = process.wait().await;
    let grown = resident_peak().saturating_sub(before);
    assert_eq!(report.exit, Exit::Code(0));
    let got = process.output().captured();
    let file = got.file.expect("it was spilled");
    let written = fs::metadata(&file).unwrap().len();
    fs::remove_file(&file).unwrap();
    assert!(got.truncated && got.text.len() < 2 * BUDGET, "{} bytes", got.text.len());
    assert!(got.text.starts_with("first\n0123") && got.text.ends_with("last\n"));
    assert_eq!((got.total, written), ((MEGABYTES << 20) + 11, (MEGABYTES << 20) + 11));
    assert!(grown < 16 << 20, "memory grew by {grown} bytes");
}

/// S4.9: endless output cannot hide a stop.
#[tokio::test]
async fn a_command_that_never_stops_writing_can_be_stopped() {
    let spec = CommandSpec::shell("echo ready; exec yes").output(OutputTarget::Capture { budget: BUDGET });
    let mut process = started(&guarded("yes"), spec).await;
    let report = process.stop(std::time::Duration::ZERO).await;
    assert_eq!(report.exit, Exit::Signal(9));
    if let Some(file) = process.output().captured().file {
        fs::remove_file(file).unwrap();
    }
}

#[tokio::test]
async fn both_streams_come_in_the_order_of_writing() {
    let line = "for i in 1 2 3 4 5; do echo o$i; echo e$i >&2; done";
    let mut process = guarded("order").spawn(CommandSpec::shell(line)).await.unwrap();
    process.wait().await;
    assert_eq!(process.output().text(), "o1\ne1\no2\ne2\no3\ne3\no4\ne4\no5\ne5\n");
}

#[tokio::test]
async fn bytes_that_are_no_text_are_survived() {
    let mut process = guarded("bytes").spawn(CommandSpec::shell("printf 'a\\377\\376b'")).await.unwrap();
    process.wait().await;
    let text = process.output().text();
    assert!(text.starts_with("a\u{fffd}\u{fffd}b") && text.contains("not UTF-8"), "{text}");
}

/// S4.5: progress while it runs.
#[tokio::test]
async fn each_chunk_is_told_as_it_arrives() {
    let processes = guarded("chunks");
    let mut process = processes.spawn(CommandSpec::shell("echo one; read line; echo two")).await.unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&seen);
    process.on_output(move |chunk| sink.lock().unwrap().extend_from_slice(chunk));
    process.wait().await;
    assert_eq!(*seen.lock().unwrap(), b"one\ntwo\n");
}

#[tokio::test]
async fn an_output_file_is_for_its_owner_alone_and_is_appended_to() {
    use std::os::unix::fs::PermissionsExt;
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("log");
    for word in ["a", "b"] {
        let spec = CommandSpec::shell(format!("echo {word}")).output(OutputTarget::File(file.clone()));
        guarded("file").spawn(spec).await.unwrap().wait().await;
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), "a\nb\n");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
}

#[tokio::test]
async fn a_read_only_working_directory_and_no_home_are_no_hindrance() {
    let mut spec = CommandSpec::shell("echo ${HOME-none}; pwd").cwd("/proc");
    spec.env.push(("HOME".into(), None));
    let mut process = guarded("homeless").spawn(spec).await.unwrap();
    assert_eq!(process.wait().await.exit, Exit::Code(0));
    assert_eq!(process.output().text(), "none\n/proc\n");
}

/// The most memory that this process has held, in bytes.
fn resident_peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_ascii_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

#[test]
fn support_sees_this_process() {
    assert!(support::is_alive(std::process::id().cast_signed()));
}
