//! A server from its first line to its drain.

use std::{
    net::{Ipv4Addr, SocketAddr},
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use anyhow::Context as _;
use safepoint::store::OwnerProcess;
use safepoint_server::{Access, AuditLog, Host, HostServer, Surface, Tls};
use serde_json::json;
use url::Url;

use super::{
    agents::{ServedAgent, WantedAgent, WantedAgents, wanted},
    hooks,
    own::{OwnToken, own_file},
    placement::placed,
    provider, tokens,
};
use crate::{
    args::{run::OnDisconnect, serve::ServeArgs},
    command::unless::{NOTHING_SERVED, stopped, unless},
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

/// A host with its agents.
struct BegunHost {
    host: Host,
    of_server: ServerSettings,
    served: Vec<Arc<ServedAgent>>,
}

/// Serves until a signal, or until a client drains it.
pub(crate) async fn serve(args: ServeArgs) -> anyhow::Result<ExitCode> {
    // First: a signal from now on ends the start, or drains.
    let mut signals = Signals::listen(OnDisconnect::Detach)?;
    let access = Access::token_file(tokens::served(args.tokens.clone())?).or_tokens(own_file()?);
    let begun = match unless(&mut signals, begin(&args)).await {
        Ok(begun) => begun?,
        Err(got) => return Ok(stopped(got, NOTHING_SERVED)),
    };
    let listened = listen(&args, &begun, access, &mut signals).await;
    if listened.is_err() && unless(&mut signals, begun.host.drain(Duration::ZERO)).await.is_err() {
        // It serves nothing, and is not to be found dead by the others; who does not wait for that leaves it to its lease.
    }
    listened
}

/// Makes the agents, and joins the store.
async fn begin(args: &ServeArgs) -> anyhow::Result<BegunHost> {
    let WantedAgents { of_server, agents } = wanted(&args.agent, args.store.as_ref())?;
    let store = open_store(args.store.clone()).await?;
    let builder = Host::builder(store);
    let mut builder = match &args.node {
        Some(name) => builder.name(name),
        None => builder.name_like(OwnerProcess::here().host),
    };
    if let Some(lease) = args.lease {
        builder = builder.lease(lease_of(lease)?);
    }
    if let Some(running) = of_server.running {
        builder = builder.running(running.get());
    }
    if let Some(unload) = of_server.unload()? {
        builder = builder.unload(unload);
    }
    builder = placed(builder, args.placement.as_ref(), &of_server, args.store.as_ref()).await?;
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
    Ok(BegunHost { host, of_server, served })
}

/// A lease that is renewed several times before it is over.
fn lease_of(lease: Duration) -> Result<Duration, Usage> {
    const LEAST: Duration = Duration::from_secs(2);
    const MOST: Duration = Duration::from_secs(3600);
    if (LEAST..=MOST).contains(&lease) {
        return Ok(lease);
    }
    Err(Usage("--lease is from 2s to 1h".into()))
}

/// Listens, and drains. The exit code is a failure where connections were left.
async fn listen(
    args: &ServeArgs,
    BegunHost { host, of_server, served }: &BegunHost,
    mut access: Access,
    signals: &mut Signals,
) -> anyhow::Result<ExitCode> {
    let drain = args.drain.or(of_server.drain()?).unwrap_or(DRAIN);
    let address = address(args, of_server)?;
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
    let own = OwnToken::of(server.address()).await?;
    output::say_json(json!({ "listening": url, "token": own.shown }))?;
    output::tell(format_args!("Serving at {url}; the token of this user is in {}", own.shown.display()));
    let last = server.serve_until(async { _ = signals.next().await }).await;
    output::tell(format_args!(
        "Draining: turns stop within {} s; another signal stops them now",
        drain.as_secs()
    ));
    let ending = async {
        host.drain(drain).await;
        let left = last.finish().await;
        for one in served {
            one.close().await;
        }
        left
    };
    // What it has stopped stays stopped.
    let ended = unless(signals, ending).await;
    if let Err(error) = own.end().await {
        // All was drained as well.
        output::tell(format_args!("safepoint: the token of this user stays: {error:#}"));
    }
    Ok(match ended {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_left) => exit::with(code::OTHER),
        Err(second) => stopped(second, "what still runs ends with the program"),
    })
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
