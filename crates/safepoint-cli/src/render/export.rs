//! A conversation as Markdown: what was said, and what was called with what result.
//!
//! **Invariants**: what was said stands there as it was said, but for control characters, which are named. Nothing that a call or a
//! file holds ends the block that it stands in.

use std::collections::HashMap;

use safepoint::{
    event::Fact,
    history::Message,
    ids::{SessionId, TurnId},
    raw::{JournalFact, read_journal},
    store::{Error, Store},
};

use serde_json::{Map, Value};

use super::{
    call,
    text::{moment, one_line},
};
use crate::output::plain;

/// A part of the conversation, and the turn that it belongs to.
type Parts = Vec<(TurnId, Part)>;

/// Exhaustive: each is written in its own way.
enum Part {
    Person(String),
    Model(String),
    Call { name: String, args: Value, result: Option<String>, status: String },
    Note(String),
}

/// The whole conversation of a session.
///
/// # Errors
/// The store's; a record that cannot be read is a note in its place.
///
/// # Cancel safety
/// Nothing is lost.
pub(crate) async fn markdown(store: &dyn Store, session: &SessionId) -> Result<String, Error> {
    let row = store.open(session).await?;
    let mut transcript = Transcript::default();
    read_journal(store, session, |past| match past.what {
        Ok(what) => transcript.take(what),
        Err(damage) => {
            let turn = transcript.parts.last().map_or(TurnId::new(0), |(turn, _)| *turn);
            transcript.parts.push((turn, Part::Note(format!("unreadable record: {damage}"))));
        }
    })
    .await?;
    let title = if row.title.is_empty() { session.as_str() } else { row.title.as_str() };
    let mut out = format!("# {}\n\nSession {session}, begun {}\n", one_line(title), moment(row.created));
    for (_, part) in &transcript.parts {
        out.push('\n');
        write(part, &mut out);
    }
    Ok(out)
}

#[derive(Default)]
struct Transcript {
    parts: Parts,
    /// The arguments of calls that have begun.
    args: HashMap<(TurnId, String), Value>,
}

impl Transcript {
    fn take(&mut self, what: JournalFact) {
        match what {
            JournalFact::Begun { history, from, turn } => {
                self.parts.push((TurnId::new(0), Part::Note(format!("Continues {from} after {turn}"))));
                history.iter().for_each(|message| self.message(message));
            }
            JournalFact::BegunMore { history } => history.iter().for_each(|message| self.message(message)),
            JournalFact::Forgotten { turn } => self.parts.retain(|(of, _)| *of != turn),
            JournalFact::Fact { turn, path, fact, grown } if path.is_root() => {
                let people = grown.iter().filter_map(|entry| super::text::said(entry));
                self.parts.extend(people.map(|text| (turn, Part::Person(text.to_owned()))));
                self.fact(turn, &fact);
            }
            _ => {}
        }
    }

    fn fact(&mut self, turn: TurnId, fact: &Fact) {
        match fact {
            Fact::ModelEnded { message, .. } => {
                let text = message.text();
                if !text.trim().is_empty() {
                    self.parts.push((turn, Part::Model(text.into_owned())));
                }
            }
            Fact::SteerTaken { steers, .. } => {
                let said = steers.iter().filter(|steer| !steer.is_notice());
                let said = said.map(|steer| (turn, Part::Person(steer.message.text.clone())));
                self.parts.extend(said);
            }
            Fact::CallStarted { call_id, args, .. } => {
                self.args.insert((turn, call_id.as_str().to_owned()), Value::clone(args));
            }
            Fact::CallEnded { report, result, .. } => {
                let args = self.args.remove(&(turn, report.call_id.as_str().to_owned()));
                let (name, status) = (report.name.clone(), report.status.as_str().replace('_', " "));
                let result = Some(String::clone(&result.text));
                self.parts.push((turn, Part::Call { name, args: args.unwrap_or_default(), result, status }));
            }
            Fact::Settled { error: Some(error), .. } => {
                self.parts.push((turn, Part::Note(format!("The turn failed: {}", error.message))));
            }
            _ => {}
        }
    }

    /// A message of the conversation that the session began with.
    fn message(&mut self, message: &Message) {
        let turn = TurnId::new(0);
        match message {
            Message::User(message) => self.parts.push((turn, Part::Person(message.text.clone()))),
            Message::Assistant(message) => {
                let text = message.text();
                if !text.trim().is_empty() {
                    self.parts.push((turn, Part::Model(text.into_owned())));
                }
                for call in message.calls() {
                    // What is no JSON stays as the text that it is.
                    let args =
                        serde_json::from_str(&call.args).unwrap_or_else(|_| Value::String(call.args.clone()));
                    self.args.insert((turn, call.id.as_str().to_owned()), args);
                }
            }
            Message::Results { results } => {
                for result in results {
                    let args = self.args.remove(&(turn, result.call_id.as_str().to_owned()));
                    let (args, status) = (args.unwrap_or_default(), String::new());
                    let (name, result) = (result.name.clone(), Some(String::clone(&result.text)));
                    self.parts.push((turn, Part::Call { name, args, result, status }));
                }
            }
        }
    }
}

fn write(part: &Part, out: &mut String) {
    match part {
        Part::Person(text) => out.push_str(&format!("## You\n\n{}\n", plain(text).trim_end())),
        Part::Model(text) => out.push_str(&format!("## Model\n\n{}\n", plain(text).trim_end())),
        Part::Note(text) => out.push_str(&format!("*{}*\n", one_line(text))),
        Part::Call { name, args, result, status } => {
            let status = if status.is_empty() { String::new() } else { format!(": {status}") };
            out.push_str(&format!("### Call of {}{status}\n", one_line(name)));
            for (kind, text) in arguments(name, args) {
                out.push_str(&format!("\n{}", fenced(kind, &text)));
            }
            if let Some(result) = result.as_ref().filter(|result| !result.is_empty()) {
                out.push_str(&format!("\n{}", fenced("text", result)));
            }
        }
    }
}

/// The blocks of a call's arguments, each with its language: a command as it was run, with what else the call said below it.
fn arguments(tool: &str, args: &Value) -> Vec<(&'static str, String)> {
    let (command, rest) = match call::command(tool, args) {
        Some((command, others)) => (Some(("sh", command)), Value::Object(others)),
        None => (None, args.clone()),
    };
    let is_empty = rest.is_null() || rest.as_object().is_some_and(Map::is_empty);
    let rest = (!is_empty).then(|| ("json", format!("{rest:#}")));
    command.into_iter().chain(rest).collect()
}

/// A block whose fence is longer than any row of backquotes in it.
fn fenced(kind: &str, text: &str) -> String {
    const LEAST: usize = 3;
    let longest = text.split(|letter| letter != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(LEAST.max(longest + 1));
    format!("{fence}{kind}\n{}\n{fence}\n", plain(text).trim_end_matches('\n'))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// S12.50
    #[test]
    fn a_command_is_written_as_it_was_run_and_other_arguments_in_rows() {
        let args = json!({"command": "cargo test\ncargo doc", "background": null, "timeout_seconds": 5});
        let blocks = arguments("shell", &args);
        assert_eq!(
            blocks,
            [("sh", "cargo test\ncargo doc".into()), ("json", "{\n  \"timeout_seconds\": 5\n}".into())]
        );
        assert_eq!(
            arguments("weather", &json!({"city": "Oslo"})),
            [("json", "{\n  \"city\": \"Oslo\"\n}".into())]
        );
        assert_eq!(arguments("list", &json!({})), []);
    }

    /// S12.50
    #[test]
    fn nothing_in_a_block_ends_it() {
        assert_eq!(fenced("text", "a\n```\n````b\n"), "`````text\na\n```\n````b\n`````\n");
        assert_eq!(fenced("json", "\x1b[2J"), "```json\n\\u{1b}[2J\n```\n");
    }
}
