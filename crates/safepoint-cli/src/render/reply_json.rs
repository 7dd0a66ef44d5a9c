//! Lines of JSON of a command that is no run: the contract of its `--json`, described in `docs/schema/reply.json`.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::output::{self, Unwritten};

/// The version of these lines.
const VERSION: u32 = 1;

/// Numbers the lines of one command without a gap, and stamps them.
#[derive(Debug, Default)]
pub(crate) struct ReplyLines {
    seq: u64,
}

impl ReplyLines {
    /// One line: what every one has, and these fields. `run` is null unless they name one.
    pub(crate) fn line(&mut self, kind: &str, session: Option<&str>, fields: Value) -> Value {
        let mut line = json!({
            "v": VERSION, "type": kind, "session": session, "run": null, "seq": self.seq,
            "at": Timestamp::now().to_string(),
        });
        if let (Value::Object(line), Value::Object(fields)) = (&mut line, fields) {
            line.extend(fields);
        }
        self.seq += 1;
        line
    }

    /// Writes one line to stdout.
    ///
    /// # Errors
    /// If stdout does not take it.
    pub(crate) fn say(&mut self, kind: &str, session: Option<&str>, fields: Value) -> Result<(), Unwritten> {
        output::say_json(self.line(kind, session, fields))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_has_what_every_one_has_and_the_next_number() {
        let mut lines = ReplyLines::default();
        let first = lines.line("reply", Some("ses_1"), json!({"run": "run_1", "code": 0}));
        assert_eq!(
            (&first["v"], &first["type"], &first["session"]),
            (&json!(1), &json!("reply"), &json!("ses_1"))
        );
        assert_eq!((&first["run"], &first["seq"], &first["code"]), (&json!("run_1"), &json!(0), &json!(0)));
        assert!(first["at"].as_str().unwrap().parse::<Timestamp>().is_ok());
        let second = lines.line("mcp_server", None, json!({}));
        assert_eq!(
            (&second["seq"], &second["session"], &second["run"]),
            (&json!(1), &Value::Null, &Value::Null)
        );
    }
}
