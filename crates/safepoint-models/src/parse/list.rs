//! The names of the models that a provider offers.

use std::{collections::HashSet, sync::Arc};

use bytes::Bytes;
use safepoint::model::{ModelError, ModelErrorKind};
use serde::Deserialize;

use super::ModelBuilder;
use crate::{
    body::Growing,
    config::{self, Auth},
    error,
    http::{
        outgoing::Outgoing,
        whole::{self, WholeAnswer},
    },
    providers::Speaks,
};

/// The most bytes of a list: a catalogue of hundreds of models with descriptions has less.
const MOST_BYTES: usize = 8 << 20;
/// The most names of a list, and the most letters of a name.
const MOST_NAMES: usize = 10_000;
const MOST_LETTERS: usize = 200;

/// A list as the wires give it: `data` with an `id` (OpenAI, Anthropic), or `models` with a `name` (Gemini).
#[derive(Deserialize)]
struct Listed {
    #[serde(alias = "models")]
    data: Vec<ListedModel>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListedModel {
    #[serde(alias = "name")]
    id: String,
    /// What it can do, where that is said.
    supported_generation_methods: Option<Vec<String>>,
}

impl ModelBuilder {
    /// The names of the models that the provider offers, as it lists them: each can stand behind `PROVIDER:`. A provider also lists
    /// models that are for embeddings, pictures or speech, and seldom says which ones.
    ///
    /// ```no_run
    /// # async fn list() -> Result<(), Box<dyn std::error::Error>> {
    /// for name in "ollama:any".parse::<safepoint_models::ModelBuilder>()?.list().await? {
    ///     println!("ollama:{name}");
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// If a variable that the provider needs is not set, it cannot be reached or refuses, or what it answers is no list or has
    /// more than 8 MiB.
    ///
    /// # Cancel safety
    /// The exchange is released at once.
    pub async fn list(&self) -> Result<Vec<String>, ModelError> {
        let endpoint = self.endpoint(&|name| std::env::var(name).ok());
        let endpoint =
            endpoint.map_err(|error| ModelError::new(ModelErrorKind::Refused, error.to_string()))?;
        let mut headers = whole::accepts_json();
        let (path, auth) = match self.provider.speaks {
            Speaks::OpenAi | Speaks::Responses => ("models", Auth::Bearer),
            Speaks::Gemini => ("models?pageSize=1000", Auth::GoogKey),
            Speaks::Anthropic => {
                headers.extend(config::anthropic_version());
                ("models?limit=1000", Auth::ApiKey)
            }
        };
        let prepared = Arc::new(endpoint.prepare(path, auth, headers)?.without_body());
        let body = Growing::behind(Bytes::new()).with_tail(b"");
        let answer = whole::ask(&Outgoing { prepared, body, output_bytes: MOST_BYTES }).await?;
        names(&read(answer).await?)
    }
}

async fn read(mut answer: WholeAnswer) -> Result<Vec<u8>, ModelError> {
    let mut bytes = Vec::new();
    while let Some(chunk) = answer.chunk().await? {
        if bytes.len() + chunk.len() > MOST_BYTES {
            return Err(error::malformed(format_args!(
                "its list of models has more than {MOST_BYTES} bytes"
            )));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

/// The names of a list; one that no request could name is left out.
fn names(list: &[u8]) -> Result<Vec<String>, ModelError> {
    let Listed { data } = serde_json::from_slice(list)
        .map_err(|error| error::malformed(format_args!("its list of models is none: {error}")))?;
    let can_talk = |model: &ListedModel| {
        let methods = model.supported_generation_methods.as_ref();
        methods.is_none_or(|methods| methods.iter().any(|method| method.ends_with("enerateContent")))
    };
    let is_name = |name: &str| {
        !name.trim().is_empty()
            && name.chars().count() <= MOST_LETTERS
            && !name.chars().any(|letter| letter.is_control() || letter.is_whitespace())
    };
    let bare = |name: String| name.strip_prefix("models/").map(str::to_owned).unwrap_or(name);
    let listed = data.into_iter().filter(can_talk).map(|model| bare(model.id));
    let mut known = HashSet::new();
    Ok(listed.filter(|name| is_name(name) && known.insert(name.clone())).take(MOST_NAMES).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The wires' own forms, with what is no name left out.
    #[test]
    fn each_wires_list_gives_its_names() {
        let openai = r#"{"object":"list","data":[{"id":"b","object":"model"},{"id":"a"},{"id":"a"},{"id":""},{"id":"x\u001b[2J"}]}"#;
        assert_eq!(names(openai.as_bytes()).unwrap(), ["b", "a"]);
        let anthropic = r#"{"data":[{"type":"model","id":"claude-x","display_name":"X"}],"has_more":false}"#;
        assert_eq!(names(anthropic.as_bytes()).unwrap(), ["claude-x"]);
        let gemini = r#"{"models":[
            {"name":"models/gemini-x","supportedGenerationMethods":["generateContent","countTokens"]},
            {"name":"models/embedding-x","supportedGenerationMethods":["embedContent"]}]}"#;
        assert_eq!(names(gemini.as_bytes()).unwrap(), ["gemini-x"]);
        assert!(names(b"[]").is_err() && names(b"<html>").is_err());
    }
}
