//! Each command over a database.

use super::world::{PASSWORD, World, said};

/// S7.58: what works on a file works on a database, and no command shows its password.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_in_a_database_is_worked_on_by_every_command() {
    let world = World::new();
    world.does(&["store", "migrate"]).await;
    world.does(&["run", "--session", "trip", "hello"]).await;
    let listed = world.does(&["sessions", "ls"]).await;
    assert!(listed.out.starts_with("trip "), "{listed:?}");
    let pushed = world.does(&["push", "trip", "and then?", "--json"]).await;
    assert_eq!(pushed.lines()[0]["status"], "accepted", "{pushed:?}");
    let asks = ["run", "--session", "ask", "--tools", "shell", "--sandbox", "off", "run: echo done"];
    let asked = world.says(&asks).await;
    assert_eq!(asked.code, 11, "{asked:?}");
    let open = world.does(&["approvals", "ask"]).await;
    assert!(open.out.contains("echo done"), "{open:?}");
    world.does(&["approve", "ask"]).await;
    let resumed = world.does(&["resume", "ask", "--sandbox", "off"]).await;
    assert!(resumed.out.contains("done"), "{resumed:?}");
    world.does(&["stop", "trip"]).await;
    let shown = world.does(&["sessions", "show", "trip"]).await;
    assert!(shown.out.contains("stops"), "{shown:?}");
    let traced = world.does(&["trace", "ask", "--json"]).await;
    assert!(traced.lines().iter().any(|line| line["type"] == "approval"), "{traced:?}");
    let exported = world.does(&["store", "export", "ask"]).await;
    assert!(exported.lines().len() > 5, "{exported:?}");
    let checked = world.does(&["store", "check", "--json"]).await;
    assert!(checked.lines().iter().all(|line| line["sound"] == true), "{checked:?}");
    world.does(&["store", "prune", "--older", "0"]).await;
    world.does(&["sessions", "rm", "ask"]).await;
    world.has_no_password();
}

/// S7.58: the environment names the store, and `doctor` says which one it is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_environment_names_a_database() {
    let world = World::new();
    let with = |args: &[&str]| {
        let mut command = world.binary(args);
        // Where the password is makes no difference.
        let (user, place) = ("postgres://postgres@", world.database.rsplit_once('@').unwrap().1);
        command.env("SAFEPOINT_STORE", format!("{user}{place}?password={PASSWORD}"));
        command
    };
    let missing = said(with(&["doctor"])).await;
    assert!(missing.out.contains("safepoint store migrate"), "{missing:?}");
    assert_eq!(said(with(&["store", "migrate"])).await.code, 0);
    let found = said(with(&["doctor"])).await;
    assert!(found.out.contains("postgres://postgres@127.0.0.1"), "{found:?}");
    // A command that an agent runs does not get it.
    let run =
        ["run", "--session", "env", "--tools", "shell", "--approve", "auto", "--sandbox", "off", "run: env"];
    let ran = said(with(&run)).await;
    assert!(ran.code == 0 && ran.out.contains("PATH=") && !ran.out.contains("SAFEPOINT_STORE"), "{ran:?}");
    let listed = world.does(&["sessions", "ls"]).await;
    assert!(listed.out.starts_with("env "), "{listed:?}");
    world.has_no_password();
}

/// S7.58
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_that_cannot_be_used_is_refused_without_its_password() {
    let world = World::new();
    for (address, code, why) in [
        (format!("postgres://ann:{PASSWORD}@127.0.0.1:1/x"), 1, "postgres://ann@127.0.0.1:1/x"),
        (format!("postgres://ann:@{PASSWORD}@127.0.0.1/x"), 2, "%40"),
        (format!("postgres://ann:{PASSWORD}/x"), 2, "%3A"),
        (format!("postgres://ann:{PASSWORD}@127.0.0.1/x?novel=1"), 1, "cannot be used"),
        (format!("mysql://ann:{PASSWORD}@127.0.0.1/x"), 2, "postgres://"),
    ] {
        for command in ["sessions ls", "run --session s hello", "nodes ls", "stop s --json"] {
            let mut args: Vec<&str> = command.split(' ').collect();
            args.extend(["--store", &address]);
            let said = said(world.binary(&args)).await;
            assert_eq!(said.code, code, "{args:?}: {said:?}");
            let words = format!("{}{}", said.out, said.err);
            assert!(words.contains(why), "{args:?}: {said:?}");
        }
    }
    // Not where an argument stands in a wrong place, either.
    let wrong = said(world.binary(&["sessions", "ls", &world.database])).await;
    assert_eq!(wrong.code, 2, "{wrong:?}");
    world.has_no_password();
}
