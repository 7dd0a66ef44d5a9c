//! What a request is for: a wire, a kept response, or nothing that is served.

use serde_json::{Value, json};

use super::{ask::Ask, embeddings};
use crate::{
    http::{Request, header},
    oracle,
};

/// The wire that a request speaks. Exhaustive: those that the server knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ServedWire {
    /// `…/chat/completions`.
    OpenAi,
    /// `…/messages`.
    Anthropic,
    /// `…/responses`.
    Responses,
    /// `…/models/NAME:generateContent` and `…:streamGenerateContent`.
    Gemini,
}

impl ServedWire {
    /// Its name: `openai`, `anthropic`, `responses` or `gemini`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
            Self::Responses => "responses",
            Self::Gemini => "gemini",
        }
    }

    /// The body of the 400 with which the provider would refuse this request; none if it would take it.
    #[must_use]
    pub fn judge(self, body: &Value) -> Option<Value> {
        match self {
            Self::OpenAi => oracle::openai(body).err().map(|violation| violation.openai_body()),
            Self::Anthropic => oracle::anthropic(body).err().map(|violation| violation.anthropic_body()),
            Self::Responses => oracle::responses(body).err().map(|violation| violation.openai_body()),
            Self::Gemini => oracle::gemini(body).err().map(|violation| violation.gemini_body()),
        }
    }

    fn of(path: &str) -> Option<Self> {
        if Gemini::of(path).is_some() {
            return Some(Self::Gemini);
        }
        let path = path.split('?').next().unwrap_or_default();
        if path.ends_with("/chat/completions") {
            return Some(Self::OpenAi);
        }
        if path.ends_with("/responses") {
            return Some(Self::Responses);
        }
        path.ends_with("/messages").then_some(Self::Anthropic)
    }
}

/// What Gemini says in the path: the model, and whether it streams.
pub(super) struct Gemini<'p> {
    pub(super) model: &'p str,
    pub(super) streams: bool,
}

impl<'p> Gemini<'p> {
    pub(super) fn of(path: &'p str) -> Option<Self> {
        let path = path.split('?').next().unwrap_or_default();
        let (_, model) = path.rsplit_once("/models/")?;
        let (model, verb) = model.split_once(':')?;
        let streams = match verb {
            "streamGenerateContent" => true,
            "generateContent" => false,
            _ => return None,
        };
        Some(Self { model, streams })
    }
}

/// A request on one of the wires.
#[derive(Debug)]
pub(super) struct WireRequest {
    pub(super) wire: ServedWire,
    pub(super) request: Request,
}

/// What a request is for.
pub(super) enum Route {
    Wire(WireRequest),
    /// Embeddings on a wire that has them.
    Embeddings(WireRequest),
    /// A response that the server keeps, and the authorization of the caller.
    Kept(Ask, Option<String>),
    /// The models that there are, as Gemini lists them or as the others do.
    Models(ServedWire),
    Unknown(Request),
}

impl Route {
    pub(super) fn of(request: Request) -> Self {
        if let Some(ask) = Ask::of(&request.method, &request.path) {
            return Self::Kept(ask, authorization(&request.headers));
        }
        if request.method == "GET"
            && let Some(wire) = listing(&request.path)
        {
            return Self::Models(wire);
        }
        if let Some(wire) = embeddings::wire_of(&request.path).filter(|_| request.method == "POST") {
            return Self::Embeddings(WireRequest { wire, request });
        }
        match ServedWire::of(&request.path) {
            Some(wire) if request.method == "POST" => Self::Wire(WireRequest { wire, request }),
            Some(_) | None => Self::Unknown(request),
        }
    }
}

/// The authorization of the caller.
pub(super) fn authorization(headers: &[(String, String)]) -> Option<String> {
    header(headers, "authorization").map(ToOwned::to_owned)
}

/// The wire whose list of models is asked for: only Gemini has a `pageSize`.
fn listing(path: &str) -> Option<ServedWire> {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let wire = if query.contains("pageSize=") { ServedWire::Gemini } else { ServedWire::OpenAi };
    path.ends_with("/models").then_some(wire)
}

/// A list of models in this wire's form.
pub(super) fn models(wire: ServedWire) -> Value {
    match wire {
        ServedWire::Gemini => json!({"models": NAMES.map(|name| {
            json!({"name": format!("models/{name}"), "supportedGenerationMethods": ["generateContent"]})
        })}),
        _ => json!({"object": "list", "data": NAMES.map(|name| json!({"id": name, "object": "model"}))}),
    }
}

/// The models that the server lists; it answers to any name.
const NAMES: [&str; 2] = ["scripted", "scripted-mini"];
