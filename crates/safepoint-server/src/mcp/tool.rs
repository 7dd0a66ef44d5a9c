//! An agent as the tool of a server.

use std::sync::Arc;

use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CancelTaskParams, CustomRequest, CustomResult,
        GetTaskParams, GetTaskResult, Implementation, ListToolsResult, PaginatedRequestParams,
        RequestMetaObject, ServerCapabilities, ServerConfig, Tool, UpdateTaskParams,
    },
    service::RequestContext,
};
use safepoint::raw::trace::{self, TraceContext};
use serde_json::{Map, Value, json};
use tokio::sync::watch;

use super::{call, link::LinkState, params, reply, task};
use crate::caller::Caller;

/// The agent, for one client.
#[derive(Clone)]
pub(super) struct AgentTool {
    /// Who asks, where a request does not say it.
    by: Caller,
    pub(super) agent: String,
    pub(super) link: watch::Sender<LinkState>,
}

impl AgentTool {
    pub(super) fn new(by: Caller, agent: String, link: watch::Sender<LinkState>) -> Self {
        Self { by, agent, link }
    }

    /// Who sends this request, and in which trace: what it says itself is nearer than what its transport says.
    pub(super) fn caller(&self, context: &RequestContext<RoleServer>) -> Caller {
        let parts = context.extensions.get::<http::request::Parts>();
        let by = parts.and_then(|parts| parts.extensions.get::<Caller>()).unwrap_or(&self.by);
        let trace = if trace::is_installed() { trace_of(&context.meta) } else { None };
        Caller { trace: trace.or(by.trace.clone()), ..by.clone() }
    }

    fn tool(&self) -> Tool {
        let described = self.by.host.agents.get(&self.agent).map(|offered| offered.description.clone());
        let description = described.filter(|text| !text.is_empty());
        let description =
            description.unwrap_or_else(|| format!("Gives a task to the agent `{}`", self.agent));
        Tool::new(self.agent.clone(), description, Arc::new(input()))
            .with_raw_output_schema(Arc::new(output()))
    }
}

impl ServerHandler for AgentTool {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().enable_tasks().build())
            .with_server_info(Implementation::new("safepoint", env!("CARGO_PKG_VERSION")))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        (name == self.agent).then(|| self.tool())
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(vec![self.tool()]))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if request.name != *self.agent {
            return Err(ErrorData::invalid_params(format!("there is no tool `{}`", request.name), None));
        }
        match call::answer(self, request, &context).await {
            Ok(response) => Ok(response),
            Err(problem) => reply::refused(&problem).map(Into::into),
        }
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        Err(params::refused(request))
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        let found = task::get(&self.caller(&context), &self.agent, &request.task_id).await;
        found.map_err(|problem| reply::error(&problem))
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let by = self.caller(&context);
        let taken = task::update(&by, &self.agent, &request.task_id, request.input_responses).await;
        taken.map_err(|problem| reply::error(&problem))
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let asked = task::cancel(&self.caller(&context), &self.agent, &request.task_id).await;
        asked.map_err(|problem| reply::error(&problem))
    }
}

/// The trace that a request names; none where it names none that can be read.
fn trace_of(meta: &RequestMetaObject) -> Option<TraceContext> {
    let context = TraceContext::parse(meta.get_traceparent()?)?;
    Some(context.with_state(meta.get_tracestate().unwrap_or_default()))
}

/// What the tool takes.
fn input() -> Map<String, Value> {
    let text = |description: &str| json!({"type": "string", "description": description});
    object(json!({
        "type": "object", "additionalProperties": false, "required": ["text"],
        "properties": {
            "text": text("What the agent is to do"),
            "session": text("The session of an earlier call, to continue it; without it a new one begins"),
        },
    }))
}

/// What it answers beside the text.
fn output() -> Map<String, Value> {
    let maybe = json!({"type": ["string", "null"]});
    object(json!({
        "type": "object", "required": ["session", "item", "outcome"],
        "properties": {
            "session": {"type": "string"}, "item": {"type": "string"}, "turn": maybe, "outcome": maybe,
            "quiet": {"type": ["boolean", "null"]},
            "survivors": {"type": "array", "items": {"type": "string"}}, "receipt": maybe,
        },
    }))
}

/// The object that this is.
pub(super) fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}
