//! `safepoint serve`: sessions over HTTP; and `safepoint token`, which makes, lists and revokes what opens it.

#[cfg(feature = "serve")]
mod agents;
#[cfg(feature = "serve")]
mod hooks;
#[cfg(feature = "serve")]
pub(super) mod local;
#[cfg(feature = "serve")]
mod own;
#[cfg(feature = "serve")]
mod placement;
#[cfg(feature = "serve")]
mod provider;
#[cfg(feature = "serve")]
mod running;
#[cfg(feature = "serve")]
mod tokens;

#[cfg(feature = "serve")]
pub(crate) use {running::serve, tokens::token};

#[cfg(not(feature = "serve"))]
pub(crate) use absent::{ABSENT, serve, token};

/// A build without the server.
#[cfg(not(feature = "serve"))]
mod absent {
    use std::process::ExitCode;

    use crate::{
        args::serve::{ServeArgs, TokenArgs},
        exit::Usage,
    };

    pub(crate) const ABSENT: &str =
        "this build has no server; build it with `cargo install safepoint-cli --features serve`";

    pub(crate) async fn serve(_args: ServeArgs) -> anyhow::Result<ExitCode> {
        Err(Usage(ABSENT.into()).into())
    }

    pub(crate) fn token(_args: TokenArgs) -> anyhow::Result<ExitCode> {
        Err(Usage(ABSENT.into()).into())
    }
}
