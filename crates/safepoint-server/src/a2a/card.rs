//! The card of an agent: what it is, where it is, and what of the protocol it has.

use axum::{
    http::{HeaderValue, StatusCode, header},
    response::Response,
};
use serde_json::{Value, json as value};
use sha2::{Digest as _, Sha256};

use crate::{
    problem::{Answered, Problem},
    routes::{Call, json},
    surface::Surface,
};

/// Where a card is, below its agent.
const CARD: &str = "/.well-known/agent-card.json";
/// For how long a client may keep it.
const KEPT: HeaderValue = HeaderValue::from_static("private, max-age=300");

/// The card of the agent in the path.
pub(super) async fn card(call: Call) -> Answered<Response> {
    let agent = super::agent(&call.by, call.param("agent"))?;
    let base = call.path.strip_suffix(CARD).unwrap_or_default();
    answer(&call, &agent, &url(&call, base))
}

/// The card of the only agent that the token may use here.
pub(super) async fn only_card(call: Call) -> Answered<Response> {
    let mut agents = call.by.agents_on(Surface::A2a).map(|(name, _)| name.clone());
    let (Some(agent), None) = (agents.next(), agents.next()) else {
        return Err(Problem::no_such("agent"));
    };
    let base = call.path.strip_suffix(CARD).unwrap_or_default();
    answer(&call, &agent, &url(&call, &format!("{base}/a2a/{agent}")))
}

fn answer(call: &Call, agent: &str, url: &str) -> Answered<Response> {
    let described = call.by.host.agents.get(agent).map(|offered| offered.description.clone());
    let described = described.filter(|text| !text.is_empty()).unwrap_or_else(|| format!("The agent {agent}"));
    let card = of(agent, &described, url);
    let tag = tag(&card);
    let is_known = call.headers.get(header::IF_NONE_MATCH).is_some_and(|known| *known == tag);
    let mut response = json(StatusCode::OK, &card)?;
    if is_known {
        *response.body_mut() = axum::body::Body::empty();
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    response.headers_mut().insert(header::CACHE_CONTROL, KEPT);
    response.headers_mut().insert(header::ETAG, tag);
    Ok(response)
}

fn of(agent: &str, described: &str, url: &str) -> Value {
    let interface =
        |binding: &str| value!({"url": url, "protocolBinding": binding, "protocolVersion": super::VERSION});
    value!({
        "name": agent, "description": described, "version": env!("CARGO_PKG_VERSION"),
        "supportedInterfaces": [interface("JSONRPC"), interface("HTTP+JSON")],
        "capabilities": {"streaming": true, "pushNotifications": false, "extendedAgentCard": false},
        "securitySchemes": {"token": {"httpAuthSecurityScheme": {"scheme": "Bearer"}}},
        "securityRequirements": [{"schemes": {"token": {"list": []}}}],
        "defaultInputModes": ["text/plain", "application/json"], "defaultOutputModes": ["text/plain"],
        "skills": [{"id": agent, "name": agent, "description": described, "tags": ["agent"]}],
    })
}

/// The address of the agent, as this client has it. `Host` was checked; what ends TLS before the server says so.
fn url(call: &Call, base: &str) -> String {
    let text = |name| call.headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let is_encrypted = call.is_over_tls || text("x-forwarded-proto") == Some("https");
    let scheme = if is_encrypted { "https" } else { "http" };
    let host = text("host").unwrap_or("localhost");
    format!("{scheme}://{host}{base}")
}

fn tag(card: &Value) -> HeaderValue {
    const BYTES: usize = 8;
    let digest = Sha256::digest(card.to_string());
    let digits: String = digest.iter().take(BYTES).map(|byte| format!("{byte:02x}")).collect();
    HeaderValue::try_from(format!("\"{digits}\"")).expect("digits are a value of a header")
}
