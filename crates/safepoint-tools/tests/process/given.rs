//! What a command is given of its runtime: which variables, and which signals.

use std::process::Stdio;

use safepoint_tools::process::{CommandEnvironment, CommandSpec, Processes};

use super::{
    roles::{as_role, has_role},
    support::{guard_program, unique},
};

/// The variables of the runtime in the roles below.
const VARIABLES: [(&str, &str); 4] = [
    ("OPENAI_API_KEY", "sk-hidden"),
    ("CORP_VAULT", "vault-hidden"),
    ("MY_TOKEN", "token-named"),
    ("EDITOR", "vi"),
];

/// S4.13: the shell of a model sees no key of ours, under a guard and without one; what the person names it sees.
#[test]
fn a_command_gets_no_key_unless_it_is_named() {
    let said = as_role("given::environment_role").envs(VARIABLES).output().unwrap();
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    for grade in ["guarded", "alone"] {
        let reported = |what: &str| {
            let from = said.split_once(&format!("<{grade} {what}>")).unwrap_or_else(|| panic!("{said}")).1;
            from.split_once("</>").unwrap().0.to_owned()
        };
        let usual = reported("filtered");
        assert!(
            !usual.contains("sk-hidden") && usual.contains("EDITOR=vi") && usual.contains("PATH="),
            "{usual}"
        );
        assert!(!usual.contains("vault-hidden"), "what the program withholds: {usual}");
        assert!(usual.contains("MY_TOKEN=token-named"), "what is named is given: {usual}");
        assert!(usual.contains("OWN_KEY=its own"), "what its own spec sets is given: {usual}");
        let core = reported("core");
        assert!(
            !core.contains("EDITOR") && core.contains("PATH=") && core.contains("SAFEPOINT_RUN="),
            "{core}"
        );
        let all = reported("all");
        assert!(all.contains("sk-hidden") && all.contains("vault-hidden"), "{all}");
        assert!(!reported("holders").contains("hidden"), "{said}");
    }
}

#[tokio::test]
async fn environment_role() {
    if !has_role("environment_role") {
        return;
    }
    let usual = CommandEnvironment::filtered().keep(["MY_TOKEN"]).withhold(["CORP_VAULT"]);
    for (grade, processes) in grades() {
        let processes = processes.environment(usual.clone());
        for (what, spec) in [
            ("filtered", CommandSpec::shell("env").env("OWN_KEY", "its own")),
            ("core", CommandSpec::shell("env").environment(CommandEnvironment::core())),
            ("all", CommandSpec::shell("env").environment(CommandEnvironment::all())),
            (
                "holders",
                CommandSpec::shell(
                    "k=$PPID; cat /proc/$k/environ /proc/$(cut -d' ' -f4 /proc/$k/stat)/environ",
                ),
            ),
        ] {
            // Without a guard the parent is the runtime itself, whose secrets are the program's affair.
            if (grade, what) == ("alone", "holders") {
                println!("<alone holders></>");
                continue;
            }
            let mut process = processes.spawn(spec).await.unwrap();
            process.wait().await;
            println!("<{grade} {what}>{}</>", process.output().text());
        }
    }
}

/// S4.9: a runtime that ignores signals, as under `nohup` or in a script's background, has commands that hear them.
#[test]
fn a_command_hears_the_signals_that_its_runtime_ignores() {
    let program = as_role("given::signals_role");
    let words: Vec<_> = std::iter::once(program.get_program()).chain(program.get_args()).collect();
    let mut deaf = std::process::Command::new("sh");
    deaf.args([
        "-c",
        "trap '' HUP INT QUIT USR1 USR2 PIPE ALRM TERM TSTP TTIN TTOU WINCH; exec \"$@\"",
        "sh",
    ]);
    deaf.args(words).envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let said = deaf.stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let sets: Vec<&str> = said.lines().filter(|line| line.starts_with("Sig")).collect();
    assert_eq!(sets.len(), 4, "{said}");
    for set in sets {
        assert!(set.ends_with("\t0000000000000000"), "{said}");
    }
}

#[tokio::test]
async fn signals_role() {
    if !has_role("signals_role") {
        return;
    }
    for (_, processes) in grades() {
        let line = "exec grep -E 'Sig(Blk|Ign)' /proc/self/status";
        let mut process = processes.spawn(CommandSpec::shell(line)).await.unwrap();
        process.wait().await;
        println!("\n{}", process.output().text());
    }
}

fn grades() -> [(&'static str, Processes); 2] {
    [
        ("guarded", Processes::guarded_by(unique("given"), guard_program())),
        ("alone", Processes::unguarded(unique("given"))),
    ]
}
