//! How an endpoint is asked that has no protocol of its own: a file says it.

use std::{collections::BTreeMap, fs, path::Path};

use http::Method;
use serde::Deserialize;

/// How an endpoint is asked, stopped, and asked again, from a file of TOML: `--request FILE` of the door `http`.
///
/// ```
/// use safepoint_stop_test::RequestFile;
/// let file = r#"
///     path = "/chat"                             # asked by POST, if `method` does not say otherwise
///     body = '{"message": "{TEXT}", "thread": "{CONVERSATION}"}'
///     headers = { x-tenant = "tests" }
///     [id]                                       # where `{ID}` is in the answer
///     header = "x-run-id"                        # or: field = "run.id", of the first event that has it
///     [cancel]                                   # a route that stops it, if there is one
///     path = "/runs/{ID}/cancel"
///     says = "stopped"                           # what its answer says by its documentation; nothing, if this is missing
///     [next]                                     # the next message, if it is not asked as the first one
///     path = "/runs/{ID}/messages"
///     body = '{"message": "{TEXT}"}'
/// "#;
/// assert!(RequestFile::parse(file).is_ok());
/// let wrong = RequestFile::parse("path = '/chat'").unwrap_err();
/// assert!(wrong.contains("`{TEXT}`"), "{wrong}");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestFile {
    #[serde(default = "post")]
    method: String,
    path: String,
    #[serde(default)]
    body: String,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// Where its answer names what it began.
    pub(super) id: Option<IdPlace>,
    pub(super) cancel: Option<CancelRoute>,
    next: Option<NextRequest>,
}

/// Exhaustive: an answer names it in its head, or in an event.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub(super) enum IdPlace {
    Header(String),
    /// The names on the way to it, with dots between.
    Field(String),
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CancelRoute {
    #[serde(default = "post")]
    method: String,
    path: String,
    #[serde(default)]
    body: String,
    #[serde(default)]
    pub(super) says: CancelAnswer,
}

/// What the answer to a cancel says by its documentation. Exhaustive: that it was stopped, or nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum CancelAnswer {
    Stopped,
    #[default]
    Nothing,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct NextRequest {
    #[serde(default = "post")]
    method: String,
    path: String,
    #[serde(default)]
    body: String,
}

/// One request, with all that is known filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Filled {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) body: String,
}

/// What stands for the words in braces.
#[derive(Clone, Copy, Debug)]
pub(super) struct Filling<'a> {
    pub(super) text: &'a str,
    pub(super) conversation: &'a str,
    pub(super) id: Option<&'a str>,
}

const TEXT: &str = "{TEXT}";
const ID: &str = "{ID}";
const CONVERSATION: &str = "{CONVERSATION}";

fn post() -> String {
    "POST".to_owned()
}

impl RequestFile {
    /// Reads the file.
    ///
    /// # Errors
    /// That it cannot be read, or what in it is wrong and how it is right; in words.
    pub fn read(file: &Path) -> Result<Self, String> {
        let text = fs::read_to_string(file)
            .map_err(|error| format!("{} cannot be read: {error}", file.display()))?;
        Self::parse(&text).map_err(|error| format!("{}: {error}", file.display()))
    }

    /// Reads what is in such a file.
    ///
    /// # Errors
    /// What in it is wrong, and how it is right; in words.
    pub fn parse(text: &str) -> Result<Self, String> {
        let file: Self = toml::from_str(text).map_err(|error| error.to_string())?;
        let first = ("", [&file.method, &file.path, &file.body]);
        let cancel =
            file.cancel.as_ref().map(|cancel| ("cancel.", [&cancel.method, &cancel.path, &cancel.body]));
        let next = file.next.as_ref().map(|next| ("next.", [&next.method, &next.path, &next.body]));
        let holds = |parts: [&String; 3], word| parts.iter().any(|part| part.contains(word));
        for (name, [method, path, _]) in [Some(first), cancel, next].into_iter().flatten() {
            if method.parse::<Method>().is_err() {
                return Err(format!("`{name}method` is `{method}`, and no method of HTTP"));
            }
            if !path.starts_with('/') {
                return Err(format!("`{name}path` is `{path}`, and a path begins with `/`"));
            }
        }
        for (name, parts) in [Some(first), next].into_iter().flatten() {
            if !holds(parts, TEXT) {
                return Err(format!("`{name}body` holds no `{TEXT}`: what is asked stands there"));
            }
        }
        let wants_id = [cancel, next].into_iter().flatten().any(|(_, parts)| holds(parts, ID));
        if holds(first.1, ID) || wants_id && file.id.is_none() {
            return Err(format!(
                "`{ID}` is known from the first answer: say where, as `id.header` or `id.field`, and use it in `cancel` and `next`"
            ));
        }
        Ok(file)
    }

    /// Headers that each request has.
    pub(super) fn headers(&self) -> impl Iterator<Item = (String, String)> {
        self.headers.clone().into_iter()
    }

    pub(super) fn first(&self, by: Filling<'_>) -> Result<Filled, String> {
        by.fill([&self.method, &self.path, &self.body])
    }

    /// # Errors
    /// That there is no such route, or `{ID}` is not known.
    pub(super) fn cancelled(&self, by: Filling<'_>) -> Result<Filled, String> {
        let route = self.cancel.as_ref().ok_or("the request file names no route `cancel`")?;
        by.fill([&route.method, &route.path, &route.body])
    }

    /// # Errors
    /// That the file does not say how a conversation is continued, or `{ID}` is not known.
    pub(super) fn next(&self, by: Filling<'_>) -> Result<Filled, String> {
        match &self.next {
            Some(next) => by.fill([&next.method, &next.path, &next.body]),
            None if [&self.path, &self.body].iter().any(|part| part.contains(CONVERSATION)) => self.first(by),
            None => Err(format!(
                "the request file does not say how a conversation is continued, by `{CONVERSATION}` or `next`"
            )),
        }
    }
}

impl Filling<'_> {
    fn fill(&self, [method, path, body]: [&String; 3]) -> Result<Filled, String> {
        if self.id.is_none() && [path, body].iter().any(|part| part.contains(ID)) {
            return Err(format!("its answer names no `{ID}`"));
        }
        let known = [(TEXT, self.text), (CONVERSATION, self.conversation), (ID, self.id.unwrap_or_default())];
        let filled =
            |part: &String| known.iter().fold(part.clone(), |part, (word, with)| part.replace(word, with));
        let method = method.parse().map_err(|_invalid| format!("`{method}` is no method of HTTP"))?;
        Ok(Filled { method, path: filled(path), body: filled(body) })
    }
}

#[cfg(test)]
mod tests;
