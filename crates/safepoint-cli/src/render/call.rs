//! A call in a row, as a person would write it: the command, the file, the address.
//!
//! **Invariants**
//! - A command is shown whole. What would fill the screen is left out only where the chat shows it elsewhere: the text of an
//!   edit is its diff. Everything is in the question and in the trace.
//! - Shown, not obeyed.

use serde_json::{Map, Value};

use super::{
    edit,
    text::{brief, in_a_row},
};

/// The most letters of the arguments of a call that has no main one.
const MOST: usize = 400;

/// The argument that says what a call is about.
const MAIN: [(&str, &str); 8] = [
    ("shell", "command"),
    ("shell_outside", "command"),
    ("read_file", "path"),
    ("write_file", "path"),
    ("edit_file", "path"),
    ("list_dir", "path"),
    ("search", "pattern"),
    ("http_get", "url"),
];

/// What is shown elsewhere: the diff, the question.
const ELSEWHERE: [&str; 4] = ["content", "old", "new", "why"];

/// Whether this tool runs a command.
pub(crate) fn is_command(tool: &str) -> bool {
    matches!(tool, "shell" | "shell_outside")
}

/// The command of a call, and what else the call says; none if it runs none.
pub(crate) fn command(tool: &str, args: &Value) -> Option<(String, Map<String, Value>)> {
    let mut fields = args.as_object().filter(|_| is_command(tool))?.clone();
    let command = fields.get("command")?.as_str()?.to_owned();
    fields.retain(|name, value| name != "command" && !value.is_null());
    Some((command, fields))
}

/// The arguments of a call of this tool.
pub(crate) fn in_words(tool: &str, args: &Value) -> String {
    let args = edit::readable(tool, args);
    parts(tool, &args).unwrap_or_else(|| cut(brief(&args)))
}

/// The main argument, and the others behind it; none if the call is not as the tool's schema says.
fn parts(tool: &str, args: &Value) -> Option<String> {
    let (_, main) = MAIN.iter().find(|(name, _)| *name == tool)?;
    let fields = args.as_object()?;
    let main_text = in_a_row(fields.get(*main)?.as_str()?);
    let rest = others(fields, main);
    Some(if rest.is_empty() { main_text } else { format!("{main_text}  ({})", rest.join(", ")) })
}

fn others(fields: &Map<String, Value>, main: &str) -> Vec<String> {
    let is_shown = |name: &str, value: &Value| {
        name != main && !ELSEWHERE.contains(&name) && !matches!(value, Value::Null | Value::Bool(false))
    };
    let shown = fields.iter().filter(|(name, value)| is_shown(name, value));
    shown
        .map(|(name, value)| {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            cut(in_a_row(&format!("{name}: {value}")))
        })
        .collect()
}

fn cut(text: String) -> String {
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}… ({} characters in all)", &text[..end], text.chars().count()),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_call_is_shown_as_a_person_would_write_it() {
        let long = "line\n".repeat(200);
        for (tool, args, expected) in [
            ("write_file", json!({"path": "docs/new.md", "content": long}), "docs/new.md"),
            ("edit_file", json!({"path": "a.rs", "old": "x", "new": "y", "if_sha256": "0"}), "a.rs"),
            ("edit_file", json!({"path": "a.rs", "old": "x", "new": "y", "all": true}), "a.rs  (all: true)"),
            ("shell", json!({"command": "cargo test", "background": null}), "cargo test"),
            (
                "shell",
                json!({"command": "cargo test", "timeout_seconds": 30}),
                "cargo test  (timeout_seconds: 30)",
            ),
            (
                "shell_outside",
                json!({"command": "cargo fetch", "opens": "network", "why": "for the build"}),
                "cargo fetch  (opens: network)",
            ),
            ("search", json!({"pattern": "fn main", "in": "contents"}), "fn main  (in: contents)"),
            ("shell", json!({"cmd": "ls"}), "ls"),
            ("weather", json!({"city": "Oslo", "days": 3}), r#"{"city":"Oslo","days":3}"#),
        ] {
            assert_eq!(in_words(tool, &args), expected, "{tool} {args}");
        }
    }

    #[test]
    fn a_command_is_whole_and_other_long_arguments_say_how_long_they_are() {
        let command = "x".repeat(3 * MOST);
        assert_eq!(in_words("shell", &json!({ "command": command })), command);
        let shown = in_words("tracker__add", &json!({"title": "t", "body": command}));
        assert!(shown.chars().count() < MOST + 40 && shown.ends_with(" characters in all)"), "{shown}");
    }

    #[test]
    fn a_control_character_in_a_call_is_shown_as_its_name() {
        assert_eq!(in_words("write_file", &json!({"path": "a\u{1b}[2J\nb"})), "a\\u{1b}[2J b");
    }
}
