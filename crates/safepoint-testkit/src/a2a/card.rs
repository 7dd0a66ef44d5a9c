//! The card that a server shows.

use std::io;

use serde_json::{Value, json};

use super::{A2aManners, A2aSeen, A2aWire, Card, Mind, Tells};
use crate::http::Connection;

/// Where servers of 0.2 have it.
const OLD: &str = "/.well-known/agent.json";

pub(super) fn of(manners: &A2aManners, url: &str) -> Value {
    let url = match manners.card {
        Card::Abroad => "http://192.0.2.1:9/a2a".to_owned(),
        _ => format!("{url}/a2a"),
    };
    let word = |usual: &str| manners.word.clone().unwrap_or_else(|| usual.to_owned());
    let binding = if manners.card == Card::Elsewhere { "GRPC" } else { "JSONRPC" };
    let mut card = json!({
        "name": word("fake"),
        "description": word("does what its test says"),
        "version": "1",
        "capabilities": {"streaming": manners.tells != Tells::Looks},
        "defaultInputModes": ["text"],
        "defaultOutputModes": ["text"],
        "skills": [],
    });
    match manners.wire {
        A2aWire::V1 => {
            card["supportedInterfaces"] =
                json!([{"url": url, "protocolBinding": binding, "protocolVersion": "1.0"}]);
        }
        A2aWire::V03 => {
            card["protocolVersion"] = "0.3.0".into();
            card["preferredTransport"] = binding.into();
            card["url"] = url.into();
        }
        A2aWire::V02 => {
            card["protocolVersion"] = "0.2.5".into();
            card["url"] = url.into();
        }
    }
    card
}

/// Answers a request for the card.
pub(super) async fn show(connection: &mut Connection, mind: &Mind, path: &str) -> io::Result<()> {
    mind.note(A2aSeen::Asked("card".into(), Value::Null));
    if mind.manners.wire == A2aWire::V02 && path != OLD {
        return connection.respond("404 Not Found", "text/html", "<h1>no such page</h1>").await;
    }
    let card = of(&mind.manners, &mind.url).to_string();
    match mind.manners.card {
        Card::Silent => mind.gave_up(connection, "card").await,
        Card::Missing => connection.respond("404 Not Found", "text/html", "<h1>no such page</h1>").await,
        Card::Garbage => connection.respond("200 OK", "application/json", "{\"name\": \"fak").await,
        Card::Endless => {
            connection
                .write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n{\"name\": \"")
                .await?;
            let more = [b'x'; 1 << 12];
            loop {
                connection.write(&more).await?;
            }
        }
        Card::Well | Card::Elsewhere | Card::Abroad => {
            connection.respond("200 OK", "application/json", &card).await
        }
    }
}
