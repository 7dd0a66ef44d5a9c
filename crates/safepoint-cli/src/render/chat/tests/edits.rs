//! Edits in a question: the diff, hunk by hunk, other arguments, and the diff of what was done.

use serde_json::{Value, json};

use super::*;
use crate::render::edit;

/// A question about a call that replaces a file of 30 lines, of which two differ far from each other.
struct Edited {
    world: World,
    folder: tempfile::TempDir,
}

fn numbered() -> String {
    (1..=30).map(|number| format!("line {number}\n")).collect()
}

impl Edited {
    fn new(tool: &str, args: &Value) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.txt"), numbered()).unwrap();
        let mut edited = Self { world: World::running(), folder };
        let asked = edited.asked(tool, args);
        let acts = edited.world.fact(Fact::ApprovalRequested(asked.clone()));
        assert_eq!(acts, [Action::Preview(Box::new(asked.clone()))]);
        edited.show(&asked);
        edited
    }

    fn whole() -> Self {
        let content = numbered().replace("line 2\n", "line two\n").replace("line 29\n", "");
        Self::new("write_file", &json!({"path": "a.txt", "content": content}))
    }

    fn asked(&self, tool: &str, args: &Value) -> ApprovalRequest {
        let question = json!({
            "id": "apr_1", "call_id": "call_2", "tool": tool, "digest": "", "args": args,
            "asked_at": Timestamp::UNIX_EPOCH, "expires_at": Timestamp::UNIX_EPOCH,
        });
        serde_json::from_value(question).unwrap()
    }

    /// What the driver does with a question.
    fn show(&mut self, asked: &ApprovalRequest) {
        let view = edit::look(self.folder.path(), asked);
        self.world.state.previewed(asked, view, self.world.now);
    }

    /// A letter, after a pause.
    fn answer(&mut self, letter: char) -> Vec<Action> {
        self.world.wait(CALM);
        self.world.tap(KeyCode::Char(letter))
    }
}

/// The arguments and the message of an approval with other arguments.
fn with(acts: &[Action]) -> (&Value, &str) {
    match acts {
        [Action::Decide(_, Decision::ApproveWith { args, message })] => (args, message),
        other => panic!("{other:?}"),
    }
}

/// S8.20
#[test]
fn a_question_about_an_edit_shows_its_diff() {
    let mut edited = Edited::whole();
    edited.world.shows("Allow write_file to change a.txt?  +1 -2, in 2 hunks");
    edited.world.shows("    2 -line 2");
    edited.world.shows("    2 +line two");
    edited.world.shows("@@ -26,5 +26,4 @@");
    edited.world.hides("line 15");
    edited.world.wait(CALM);
    edited.world.shows("h hunk by hunk · e change the arguments · v view all of it");
}

/// S8.20
#[test]
fn a_key_before_the_diff_is_shown_answers_nothing() {
    let mut world = World::running();
    let edited = Edited::whole();
    let asked = edited.asked("write_file", &json!({"path": "a.txt", "content": "x"}));
    world.fact(Fact::ApprovalRequested(asked.clone()));
    world.wait(CALM);
    assert_eq!(world.tap(KeyCode::Char('y')), []);
    world.state.input.clear();
    world.state.previewed(&asked, edit::look(edited.folder.path(), &asked), world.now);
    assert_eq!(world.tap(KeyCode::Char('y')), [], "it has been readable for no time");
}

/// S8.21
#[test]
fn a_yes_is_bound_to_what_was_shown() {
    let mut edited = Edited::whole();
    let acts = edited.answer('y');
    let (args, message) = with(&acts);
    assert_eq!((args["path"].as_str(), message), (Some("a.txt"), ""));
    assert_eq!(args["if_sha256"].as_str().map(str::len), Some(64));
}

/// S8.22
#[test]
fn only_the_accepted_hunks_are_approved_and_the_model_learns_which_were_not() {
    let mut edited = Edited::whole();
    assert_eq!(edited.answer('h'), []);
    edited.world.shows("hunk 1 of 2:");
    assert_eq!(edited.world.tap(KeyCode::Char('y')), [], "it has been readable for no time");
    edited.world.state.input.clear();
    assert_eq!(edited.answer('y'), []);
    edited.world.shows("yes to this hunk");
    edited.world.shows("hunk 2 of 2:");
    edited.world.shows("? may it make hunk 2 of 2: a.txt");
    let acts = edited.answer('n');
    let (args, message) = with(&acts);
    assert_eq!(args["content"].as_str(), Some(numbered().replace("line 2\n", "line two\n").as_str()));
    assert!(message.contains("accepted 1 of the 2 hunks") && message.contains("-line 29"), "{message}");
    assert!(!message.contains("line two"), "{message}");
}

/// S8.22
#[test]
fn where_no_hunk_is_accepted_nothing_runs() {
    let mut edited = Edited::whole();
    edited.answer('h');
    edited.answer('n');
    let acts = edited.answer('n');
    assert!(
        matches!(&acts[..], [Action::Decide(_, Decision::Deny { message })] if message.contains("accepted none"))
    );
}

/// S8.22: Esc leaves the question as it was.
#[test]
fn a_choice_of_hunks_that_is_left_decides_nothing() {
    let mut edited = Edited::whole();
    edited.answer('h');
    edited.answer('y');
    assert_eq!(edited.world.tap(KeyCode::Esc), []);
    edited.answer('h');
    edited.answer('n');
    let acts = edited.answer('y');
    assert!(with(&acts).1.contains("-line 2\n"), "the first hunk counts anew: {acts:?}");
}

/// S8.20
#[test]
fn an_edit_that_will_not_apply_says_so_in_the_question() {
    let mut edited = Edited::new("edit_file", &json!({"path": "a.txt", "old": "line 31", "new": "x"}));
    edited.world.shows("this call will FAIL: `old` does not occur");
    edited.world.wait(CALM);
    edited.world.hides("hunk by hunk");
}

/// S8.20: what a person changes is shown before it is approved.
#[test]
fn changed_arguments_are_shown_and_asked_about_again() {
    let mut edited = Edited::new("edit_file", &json!({"path": "a.txt", "old": "line 7\n", "new": "seven\n"}));
    assert_eq!(edited.answer('e'), []);
    edited.world.shows("\"old\": \"line 7\\n\"");
    edited.world.state.input.set("not json".into());
    assert_eq!(edited.world.tap(KeyCode::Enter), []);
    edited.world.shows("these arguments are not JSON");
    let args = json!({"path": "a.txt", "old": "line 7\n", "new": "SEVEN\n"});
    edited.world.state.input.set(args.to_string());
    let acts = edited.world.tap(KeyCode::Enter);
    let asked = edited.asked("edit_file", &args);
    assert_eq!(acts, [Action::Preview(Box::new(asked.clone()))]);
    edited.show(&asked);
    edited.world.shows("    7 +SEVEN");
    let acts = edited.answer('y');
    let (given, message) = with(&acts);
    assert_eq!(given["new"], "SEVEN\n");
    assert!(message.contains("the user changed the arguments") && message.contains("SEVEN"), "{message}");
    assert!(!message.contains("if_sha256"), "{message}");
}

/// S8.14
#[test]
fn the_arguments_of_any_call_can_be_changed() {
    let mut world = World::running();
    let asked = world.question();
    world.wait(CALM);
    assert_eq!(world.tap(KeyCode::Char('e')), []);
    world.state.input.set(r#"{"command": "ls"}"#.into());
    assert_eq!(world.tap(KeyCode::Enter), []);
    world.shows("$ ls");
    world.wait(CALM);
    let acts = world.tap(KeyCode::Char('y'));
    assert_eq!(with(&acts).0, &json!({"command": "ls"}));
    // The session refuses what does not fit: the question is open again, as it was.
    world.state.ask_again(asked.clone(), world.now);
    world.wait(CALM);
    assert_eq!(world.tap(KeyCode::Char('y')), [Action::Decide(asked.id, Decision::Approve)]);
}

#[test]
fn a_long_diff_is_folded_and_a_key_shows_all_of_it() {
    let content: String = (0..500).map(|number| format!("new {number}\n")).collect();
    let mut edited = Edited::new("write_file", &json!({"path": "b.txt", "content": content}));
    edited.world.shows("Allow write_file to make b.txt?  +500 -0");
    edited.world.shows("lines are NOT SHOWN HERE (+500 -0 in all) · v shows all of it");
    edited.world.shows("  500 +new 499");
    edited.world.hides("new 250");
    let acts = edited.answer('v');
    assert!(matches!(&acts[..], [Action::Page(text)] if text.contains("  251 +new 250")));
    assert_eq!(with(&edited.answer('y')).1, "", "the question is still open");
}

/// S8.20
#[test]
fn an_edit_that_was_made_shows_what_it_changed() {
    let mut world = World::running();
    world.fact(started("edit_file", "a.txt"));
    let id = match started("edit_file", "a.txt") {
        Fact::CallStarted { call_id, .. } => call_id,
        other => panic!("{other:?}"),
    };
    let text = "--- a.txt\n+++ a.txt\n@@ -1 +1 @@\n-one\n+two\u{1b}[2J\n".into();
    world.run(EventKind::Progress { call_id: id, text });
    let report = json!({
        "call_id": "edit_file", "name": "edit_file", "round": 1, "status": "completed", "effect": "done",
        "started_at": null, "ended_at": null, "reason": null, "stopped_by": null, "processes": [], "cleanups": [],
    });
    let result =
        json!({"call_id": "edit_file", "name": "edit_file", "text": "replaced 1", "verdict": "good"});
    let fact = json!({"fact": "call_ended", "report": report, "result": result, "extent": "all"});
    world.fact(serde_json::from_value(fact).unwrap());
    world.shows("    1 -one");
    world.shows("    1 +two\\u{1b}[2J");
    assert!(matches!(&world.say("/diff")[..], [Action::Page(text)] if text.contains("+two")));
}
