//! A server from its first line to its drain.

use std::{
    net::{Ipv4Addr, SocketAddr},
    pin::pin,
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use anyhow::Context as _;
use safepoint_server::{Access, AuditLog, Host, HostServer, Surface, Tls};
use serde_json::json;
use url::Url;

use super::{
    agents::{ServedAgent, WantedAgent, WantedAgents, wanted},
    hooks,
    own::{OwnToken, own_file},
    provider,
    tokens::place,
};
use crate::{
    args::{run::OnDisconnect, serve::ServeArgs},
    exit::{self, Usage, code},
    output,
    settings::{
        server::{HostName, PageOrigin, ServerSettings, WebAddress},
        store::open_store,
    },
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
        builder = builder.running(running.get());
    }
    if let Some(unload) = of_server.unload()? {
        builder = builder.unload(unload);
    }
    for settings in &of_server.webhooks {
        builder = builder.webhook(hooks::webhook(settings)?);
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
    let address = address(args, of_server)?;
    let mut access = Access::tokens(place(args.tokens.clone())?).or_tokens(own_file()?);
    for HostName(name) in &of_server.hosts {
        access = access.host(name.clone());
    }
    for PageOrigin(origin) in &of_server.origins {
        access = access.origin(origin.clone());
    }
    if let Some(WebAddress(public)) = &of_server.public_url {
        access = access.host(named_host(public)).origin(public.origin().ascii_serialization());
    }
    if let Some(path) = &of_server.audit {
        let log = AuditLog::file(path);
        access = access.audited(log.with_context(|| format!("the audit log {}", path.display()))?);
    }
    if let Some(settings) = &of_server.jwks {
        access = provider::trusted(access, settings)?;
    }
    let mut server = HostServer::bind(address, host, access)
        .await
        .with_context(|| format!("{address} cannot be listened on"))?;
    let mut scheme = "http";
    if let Some(files) = &of_server.tls {
        server = server.tls(Tls::files(&files.cert, &files.key).context("the certificate of [server.tls]")?);
        scheme = "https";
    }
    let url = format!("{scheme}://{}", server.address());
    let own = OwnToken::of(server.address())?;
    output::say_json(json!({ "listening": url, "token": own.shown }))?;
    output::tell(format_args!("Serving at {url}; the token of this user is in {}", own.shown.display()));
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
    let left = last.finish().await;
    own.end()?;
    Ok(left)
}

/// Where it listens: a token does not cross a network in the clear.
fn address(args: &ServeArgs, of_server: &ServerSettings) -> Result<SocketAddr, Usage> {
    let usual = SocketAddr::from((Ipv4Addr::LOCALHOST, PORT));
    let address = args.listen.or(of_server.listen).unwrap_or(usual);
    if address.ip().is_loopback() || of_server.tls.is_some() || of_server.public_url.is_some() {
        return Ok(address);
    }
    Err(Usage(format!(
        "{address} is reached from other machines, and tokens would cross the network in the clear: set cert and key of \
         [server.tls], or public_url of [server] where a proxy ends TLS"
    )))
}

/// The name by which a client that uses this address calls the server.
fn named_host(public: &Url) -> String {
    let host = public.host_str().unwrap_or_default();
    match public.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}
