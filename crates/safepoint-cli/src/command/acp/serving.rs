//! An agent for one editor, from its first line to the end of its input.

use std::{env, pin::pin, process::ExitCode, time::Duration};

use anyhow::Context as _;
use safepoint_server::AcpServer;
use tokio::io::stdin;

use crate::{
    args::{acp::AcpArgs, run::OnDisconnect},
    command::serve::local::LocalAgent,
    output,
    signals::Signals,
};

/// How long what is left may take to stop at the end.
const DRAIN: Duration = Duration::from_secs(2);

/// Serves until the editor closes its input, or until a signal.
pub(crate) async fn acp(args: AcpArgs) -> anyhow::Result<ExitCode> {
    let mut signals = Signals::listen(OnDisconnect::Detach)?;
    let folder = match &args.agent.root {
        Some(root) => root.clone(),
        None => env::current_dir().context("the current directory cannot be used")?,
    };
    let grace = args.agent.grace;
    let local = LocalAgent::of(args.named.as_deref(), args.agent, args.store).await?;
    let server = AcpServer::new(&local.host, &local.name).folder(folder).grace(grace);
    {
        let mut served = pin!(server.serve(stdin(), output::wire()));
        tokio::select! {
            biased;
            // First: it has ended by itself.
            () = &mut served => {}
            // What was not said is not said any more; the turns are stopped by the drain.
            _ = signals.next() => {}
        }
    }
    local.end(DRAIN).await;
    Ok(ExitCode::SUCCESS)
}
