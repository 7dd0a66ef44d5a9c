//! A build that opens no database.

use super::super::safepoint;

/// S7.58: it says how one that does is built, and nothing of the address.
#[test]
fn an_address_of_a_database_is_refused_with_what_to_do() {
    let address = "postgres://ann:hunter2@db.example/agents";
    for command in [
        "sessions ls",
        "run --session s hello",
        "push s hello --json",
        "store migrate",
        "nodes ls",
        "chat --session s",
    ] {
        let by_flag = [&command.split(' ').collect::<Vec<_>>()[..], &["--store", address]].concat();
        for (args, variable) in [(by_flag, ""), (command.split(' ').collect::<Vec<_>>(), address)] {
            let output = safepoint(&args).env("SAFEPOINT_STORE", variable).output().unwrap();
            let words = [output.stdout, output.stderr].concat();
            let words = String::from_utf8(words).unwrap();
            assert_eq!(output.status.code(), Some(2), "{args:?}: {words}");
            assert!(words.contains("--features postgres") && !words.contains("hunter2"), "{args:?}: {words}");
        }
    }
}
