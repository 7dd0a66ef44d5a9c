//! May this be fetched? Asked by origin before a name is looked up that others would be asked for, and by address before it is connected to.

use std::net::{IpAddr, SocketAddr};

use safepoint::{ToolContext, ToolResult, approval::Decision, stop::Failure, tool::Asks};
use serde_json::json;
use url::{Host, Url};

use super::range::Range;
use crate::root::{refusal, why_not};

/// Asks for the origin; a yes holds for the session.
pub(super) async fn reach(cx: &ToolContext, url: &Url) -> ToolResult<()> {
    let origin = url.origin().ascii_serialization();
    let asks = Asks::about("reach", json!({ "origin": origin }))
        .ruled_by(json!({"origin": origin, "url": url.as_str()}))
        .for_the_session();
    permitted(cx.put(asks).await?, &origin)
}

/// Whether the host is known without asking anyone: an address, or this machine by its usual name.
pub(super) fn is_known(url: &Url) -> bool {
    !matches!(url.host(), Some(Host::Domain(name)) if name != "localhost")
}

/// The addresses of the host.
pub(super) async fn resolve(url: &Url) -> Result<Vec<SocketAddr>, Failure> {
    let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else {
        return Err(refusal(format!("{url} names no host")));
    };
    let literal = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    let addresses = match literal {
        Ok(address) => vec![SocketAddr::new(address, port)],
        Err(_name) => {
            let found = tokio::net::lookup_host((host, port)).await;
            found.map_err(|error| refusal(format!("could not look up {host}: {error}")))?.collect()
        }
    };
    if addresses.is_empty() {
        return Err(refusal(format!("could not look up {host}: it has no address")));
    }
    Ok(addresses)
}

/// What may be connected to. Asks for each of the addresses that is not public: only a rule that says so lets it be
/// reached.
pub(super) async fn connect(
    cx: &ToolContext,
    url: &Url,
    found: Vec<SocketAddr>,
) -> ToolResult<Vec<SocketAddr>> {
    let origin = url.origin().ascii_serialization();
    for address in found.iter().map(SocketAddr::ip) {
        let Some((range, place)) = Range::of(address).map(Range::names) else { continue };
        let asked = json!({"origin": origin, "address": address.to_string(), "range": range});
        let mut ruled = asked.clone();
        ruled["url"] = url.as_str().into();
        let without = format!(
            "{address} is {place}, and no rule allows that; one of the user's for `http_get/private` with range = \"{range}\" would"
        );
        let asks = Asks::about("private", asked).ruled_by(ruled).for_the_session().only_by_rule(without);
        permitted(cx.put(asks).await?, &origin)?;
    }
    Ok(found)
}

fn permitted(decision: Decision, origin: &str) -> ToolResult<()> {
    let Some(why) = why_not(decision, "the address cannot be changed here") else { return Ok(()) };
    Err(refusal(format!("{origin} was not fetched: {why}")).into())
}
