//! An agent for one editor, from its first line to the end of its input.

use std::{env, process::ExitCode};

use anyhow::Context as _;
use safepoint_server::AcpServer;
use tokio::io::stdin;

use crate::{
    args::{local::LocalArgs, run::OnDisconnect},
    command::{
        serve::local::LocalAgent,
        unless::{NOTHING_SERVED, stopped},
    },
    output,
    signals::Signals,
};

/// Serves until the editor closes its input, or until a signal.
pub(crate) async fn acp(args: LocalArgs) -> anyhow::Result<ExitCode> {
    let mut signals = Signals::listen(OnDisconnect::Detach)?;
    let folder = match &args.agent.root {
        Some(root) => root.clone(),
        None => env::current_dir().context("the current directory cannot be used")?,
    };
    let grace = args.agent.grace;
    let local = match LocalAgent::of(args, &mut signals).await? {
        Ok(local) => local,
        Err(got) => return Ok(stopped(got, NOTHING_SERVED)),
    };
    let server = AcpServer::new(&local.host, &local.name).folder(folder).grace(grace);
    local.serves(server.serve(stdin(), output::wire()), &mut signals).await;
    Ok(ExitCode::SUCCESS)
}
