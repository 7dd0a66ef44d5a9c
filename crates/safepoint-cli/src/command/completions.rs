//! `safepoint completions`: what a shell completes, and the manual pages, made from the command line itself.

mod bash;
mod fish;
mod man;
mod tree;
mod zsh;

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Context as _;
use clap::CommandFactory as _;

use crate::{
    args::{
        Cli,
        config::{CompletionsArgs, CompletionsOf},
    },
    exit::{self, Usage, code},
    output,
};

/// Writes them to stdout, or where they are looked for.
///
/// # Errors
/// If a file cannot be written.
pub(crate) fn completions(args: CompletionsArgs) -> anyhow::Result<ExitCode> {
    let mut command = Cli::command();
    command.build();
    let tree = tree::Tree::of(&command);
    let files = match args.what {
        CompletionsOf::Bash => vec![("safepoint".to_owned(), bash::script(&tree))],
        CompletionsOf::Zsh => vec![("_safepoint".to_owned(), zsh::script(&tree))],
        CompletionsOf::Fish => vec![("safepoint.fish".to_owned(), fish::script(&tree))],
        CompletionsOf::Man => man::pages(&command),
    };
    if !args.install {
        for (_, text) in files {
            output::say(text.trim_end())?;
        }
        return Ok(exit::with(code::ACCEPTED));
    }
    let folder = folder(args.what)?;
    fs::create_dir_all(&folder).with_context(|| format!("the folder {} cannot be made", folder.display()))?;
    let count = files.len();
    for (name, text) in files {
        let path = folder.join(name);
        fs::write(&path, text).with_context(|| format!("{} cannot be written", path.display()))?;
        if count == 1 {
            output::say(format!("wrote {}", path.display()))?;
        }
    }
    if count > 1 {
        output::say(format!("wrote {count} pages to {}", folder.display()))?;
    }
    output::say(after(args.what, &folder))?;
    Ok(exit::with(code::ACCEPTED))
}

/// What is left to do.
fn after(what: CompletionsOf, folder: &Path) -> String {
    let folder = folder.display();
    match what {
        CompletionsOf::Bash => "a new bash completes with it, where bash-completion is installed".to_owned(),
        CompletionsOf::Zsh => format!("add this to ~/.zshrc, before compinit: fpath=({folder} $fpath)"),
        CompletionsOf::Fish => "a new fish completes with it".to_owned(),
        CompletionsOf::Man => format!("`man safepoint` shows it, where MANPATH has {folder}/.."),
    }
}

fn folder(what: CompletionsOf) -> Result<PathBuf, Usage> {
    let data = || below_home("XDG_DATA_HOME", ".local/share");
    Ok(match what {
        CompletionsOf::Bash => data()?.join("bash-completion/completions"),
        CompletionsOf::Zsh => data()?.join("zsh/site-functions"),
        CompletionsOf::Fish => below_home("XDG_CONFIG_HOME", ".config")?.join("fish/completions"),
        CompletionsOf::Man => data()?.join("man/man1"),
    })
}

fn below_home(variable: &str, usual: &str) -> Result<PathBuf, Usage> {
    let named = std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(usual));
    let none =
        || Usage(format!("there is no home directory; set HOME or {variable}, or leave --install out"));
    named.or_else(home).ok_or_else(none)
}

#[cfg(test)]
mod tests;
