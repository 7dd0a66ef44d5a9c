//! Sessions of one file in another one, and the store that the environment names.

use std::path::Path;

use serde_json::Value;

use super::super::{lines, safepoint};

/// S7.60, S7.58: a session goes from file to file; the environment names the one that is used.
#[test]
fn a_session_goes_from_file_to_file() {
    let folder = tempfile::tempdir().unwrap();
    let [one, other, none] = ["one.db", "other.db", "none.db"].map(|name| folder.path().join(name));
    let over = |store: &Path, args: &[&str]| safepoint(args).env("SAFEPOINT_STORE", store).output().unwrap();
    let run = over(&one, &["run", "--model", "practice", "--session", "trip", "hello"]);
    assert!(run.status.success(), "{run:?}");
    let copy = |args: &[&Path]| safepoint(&["store", "copy", "--json"]).args(args).output().unwrap();
    for status in ["copied", "same"] {
        let copied = copy(&[&one, &other]);
        assert!(copied.status.success() && lines(&copied.stdout)[0]["status"] == status, "{copied:?}");
    }
    let journal = |store: &Path| {
        let mut lines = lines(&over(store, &["store", "export", "trip"]).stdout);
        lines.iter_mut().for_each(|line| line["at"] = Value::Null);
        lines
    };
    assert!(journal(&one).len() > 3);
    assert_eq!(journal(&one), journal(&other));
    assert_eq!(copy(&[&one, &one]).status.code(), Some(2));
    assert_eq!(copy(&[&none, &other]).status.code(), Some(1));
    assert!(!none.exists());
}
