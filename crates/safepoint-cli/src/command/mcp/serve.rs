//! `safepoint mcp serve`: an agent as a server of one tool, over stdin and stdout.

use std::process::ExitCode;

use crate::{args::local::LocalArgs, signals::Signals};

/// A build without the server.
#[cfg(not(feature = "serve"))]
pub(super) async fn serve(_args: LocalArgs, _signals: &mut Signals) -> anyhow::Result<ExitCode> {
    Err(crate::exit::Usage(crate::command::serve::ABSENT.into()).into())
}

/// Serves until the client closes its input, or until a signal.
#[cfg(feature = "serve")]
pub(super) async fn serve(args: LocalArgs, signals: &mut Signals) -> anyhow::Result<ExitCode> {
    use crate::command::unless::{NOTHING_SERVED, stopped};

    let local = match crate::command::serve::local::LocalAgent::of(args, signals).await? {
        Ok(local) => local,
        Err(got) => return Ok(stopped(got, NOTHING_SERVED)),
    };
    let server = safepoint_server::McpServer::new(&local.host, &local.name);
    local.serves(server.serve(tokio::io::stdin(), crate::output::wire()), signals).await;
    Ok(ExitCode::SUCCESS)
}
