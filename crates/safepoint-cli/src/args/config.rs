//! The command lines of `safepoint config`, `doctor` and `completions`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

const CONFIG: &str = "\
Your config file is $XDG_CONFIG_HOME/safepoint/config.toml or ~/.config/safepoint/config.toml, or --config. A project's is
.safepoint/config.toml, in the working folder or above it up to the repository's root. The command line outranks both.

Of a project's file, what cannot weaken safety is taken as it is. The rest waits for `safepoint config trust`, which holds for
exactly the present content of the file; some keys, such as base_url, are never taken from a project.";

const DOCTOR: &str = "\
Exit codes: 0 if an agent can work (what is only of use is marked `note`), 1 if something that is set up does not work.";

const COMPLETIONS: &str = "\
--install writes them for this user: for bash under $XDG_DATA_HOME/bash-completion/completions, for zsh under
$XDG_DATA_HOME/zsh/site-functions, for fish under $XDG_CONFIG_HOME/fish/completions, the manual pages under
$XDG_DATA_HOME/man/man1. Without it they go to stdout.";

/// `safepoint config`.
#[derive(Clone, Debug, Args)]
#[command(after_help = CONFIG)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    pub(crate) command: Option<ConfigCommand>,
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
}

/// Which files are meant.
#[derive(Clone, Debug, Args)]
pub(crate) struct PlaceArgs {
    /// The config file
    #[arg(long, value_name = "PATH", global = true)]
    pub(crate) config: Option<PathBuf>,
    /// The directory of the project; default: the current directory
    #[arg(long, value_name = "DIR", global = true)]
    pub(crate) root: Option<PathBuf>,
}

/// What to do. Exhaustive: `config` does each.
#[derive(Clone, Copy, Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print what holds, and where each value comes from; `safepoint config` alone does the same
    Show,
    /// Take from the project's file, as it is now, also what needs consent
    Trust,
    /// Take only what cannot weaken safety, and do not ask again
    Distrust,
}

/// `safepoint doctor`.
#[derive(Clone, Debug, Args)]
#[command(after_help = DOCTOR)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
}

/// `safepoint completions`.
#[derive(Clone, Copy, Debug, Args)]
#[command(after_help = COMPLETIONS)]
pub(crate) struct CompletionsArgs {
    /// For which shell; `man` is the manual pages
    #[arg(value_enum)]
    pub(crate) what: CompletionsOf,
    /// Write the files where this user's shell or `man` looks for them
    #[arg(long)]
    pub(crate) install: bool,
}

/// What is written. Exhaustive: three shells, and the manual pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CompletionsOf {
    Bash,
    Zsh,
    Fish,
    Man,
}
