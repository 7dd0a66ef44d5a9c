//! What a model reads about the sandbox, and how a command gets more than that.

use safepoint::{
    approval::{Rule, RuleAction},
    receipt::{CallStatus, SideEffect},
};
use safepoint_tools::{Root, SecretFiles, Toolbox, process::Processes};
use serde_json::json;

use super::support::Bench;

fn is_enforced() -> bool {
    let layers = crate::layers();
    if !layers.is_complete() {
        eprintln!("not tried: this system does not enforce everything: {}", layers.missing().join("; "));
    }
    layers.is_complete()
}

/// S4.27, S4.29: a command of the model writes where it may; what it may not write is refused, and the model learns why.
#[tokio::test]
async fn a_refusal_is_told_with_its_reason() {
    if !is_enforced() {
        return;
    }
    let bench = Bench::new();
    let line = format!("echo in > file; echo out > {}", bench.outside("file").display());
    let text = bench.call("shell", json!({ "command": line })).await.good();
    assert_eq!(bench.text("file"), "in\n");
    assert!(!bench.outside("file").exists(), "{text}");
    assert!(text.contains("Read-only file system"), "{text}");
    assert!(
        text.contains("[the sandbox may have refused this: it writes only below the root and in $TMPDIR"),
        "{text}"
    );
    assert!(text.contains("shell_outside asks a person"), "{text}");
    let text = bench.call("shell", json!({"command": "exit 3"})).await.good();
    assert_eq!(text, "[exit 3]", "it had nothing to do with it");
}

/// S4.29: what leaves the sandbox never runs without an approval, whatever is allowed for `shell`.
#[tokio::test]
async fn a_command_outside_takes_an_approval_of_its_own() {
    if !is_enforced() {
        return;
    }
    let mut bench = Bench::new();
    bench.allowed = vec!["shell"];
    let line = format!("echo out > {}", bench.outside("file").display());
    let args = json!({"command": line, "opens": "files", "why": "the task says so"});
    let denied = bench.call("shell_outside", args.clone()).await;
    assert_eq!((denied.report.status, denied.report.effect), (CallStatus::Denied, SideEffect::None));
    assert!(!bench.outside("file").exists());

    bench.only = Some(Rule::on("shell_outside", RuleAction::Allow));
    let network = json!({"command": line, "opens": "network", "why": "the task says so"});
    bench.call("shell_outside", network).await.good();
    assert!(!bench.outside("file").exists(), "no more is opened than was asked about");
    bench.call("shell_outside", args).await.good();
    assert!(bench.outside("file").exists());
    let everything = json!({"command": "kill -0 1", "opens": "everything", "why": "the task says so"});
    let text = bench.call("shell_outside", everything).await.good();
    assert!(!text.contains("the sandbox may have refused"), "{text}");
    let unsaid = json!({"command": "true", "opens": "network", "why": " "});
    let text = bench.call("shell_outside", unsaid).await.refused();
    assert!(text.contains("`why` is empty"), "{text}");
}

/// S4.27: a daemon that a command leaves behind is killed with it, and is confined as long as it lives.
#[tokio::test]
async fn what_is_left_behind_is_killed() {
    let bench = Bench::new();
    let text = bench.call("shell", json!({"command": "setsid sleep 1000 & echo left"})).await.good();
    assert!(text.contains("left these running, and they were killed: sleep"), "{text}");
    assert!(bench.alive().is_empty());
}

/// S4.27: without a guard nothing can be confined, and then nothing runs.
#[tokio::test]
async fn without_a_guard_nothing_confined_is_run() {
    let mut bench = Bench::new();
    let confinement = safepoint_tools::Confinement::new(bench.path(""), crate::layers()).unwrap();
    let alone = Processes::unguarded("alone");
    assert!(alone.layers().await.is_empty(), "nothing is enforced without one");
    let root = Root::open(bench.path("")).unwrap();
    bench.toolbox = Toolbox::confining(root, alone, SecretFiles::default(), confinement);
    let text = bench.call("shell", json!({"command": "echo x > file"})).await.refused();
    assert!(text.contains("can only be confined under a guard"), "{text}");
    assert!(!bench.path("file").exists());
}

/// S4.28: a command cannot take its holder away, nor suspend it.
#[tokio::test]
async fn a_command_does_not_reach_its_keeper() {
    if !is_enforced() {
        return;
    }
    let line = "kill -9 $PPID; kill -STOP $PPID; kill -9 $(cut -d' ' -f4 /proc/$PPID/stat); true";
    let text = Bench::new().call("shell", json!({ "command": line })).await.good();
    assert_eq!(text.matches("Operation not permitted").count(), 3, "{text}");
}
