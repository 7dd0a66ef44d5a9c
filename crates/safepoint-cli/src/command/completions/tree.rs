//! The command line as a tree of words: what may follow where.

use clap::{Arg, Command, ValueHint};

/// Every command, each with what may follow it; the program itself comes first.
pub(super) struct Tree {
    pub(super) nodes: Vec<Node>,
}

/// A command.
pub(super) struct Node {
    /// Its words, joined with `__`, such as `safepoint__mcp__ls`.
    pub(super) id: String,
    pub(super) subcommands: Vec<Subcommand>,
    pub(super) options: Vec<Flag>,
}

/// A command below another one.
pub(super) struct Subcommand {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) help: String,
}

/// A flag.
pub(super) struct Flag {
    pub(super) long: String,
    pub(super) help: String,
    pub(super) value: FlagValue,
}

/// What follows a flag. Exhaustive: nothing, one of these words, a path, or something else.
pub(super) enum FlagValue {
    None,
    OneOf(Vec<String>),
    Path,
    Other,
}

impl Tree {
    pub(super) fn of(command: &Command) -> Self {
        let mut nodes = Vec::new();
        walk(command, command.get_name().to_owned(), &mut nodes);
        Self { nodes }
    }
}

fn walk(command: &Command, id: String, nodes: &mut Vec<Node>) {
    let below: Vec<&Command> = shown(command).collect();
    let subcommands = below.iter().map(|sub| Subcommand {
        id: format!("{id}__{}", sub.get_name()),
        name: sub.get_name().to_owned(),
        help: help(sub.get_about()),
    });
    let options = command.get_arguments().filter(|arg| !arg.is_hide_set()).filter_map(flag);
    nodes.push(Node { id: id.clone(), subcommands: subcommands.collect(), options: options.collect() });
    for sub in below {
        walk(sub, format!("{id}__{}", sub.get_name()), nodes);
    }
}

/// The commands that are listed; `help` has the same ones again.
pub(super) fn shown(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|sub| !sub.is_hide_set() && sub.get_name() != "help")
}

fn flag(arg: &Arg) -> Option<Flag> {
    let long = arg.get_long()?.to_owned();
    let words: Vec<String> = arg
        .get_possible_values()
        .iter()
        .filter(|value| !value.is_hide_set())
        .map(|value| value.get_name().to_owned())
        .collect();
    let is_path =
        matches!(arg.get_value_hint(), ValueHint::AnyPath | ValueHint::FilePath | ValueHint::DirPath);
    let value = match arg.get_action().takes_values() {
        false => FlagValue::None,
        true if !words.is_empty() => FlagValue::OneOf(words),
        true if is_path => FlagValue::Path,
        true => FlagValue::Other,
    };
    Some(Flag { long, help: help(arg.get_help()), value })
}

/// A help text in one line.
pub(super) fn help(text: Option<&clap::builder::StyledStr>) -> String {
    let text = text.map(ToString::to_string).unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
