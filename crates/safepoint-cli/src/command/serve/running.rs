//! A server from its first line to its drain.

use std::{
    net::{Ipv4Addr, SocketAddr},
    pin::pin,
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use anyhow::Context as _;
use safepoint_server::{Access, Host, HostServer, Surface};
use serde_json::json;

use super::{
    agents::{ServedAgent, WantedAgent, WantedAgents, wanted},
    tokens::{of_this_server, place},
};
use crate::{
    args::{run::OnDisconnect, serve::ServeArgs},
    exit::{self, Usage, code},
    output,
    settings::{server::ServerSettings, store::open_store},
    signals::Signals,
};

/// Where it listens, unless it is said.
const PORT: u16 = 7717;
/// How long turns may take to stop at the end, unless it is said.
const DRAIN: Duration = Duration::from_secs(20);

/// Serves until a signal, or until a client drains it.
pub(crate) async fn serve(args: ServeArgs) -> anyhow::Result<ExitCode> {
    // First: a signal from now on drains.
    let mut signals = Signals::listen(OnDisconnect::Detach)?;
    let WantedAgents { of_server, agents } = wanted(&args.agent, args.store.as_ref())?;
    let store = open_store(args.store.clone())?;
    let mut builder = Host::builder(store);
    if let Some(running) = of_server.running {
        builder = builder.running(running);
    }
    if let Some(unload) = of_server.unload()? {
        builder = builder.unload(unload);
    }
    let mut served = Vec::new();
    for WantedAgent { name, description, surfaces, settings } in agents {
        let surfaces = surfaces.iter().map(|surface| surface.parse::<Surface>());
        let surfaces = surfaces.collect::<Result<Vec<_>, _>>();
        let surfaces = surfaces.map_err(|why| Usage(format!("[agents.{name}]: {why}")))?;
        let one = Arc::new(ServedAgent::of(&name, settings).await?);
        builder = builder.described(&name, description, one.agent.clone()).surfaces(&name, surfaces);
        served.push(one);
    }
    let lives = served.clone();
    let builder = builder.on_lease(move |until| lives.iter().for_each(|one| one.deadline.extend(until)));
    let host = builder.start().await.context("the store cannot be joined")?;
    let drain = args.drain.or(of_server.drain()?).unwrap_or(DRAIN);
    let left = listen(&args, &of_server, (&host, drain), &mut signals).await?;
    for one in &served {
        one.close().await;
    }
    Ok(if left == 0 { ExitCode::SUCCESS } else { exit::with(code::OTHER) })
}

/// Listens, and drains; how many connections were left.
async fn listen(
    args: &ServeArgs,
    of_server: &ServerSettings,
    (host, drain): (&Host, Duration),
    signals: &mut Signals,
) -> anyhow::Result<usize> {
    let address =
        args.listen.or(of_server.listen).unwrap_or_else(|| SocketAddr::from((Ipv4Addr::LOCALHOST, PORT)));
    let (shown, own) = of_this_server()?;
    let mut access = Access::tokens(place(args.tokens.clone())?).or_tokens(own);
    for name in &of_server.hosts {
        access = access.host(name.clone());
    }
    for origin in &of_server.origins {
        access = access.origin(origin.clone());
    }
    let server = HostServer::bind(address, host, access)
        .await
        .with_context(|| format!("{address} cannot be listened on"))?;
    let url = format!("http://{}", server.address());
    output::say_json(json!({ "listening": url, "token": shown }))?;
    output::tell(format_args!("Serving at {url}; the token of this user is in {}", shown.display()));
    let last = server.serve_until(async { _ = signals.next().await }).await;
    output::tell(format_args!(
        "Draining: turns stop within {} s; another signal stops them now",
        drain.as_secs()
    ));
    let mut drains = pin!(host.drain(drain));
    tokio::select! {
        biased;
        // First: what has drained needs no signal.
        () = &mut drains => {}
        // The drain goes no further by this branch: what it has stopped stays stopped, and the program ends.
        _ = signals.next() => output::tell("Stopping now"),
    }
    Ok(last.finish().await)
}
