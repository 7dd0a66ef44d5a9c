//! The command line of `safepoint sandbox`.

use std::{ffi::OsString, path::PathBuf};

use clap::{Args, ValueEnum};

const HELP: &str = "\
Runs a command as the commands of an agent are run: it writes only below --root and in $TMPDIR, and reaches no network but a
separate localhost, no socket of another program, and no process outside. Without a command it lists what this system
enforces. `[commands]` of the config file can open more with `write = [\"DIR\"]`, and `sandbox = \"off\"` turns it off for agents.

Exit codes: that of the command; 125 if it could not be confined, 126 if it cannot be executed; without a command 0 if all is
enforced, else 1.";

/// `safepoint sandbox`.
#[derive(Clone, Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct SandboxArgs {
    /// The directory that the command may write; default: the current directory
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,
    /// What to open: the network, or every file
    #[arg(long, value_enum)]
    pub(crate) open: Option<Open>,
    /// The config file
    #[arg(long, value_name = "PATH")]
    pub(crate) config: Option<PathBuf>,
    /// The command, behind `--`
    #[arg(last = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

/// What is opened. Exhaustive: what a call of `shell_outside` can name, but for everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Open {
    /// The network, this machine's services included
    Network,
    /// Every file that you may write
    Files,
}
