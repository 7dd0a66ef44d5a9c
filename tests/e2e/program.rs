//! A program whose `main` returns an outcome, compiled and run: what it prints, and with which code it ends.

use std::{
    env,
    path::PathBuf,
    process::{Command, Output, Stdio},
};

/// The compiled program. `cargo test` builds it with the tests, save where it builds one test alone.
fn program() -> PathBuf {
    let tests = env::current_exe().unwrap();
    let folder = tests.parent().and_then(|deps| deps.parent()).unwrap();
    let program = folder.join("examples").join(format!("returns_outcome{}", env::consts::EXE_SUFFIX));
    // A profile's folder has its name, but for the one of development.
    let profile = match folder.file_name().and_then(|name| name.to_str()).unwrap() {
        "debug" => "dev",
        profile => profile,
    };
    if !program.exists() {
        let cargo = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--package", "safepoint-tests", "--example", "returns_outcome"])
            .args(["--profile", profile])
            .status();
        assert!(cargo.unwrap().success(), "the program could not be built");
    }
    program
}

fn run(ending: &str) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = Command::new(program()).arg(ending).output().unwrap();
    (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

/// S3.10, S3.1: the answer goes to stdout and everything else to stderr; each ending has its code, and no stop is an error.
#[test]
fn a_main_that_returns_an_outcome_says_how_it_ended() {
    assert_eq!(run("done"), (Some(0), "The bill is\npaid.\n".into(), String::new()));
    assert_eq!(
        run("failed"),
        (
            Some(1),
            String::new(),
            "failed: the provider answered 401: no such key\n  hint: check the API key\n".into()
        )
    );
    for (ending, code, begins) in [
        ("limit", 10, "Stopped by max_rounds (engine): "),
        ("sigint", 130, "Stopped by user (person): ctrl-c\n"),
        ("sigterm", 143, "Stopped by user (person): SIGTERM\n"),
        ("suspended", 11, "Suspended: waiting for a decision\n"),
    ] {
        let (status, stdout, stderr) = run(ending);
        assert_eq!((status, stdout.as_str()), (Some(code), ""), "{ending}: {stderr}");
        assert!(stderr.starts_with(begins), "{ending}: {stderr}");
        assert!(!stderr.to_lowercase().contains("error"), "{ending}: {stderr}");
        assert!(stderr.ends_with('\n') && !stderr.ends_with("\n\n"), "{ending}: {stderr}");
    }
    assert!(run("suspended").2.contains("approval  pay  waits for a decision"));
    // What is no outcome is the standard library's to print.
    let (status, _, stderr) = run("novel");
    assert_eq!((status, stderr.as_str()), (Some(1), "Error: \"there is no ending novel\"\n"));
}

/// S3.10: an answer that stdout did not accept is no success.
#[cfg(target_os = "linux")]
#[test]
fn an_answer_that_was_not_written_is_a_failure() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let status = Command::new(program()).arg("done").stdout(full).stderr(Stdio::null()).status();
    assert_eq!(status.unwrap().code(), Some(1));
}
