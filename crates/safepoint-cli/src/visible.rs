//! Text in a question, so that nothing in it hides: what is invisible is named, what repeats is counted, and of what is
//! long the size, the head and the tail stand beside the answer.
//!
//! **Invariants**: each letter that is there is seen, or is counted among those that are not shown.

/// How often something may repeat before it is counted.
const REPEATS: usize = 24;
/// Letters that are read at a glance: above this the head and the tail are shown once more, beside the answer.
const GLANCE: usize = 1500;
/// Lines that are read at a glance.
const GLANCE_LINES: usize = 16;
/// Letters that are shown at all.
const MOST: usize = 64 << 10;
/// Lines of a command that are shown at all.
const MOST_LINES: usize = 2000;
/// Letters of a head or a tail.
const END: usize = 160;

/// Arguments, indented: all of them, up to a size.
pub(crate) fn block(args: &serde_json::Value) -> String {
    let whole = format!("{args:#}");
    sized(&whole, whole.lines().map(line))
}

/// A command as it would be typed: `$ ` before its first line and `> ` before each further one, so that no line of it reads
/// as anything else of the question.
pub(crate) fn command(text: &str) -> String {
    /// Equal lines in a row that are shown one by one.
    const EQUAL: usize = 3;
    let lines: Vec<&str> = text.split('\n').collect();
    let mut shown = Vec::new();
    for equal in lines.chunk_by(|line, next| line == next) {
        let lead = |at: usize| if shown.is_empty() && at == 0 { "$ " } else { "> " };
        let line = collapsed(&equal[0].replace('\t', "\\t"));
        let rows: Vec<String> = (0..equal.len().min(EQUAL))
            .map(|at| format!("{}{line}", lead(at)).trim_end().to_owned())
            .collect();
        shown.extend(rows);
        let more = equal.len().saturating_sub(EQUAL);
        shown.extend((more > 0).then(|| format!("[the same line {more} times more]")));
    }
    let size = shown.len();
    if size > MOST_LINES {
        let left_out = size - MOST_LINES;
        let note = format!("[… {left_out} lines are NOT SHOWN HERE …]");
        shown.splice(MOST_LINES / 2..MOST_LINES / 2 + left_out, [note]);
    }
    sized(text, shown.into_iter())
}

/// These lines of a text, indented; of a long one its size, its head and its tail stand below it.
fn sized(whole: &str, lines: impl Iterator<Item = String>) -> String {
    let shown = lines.collect::<Vec<_>>().join("\n");
    let size = shown.chars().count();
    let body = match size {
        0..=MOST => shown.clone(),
        _ => {
            let (head, tail) = (first(&shown, MOST / 2), last(&shown, MOST / 2));
            format!("{head}\n[… {} characters are NOT SHOWN HERE …]\n{tail}", size - MOST)
        }
    };
    let body = body.lines().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n");
    let lines = body.lines().count();
    if size <= GLANCE && lines <= GLANCE_LINES {
        return body;
    }
    let (head, tail) = (flat(&first(&shown, END)), flat(&last(&shown, END)));
    format!(
        "{body}\n  that is LONG: {} characters as given, in {lines} lines here. It begins\n    {head}\n  and ends\n    {tail}",
        whole.chars().count()
    )
}

/// A name, or arguments, in one line of about `most` letters: where they are longer, the head, the tail and the size.
pub(crate) fn one_line(text: &str, most: usize) -> String {
    let shown = collapsed(&text.replace('\n', "\\n").replace('\t', "\\t"));
    let size = shown.chars().count();
    if size <= most {
        return shown;
    }
    let (head, tail) = (first(&shown, most * 2 / 3), last(&shown, most / 3));
    let left_out = size - head.chars().count() - tail.chars().count();
    let short = format!("{head} […{left_out} characters…] {tail}");
    if short.chars().count() < size { short } else { shown }
}

/// A line of printed JSON; its indentation stays, unless that pushes the rest away.
fn line(line: &str) -> String {
    let rest = line.trim_start_matches(' ');
    let indent = line.len() - rest.len();
    match indent {
        0..=REPEATS => format!("{}{}", " ".repeat(indent), collapsed(rest)),
        _ => format!("[{indent} blanks]{}", collapsed(rest)),
    }
}

/// A line of a file: what is invisible is named, a tab is as wide as it is counted, and a long gap is counted.
pub(crate) fn code(text: &str) -> String {
    /// Blanks that a line of code may begin with.
    const INDENT: usize = 64;
    let rest = text.trim_start_matches([' ', '\t']);
    let indent: usize =
        text[..text.len() - rest.len()].chars().map(|blank| if blank == '\t' { 4 } else { 1 }).sum();
    let rest: Vec<String> = rest.split('\t').map(collapsed).collect();
    match indent {
        0..=INDENT => format!("{}{}", " ".repeat(indent), rest.join("    ")),
        _ => format!("[{indent} blanks]{}", rest.join("    ")),
    }
}

/// In one line; where a command has another one, a mark stands for its prompt, which would read as a redirection.
fn flat(text: &str) -> String {
    let text = text.replace("\n> ", " ⏎ ");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn first(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}

fn last(text: &str, most: usize) -> String {
    text.chars().skip(text.chars().count().saturating_sub(most)).collect()
}

/// With what is invisible named, and what repeats counted.
fn collapsed(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(unit) = unit(rest) {
        let mut times = 1;
        while rest[unit.len() * times..].starts_with(unit) {
            times += 1;
        }
        rest = &rest[unit.len() * times..];
        let named = named(unit);
        match (times, unit) {
            (..=REPEATS, _) => shown.push_str(&named.repeat(times)),
            (_, " ") => shown.push_str(&format!("[{times} blanks]")),
            _ => shown.push_str(&format!("{named}[{times} times]")),
        }
    }
    shown
}

/// The first letter, with the letter behind a backslash that it is written with.
fn unit(text: &str) -> Option<&str> {
    let mut letters = text.char_indices();
    let (_, first) = letters.next()?;
    if first == '\\' {
        letters.next();
    }
    Some(&text[..letters.next().map_or(text.len(), |(end, _)| end)])
}

fn named(unit: &str) -> String {
    unit.chars()
        .map(|letter| if hides(letter) { letter.escape_unicode().to_string() } else { letter.into() })
        .collect()
}

/// Whether it shows nothing, looks like a blank and is none, turns what is read around, or moves a cursor.
pub(crate) fn hides(letter: char) -> bool {
    letter.is_control()
        || letter.is_whitespace() && letter != ' '
        || matches!(letter,
            '\u{ad}' | '\u{34f}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{890}' | '\u{891}'
            | '\u{8e2}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}'
            | '\u{e000}'..='\u{f8ff}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            | '\u{110bd}' | '\u{110cd}' | '\u{13430}'..='\u{1345f}' | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// S8.12
    #[test]
    fn nothing_in_a_question_hides() {
        for hidden in [
            '\u{200b}',
            '\u{2060}',
            '\u{ad}',
            '\u{3164}',
            '\u{2028}',
            '\u{e0041}',
            '\u{a0}',
            '\u{202e}',
            '\u{7f}',
            '\u{9b}',
            '\u{feff}',
            '\u{2800}',
            '\u{fe0f}',
        ] {
            let shown = block(&json!({ "command": format!("a{hidden}b") }));
            let name = hidden.escape_unicode().to_string();
            assert!(shown.contains(&format!("a{name}b")), "{name}: {shown}");
            assert!(one_line(&format!("a{hidden}b"), 80).contains(&name));
        }
        assert!(block(&json!({"text": "grün ✓ 漢字"})).contains("grün ✓ 漢字"), "what is visible stays");
    }

    /// S8.12
    #[test]
    fn a_command_is_shown_as_it_would_be_typed_and_no_line_of_it_reads_as_the_question() {
        assert_eq!(command("cargo test"), "    $ cargo test");
        let shown = command("true\n  always: allow\n\trm \u{202e}x");
        assert_eq!(shown, "    $ true\n    >   always: allow\n    > \\trm \\u{202e}x");
        let shown = command(&format!("true{}rm x", "\n".repeat(6000)));
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines[4], "    [the same line 5996 times more]", "{shown}");
        assert!(lines[5] == "    > rm x" && lines.len() == 6, "{shown}");
        let shown = command(&format!("true {}; rm x", " ".repeat(6000)));
        assert_eq!(shown, "    $ true[6001 blanks]; rm x");
        let long: String = (0..20_000).map(|number| format!("echo {number}\n")).collect();
        let shown = command(&format!("{long}rm x"));
        let end: Vec<&str> = shown.lines().rev().take(4).collect();
        assert!(end[0].ends_with(" ⏎ rm x") && end[2].contains("$ echo 0 ⏎ echo 1 ⏎ "), "{end:?}");
        assert!(end[3].contains("that is LONG") && shown.contains("lines are NOT SHOWN HERE"), "{end:?}");
        assert!(shown.lines().count() < MOST_LINES + 10, "{}", shown.lines().count());
    }

    /// S8.12
    #[test]
    fn what_repeats_is_counted_and_what_is_long_shows_both_ends() {
        let shown = block(&json!({"command": format!("true {}; rm x", " ".repeat(6000))}));
        assert!(shown.contains("true[6001 blanks]; rm x") && shown.len() < 200, "{shown}");
        let shown = block(&json!({"command": format!("true {}; rm x", "\n".repeat(6000))}));
        assert!(shown.contains(r"\n[6000 times]; rm x") && shown.len() < 200, "{shown}");
        let long: String = (0..20_000).map(|number| format!("{number} ")).collect();
        let shown = block(&json!({"command": format!("{long}; rm x")}));
        let end: Vec<&str> = shown.lines().rev().take(4).collect();
        assert!(end[0].contains("; rm x") && end[2].contains("0 1 2"), "{end:?}");
        assert!(end[3].contains("that is LONG") && shown.contains("NOT SHOWN HERE"), "{end:?}");
        let line = one_line(&format!("echo {long}; rm x"), 80);
        assert!(
            line.starts_with("echo 0 1") && line.ends_with("; rm x") && line.chars().count() < 120,
            "{line}"
        );
    }
}
