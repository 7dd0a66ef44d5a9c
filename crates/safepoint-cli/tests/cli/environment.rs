//! Keys stay with the process that needs them: seen by the commands that it runs, as an unprivileged user and as we are.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, process::Command};

use safepoint_testkit::skipped;

use super::super::{BIN, Practice, safepoint};

const KEY: &str = "sk-end-to-end-hidden";
const UNPRIVILEGED: [&str; 3] = ["--reuid=65534", "--regid=65534", "--clear-groups"];

/// What a command can find out: its own environment, and those of its keeper, the guard and the runtime, and the
/// runtime's memory.
const LOOK: &str = "env; k=$PPID; g=$(cut -d' ' -f4 /proc/$k/stat); r=$(cut -d' ' -f4 /proc/$g/stat); \
                    env > env; cat /proc/$k/environ > keeper 2>&1; cat /proc/$g/environ > guard 2>&1; \
                    cat /proc/$r/environ > runtime 2>&1; head -c 1 /proc/$r/mem > memory 2>&1; true";

/// S4.13
#[test]
fn a_command_of_an_unprivileged_user_finds_no_key() {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let program = folder.path().join("safepoint");
    if fs::hard_link(BIN, &program).is_err() {
        // By another process: what a sibling thread forks meanwhile would hold a file that is written here, and it could not be run.
        assert!(Command::new("cp").arg(BIN).arg(&program).status().unwrap().success());
    }
    let mut unprivileged = Command::new("setpriv");
    unprivileged.args(UNPRIVILEGED).arg(&program);
    let can = Command::new("setpriv").args(UNPRIVILEGED).arg(&program).arg("--version").output();
    if !can.is_ok_and(|out| out.status.success()) {
        skipped("it cannot become another user here (setpriv)");
        return;
    }
    looks(folder.path(), unprivileged);
    for place in ["keeper", "guard", "runtime", "memory"] {
        let text = fs::read_to_string(folder.path().join(place)).unwrap();
        assert!(text.contains("Permission denied"), "{place}: {text:?}");
    }
}

/// S4.13: even who may read everything finds no key where the kernel shows environments.
#[test]
fn no_environment_that_the_kernel_shows_holds_a_key() {
    let folder = tempfile::tempdir().unwrap();
    looks(folder.path(), Command::new(BIN));
    for place in ["keeper", "guard", "runtime"] {
        let text = fs::read(folder.path().join(place)).unwrap();
        let text = String::from_utf8_lossy(&text);
        assert!(text.contains("PATH=") || text.contains("Permission denied"), "{place}: {text:?}");
    }
}

/// S11.13: a build without the export sends nothing where the variables say, and is silent about them.
#[cfg(not(feature = "otel"))]
#[test]
fn a_build_without_the_export_is_silent() {
    let collector = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    collector.set_nonblocking(true).unwrap();
    let endpoint = format!("http://{}", collector.local_addr().unwrap());
    let mut run = safepoint(&["run", "--model", "practice", "hello"]);
    run.env("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint).env("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc");
    let ran = run.stdin(std::process::Stdio::null()).output().unwrap();
    let errors = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{errors}");
    assert!(!errors.to_lowercase().contains("telemetry"), "{errors}");
    assert_eq!(collector.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
}

/// Lets a run of this program look around, and checks the results that it gets and what it writes.
fn looks(folder: &Path, mut program: Command) {
    let script = serde_json::json!({"replies": [{"calls": [{"name": "shell", "args": {"command": LOOK}}]},
        {"text": "done"}]});
    let practice = Practice::start(&script.to_string());
    let args = ["run", "look", "--json", "--tools", "shell", "--approve", "auto", "--model", "openai:m"];
    program.args(args).args(["--base-url", &practice.url, "--root", folder.to_str().unwrap()]);
    program.env_clear().envs(safepoint(&[]).get_envs().filter_map(|(name, value)| Some((name, value?))));
    program.env("OPENAI_API_KEY", KEY).env("MY_DB_PASSWORD", KEY).env("EDITOR", "vi");
    let ran = program.current_dir("/").stdin(std::process::Stdio::null()).output().unwrap();
    let (out, errors) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{out}{errors}");
    assert!(!out.contains(KEY) && !errors.contains(KEY), "{out}{errors}");
    for place in ["env", "keeper", "guard", "runtime"] {
        let text = String::from_utf8_lossy(&fs::read(folder.join(place)).unwrap()).into_owned();
        assert!(!text.contains(KEY), "{place}: {text:?}");
    }
    let given = fs::read_to_string(folder.join("env")).unwrap();
    assert!(given.contains("PATH=") && given.contains("EDITOR=vi") && !given.contains("OPENAI"), "{given}");
}

/// S4.13: what the config file names is given.
#[test]
fn a_variable_that_the_config_names_is_given() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config.toml");
    for (commands, has) in
        [("env = 'core'\nkeep = ['MY_TOKEN']", "MY_TOKEN=named"), ("env = 'all'", "EDITOR=vi")]
    {
        fs::write(&config, format!("[commands]\n{commands}\n")).unwrap();
        let script = serde_json::json!({"replies": [{"calls": [{"name": "shell", "args": {"command": "env"}}]},
            {"text": "done"}]});
        let practice = Practice::start(&script.to_string());
        let args = ["run", "x", "--json", "--tools", "shell", "--approve", "auto", "--model", "openai:m"];
        let mut program = safepoint(&args);
        program.args(["--base-url", &practice.url, "--config", config.to_str().unwrap()]);
        program.env("OPENAI_API_KEY", KEY).env("MY_TOKEN", "named").env("EDITOR", "vi");
        let out = program.output().unwrap();
        let out = String::from_utf8_lossy(&out.stdout).into_owned();
        assert!(out.contains(has), "{out}");
        assert_eq!(out.contains("EDITOR=vi"), commands.contains("all"), "{out}");
    }
}

/// S4.13: what holds a password by its name, or as the password of an address that is its value, is given to no command,
/// unless the config file names it; what only sounds alike is given.
#[test]
fn a_password_is_given_under_no_name_and_in_no_address() {
    const NAMES: [&str; 8] =
        ["MYPASS", "DB_PASS", "AUTH", "NPM_AUTH", "COOKIE", "SESSION_COOKIE", "CREDENTIALS", "PASSPHRASE"];
    const GIVEN: [&str; 6] =
        ["SSH_AUTH_SOCK", "XAUTHORITY", "GIT_AUTHOR_NAME", "GIT_ASKPASS", "COMPASS", "COOKIE_DOMAIN"];
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config.toml");
    for keep in [&[][..], &["DATABASE_URL", "MYPASS"]] {
        fs::write(&config, format!("[commands]\nkeep = {keep:?}\n")).unwrap();
        let script = serde_json::json!({"replies": [
            {"calls": [{"name": "shell", "args": {"command": "env > env"}}]}, {"text": "done"}]});
        let practice = Practice::start(&script.to_string());
        let args = ["run", "x", "--tools", "shell", "--approve", "auto", "--model", "openai:m"];
        let mut program = safepoint(&args);
        program.args(["--base-url", &practice.url, "--config", config.to_str().unwrap()]);
        program.current_dir(&folder).envs(NAMES.map(|name| (name, KEY)));
        program.env("DATABASE_URL", format!("postgres://otter:{KEY}@db.example/x"));
        program.env("REMOTE_URL", "ssh://git@git.example/x").envs(GIVEN.map(|name| (name, "/given")));
        assert!(program.output().unwrap().status.success());
        let given = fs::read_to_string(folder.path().join("env")).unwrap();
        let kept: Vec<&str> = given
            .lines()
            .filter(|line| line.contains(KEY))
            .filter_map(|line| line.split_once('=').map(|(name, _)| name))
            .collect();
        assert_eq!(kept.len(), keep.len(), "{kept:?}");
        assert!(keep.iter().all(|name| kept.contains(name)), "{kept:?}");
        for name in GIVEN {
            assert!(given.contains(&format!("{name}=/given\n")), "{name}: {given}");
        }
        assert!(given.contains("REMOTE_URL=ssh://git@git.example/x\n"), "{given}");
    }
}
