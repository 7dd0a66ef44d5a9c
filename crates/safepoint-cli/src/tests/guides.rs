//! What the guides show is what the program takes: each command line, each config, and each list of tools.

use std::{fs, path::Path};

use clap::Parser as _;

use crate::{
    args::{Cli, meant},
    settings::{config::Config, server},
};

/// Words of a command line as a shell makes them, without a comment and without a `&` at the end.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for letter in line.chars() {
        match (quote, letter) {
            (Some(open), _) if letter == open => quote = None,
            (Some(_), _) => word.get_or_insert_default().push(letter),
            (None, '"' | '\'') => {
                word.get_or_insert_default();
                quote = Some(letter);
            }
            (None, '#') if word.is_none() => break,
            (None, _) if letter.is_whitespace() => words.extend(word.take()),
            (None, _) => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words.pop_if(|last| last == "&");
    words
}

/// What is between the lines of a fence of this kind, each.
fn blocks<'a>(text: &'a str, kind: &'a str) -> impl Iterator<Item = &'a str> {
    let after = text.split("\n```").filter_map(move |piece| piece.strip_prefix(kind)?.strip_prefix('\n'));
    after.map(|block| block.split("\n```").next().unwrap_or(block))
}

fn tools_are_known(list: &str, place: &str) {
    let ours: Vec<&str> = list.split(',').filter(|name| !name.starts_with("mcp")).collect();
    let found = safepoint_tools::toolbox("/").unwrap().select(&ours.join(","));
    assert!(ours.is_empty() || found.is_ok(), "{place}: --tools {list}: {:?}", found.err());
}

/// A newcomer copies these lines.
#[test]
fn what_the_guides_show_is_taken() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let guides = fs::read_dir(docs.join("docs/guides")).unwrap().map(|entry| entry.unwrap().path());
    let mut lines = 0;
    for path in guides.chain([docs.join("README.md")]) {
        let text = fs::read_to_string(&path).unwrap();
        for line in blocks(&text, "console").flat_map(str::lines) {
            let Some(line) = line.strip_prefix("$ ").filter(|line| line.starts_with("safepoint")) else {
                continue;
            };
            let place = format!("{}: {line}", path.display());
            let words = words(line);
            if let Err(error) = Cli::try_parse_from(meant(words.iter().map(Into::into))) {
                assert!(!error.use_stderr(), "{place}: {error}");
            }
            let tools = words.iter().skip_while(|word| *word != "--tools").nth(1);
            tools.into_iter().for_each(|list| tools_are_known(list, &place));
            lines += 1;
        }
        for block in blocks(&text, "toml") {
            let place = format!("{}:\n{block}", path.display());
            let read = Config::read(path.clone(), block).map(drop);
            read.unwrap_or_else(|why| panic!("{place}: {why}"));
            server::agents(&path, block).unwrap_or_else(|why| panic!("{place}: {why}"));
            let tools = block.lines().filter_map(|line| line.strip_prefix("tools = \""));
            tools.for_each(|list| tools_are_known(list.split('"').next().unwrap_or_default(), &place));
        }
    }
    assert!(lines > 40, "{lines} lines were found");
}
