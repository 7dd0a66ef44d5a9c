//! What people call an agent that is a program: the program's file name, and behind an interpreter the script's.
//!
//! **Invariants**: no other word of a command line is in a name, since a word may hold a key. Where it is not certain
//! which word is the program, there is no name.

use std::ffi::{OsStr, OsString};

mod words;

use words::{Word, commands};

/// The name of the program that these words start; `None` where it is not certain.
pub(super) fn name(program: &OsStr, args: &[OsString]) -> Option<String> {
    let args = args.iter().map(OsString::as_os_str);
    let words: Vec<Word> = std::iter::once(program).chain(args).map(Word::argument).collect();
    named(without_prefix(&words))
}

/// The same of the first program of a line for the shell.
fn of_line(line: &str) -> Option<String> {
    let commands = commands(line);
    let mut programs = commands.iter().map(|words| without_prefix(words));
    let first = programs.find(|words| words.first().is_some_and(|word| !PREPARES.contains(&word.text())))?;
    named(first).filter(|_| !KEYWORDS.contains(&first[0].text()))
}

/// Commands of a shell that only prepare for the program.
const PREPARES: [&str; 9] = ["cd", "export", "set", "unset", "umask", "ulimit", ".", "source", ":"];

/// Words of a shell behind which a command is only a part.
const KEYWORDS: [&str; 6] = ["if", "while", "until", "for", "case", "time"];

/// Programs whose argument after `-c` is a line.
const SHELLS: [&str; 6] = ["sh", "bash", "dash", "zsh", "ksh", "ash"];

/// What begins with the program: without `exec`, `env` and variables.
fn without_prefix(mut words: &[Word]) -> &[Word] {
    let mut is_after_env = false;
    while let [word, rest @ ..] = words {
        match word.text() {
            "exec" if !is_after_env => {}
            "-" | "-i" if is_after_env => {}
            text if is_after_env && text.contains('=') => {}
            _ if word.is_assignment() => {}
            _ if word.file_name().as_deref() == Some("env") => is_after_env = true,
            _ => return words,
        }
        words = rest;
    }
    words
}

fn named(words: &[Word]) -> Option<String> {
    let [program, args @ ..] = words else { return None };
    let name = program.file_name()?;
    if SHELLS.contains(&name.as_str())
        && let [options, line, ..] = args
        && is_before_a_line(options.text())
    {
        return Some(of_line(line.text()).unwrap_or(name));
    }
    Some(match script(&name, args) {
        Some(script) => format!("{name} {script}"),
        None => name,
    })
}

/// `-c`, alone or with other letters.
fn is_before_a_line(options: &str) -> bool {
    let letters = options.strip_prefix('-').filter(|letters| letters.chars().all(|c| c.is_ascii_lowercase()));
    letters.is_some_and(|letters| letters.ends_with('c'))
}

/// What an interpreter runs: the first word that is no option. An option that may have a value leaves that open.
fn script(interpreter: &str, args: &[Word]) -> Option<String> {
    let alone = options_alone(interpreter)?;
    let is_alone = |text: &str| alone.contains(&text) || text.starts_with("--") && text.contains('=');
    args.iter().find(|word| !is_alone(word.text()))?.file_name()
}

/// The options of an interpreter that have no value, or have what it runs behind them; `None` for other programs.
fn options_alone(program: &str) -> Option<&'static [&'static str]> {
    match program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.') {
        "node" | "nodejs" => Some(&["--no-warnings", "--enable-source-maps"]),
        "npx" => Some(&["-y", "--yes"]),
        "python" => Some(&["-u", "-B", "-m"]),
        "bun" | "bunx" | "uvx" | "ruby" | "perl" | "php" => Some(&[]),
        shell if SHELLS.contains(&shell) => Some(&[]),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
