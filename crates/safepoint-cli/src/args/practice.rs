//! The command line of `safepoint practice`.

use std::{net::SocketAddr, path::PathBuf};

use clap::Args;

/// `safepoint practice`.
#[derive(Clone, Debug, Args)]
pub(crate) struct PracticeArgs {
    /// The script, as JSON; default: the built-in practice model
    #[arg(long, value_name = "FILE")]
    pub(crate) script: Option<PathBuf>,
    /// Where to listen
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0")]
    pub(crate) listen: SocketAddr,
    /// Where to write one JSON line per event
    #[arg(long, value_name = "FILE")]
    pub(crate) log: Option<PathBuf>,
}
