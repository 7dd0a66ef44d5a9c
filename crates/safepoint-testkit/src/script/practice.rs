//! The practice model: small, offline, deterministic, and honest about what it is.

use std::time::Duration;

use serde_json::json;

use super::Asked;
use super::Reply;

const PACE: Duration = Duration::from_millis(25);
const CHARS: usize = 6;

/// Orders that it understands: the word, the tool, and the tool's argument.
const ORDERS: [(&str, &str, &str); 4] = [
    ("run:", "shell", "command"),
    ("read:", "read_file", "path"),
    ("list:", "list_dir", "path"),
    ("sleep:", "sleep", "seconds"),
];

pub(super) fn reply(asked: &Asked) -> Reply {
    let text = match (asked.results.as_slice(), order(asked)) {
        ([], Some(reply)) => return reply,
        ([], None) => format!(
            "I am the practice model: a script, not a language model. You said: \"{}\". \
             I understand `run: COMMAND`, `read: FILE`, `list: FOLDER` and `sleep: SECONDS`, and I stream slowly \
             enough to be stopped. Try Ctrl-C. For real answers, set OPENAI_API_KEY, ANTHROPIC_API_KEY or \
             GEMINI_API_KEY, or name a server with --base-url.",
            shortened(&asked.user)
        ),
        (results, _) => {
            let all: Vec<String> = results.iter().map(|result| shortened(result)).collect();
            format!(
                "The tool said:\n{}\nThat is all that the practice model can say about it.",
                all.join("\n")
            )
        }
    };
    Reply::text(text).paced(CHARS, PACE)
}

fn order(asked: &Asked) -> Option<Reply> {
    ORDERS.iter().find_map(|(word, tool, argument)| {
        let (_, rest) = asked.user.split_once(word)?;
        let rest = rest.lines().next().unwrap_or_default().trim();
        asked.tools.iter().find(|offered| offered == tool)?;
        let value = match rest.parse::<u64>() {
            Ok(number) if *tool == "sleep" => json!(number),
            Ok(_) | Err(_) => json!(rest),
        };
        Some(Reply::call(*tool, json!({ *argument: value })))
    })
}

fn shortened(text: &str) -> String {
    const MOST: usize = 400;
    let mut short: String = text.chars().take(MOST).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}
