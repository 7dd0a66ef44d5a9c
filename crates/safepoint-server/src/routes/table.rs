//! Each route: its method and path, the scope that it needs, what it takes and what it answers.

use axum::{http::Method, response::IntoResponse as _};
use schemars::{JsonSchema, Schema, SchemaGenerator};

use super::{Form, Run, approvals, events, health, items, sessions, stops};
use crate::{
    a2a,
    access::AccessScope,
    answer::{
        AgentAnswer, ApprovalAnswer, DecisionAnswer, DoneAnswer, ItemAnswer, ListPage, SessionAnswer,
        StepAnswer, StopAnswer, TurnAnswer,
    },
    ask::{DecisionAsk, ItemAsk, SessionAsk, StopAsk},
    problem::Problem,
    responses,
    surface::Surface,
};

type MakeSchema = fn(&mut SchemaGenerator) -> Schema;
/// A parameter and what it is for.
type Parameter = (&'static str, &'static str);

/// One route.
pub(crate) struct Route {
    pub(crate) method: Method,
    pub(crate) path: &'static str,
    pub(crate) needs: Needs,
    pub(crate) does: &'static str,
    pub(crate) query: &'static [Parameter],
    pub(crate) body: Option<MakeSchema>,
    pub(crate) answer: Option<MakeSchema>,
    pub(crate) statuses: &'static [u16],
    pub(crate) refuses: Refuses,
    /// The protocol that it belongs to; none: the own API, whose document has it.
    pub(crate) surface: Option<Surface>,
    /// How it says why a request is refused.
    pub(crate) problem: Form,
    pub(crate) run: Run,
}

/// What a route needs. Exhaustive: nothing, a token, whose scope is known once the body is read, or a token of this scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    Nothing,
    Token,
    Scope(AccessScope),
}

/// Whether load refuses it. Exhaustive: it may, or never does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refuses {
    UnderLoad,
    Never,
}

fn of<T: JsonSchema>(schemas: &mut SchemaGenerator) -> Schema {
    schemas.subschema_for::<T>()
}

impl Route {
    fn new(method: Method, path: &'static str, does: &'static str, run: Run) -> Self {
        Self {
            method,
            path,
            needs: Needs::Nothing,
            does,
            query: &[],
            body: None,
            answer: None,
            statuses: &[200],
            refuses: Refuses::UnderLoad,
            surface: None,
            problem: Problem::into_response,
            run,
        }
    }

    /// A route of a protocol, which takes the parameters that it knows and says in its own form why it refuses.
    pub(crate) fn of_surface(
        surface: Surface,
        (method, path): (Method, &'static str),
        problem: Form,
        run: Run,
    ) -> Self {
        Self { surface: Some(surface), problem, ..Self::new(method, path, "", run) }
    }

    pub(crate) fn needs(self, scope: AccessScope) -> Self {
        Self { needs: Needs::Scope(scope), ..self }
    }

    /// What it does asks by [`Caller::needs`](crate::caller::Caller::needs) for the scope, once the body is read.
    pub(crate) fn needs_token(self) -> Self {
        Self { needs: Needs::Token, ..self }
    }

    fn query(self, query: &'static [Parameter]) -> Self {
        Self { query, ..self }
    }

    fn takes<T: JsonSchema>(self) -> Self {
        Self { body: Some(of::<T>), ..self }
    }

    fn answers<T: JsonSchema>(self, statuses: &'static [u16]) -> Self {
        Self { answer: Some(of::<T>), statuses, ..self }
    }

    pub(crate) fn always(self) -> Self {
        Self { refuses: Refuses::Never, ..self }
    }
}

const WAIT: Parameter = ("wait", "`settled` or `quiet`: answers once that is so");
const TIMEOUT: Parameter = ("timeout_ms", "how long `wait` waits, at most 120000; default 30000");
const LIMIT: Parameter = ("limit", "at most so many, from 1 to 500; default 50");
const AFTER: Parameter = ("after", "`next` of the page before");

/// All that this build has.
pub(crate) fn table() -> Vec<Route> {
    let mut all = own();
    // Each protocol adds its routes here.
    all.extend(responses::routes());
    all.extend(a2a::routes());
    #[cfg(feature = "mcp")]
    all.extend(crate::mcp::routes());
    all
}

/// Those of the own API.
pub(crate) fn own() -> Vec<Route> {
    let mut all = sessions();
    all.extend(items());
    all.extend(stops_and_decisions());
    all.extend(reading());
    all.extend(of_the_server());
    all
}

fn sessions() -> Vec<Route> {
    use AccessScope::{Admin, Read, Talk};
    vec![
        Route::new(Method::GET, "/v1/agents", "Lists the agents that the token may use", |call| {
            Box::pin(sessions::agents(call))
        })
        .needs(Read)
        .answers::<ListPage<AgentAnswer>>(&[200]),
        Route::new(Method::POST, "/v1/sessions", "Makes a session, with its first item or without", |call| {
            Box::pin(sessions::make(call))
        })
        .needs(Talk)
        .takes::<SessionAsk>()
        .answers::<SessionAnswer>(&[201, 200]),
        Route::new(Method::GET, "/v1/sessions", "Lists sessions, the one that changed last first", |call| {
            Box::pin(sessions::list(call))
        })
        .needs(Read)
        .query(&[
            ("state", "only those in this state, as a session says it"),
            ("agent", "only those of this agent"),
            LIMIT,
            AFTER,
        ])
        .answers::<ListPage<SessionAnswer>>(&[200]),
        Route::new(Method::GET, "/v1/sessions/{session}", "Shows a session", |call| {
            Box::pin(sessions::one(call))
        })
        .needs(Read)
        .answers::<SessionAnswer>(&[200]),
        Route::new(
            Method::DELETE,
            "/v1/sessions/{session}",
            "Removes a session of which nothing runs or waits",
            |call| Box::pin(sessions::remove(call)),
        )
        .needs(Admin)
        .answers::<DoneAnswer>(&[200]),
    ]
}

fn items() -> Vec<Route> {
    use AccessScope::{Read, Talk};
    vec![
        Route::new(
            Method::POST,
            "/v1/sessions/{session}/items",
            "Pushes an item, or steers with it",
            |call| Box::pin(items::push(call)),
        )
        .needs(Talk)
        .takes::<ItemAsk>()
        .answers::<ItemAnswer>(&[202, 200]),
        Route::new(Method::GET, "/v1/sessions/{session}/items/{item}", "Shows where an item is", |call| {
            Box::pin(items::one(call))
        })
        .needs(Read)
        .query(&[("wait", "`rest`: answers once it is at rest"), TIMEOUT])
        .answers::<ItemAnswer>(&[200]),
        Route::new(
            Method::DELETE,
            "/v1/sessions/{session}/items/{item}",
            "Withdraws an item that waits",
            |call| Box::pin(items::withdraw(call)),
        )
        .needs(Talk)
        .answers::<ItemAnswer>(&[200]),
        Route::new(
            Method::POST,
            "/v1/sessions/{session}/resume",
            "Resumes the turn that ended early",
            |call| Box::pin(items::resume(call)),
        )
        .needs(Talk)
        .answers::<DoneAnswer>(&[202]),
    ]
}

fn stops_and_decisions() -> Vec<Route> {
    use AccessScope::{Approve, Read, Stop};
    vec![
        Route::new(
            Method::POST,
            "/v1/sessions/{session}/stop",
            "Stops a turn, a call or the session",
            |call| Box::pin(stops::stop(call)),
        )
        .needs(Stop)
        .query(&[WAIT, TIMEOUT])
        .takes::<StopAsk>()
        .answers::<StopAnswer>(&[202, 200])
        .always(),
        Route::new(Method::GET, "/v1/sessions/{session}/stops/{stop}", "Shows how far a stop is", |call| {
            Box::pin(stops::one(call))
        })
        .needs(Read)
        .answers::<StopAnswer>(&[200]),
        Route::new(Method::GET, "/v1/approvals", "Lists the open questions of all sessions", |call| {
            Box::pin(approvals::all(call))
        })
        .needs(Read)
        .answers::<ListPage<ApprovalAnswer>>(&[200]),
        Route::new(
            Method::GET,
            "/v1/sessions/{session}/approvals",
            "Lists the questions of a session",
            |call| Box::pin(approvals::list(call)),
        )
        .needs(Read)
        .answers::<ListPage<ApprovalAnswer>>(&[200]),
        Route::new(
            Method::POST,
            "/v1/sessions/{session}/approvals/{approval}/decision",
            "Answers a question, once",
            |call| Box::pin(approvals::decide(call)),
        )
        .needs(Approve)
        .takes::<DecisionAsk>()
        .answers::<DecisionAnswer>(&[200])
        .always(),
    ]
}

fn reading() -> Vec<Route> {
    use AccessScope::Read;
    vec![
        Route::new(
            Method::GET,
            "/v1/sessions/{session}/turns/{turn}",
            "Shows a turn and its receipt",
            |call| Box::pin(stops::turn(call)),
        )
        .needs(Read)
        .answers::<TurnAnswer>(&[200]),
        Route::new(
            Method::GET,
            "/v1/sessions/{session}/timeline",
            "Lists what was recorded, oldest first",
            |call| Box::pin(events::timeline(call)),
        )
        .needs(Read)
        .query(&[("after", "only what is behind this position"), ("turn", "only this turn"), LIMIT])
        .answers::<ListPage<StepAnswer>>(&[200]),
        Route::new(Method::GET, "/v1/sessions/{session}/events", "Streams the events of a session", |call| {
            Box::pin(events::stream(call))
        })
        .needs(Read)
        .query(&[
            ("after", "continues behind the event of this id, as the header `Last-Event-ID` does"),
            ("turn", "ends once nothing of this turn is alive"),
            ("item", "ends once this item is at rest"),
        ]),
        Route::new(
            Method::GET,
            "/v1/events",
            "Streams the states and the open questions of all sessions, first as a list and then as they change, and which are removed",
            |call| Box::pin(events::all(call)),
        )
        .needs(Read),
    ]
}

fn of_the_server() -> Vec<Route> {
    use AccessScope::Admin;
    vec![
        Route::new(Method::POST, "/v1/drain", "Drains the server", |call| Box::pin(health::drain(call)))
            .needs(Admin)
            .answers::<DoneAnswer>(&[202])
            .always(),
        Route::new(Method::GET, "/v1/openapi.json", "Describes this API", |call| {
            Box::pin(health::document(call))
        })
        .needs(AccessScope::Read),
        Route::new(Method::GET, "/metrics", "Counts what the server does", |call| {
            Box::pin(health::metrics(call))
        })
        .needs(Admin),
        Route::new(Method::GET, "/livez", "Says that the server runs", |call| Box::pin(health::live(call)))
            .answers::<DoneAnswer>(&[200]),
        Route::new(Method::GET, "/readyz", "Says whether the server begins turns", |call| {
            Box::pin(health::ready(call))
        })
        .answers::<DoneAnswer>(&[200, 503]),
    ]
}
