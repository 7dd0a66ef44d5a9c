//! An agent's card: its name, its endpoint and its transport.

use safepoint::stop::Failure;
use serde_json::Value;
use tokio::time::timeout;
use url::Url;

use super::{
    http::{Broke, Http, PeerRequest},
    wire::{Method, Wire},
};
use crate::exchange::without_query;

/// An agent's endpoint.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) url: Url,
    pub(super) wire: Wire,
    /// Whether the agent answers a message by a stream of events, and not by a task that the adapter reads.
    pub(super) is_streaming: bool,
    pub(super) tenant: Option<String>,
}

const CARD: &str = ".well-known/agent-card.json";
/// The card's path on servers older than 0.3.
const OLD_CARD: &str = ".well-known/agent.json";
/// The only supported transport.
const JSON_RPC: &str = "JSONRPC";

impl Place {
    /// A request about this: where it goes, its name there, and its parameters.
    pub(super) fn request(&self, method: Method, mut params: Value) -> PeerRequest<'_> {
        if let Some(tenant) = &self.tenant {
            params["tenant"] = tenant.as_str().into();
        }
        PeerRequest { url: &self.url, wire: self.wire, method: self.wire.method(method), params }
    }
}

/// Looks for the card of the agent at an address.
pub(super) async fn find(http: &Http, address: &Url) -> Result<Place, Failure> {
    let looked = timeout(http.bounds.card_time, look(http, address)).await;
    let (time, address) = (http.bounds.card_time, without_query(address.as_str()));
    looked.unwrap_or_else(|_elapsed| {
        Err(Failure::new(format!("{address} showed no card within {time:?}")).unreachable())
    })
}

async fn look(http: &Http, address: &Url) -> Result<Place, Failure> {
    let shown = without_query(address.as_str());
    let mut last = Failure::new(format!("{shown} is no place for a card")).unreachable();
    for url in places(address) {
        let at = without_query(url.as_str());
        let card = match http.card(&url).await {
            Ok(card) => card,
            // The server is unreachable, so another path would fail too.
            Err(Broke::Unreachable(why)) => {
                return Err(Failure::new(format!("{shown} could not be reached: {why}")).unreachable());
            }
            Err(broke) => {
                last = Failure::new(format!("no card of an agent at {at}: {broke}")).unreachable();
                continue;
            }
        };
        return read(&card, &url)
            .map_err(|why| Failure::new(format!("the card at {at} {why}")).unreachable());
    }
    Err(last)
}

/// Where a card may be: the address itself if it names a card, else below it, else at the server's root.
fn places(address: &Url) -> Vec<Url> {
    if address.path().ends_with(".json") {
        return vec![address.clone()];
    }
    let mut base = address.clone();
    base.set_query(None);
    base.set_fragment(None);
    let below = format!("{}/", base.path().trim_end_matches('/'));
    base.set_path(&below);
    let mut places = Vec::new();
    for root in ["", "/"] {
        for card in [CARD, OLD_CARD] {
            let Ok(place) = base.join(&format!("{root}{card}")) else { continue };
            if !places.contains(&place) {
                places.push(place);
            }
        }
    }
    places
}

/// What a card says.
fn read(card: &Value, at: &Url) -> Result<Place, String> {
    let text = |name: &str| card[name].as_str().unwrap_or_default().to_owned();
    let Some((url, wire, tenant)) = newest(card).or_else(|| older(card)) else {
        return Err("names no place where JSON-RPC is spoken".into());
    };
    let url = at.join(&url).map_err(|error| format!("names `{url}`: {error}"))?;
    if !is_same(&url, at) {
        return Err(format!(
            "sends its callers elsewhere, to {url}: give that address itself if you trust it"
        ));
    }
    let is_streaming = card["capabilities"]["streaming"].as_bool().unwrap_or(false);
    Ok(Place { name: text("name"), description: text("description"), url, wire, is_streaming, tenant })
}

/// The interfaces of 1.0, each with its version; returns the newest supported one.
fn newest(card: &Value) -> Option<(String, Wire, Option<String>)> {
    let all = card["supportedInterfaces"].as_array()?;
    let spoken = all.iter().filter(|one| one["protocolBinding"] == JSON_RPC);
    let spoken = spoken.filter_map(|one| {
        let wire = Wire::of(one["protocolVersion"].as_str().unwrap_or("1.0"))?;
        let tenant = one["tenant"].as_str().filter(|tenant| !tenant.is_empty());
        Some((one["url"].as_str()?.to_owned(), wire, tenant.map(str::to_owned)))
    });
    // Of two with the same version, the first.
    spoken.reduce(|best, next| if next.1 > best.1 { next } else { best })
}

/// The card of 0.3 and 0.2: one preferred interface, and others beside it. A card without a version is of
/// 0.2.
fn older(card: &Value) -> Option<(String, Wire, Option<String>)> {
    let preferred = card["preferredTransport"].as_str().unwrap_or(JSON_RPC);
    let main = card["url"].as_str().filter(|_| preferred == JSON_RPC);
    let beside = card["additionalInterfaces"].as_array().into_iter().flatten();
    let beside = beside.filter(|one| one["transport"] == JSON_RPC).find_map(|one| one["url"].as_str());
    let wire = card["protocolVersion"].as_str().map_or(Some(Wire::V02), Wire::of)?;
    Some((main.or(beside)?.to_owned(), wire.min(Wire::V03), None))
}

/// Whether two addresses are of one server. Tokens and messages go to no other server.
fn is_same(one: &Url, other: &Url) -> bool {
    let is_local =
        |url: &Url| matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]" | "0.0.0.0"));
    let same_host = one.host() == other.host() || (is_local(one) && is_local(other));
    same_host
        && one.scheme() == other.scheme()
        && one.port_or_known_default() == other.port_or_known_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn at(url: &str) -> Url {
        Url::parse(url).unwrap()
    }

    /// S10.1: the adapter takes the newest supported interface, whatever the order.
    #[test]
    fn the_newest_wire_of_a_card_is_taken() {
        let of = |version: &str| json!({"url": "http://a/x", "protocolBinding": "JSONRPC", "protocolVersion": version});
        let card = json!({"name": "n", "supportedInterfaces": [of("0.3"), of("1.0")], "capabilities": {"streaming": true}});
        let place = read(&card, &at("http://a/.well-known/agent-card.json")).unwrap();
        assert_eq!((place.wire, place.is_streaming, place.url.as_str()), (Wire::V1, true, "http://a/x"));
        let card = json!({"url": "/rpc", "capabilities": {}, "protocolVersion": "0.3.0"});
        let place = read(&card, &at("http://a/.well-known/agent-card.json")).unwrap();
        assert_eq!((place.wire, place.is_streaming, place.url.as_str()), (Wire::V03, false, "http://a/rpc"));
        for card in [json!({"url": "/rpc"}), json!({"url": "/rpc", "protocolVersion": "0.2.5"})] {
            assert_eq!(read(&card, &at("http://a/.well-known/agent.json")).unwrap().wire, Wire::V02);
        }
    }

    /// Messages and the token go only to the server that the caller named.
    #[test]
    fn a_card_that_sends_its_callers_elsewhere_is_refused() {
        let card = json!({"url": "http://b/", "capabilities": {}});
        let refused = read(&card, &at("http://a/.well-known/agent-card.json")).unwrap_err();
        assert!(refused.contains("elsewhere"), "{refused}");
        let card = json!({"url": "http://localhost:80/", "capabilities": {}});
        assert!(
            read(&card, &at("http://127.0.0.1/.well-known/agent-card.json")).is_ok(),
            "both are this machine"
        );
    }

    /// The adapter looks for a card below the address, and then at the server's root.
    #[test]
    fn a_card_may_be_in_four_places() {
        let places: Vec<String> = places(&at("http://a/agents/one")).iter().map(Url::to_string).collect();
        assert_eq!(
            places,
            [
                "http://a/agents/one/.well-known/agent-card.json",
                "http://a/agents/one/.well-known/agent.json",
                "http://a/.well-known/agent-card.json",
                "http://a/.well-known/agent.json",
            ]
        );
        assert_eq!(super::places(&at("http://a/card.json")).len(), 1);
    }
}
