//! A model that never ends what it says, against the binary: its memory, its store, and the signals that end it.

use std::{
    process::{Child, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use safepoint_testkit::wait::until;
use safepoint_testkit::{
    flood::{Field, Flood},
    server::Wire,
};
use tokio::runtime::Runtime;

use crate::{Practice, safepoint};

const MIB: u64 = 1 << 20;
/// The default of the limit on a model's output.
const LIMIT: u64 = 16 * MIB;

/// Waits for the end of a process: how it ended, and the most memory that it had.
fn ended(mut child: Child) -> (ExitStatus, u64) {
    let mut most = 0;
    let status = until("the flood is ended", || {
        most = most.max(peak(child.id()).unwrap_or(0));
        child.try_wait().unwrap()
    });
    (status, most)
}

/// The most memory that a process has had, in bytes; none once it is gone.
fn peak(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

fn asked(url: &str, wire: &str, more: &[&str]) -> Child {
    let model = format!("{wire}:m");
    let args = ["run", "--base-url", url, "--model", &model, "--json"];
    let args: Vec<&str> = args.into_iter().chain(more.iter().copied()).chain(["go"]).collect();
    safepoint(&args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// S12.4: of a model that floods any field, the program takes no more memory than the limit and 32 MiB for what it does not
/// keep, and a bounded number of times the limit for a text, which it shows, records and hands on; it ends by the limit, and
/// what is stored is no larger either.
#[test]
fn a_flood_takes_no_more_memory_than_its_limit() {
    const SLACK: u64 = 32 * MIB;
    // The message, its record, the conversation, the partial text, and the lines that show them.
    const FORMS_OF_A_TEXT: u64 = 12;
    const STOPPED: i32 = 10;
    let runtime = Runtime::new().unwrap();
    let practice = Practice::start(r#"{"replies": [{"text": "ok"}]}"#);
    let (_, usual) = ended(asked(&practice.url, "openai", &[]));
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("s.db");
    let kept = ["--store", store.to_str().unwrap(), "--session", "flooded"];
    for (wire, name, field, piece, more) in [
        (Wire::OpenAi, "openai", Field::Args, 64 << 10, &[][..]),
        (Wire::OpenAi, "openai", Field::Text, 4 << 10, &[]),
        (Wire::Anthropic, "anthropic", Field::Seal, 1 << 20, &kept[..]),
        (Wire::OpenAi, "openai", Field::Name, 100 << 20, &[]),
    ] {
        let flood = runtime.block_on(Flood::start(wire, field, piece)).unwrap();
        let (status, most) = ended(asked(&flood.url(), name, more));
        assert_eq!(status.code(), Some(STOPPED), "{wire:?} {field:?}");
        let took = most.saturating_sub(usual);
        let forms = if field == Field::Text { FORMS_OF_A_TEXT } else { 1 };
        assert!(took <= forms * LIMIT + SLACK, "{wire:?} {field:?}: {} MiB", took / MIB);
        let kept = std::fs::metadata(&store).map_or(0, |store| store.len());
        assert!(kept <= 2 * LIMIT, "{wire:?} {field:?}: {} MiB are kept", kept / MIB);
    }
}

/// S12.5: of a model that floods events, two signals end the program at once.
#[test]
fn a_flood_of_events_does_not_hold_up_signals() {
    const SOON: Duration = Duration::from_secs(8);
    let runtime = Runtime::new().unwrap();
    let flood = runtime.block_on(Flood::start(Wire::OpenAi, Field::Nothing, 1)).unwrap();
    let child = asked(&flood.url(), "openai", &[]);
    runtime.block_on(flood.until(5 * MIB)).unwrap();
    let pid = Pid::from_child(&child);
    let asked = Instant::now();
    kill_process(pid, Signal::INT).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    let (status, _) = ended(child);
    assert!(matches!(status.code(), Some(130 | 143)), "{status:?}");
    assert!(asked.elapsed() < SOON, "it took {:?}", asked.elapsed());
}
