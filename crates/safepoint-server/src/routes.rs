//! The routes: one table, of which the router and the document of the API are made.
//!
//! **Invariants**: host, origin, type and token are checked before a body is read; load refuses no stop and no decision; nothing that is
//! waited for, a body too, is waited for longer than the access of who asks.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use axum::{
    Router,
    body::{Body, to_bytes},
    extract::{OriginalUri, RawPathParams, Request, rejection::RawPathParamsRejection},
    http::{HeaderMap, HeaderValue, Method, StatusCode, header, request::Parts},
    response::Response,
    routing::{MethodFilter, MethodRouter},
};
use bytes::Bytes;
use futures_core::future::BoxFuture;
use jiff::Timestamp;
use percent_encoding::percent_decode_str;
use safepoint::raw::trace::{self, TraceContext};
use serde::{
    Serialize,
    de::{DeserializeOwned, IgnoredAny},
};
use serde_json::Value;
use tokio::time::timeout;

use crate::{
    access::{Access, Principal, page::Page},
    ask::parsed,
    audit::{AuditLine, AuditLog, AuditNote},
    caller::{Caller, Kept},
    host::{Host, HostState},
    load::Load,
    problem::{Answered, Problem},
    sse,
    surface::Surface,
};

mod allowed;
mod approvals;
mod events;
mod health;
mod items;
pub(crate) mod sessions;
mod stops;
pub(crate) mod table;
mod unserved;

use allowed::{Asker, while_allowed};
use table::{Needs, Route, table};
use unserved::{NO_ROUTE, Unserved, refused};

/// The longest body.
const MOST_BODY: usize = 1 << 20;
/// How long a body may take to arrive.
const BODY_WITHIN: Duration = Duration::from_secs(30);
/// The longest key of an item.
const MOST_KEY: usize = 256;

/// What every request sees.
struct App {
    host: Arc<HostState>,
    access: Access,
    load: Arc<Load>,
}

/// With each request that a server of its own has over TLS.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OverTls;

/// A request that may be answered: its route is known, and so is who sends it.
pub(crate) struct Call {
    pub(crate) by: Caller,
    pub(crate) headers: HeaderMap,
    pub(crate) method: Method,
    /// The path as the client has it, whatever the routes are nested in.
    pub(crate) path: String,
    pub(crate) is_over_tls: bool,
    params: BTreeMap<String, String>,
    query: BTreeMap<String, String>,
    body: Bytes,
    pub(crate) audit: Option<AuditLog>,
}

/// The routes of a host, for a program of your own: nest it where you like.
///
/// Each request is checked by `access` before its body is read. A program whose server has no bound for connections and
/// heads needs its own; [`HostServer`](crate::HostServer) has them.
///
/// ```no_run
/// # use axum::Router;
/// # use safepoint_server::{Access, Host};
/// fn app(host: &Host) -> Router {
///     let access = Access::tokens("tokens.toml").host("agents.example.com");
///     Router::new().nest("/agents", safepoint_server::router(host, access))
/// }
/// ```
pub fn router(host: &Host, access: Access) -> Router {
    let app = Arc::new(App { host: Arc::clone(&host.inner), access, load: Arc::clone(&host.inner.load) });
    let mut by_path = BTreeMap::<_, Vec<Route>>::new();
    for route in table() {
        by_path.entry(route.path).or_default().push(route);
    }
    let routes = by_path.into_iter();
    let router =
        routes.fold(Router::new(), |router, (path, routes)| router.route(path, methods(&app, routes)));
    router.fallback(async move |request: Request| refused(&app, request, NO_ROUTE).await)
}

/// The routes of one path.
fn methods(app: &Arc<App>, routes: Vec<Route>) -> MethodRouter {
    let other = Unserved::of(app, &routes);
    let other = async move |params: Result<RawPathParams, RawPathParamsRejection>, request: Request| {
        other.answer(params.ok().as_ref(), request).await
    };
    routes.into_iter().map(Arc::new).fold(MethodRouter::new().fallback(other), |methods, route| {
        let (app, filter) = (Arc::clone(app), filter(&route.method));
        let answer =
            async move |params: Result<RawPathParams, RawPathParamsRejection>, request: Request| match params
            {
                Ok(params) => answer(app, route, params, request).await,
                Err(_no_text) => refused(&app, request, NO_ROUTE).await,
            };
        methods.on(filter, answer)
    })
}

fn filter(method: &Method) -> MethodFilter {
    MethodFilter::try_from(method.clone()).expect("the table has methods that axum knows")
}

/// The answer, for a page elsewhere too.
fn shown(mut response: Response, page: Option<Page>) -> Response {
    if let Some(page) = page {
        page.reads(&mut response);
    }
    response
}

async fn answer(app: Arc<App>, route: Arc<Route>, params: RawPathParams, request: Request) -> Response {
    let page = app.access.page(request.headers());
    let (head, body) = request.into_parts();
    let reads = (route.needs != Needs::Nothing).then(|| head.clone());
    let (answered, asked) = match checked(&app, &route, &params, (head, body)).await {
        Ok(call) => {
            let who = call.by.who.clone();
            let asker = Asker { access: &app.access, head: reads.as_ref(), who: &who };
            (asker.waits((route.run)(call)).await, Some(who))
        }
        Err((problem, who)) => (Err(problem), who),
    };
    let code = answered.as_ref().err().map(|problem| problem.code().to_owned());
    let response = answered.unwrap_or_else(route.problem);
    app.load.answered(response.status());
    audit(&app, &route, (&params, asked.as_ref()), (&response, code.as_deref()));
    let response = match (reads, asked) {
        (Some(head), Some(who)) if sse::is_stream(&response) => {
            while_allowed(response, app.access.clone(), head, who)
        }
        _ => response,
    };
    shown(response, page)
}

/// Writes the line of a request that needs a token.
fn audit(
    app: &App,
    route: &Route,
    (params, who): (&RawPathParams, Option<&Principal>),
    (response, code): (&Response, Option<&str>),
) {
    let Some(log) = app.access.audit().filter(|_| route.needs != Needs::Nothing) else { return };
    let note = response.extensions().get::<AuditNote>();
    let param =
        |wanted: bool| params.iter().find(|(name, _)| (*name == "session") == wanted).map(|(_, value)| value);
    log.write(&AuditLine {
        v: 1,
        at: Timestamp::now(),
        who: who.map(Principal::name),
        token: who.and_then(Principal::token),
        door: route.surface.map_or("v1", Surface::as_str),
        method: route.method.as_str(),
        route: route.path,
        session: note.and_then(|note| note.session.as_deref()).or_else(|| param(true)),
        of: note.and_then(|note| note.of.as_deref()).or_else(|| param(false)),
        status: response.status().as_u16(),
        code,
    });
}

/// The checks, in their order; the body is the last. A refusal says whose request it was, if that is known.
async fn checked(
    app: &Arc<App>,
    route: &Route,
    params: &RawPathParams,
    (parts, body): (Parts, Body),
) -> Result<Call, (Problem, Option<Principal>)> {
    app.access.check(&parts).map_err(|problem| (problem, None))?;
    let who = match route.needs {
        Needs::Nothing => Principal::new("", []),
        Needs::Token | Needs::Scope(_) => {
            app.access.principal(&parts).await.map_err(|problem| (problem, None))?
        }
    };
    let trace = if trace::is_installed() { trace_of(&parts.headers) } else { None };
    let by = Caller { host: Arc::clone(&app.host), load: Arc::clone(&app.load), who, trace };
    let read = async {
        if let Needs::Scope(scope) = route.needs {
            by.needs(scope, route.refuses)?;
        }
        let query = query(parts.uri.query().unwrap_or_default(), route)?;
        let head = (route.needs != Needs::Nothing).then_some(&parts);
        let asker = Asker { access: &app.access, head, who: &by.who };
        Ok((query, asker.waits(read(body)).await?))
    };
    let params = params.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let path = parts.extensions.get::<OriginalUri>().map_or(&parts.uri, |uri| &uri.0).path().to_owned();
    let is_over_tls = parts.extensions.get::<OverTls>().is_some();
    match read.await {
        Ok((query, body)) => {
            let (headers, method) = (parts.headers, parts.method);
            let audit = app.access.audit().cloned();
            Ok(Call { by, headers, method, path, is_over_tls, params, query, body, audit })
        }
        Err(problem) => Err((problem, Some(by.who))),
    }
}

/// The trace that a request is in; one that names several, or none that can be read, is in none.
fn trace_of(headers: &HeaderMap) -> Option<TraceContext> {
    let mut named = headers.get_all("traceparent").iter();
    let context = TraceContext::parse(named.next()?.to_str().ok()?)?;
    let states: Vec<&str> =
        headers.get_all("tracestate").iter().filter_map(|state| state.to_str().ok()).collect();
    named.next().is_none().then(|| context.with_state(&states.join(",")))
}

async fn read(body: Body) -> Answered<Bytes> {
    let too_large = |_error| {
        let detail = format!("a body has at most {MOST_BODY} bytes");
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", detail)
    };
    match timeout(BODY_WITHIN, to_bytes(body, MOST_BODY)).await {
        Ok(read) => read.map_err(too_large),
        Err(_elapsed) => Err(Problem::bad_request("the body did not arrive in time")),
    }
}

fn query(text: &str, route: &Route) -> Answered<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    for pair in text.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        // A protocol's clients send what they like.
        if route.surface.is_none() && !route.query.iter().any(|(known, _)| *known == name) {
            let detail = format!("unknown parameter `{name}`");
            return Err(Problem::new(StatusCode::BAD_REQUEST, "unknown_field", detail));
        }
        let value = value.replace('+', " ");
        let value = percent_decode_str(&value).decode_utf8_lossy().into_owned();
        found.insert(name.to_owned(), value);
    }
    Ok(found)
}

impl Call {
    /// A part of the path.
    pub(crate) fn param(&self, name: &str) -> &str {
        self.params.get(name).map(String::as_str).unwrap_or_default()
    }

    /// A parameter.
    ///
    /// # Errors
    /// If it is not what it should be.
    pub(crate) fn query<T: std::str::FromStr<Err: std::fmt::Display>>(
        &self,
        name: &str,
    ) -> Answered<Option<T>> {
        self.query.get(name).map(|text| parsed(name, text)).transpose()
    }

    /// The body as it came.
    #[cfg(feature = "mcp")]
    pub(crate) fn bytes(&self) -> Bytes {
        self.body.clone()
    }

    /// The body.
    ///
    /// # Errors
    /// If it is none; `invalid_body`, if it is no object.
    pub(crate) fn body<T: DeserializeOwned>(&self) -> Answered<T> {
        // A request without a body asks for what an empty object asks for.
        let body: &[u8] = if self.body.is_empty() { b"{}" } else { &self.body };
        is_object(body)?;
        Ok(serde_json::from_slice(body)?)
    }

    /// The key under which the request may be sent again.
    ///
    /// # Errors
    /// If it is too long, or no text.
    pub(crate) fn key(&self) -> Answered<Option<String>> {
        let Some(key) = self.headers.get("idempotency-key") else { return Ok(None) };
        let fits = |key: &&str| !key.is_empty() && key.len() <= MOST_KEY;
        let key = key.to_str().ok().filter(fits);
        let detail = format!("an Idempotency-Key is a text of 1 to {MOST_KEY} characters");
        key.map(|key| Some(key.to_owned())).ok_or_else(|| Problem::bad_request(detail))
    }

    /// The session of the path, if the token sees it.
    ///
    /// # Errors
    /// 404, for one that it does not see too.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(crate) async fn session(&self) -> Answered<Kept> {
        self.by.session(self.param("session")).await
    }
}

/// Refuses a body that is JSON and no object: a list would be read as the values of the fields, in their order.
///
/// # Errors
/// `invalid_body`.
pub(crate) fn is_object(body: &[u8]) -> Answered<()> {
    let is_object = body.trim_ascii_start().starts_with(b"{");
    let is_json = || serde_json::from_slice::<IgnoredAny>(body).is_ok();
    if is_object || !is_json() {
        return Ok(());
    }
    Err(Problem::new(
        StatusCode::BAD_REQUEST,
        "invalid_body",
        "the body is no JSON object, which is expected",
    ))
}

/// Whether this names a request of JSON-RPC. Any other number could not be said again as it was written.
pub(crate) fn is_rpc_id(id: &Value) -> bool {
    id.is_string() || id.is_i64()
}

/// An answer of this status.
pub(crate) fn json(status: StatusCode, answer: &impl Serialize) -> Answered<Response> {
    let body = serde_json::to_vec(answer)?;
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// How a refusal is said.
pub(crate) type Form = fn(Problem) -> Response;

/// What a route does.
pub(crate) type Run = fn(Call) -> BoxFuture<'static, Answered<Response>>;
