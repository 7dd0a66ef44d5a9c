//! Markdown in a chat on a real terminal: a table, code, a list and a link, as they are seen and as they are sent.

use super::terminal::Terminal;
use crate::Practice;

const IDLE: &str = "Enter sends";

fn answer() -> String {
    let text = "# Plan\n\n| Name | Cost |\n|---|--:|\n| one | 1 |\n| 漢字 | 1200 |\n\n- [x] done\n  - nested ~~gone~~\n\n```rust\nlet x = \"a\"; // why\n```\n\n\
                See [the book](https://example.org/b) and [it](javascript:x).\n";
    serde_json::json!({"replies": [{"text": text, "chunk_chars": 3, "delay_ms": 1}]}).to_string()
}

fn shown(more: &[(&str, &str)]) -> (String, String) {
    let server = Practice::start(&answer());
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().to_str().unwrap();
    let args = ["chat", "--base-url", &server.url, "--model", "openai:x"];
    let variables = [("HOME", home), ("XDG_RUNTIME_DIR", home)];
    let mut terminal = Terminal::spawn(&args, &[&variables[..], more].concat());
    terminal.until(IDLE);
    terminal.press("hello\r");
    terminal.until("and it (javascript:x)");
    terminal.until(IDLE);
    terminal.press("\x04");
    let (code, screen) = terminal.end();
    assert_eq!(code, 0, "{screen}");
    (screen, terminal.raw())
}

/// S12.54, S12.55: what is sent to a terminal with links and all colours.
#[test]
fn a_message_is_shown_as_its_markdown_says() {
    let more = [
        ("TERM", "xterm-256color"),
        ("COLORTERM", "truecolor"),
        ("COLORFGBG", "15;0"),
        ("TERM_PROGRAM", "WezTerm"),
    ];
    let (screen, raw) = shown(&more);
    let rows = "Plan\n\nName │ Cost\n─────┼─────\none  │    1\n漢字 │ 1200\n\n☑ done\n  ◦ nested gone\n\nlet x = \"a\"; // why\n\nSee the book and it";
    assert!(screen.contains(rows), "{screen}");
    assert!(raw.contains("\x1b]8;;https://example.org/b\x1b\\") && raw.contains("\x1b]8;;\x1b\\"), "{raw:?}");
    assert!(!raw.contains("\x1b]8;;javascript"), "{raw:?}");
    assert!(
        raw.contains("\x1b[38;2;215;135;215mlet\x1b[0m") && raw.contains("\x1b[9mgone\x1b[0m"),
        "{raw:?}"
    );
}

/// S12.55: an address is shown where the terminal is not known to show links, and its 16 colours are used.
#[test]
fn a_plain_terminal_shows_the_address_of_a_link() {
    let (screen, raw) = shown(&[("TERM", "xterm")]);
    assert!(screen.contains("See the book (https://example.org/b) and it (javascript:x)."), "{screen}");
    assert!(
        !raw.contains("\x1b]8;") && !raw.contains("38;2;") && raw.contains("\x1b[35mlet\x1b[0m"),
        "{raw:?}"
    );
}
