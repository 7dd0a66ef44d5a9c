//! What people call an agent that is a program: the program's file name, and behind an interpreter the script's.
//!
//! **Invariants**: no other word of a command line is in a name, since a word may hold a key. Where it is not certain
//! which word is the program, there is no name.

use std::{
    ffi::{OsStr, OsString},
    path::Path,
};

/// Programs whose argument after `-c` is a line, or whose first argument is a script.
const SHELLS: [&str; 4] = ["sh", "bash", "dash", "zsh"];

/// Programs that run what their first argument names.
const INTERPRETERS: [&str; 10] =
    ["node", "npx", "bun", "bunx", "python", "python3", "uvx", "ruby", "perl", "php"];

/// Their options that have no value.
const WITHOUT_VALUE: [&str; 5] = ["-y", "--yes", "-u", "-m", "--no-warnings"];

/// Commands of a shell that start no program, or start it later.
const OF_THE_SHELL: [&str; 14] = [
    "cd", "export", "set", "unset", "umask", "ulimit", ".", "source", "if", "while", "until", "for", "case",
    "time",
];

/// The name of the program that these words start; `None` where it is not certain.
pub(super) fn name(program: &OsStr, args: &[OsString]) -> Option<String> {
    let args = args.iter().map(OsString::as_os_str);
    let words: Vec<String> =
        std::iter::once(program).chain(args).map(|word| word.to_string_lossy().into_owned()).collect();
    named(without_prefix(&words))
}

/// The same of a line for the shell, where the shell has nothing to do but to start one program.
fn of_line(line: &str) -> Option<String> {
    let words = shlex::split(line)?;
    let words = without_prefix(&words);
    let program = words.first()?.as_str();
    let before = line.split(program).next()?;
    let is_plain = ![before, program].concat().contains(|c| ";&|<>(){}`\n".contains(c));
    named(words).filter(|_| is_plain && !OF_THE_SHELL.contains(&program))
}

/// What begins with the program: without `exec`, `env` and variables.
fn without_prefix(words: &[String]) -> &[String] {
    let is_prefix = |word: &String| {
        word == "exec"
            || is_assignment(word)
            || word.ends_with("env") && file_name(word).as_deref() == Some("env")
    };
    let program = words.iter().position(|word| !is_prefix(word)).unwrap_or(words.len());
    &words[program..]
}

/// Whether a shell, and `env`, take it as `NAME=value`.
fn is_assignment(word: &str) -> bool {
    let is_name =
        |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    word.split_once('=').is_some_and(|(name, _value)| is_name(name))
}

fn named(words: &[String]) -> Option<String> {
    let [program, args @ ..] = words else { return None };
    let name = file_name(program)?;
    if let [options, line, ..] = args
        && SHELLS.contains(&name.as_str())
        && options.starts_with('-')
        && options.ends_with('c')
    {
        return Some(of_line(line).unwrap_or(name));
    }
    let runs_a_script = SHELLS.contains(&name.as_str()) || INTERPRETERS.contains(&name.as_str());
    let script = args.iter().find(|word| !WITHOUT_VALUE.contains(&word.as_str()));
    match script.filter(|_| runs_a_script).and_then(|script| file_name(script)) {
        Some(script) => Some(format!("{name} {script}")),
        None => Some(name),
    }
}

/// The file name of a path, where it is certain that this is one.
fn file_name(word: &str) -> Option<String> {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '+' | '@');
    let is_path = !word.starts_with('-') && !word.contains("://");
    let name = Path::new(word).file_name()?.to_str()?;
    (is_path && name.chars().all(is_plain)).then(|| name.to_owned())
}

#[cfg(test)]
mod tests;
