//! An agent's card: who it is, and where and how it is talked to.

use reqwest::Url;
use safepoint::Failure;
use serde_json::Value;
use tokio::time::timeout;

use super::{
    http::{Broke, Http},
    wire::Wire,
};

/// Where an agent is talked to.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) url: Url,
    pub(super) wire: Wire,
    pub(super) answers: Answers,
    pub(super) tenant: Option<String>,
}

/// How a message is answered. Exhaustive: the two ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answers {
    /// By a stream of events.
    Streams,
    /// By a task, to be looked at.
    Looks,
}

const CARD: &str = ".well-known/agent-card.json";
/// Where servers older than 0.3 have it.
const OLD_CARD: &str = ".well-known/agent.json";
/// The one way to talk that is spoken here.
const JSON_RPC: &str = "JSONRPC";

/// Looks for the card of the agent at an address.
pub(super) async fn find(http: &Http, address: &Url) -> Result<Place, Failure> {
    let looked = timeout(http.bounds.card_time, look(http, address)).await;
    let time = http.bounds.card_time;
    looked.unwrap_or_else(|_elapsed| {
        Err(Failure::new(format!("{address} showed no card within {time:?}")).unreachable())
    })
}

async fn look(http: &Http, address: &Url) -> Result<Place, Failure> {
    let mut last = Failure::new(format!("{address} is no place for a card")).unreachable();
    for url in places(address) {
        let card = match http.card(&url).await {
            Ok(card) => card,
            // Nobody is there: not at another path either.
            Err(Broke::Unreachable(why)) => {
                return Err(Failure::new(format!("{address} could not be reached: {why}")).unreachable());
            }
            Err(broke) => {
                last = Failure::new(format!("no card of an agent at {url}: {broke}")).unreachable();
                continue;
            }
        };
        return read(&card, &url)
            .map_err(|why| Failure::new(format!("the card at {url} {why}")).unreachable());
    }
    Err(last)
}

/// Where a card may be: the address itself if it is one of a card, else below it, else at the server's root.
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
    let streams = card["capabilities"]["streaming"].as_bool().unwrap_or(false);
    let answers = if streams { Answers::Streams } else { Answers::Looks };
    Ok(Place { name: text("name"), description: text("description"), url, wire, answers, tenant })
}

/// The interfaces of 1.0, each with its version; the newest one that is spoken here.
fn newest(card: &Value) -> Option<(String, Wire, Option<String>)> {
    let all = card["supportedInterfaces"].as_array()?;
    let spoken = all.iter().filter(|one| one["protocolBinding"] == JSON_RPC);
    let spoken = spoken.filter_map(|one| {
        let wire = Wire::of(one["protocolVersion"].as_str().unwrap_or("1.0"))?;
        let tenant = one["tenant"].as_str().filter(|tenant| !tenant.is_empty());
        Some((one["url"].as_str()?.to_owned(), wire, tenant.map(str::to_owned)))
    });
    // Of two that speak the same the first.
    spoken.reduce(|best, next| if next.1 > best.1 { next } else { best })
}

/// The card of 0.3 and 0.2: one preferred way, and others beside it. One that names no version is of 0.2.
fn older(card: &Value) -> Option<(String, Wire, Option<String>)> {
    let preferred = card["preferredTransport"].as_str().unwrap_or(JSON_RPC);
    let main = card["url"].as_str().filter(|_| preferred == JSON_RPC);
    let beside = card["additionalInterfaces"].as_array().into_iter().flatten();
    let beside = beside.filter(|one| one["transport"] == JSON_RPC).find_map(|one| one["url"].as_str());
    let wire = card["protocolVersion"].as_str().map_or(Some(Wire::V02), Wire::of)?;
    Some((main.or(beside)?.to_owned(), wire.min(Wire::V03), None))
}

/// Whether two addresses are of one server: what is sent there (a token, what people said) goes nowhere else.
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

    /// S10.1: of several ways to talk the newest that is spoken here is taken, whatever the order.
    #[test]
    fn the_newest_wire_of_a_card_is_taken() {
        let of = |version: &str| json!({"url": "http://a/x", "protocolBinding": "JSONRPC", "protocolVersion": version});
        let card = json!({"name": "n", "supportedInterfaces": [of("0.3"), of("1.0")], "capabilities": {"streaming": true}});
        let place = read(&card, &at("http://a/.well-known/agent-card.json")).unwrap();
        assert_eq!(
            (place.wire, place.answers, place.url.as_str()),
            (Wire::V1, Answers::Streams, "http://a/x")
        );
        let card = json!({"url": "/rpc", "capabilities": {}, "protocolVersion": "0.3.0"});
        let place = read(&card, &at("http://a/.well-known/agent-card.json")).unwrap();
        assert_eq!(
            (place.wire, place.answers, place.url.as_str()),
            (Wire::V03, Answers::Looks, "http://a/rpc")
        );
        for card in [json!({"url": "/rpc"}), json!({"url": "/rpc", "protocolVersion": "0.2.5"})] {
            assert_eq!(read(&card, &at("http://a/.well-known/agent.json")).unwrap().wire, Wire::V02);
        }
    }

    /// What people say, and a token, go to the server that was named and to no other.
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

    /// A card is looked for below the address, and then at the server's root.
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
