//! The scripts and the pages, as far as programs of this machine read them.

use std::{io::Write as _, process::Command};

use super::*;

fn tree() -> tree::Tree {
    let mut command = Cli::command();
    command.build();
    tree::Tree::of(&command)
}

/// What bash offers for these words, the last of which is being typed.
fn offered(words: &[&str]) -> Vec<String> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bash::script(&tree()).as_bytes()).unwrap();
    let quoted = words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ");
    let asked = format!(
        "source '{}'; COMP_WORDS=(safepoint {quoted}); COMP_CWORD={}; _safepoint; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        file.path().display(),
        words.len()
    );
    let output = Command::new("bash").args(["--norc", "-c", &asked]).output().unwrap();
    assert!(
        output.status.success() && output.stderr.is_empty(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}

/// S12.62
#[test]
fn bash_completes_commands_flags_and_their_values() {
    assert_eq!(offered(&["doc"]), ["doctor"]);
    assert_eq!(offered(&["mcp", "l"]), ["ls", "login", "logout"]);
    assert_eq!(offered(&["run", "--appr"]), ["--approve", "--approval-expiry"]);
    assert_eq!(offered(&["run", "--mode", ""]), ["ask", "edits", "plan"]);
    assert_eq!(offered(&["run", "--json", "--mode", "p"]), ["plan"]);
    assert!(offered(&["sessions", ""]).contains(&"show".to_owned()));
}

/// Every command and flag is in each script, and in the manual.
#[test]
fn nothing_is_left_out() {
    let mut command = Cli::command();
    command.build();
    let tree = tree();
    let scripts = [bash::script(&tree), zsh::script(&tree), fish::script(&tree)];
    let pages = man::pages(&command);
    for node in &tree.nodes {
        for script in &scripts {
            assert!(script.contains(&node.id), "{}", node.id);
        }
        let name = format!("{}.1", node.id.replace("__", "-"));
        let (_, page) = pages.iter().find(|(file, _)| *file == name).unwrap();
        for option in &node.options {
            assert!(
                page.contains(&format!("\\-\\-{}", option.long.replace('-', "\\-"))),
                "{name}: {}",
                option.long
            );
        }
        assert!(page.lines().all(|line| !line.starts_with('\'')), "{name}: a request of roff");
    }
    assert_eq!(pages.len(), tree.nodes.len());
}
