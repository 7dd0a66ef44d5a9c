//! Manual pages: one for the program, and one for each command.

use clap::{Arg, Command};

use super::tree::{help, shown};

/// The name of each page's file, and its text.
pub(super) fn pages(command: &Command) -> Vec<(String, String)> {
    let mut pages = Vec::new();
    add(command, command.get_name().to_owned(), &mut pages);
    pages
}

fn add(command: &Command, name: String, pages: &mut Vec<(String, String)>) {
    pages.push((format!("{name}.1"), page(command, &name)));
    for sub in shown(command) {
        add(sub, format!("{name}-{}", sub.get_name()), pages);
    }
}

fn page(command: &Command, name: &str) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let about = roff(&help(command.get_about()));
    let mut text = format!(
        ".TH {} 1 \"\" \"safepoint {version}\" \"Safepoint\"\n.SH NAME\n{} \\- {about}\n.SH SYNOPSIS\n",
        roff(&name.to_uppercase()),
        roff(name)
    );
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ").split_whitespace().collect::<Vec<_>>().join(" ");
    text.push_str(&format!(".B {}\n", roff(&usage)));
    let subs: Vec<&Command> = shown(command).collect();
    if !subs.is_empty() {
        text.push_str(".SH COMMANDS\n");
    }
    for sub in subs {
        let (whole, what) = (roff(&format!("{name}-{}", sub.get_name())), roff(&help(sub.get_about())));
        text.push_str(&format!(".TP\n.BR {whole} (1)\n{what}\n"));
    }
    let args: Vec<&Arg> = command.get_arguments().filter(|arg| !arg.is_hide_set()).collect();
    section(&mut text, "ARGUMENTS", args.iter().filter(|arg| arg.is_positional()));
    section(&mut text, "OPTIONS", args.iter().filter(|arg| !arg.is_positional()));
    if let Some(after) = command.get_after_help() {
        text.push_str(&format!(".SH NOTES\n.nf\n{}\n.fi\n", roff(after.to_string().trim_end())));
    }
    text
}

fn section<'a>(text: &mut String, title: &str, args: impl Iterator<Item = &'a &'a Arg>) {
    let mut args = args.peekable();
    if args.peek().is_none() {
        return;
    }
    text.push_str(&format!(".SH {title}\n"));
    for arg in args {
        let values: Vec<String> =
            arg.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
        let values = if values.is_empty() || !arg.get_action().takes_values() {
            String::new()
        } else {
            format!(" One of: {}.", values.join(", "))
        };
        let what = roff(&format!("{}{values}", help(arg.get_help())));
        text.push_str(&format!(".TP\n.B {}\n{what}\n", roff(&arg.to_string())));
    }
}

/// Text in which nothing is a request of roff.
fn roff(text: &str) -> String {
    let escaped = text.replace('\\', "\\e").replace('-', "\\-");
    let lines = escaped.lines().map(|line| match line.starts_with(['.', '\'']) {
        true => format!("\\&{line}"),
        false => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}
