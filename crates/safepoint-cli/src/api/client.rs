//! Requests to a server, one answer each.
//!
//! **Invariants**: an answer is bounded in size and in time; a request is not sent twice here.

use std::time::Duration;

use http::{
    HeaderName, HeaderValue, Method,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER},
};
use safepoint_http::{HttpClient, Response};
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use super::{
    address::ServerAddress,
    failure::{ApiError, Problem},
    token::Token,
};
use crate::{
    args::{names, place::StorePlace, server::ServerArgs},
    exit::Usage,
};

/// How long a server may take to answer, beyond what it was asked to wait.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// How much longer than the caller the answer of a server is waited for that waits as long as the caller.
const GRACE: Duration = Duration::from_secs(2);
/// The longest answer that is read: 64 MiB.
const LONGEST: usize = 64 << 20;
/// How many of the newest sessions are looked at for an end of an id.
const LOOKED_AT: usize = 1024;
/// How many a page has.
pub(super) const PAGE: usize = 500;

/// A server that can be asked.
pub(crate) struct ServerApi {
    address: ServerAddress,
    client: HttpClient,
    token: Token,
    /// When the caller stops waiting.
    over: Option<Instant>,
}

/// What a server answered.
#[derive(Debug)]
pub(crate) struct ApiAnswer {
    /// Whether it had done the same before.
    pub(super) is_replayed: bool,
    pub(super) body: Value,
}

/// One request.
pub(super) struct ApiRequest<'a> {
    method: Method,
    path: &'a [&'a str],
    query: &'a [(&'a str, &'a str)],
    body: Option<Value>,
    key: Option<&'a str>,
    /// How long the server is asked to wait.
    waits: Duration,
    /// How much longer than the caller the answer is waited for.
    grace: Duration,
}

impl<'a> ApiRequest<'a> {
    pub(super) fn get(path: &'a [&'a str]) -> Self {
        Self {
            method: Method::GET,
            path,
            query: &[],
            body: None,
            key: None,
            waits: Duration::ZERO,
            grace: Duration::ZERO,
        }
    }

    pub(super) fn delete(path: &'a [&'a str]) -> Self {
        Self { method: Method::DELETE, ..Self::get(path) }
    }

    pub(super) fn post(path: &'a [&'a str], body: Value) -> Self {
        Self { method: Method::POST, body: Some(body), ..Self::get(path) }
    }

    pub(super) fn query(self, query: &'a [(&'a str, &'a str)]) -> Self {
        Self { query, ..self }
    }

    /// Under the same key it is the same request.
    pub(super) fn key(self, key: &'a str) -> Self {
        Self { key: Some(key), ..self }
    }

    pub(super) fn waits(self, waits: Duration) -> Self {
        Self { waits, ..self }
    }

    /// It is sent, and its answer waited for a moment, although the caller's time is over.
    pub(super) fn in_spite_of_time(self) -> Self {
        Self { grace: GRACE, ..self }
    }
}

impl ServerApi {
    /// The server that is meant; none: this machine's sessions and its store are.
    ///
    /// # Errors
    /// If it is no address for a token, or there is no token for it.
    pub(crate) fn meant(args: &ServerArgs, store: Option<&StorePlace>) -> anyhow::Result<Option<Self>> {
        let Some(address) = ServerAddress::meant(args, store)? else { return Ok(None) };
        let token = Token::of(args, &address)?;
        Ok(Some(Self { client: address.client()?, address, token, over: None }))
    }

    /// The same, with an end of all waiting.
    pub(super) fn until(self, over: Option<Instant>) -> Self {
        Self { over, ..self }
    }

    /// As it is named to people.
    pub(crate) fn name(&self) -> String {
        self.address.to_string()
    }

    /// How much of this time is left to the caller.
    pub(super) fn left(&self, most: Duration) -> Duration {
        self.over.map_or(most, |over| most.min(over.saturating_duration_since(Instant::now())))
    }

    /// Asks about the session that is meant: its id, or an end of it that no other of the newest has. Also says its id.
    ///
    /// # Errors
    /// If there is none, or `ask` has failed.
    ///
    /// # Cancel safety
    /// As of `ask`.
    pub(crate) async fn of_session<T>(
        &self,
        named: &str,
        ask: impl AsyncFn(&str) -> Result<T, ApiError>,
    ) -> Result<(String, T), ApiError> {
        match ask(named).await {
            Err(error) if error.code() == "no_such_session" => match self.ending(named).await? {
                Some(id) => ask(&id).await.map(|answer| (id, answer)),
                None => Err(self.no_session(named)),
            },
            answer => answer.map(|answer| (named.to_owned(), answer)),
        }
    }

    fn no_session(&self, named: &str) -> ApiError {
        match names::check(named) {
            Ok(()) => ApiError::NoSession(named.to_owned()),
            Err(why) => ApiError::Unusable(why),
        }
    }

    /// The session whose id ends so; none also where the token may not list sessions.
    async fn ending(&self, named: &str) -> Result<Option<String>, ApiError> {
        /// Less of an id says too little.
        const LEAST: usize = 4;
        if named.len() < LEAST {
            return Ok(None);
        }
        let rows = match self.pages(&["sessions"], LOOKED_AT).await {
            Err(error) if error.code() == "scope_missing" => return Ok(None),
            rows => rows?,
        };
        let mut ending = rows.iter().filter_map(|row| row["id"].as_str()).filter(|id| id.ends_with(named));
        match (ending.next(), ending.next()) {
            (Some(_), Some(_)) => {
                let why = format!("more than one session ends in {named}: write more of it");
                Err(ApiError::Unusable(Usage(why)))
            }
            (one, _) => Ok(one.map(ToOwned::to_owned)),
        }
    }

    /// The items of a list, at most this many.
    ///
    /// # Errors
    /// As of [`send`](Self::send).
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(super) async fn pages(&self, path: &[&str], most: usize) -> Result<Vec<Value>, ApiError> {
        let mut all = Vec::new();
        let mut after: Option<String> = None;
        while all.len() < most {
            let limit = PAGE.min(most - all.len()).to_string();
            let mut query = vec![("limit", &*limit)];
            query.extend(after.as_deref().map(|after| ("after", after)));
            let page = self.send(ApiRequest::get(path).query(&query)).await?.body;
            let Some(data) = page["data"].as_array() else {
                return Err(ApiError::NotOurs("without a list".to_owned()));
            };
            all.extend(data.iter().cloned());
            match page["next"].as_str() {
                // The same page again is the end; an empty one is not.
                Some(next) if after.as_deref() != Some(next) => after = Some(next.to_owned()),
                _ => break,
            }
        }
        all.truncate(most);
        Ok(all)
    }

    /// The items of a list that has no pages.
    ///
    /// # Errors
    /// As of [`send`](Self::send).
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(super) async fn all(&self, path: &[&str]) -> Result<Vec<Value>, ApiError> {
        let mut page = self.send(ApiRequest::get(path)).await?.body;
        match page["data"].take() {
            Value::Array(data) => Ok(data),
            _ => Err(ApiError::NotOurs("without a list".to_owned())),
        }
    }

    /// Sends a request, and reads the answer.
    ///
    /// # Errors
    /// If it is refused, or not answered in time.
    ///
    /// # Cancel safety
    /// The server may have done it.
    pub(super) async fn send(&self, asked: ApiRequest<'_>) -> Result<ApiAnswer, ApiError> {
        let url = self.address.of_route(asked.path, asked.query).map_err(ApiError::Unusable)?;
        let mut request = self.client.request(asked.method, &url);
        request = request.header(AUTHORIZATION, self.token.header.clone());
        request = request.header(ACCEPT, HeaderValue::from_static("application/json"));
        if let Some(key) = asked.key {
            let key = HeaderValue::from_str(key).map_err(|_unseen| {
                ApiError::Unusable(Usage("--id goes to a server in visible ASCII only".into()))
            })?;
            request = request.header(HeaderName::from_static("idempotency-key"), key);
        }
        if let Some(body) = asked.body {
            request = request.header(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            request = request.body(body.to_string());
        }
        let within = asked.waits + ANSWER_TIMEOUT;
        let silent = Instant::now() + within;
        let over = self
            .over
            .map(|over| if asked.grace.is_zero() { over } else { over.max(Instant::now()) + asked.grace });
        let deadline = over.map_or(silent, |over| over.min(silent));
        let answered = async {
            let response = request.send().await.map_err(|error| match () {
                () if error.is_unusable() || error.is_connect() => ApiError::Unreachable(error),
                () => ApiError::Broken(error),
            })?;
            self.read(response).await
        };
        match timeout_at(deadline, answered).await {
            Ok(answer) => answer,
            Err(_over) if deadline < silent => Err(ApiError::Over),
            Err(_silent) => Err(ApiError::Silent(within)),
        }
    }

    async fn read(&self, mut response: Response) -> Result<ApiAnswer, ApiError> {
        let status = response.status();
        let word = |name: HeaderName| {
            response.headers().get(name).and_then(|value| value.to_str().ok()).map(ToOwned::to_owned)
        };
        let (retry_after, kind) = (word(RETRY_AFTER), word(CONTENT_TYPE).unwrap_or_default());
        let is_replayed = response.headers().contains_key("idempotency-replayed");
        let mut bytes = Vec::new();
        while let Some(more) = response.chunk().await.map_err(ApiError::Broken)? {
            bytes.extend_from_slice(&more);
            if bytes.len() > LONGEST {
                return Err(ApiError::NotOurs(format!("with more than {LONGEST} bytes")));
            }
        }
        let body: Option<Value> = serde_json::from_slice(&bytes).ok();
        match body {
            Some(body) if status.is_success() => Ok(ApiAnswer { is_replayed, body }),
            Some(body) if kind.starts_with("application/problem+json") => {
                let text = |name: &str| body[name].as_str().unwrap_or_default().to_owned();
                Err(ApiError::Refused(Box::new(Problem {
                    status: status.as_u16(),
                    code: text("code"),
                    detail: text("detail"),
                    token: self.token.from.clone(),
                    retry_after,
                    fields: body,
                })))
            }
            _ => Err(ApiError::NotOurs(format!("HTTP {}", status.as_u16()))),
        }
    }
}
