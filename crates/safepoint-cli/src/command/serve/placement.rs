//! The placement of a server: what brings it the sessions that want an owner.

use std::net::{Ipv4Addr, SocketAddr};

use safepoint_server::HostBuilder;
use url::Url;

use crate::{
    args::{place::StorePlace, placed::PlacementChoice},
    exit::Usage,
    settings::server::{RestateSettings, ServerSettings},
};

/// A host whose sessions come as the flag or the config file says.
///
/// # Errors
/// If this build or this store has no such placement, or its queue cannot be used.
///
/// # Cancel safety
/// The tables of the queue may have been made.
pub(super) async fn placed(
    builder: HostBuilder,
    flag: Option<&PlacementChoice>,
    of_server: &ServerSettings,
    store: Option<&StorePlace>,
) -> anyhow::Result<HostBuilder> {
    match flag.or(of_server.placement.as_ref()) {
        None | Some(PlacementChoice::Here) => Ok(builder),
        Some(PlacementChoice::Graphile) => graphile(builder, store).await,
        Some(PlacementChoice::Restate(ingress)) => {
            restate(builder, ingress, Inlet::of(of_server.restate.clone())?).await
        }
    }
}

#[cfg(feature = "graphile")]
async fn graphile(builder: HostBuilder, store: Option<&StorePlace>) -> anyhow::Result<HostBuilder> {
    use safepoint_nodes::GraphileQueue;

    use crate::settings::store::usual_place;

    let place = store.cloned().map_or_else(usual_place, Ok)?;
    let StorePlace::Postgres(address) = &place else {
        let why = format!(
            "the placement `graphile` needs a store in PostgreSQL, and this one is the file {place}: name a database with \
             --store postgres://…"
        );
        return Err(Usage(why).into());
    };
    let whole =
        address.whole().map_err(|why| Usage(format!("the address of the store cannot be read: {why}")))?;
    Ok(queued(builder, GraphileQueue::open(whole).await?))
}

/// Where the engine reaches this server, and the key of the engine.
#[cfg_attr(not(feature = "restate"), expect(dead_code, reason = "this build has no engine"))]
struct Inlet {
    listen: SocketAddr,
    identity_key: Option<String>,
}

impl Inlet {
    /// What the config file says: without a key, what reaches the address can wake sessions.
    fn of(settings: RestateSettings) -> Result<Self, Usage> {
        const PORT: u16 = 9080;
        let listen = settings.listen.unwrap_or(SocketAddr::from((Ipv4Addr::LOCALHOST, PORT)));
        if settings.identity_key.is_some() || listen.ip().is_loopback() {
            return Ok(Self { listen, identity_key: settings.identity_key });
        }
        Err(Usage(format!(
            "{listen} is reached from other machines, which could wake sessions: set identity_key of [server.restate] to the \
             public key of the engine"
        )))
    }
}

#[cfg(feature = "restate")]
async fn restate(builder: HostBuilder, ingress: &Url, inlet: Inlet) -> anyhow::Result<HostBuilder> {
    use safepoint_nodes::{RestateOptions, RestateQueue};

    use crate::output;

    let mut options = RestateOptions::of(ingress.clone());
    (options.listen, options.identity_key) = (inlet.listen, inlet.identity_key);
    let queue = RestateQueue::open(options).await?;
    output::tell(format_args!("Listening for Restate at http://{}", queue.address()));
    Ok(queued(builder, queue))
}

/// A build without it.
#[cfg(not(feature = "graphile"))]
async fn graphile(_builder: HostBuilder, _store: Option<&StorePlace>) -> anyhow::Result<HostBuilder> {
    Err(absent("graphile").into())
}

/// A build without it.
#[cfg(not(feature = "restate"))]
async fn restate(_builder: HostBuilder, _ingress: &Url, _inlet: Inlet) -> anyhow::Result<HostBuilder> {
    Err(absent("restate").into())
}

#[cfg(not(all(feature = "graphile", feature = "restate")))]
fn absent(name: &str) -> Usage {
    Usage(format!(
        "this build has no placement `{name}`; one that has it is built with `cargo install safepoint-cli --features {name}`"
    ))
}

/// The host takes what this queue brings. While the queue is away, the operator learns why.
#[cfg(any(feature = "graphile", feature = "restate"))]
fn queued(builder: HostBuilder, queue: impl safepoint_nodes::WakeQueue) -> HostBuilder {
    use std::{error::Error, iter::successors, sync::Arc};

    use safepoint_nodes::QueuePlacement;

    use crate::output;

    let placement = Arc::new(QueuePlacement::new(queue));
    let mut failure = placement.failure();
    // It ends with the placement.
    drop(tokio::spawn(async move {
        while failure.changed().await.is_ok() {
            let Some(why) = failure.borrow_and_update().clone() else {
                output::tell(format_args!("The placement is back"));
                continue;
            };
            let words = successors(Some(&*why as &dyn Error), |error| (**error).source());
            let words: Vec<String> = words.map(ToString::to_string).collect();
            output::tell(format_args!(
                "warning: the placement is away, and sessions are taken without it: {}",
                words.join(": ")
            ));
        }
    }));
    builder.placement(placement)
}
