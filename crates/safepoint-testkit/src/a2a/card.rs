//! The card that a server shows.

use serde_json::{Value, json};

use super::{Card, Manners, Tells, Wire};

pub(super) fn of(manners: &Manners, url: &str) -> Value {
    let url = match manners.card {
        Card::Abroad => "http://192.0.2.1:9/a2a".to_owned(),
        _ => format!("{url}/a2a"),
    };
    let binding = if manners.card == Card::Elsewhere { "GRPC" } else { "JSONRPC" };
    let mut card = json!({
        "name": "fake",
        "description": "does what its test says",
        "version": "1",
        "capabilities": {"streaming": manners.tells != Tells::Looks},
        "defaultInputModes": ["text"],
        "defaultOutputModes": ["text"],
        "skills": [],
    });
    match manners.wire {
        Wire::V1 => {
            card["supportedInterfaces"] =
                json!([{"url": url, "protocolBinding": binding, "protocolVersion": "1.0"}]);
        }
        Wire::V03 => {
            card["protocolVersion"] = "0.3.0".into();
            card["preferredTransport"] = binding.into();
            card["url"] = url.into();
        }
    }
    card
}
