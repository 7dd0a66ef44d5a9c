//! The suite for tools that run commands: with one that holds its trees, and with one that does not.

use std::sync::Arc;

use safepoint::tool::{self, FnTool};
use safepoint_testkit::{invariants::Invariant, process_suite};
use safepoint_tools::{Root, process::Processes, shell};
use serde_json::json;

/// S4.9: the shell's whole tree is gone, deaf members in sessions of their own included.
#[tokio::test]
async fn a_shell_that_holds_its_trees_passes() {
    let root = Arc::new(Root::open(std::env::temp_dir()).unwrap());
    let tool = shell(root, Processes::unguarded("trees"));
    let closed = process_suite::stops_whole_trees(tool, |line| json!({ "command": line })).await.unwrap();
    let process = &closed.receipt.calls[0].processes[0];
    assert!(process.survivors.is_empty() && process.signals.contains(&"SIGKILL".to_owned()), "{process:?}");
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Args {
    line: String,
}

/// What most write first: it kills the command when it is dropped, and nothing else.
fn naive() -> FnTool {
    tool::from_fn("naive", "runs a line", |_cx, args: Args| async move {
        let output =
            tokio::process::Command::new("/bin/sh").arg("-c").arg(args.line).kill_on_drop(true).output();
        Ok(format!("{:?}", output.await?.status))
    })
}

/// I5, S4.9: a tool that kills the command only is found out, and its leftovers are named by their roles.
#[tokio::test]
async fn a_tool_that_kills_the_command_only_is_found_out() {
    let broken = process_suite::stops_whole_trees(naive(), |line| json!({ "line": line })).await.unwrap_err();
    assert_eq!(broken.invariant, Invariant::I5);
    assert!(broken.what.contains("far") && broken.what.contains("child"), "{broken}");
}
