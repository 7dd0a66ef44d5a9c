//! What the turns are about: from the command line, or from stdin.

use std::io::{IsTerminal as _, Read as _};

use anyhow::Context as _;

use crate::{args::run::RunArgs, exit::Usage};

const NO_PROMPT: &str = "what should it do? safepoint run \"PROMPT\", or the prompt on stdin";

pub(crate) fn prompts(args: &RunArgs) -> anyhow::Result<Vec<String>> {
    let first = match args.prompt.as_deref() {
        Some(prompt) if prompt != "-" => prompt.to_owned(),
        None if std::io::stdin().is_terminal() => return Err(Usage(NO_PROMPT.into()).into()),
        Some(_) | None => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).context("the prompt could not be read from stdin")?;
            text.trim_end_matches(['\r', '\n']).to_owned()
        }
    };
    if first.trim().is_empty() {
        return Err(Usage(format!("the prompt is empty; {NO_PROMPT}")).into());
    }
    says_something(&args.then)?;
    Ok(std::iter::once(first).chain(args.then.iter().cloned()).collect())
}

pub(crate) fn says_something<'a>(prompts: impl IntoIterator<Item = &'a String>) -> Result<(), Usage> {
    match prompts.into_iter().any(|prompt| prompt.trim().is_empty()) {
        true => Err(Usage("a prompt is empty: each turn needs something to do".into())),
        false => Ok(()),
    }
}
