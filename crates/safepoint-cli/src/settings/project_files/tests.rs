//! What is read of a project, from where, and how much.

use std::{fs, os::unix::fs::symlink, path::Path};

use super::{Instructions, ProjectPlace, ProjectText, agents, commands, read_inside};

fn write(root: &Path, name: &str, text: &str) {
    let path = root.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn instructions(working: &Path, own: Option<&Path>) -> (Instructions, Vec<String>) {
    let mut notes = Vec::new();
    let place = ProjectPlace::around(Some(working)).unwrap();
    (Instructions::read(&place, own, &mut notes), notes)
}

/// S8.24
#[test]
fn instructions_are_read_from_the_working_folder_up_to_the_project_and_the_nearest_comes_first() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().canonicalize().unwrap();
    write(&root, "AGENTS.md", "outside of the project");
    write(&root, "project/.git/HEAD", "x");
    write(&root, "project/AGENTS.md", "said by the project");
    write(&root, "project/CLAUDE.md", "passed over");
    write(&root, "project/a/CLAUDE.md", "of the folder a");
    write(&root, "project/a/b/AGENTS.md", "  \n");
    write(&root, "own/AGENTS.md", "said by the user");
    let own = root.join("own");
    let (read, notes) = instructions(&root.join("project/a/b"), Some(&own));
    assert_eq!(notes, Vec::<String>::new());
    let names: Vec<_> =
        read.files().iter().map(|file| file.path.strip_prefix(&root).unwrap().to_owned()).collect();
    assert_eq!(
        names,
        ["project/a/CLAUDE.md", "project/AGENTS.md", "own/AGENTS.md"].map(std::path::PathBuf::from)
    );
    let text = read.text().unwrap();
    let at = |part: &str| text.find(part).unwrap();
    assert!(
        at("of the folder a") < at("said by the project")
            && at("said by the project") < at("said by the user")
    );
    assert!(!text.contains("outside") && !text.contains("passed over"));
}

/// Without a repository the working folder is all of the project.
#[test]
fn without_a_repository_nothing_above_the_working_folder_is_read() {
    let place = tempfile::tempdir().unwrap();
    write(place.path(), "AGENTS.md", "above");
    write(place.path(), "a/AGENTS.md", "here");
    let text = instructions(&place.path().join("a"), None).0.text().unwrap();
    assert!(text.contains("here") && !text.contains("above"));
}

/// S8.24: a file that leads out of its project, or is none, is not sent to a model; what is too long is cut, and that is said.
#[test]
fn what_leads_out_is_left_out_and_what_is_too_long_is_cut() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().canonicalize().unwrap();
    write(&root, "secret", "a private key");
    write(&root, "p/.git/HEAD", "x");
    symlink(root.join("secret"), root.join("p/AGENTS.md")).unwrap();
    let (read, notes) = instructions(&root.join("p"), None);
    assert!(read.text().is_none() && notes[0].contains("leads out of"), "{notes:?}");
    fs::remove_file(root.join("p/AGENTS.md")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, root.join("p/AGENTS.md"), rustix::fs::Mode::RUSR).unwrap();
    let (read, notes) = instructions(&root.join("p"), None);
    assert!(read.text().is_none() && notes[0].contains("no regular file"), "{notes:?}");
    fs::remove_file(root.join("p/AGENTS.md")).unwrap();
    write(&root, "p/AGENTS.md", &"ü".repeat(20_000));
    write(&root, "own/AGENTS.md", "no room");
    let (read, notes) = instructions(&root.join("p"), Some(&root.join("own")));
    assert_eq!(
        read.files().iter().map(|file| (file.bytes(), file.is_cut)).collect::<Vec<_>>(),
        [(32 << 10, true)]
    );
    assert_eq!(notes.len(), 2, "both are named: {notes:?}");
    // A link to a file of the same project is as good as the file.
    write(&root, "p/docs/text", "linked");
    symlink("docs/text", root.join("p/CLAUDE.md")).unwrap();
    fs::remove_file(root.join("p/AGENTS.md")).unwrap();
    assert!(instructions(&root.join("p"), None).0.text().unwrap().contains("linked"));
    assert!(read_inside(&root.join("none"), &root, 1).unwrap().is_none());
}

#[test]
fn commands_and_agents_are_markdown_files_and_what_is_left_out_is_named() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path();
    write(root, "commands/fix.md", "---\ndescription: Fix an issue\n---\nFix issue $ARGUMENTS.\n");
    write(root, "commands/tidy.md", "# Tidy up\nall of it\n");
    write(root, "commands/stop.md", "never");
    write(root, "commands/no way.md", "never");
    write(root, "commands/notes.txt", "never");
    write(
        root,
        "agents/look.md",
        "---\ndescription: Looks\ntools: read_file, search\nmodel: inherit\n---\nLook.\n",
    );
    write(root, "agents/mute.md", "no head");
    let mut text = ProjectText::default();
    commands::read(&root.join("commands"), root, &mut text);
    agents::read(&root.join("agents"), root, &mut text);
    let listed: Vec<_> = text.commands.list().collect();
    assert_eq!(listed, [("fix", "Fix an issue"), ("tidy", "Tidy up")]);
    let agents: Vec<_> = text.agents.iter().map(|agent| (&*agent.name, &*agent.instructions)).collect();
    assert_eq!(agents, [("look", "Look.")]);
    assert_eq!(text.agents[0].tools.as_deref(), Some(&["read_file".to_owned(), "search".to_owned()][..]));
    assert_eq!(text.agents[0].model, None);
    for left_out in ["stop.md", "no way.md", "mute.md"] {
        assert!(text.notes.iter().any(|note| note.contains(left_out)), "{left_out}: {:?}", text.notes);
    }
    assert_eq!(text.notes.len(), 3);
}
