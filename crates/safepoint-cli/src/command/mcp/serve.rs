//! `safepoint mcp serve`: an agent as a server of one tool, over stdin and stdout.

use std::process::ExitCode;

use crate::{args::mcp::ServeMcpArgs, signals::Signals};

/// A build without the server.
#[cfg(not(feature = "serve"))]
pub(super) async fn serve(_args: ServeMcpArgs, _signals: &mut Signals) -> anyhow::Result<ExitCode> {
    Err(crate::exit::Usage(crate::command::serve::ABSENT.into()).into())
}

/// Serves until the client closes its input, or until a signal.
#[cfg(feature = "serve")]
pub(super) async fn serve(args: ServeMcpArgs, signals: &mut Signals) -> anyhow::Result<ExitCode> {
    use std::{pin::pin, time::Duration};

    use crate::{command::serve::local::LocalAgent, output};

    /// How long what is left may take to stop at the end.
    const DRAIN: Duration = Duration::from_secs(2);

    let local = LocalAgent::of(args.named.as_deref(), args.agent, args.store).await?;
    {
        let server = safepoint_server::McpServer::new(&local.host, &local.name);
        let mut served = pin!(server.serve(tokio::io::stdin(), output::wire()));
        tokio::select! {
            biased;
            // First: it has ended by itself.
            () = &mut served => {}
            // What was not said is not said any more; the calls are stopped by the drain.
            _ = signals.next() => {}
        }
    }
    local.end(DRAIN).await;
    Ok(ExitCode::SUCCESS)
}
