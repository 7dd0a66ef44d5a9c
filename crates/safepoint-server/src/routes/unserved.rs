//! What no route answers: a path that there is not, and a method that a path does not serve.

use std::sync::Arc;

use axum::{
    extract::{RawPathParams, Request},
    http::{HeaderValue, Method, StatusCode, header},
    response::{IntoResponse as _, Response},
};

use super::{App, Form, shown, table::Route};
use crate::{
    access::{Principal, page::is_asked},
    problem::Problem,
    surface::Surface,
};

/// What there is no route for.
pub(super) const NO_ROUTE: (fn(&Principal) -> Problem, Form) =
    (|_who| Problem::no_such("route"), Problem::into_response);

/// Every other method of one path. It is refused in the form of the path, unless the path names an agent that there is not.
#[derive(Clone)]
pub(super) struct Unserved {
    app: Arc<App>,
    form: Form,
    surface: Option<Surface>,
    allowed: HeaderValue,
}

impl Unserved {
    pub(super) fn of(app: &Arc<App>, routes: &[Route]) -> Self {
        let form = routes.first().map_or(Problem::into_response as Form, |route| route.problem);
        let surface = routes.first().and_then(|route| route.surface);
        Self { app: Arc::clone(app), form, surface, allowed: allowed_methods(routes) }
    }

    /// # Cancel safety
    /// Nothing is lost.
    pub(super) async fn answer(self, params: Option<&RawPathParams>, request: Request) -> Response {
        let named = params.and_then(|params| params.iter().find(|(name, _)| *name == "agent"));
        let problem = |who: &Principal| match (self.surface, named) {
            (Some(surface), Some((_, agent))) if !self.app.host.offers(who, surface, agent) => {
                Problem::no_such("agent")
            }
            _ => {
                let detail = "the route has no such method: the header Allow names those that it has";
                Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method", detail)
            }
        };
        let mut response = refused(&self.app, request, (problem, self.form)).await;
        if response.status() == StatusCode::METHOD_NOT_ALLOWED {
            response.headers_mut().insert(header::ALLOW, self.allowed);
        }
        response
    }
}

/// What the header Allow names. What answers GET answers HEAD, but for the transport of MCP, whose GET is a stream.
fn allowed_methods(routes: &[Route]) -> HeaderValue {
    let names = routes.iter().map(|route| match route.method {
        Method::GET if route.surface != Some(Surface::Mcp) => "GET, HEAD",
        ref method => method.as_str(),
    });
    let names = names.collect::<Vec<_>>().join(", ");
    HeaderValue::from_str(&names).expect("methods are tokens")
}

/// What no route answers: a browser that asks for a page, and else this problem, which only a token learns.
pub(super) async fn refused(
    app: &App,
    request: Request,
    (problem, form): (impl FnOnce(&Principal) -> Problem, Form),
) -> Response {
    let (parts, _unread) = request.into_parts();
    let page = app.access.page(&parts.headers);
    let checked = match app.access.check(&parts) {
        Ok(()) if parts.method == Method::OPTIONS && is_asked(&parts.headers) => {
            return page.map_or_else(|| StatusCode::NO_CONTENT.into_response(), |page| page.sends());
        }
        Ok(()) => app.access.principal(&parts).await,
        Err(problem) => Err(problem),
    };
    shown(form(checked.map_or_else(|refused| refused, |who| problem(&who))), page)
}
