//! A remote agent as a tool: a model calls it like any other.

use std::{fmt, sync::Arc, time::Duration};

use futures_core::future::BoxFuture;
use serde_json::{Value, json};

use super::call::CallLoop;
use crate::contract::remote::{Remote, RemoteSpec, RemoteTask};
use crate::contract::tool::{Concurrency, OnStop, OnToolFailure, Tool, ToolContext, ToolResult, ToolSpec};
use crate::definition::subagent::{TASK, task_schema};

/// The argument with the conversation: only for an agent's own calls, which models do not write.
pub(super) const CONVERSATION: &str = "conversation";

/// How much longer a call gets than its agent: the row of the receipt is written meanwhile.
const SLACK: Duration = Duration::from_millis(500);

/// A tool whose work a remote agent does. Its calls may overlap with others.
///
/// ```no_run
/// # use safepoint::{Agent, Model, raw::remote::Remote, remote::RemoteTool};
/// # fn team(big: impl Model, coder: impl Remote) -> Agent {
/// Agent::builder(big).tool(RemoteTool::new(coder)).build()
/// # }
/// ```
#[derive(Clone)]
pub struct RemoteTool {
    spec: ToolSpec,
    remote: Arc<dyn Remote>,
    /// Whether its call is the whole run.
    is_whole_run: bool,
}

impl RemoteTool {
    /// A tool of the remote agent's name.
    pub fn new(remote: impl Remote) -> Self {
        Self::shared(Arc::new(remote))
    }

    fn shared(remote: Arc<dyn Remote>) -> Self {
        let RemoteSpec { name, description, effect, stop_within, .. } = remote.spec().clone();
        let unseen = Arc::new(remote.spec().unseen());
        let mut spec = ToolSpec::new(name, description)
            .parameters(task_schema())
            .effect(effect)
            .overlap(Concurrency::Parallel)
            .on_stop(OnStop::Cooperate(Some(stop_within.saturating_add(SLACK))));
        spec.unseen_at = Some(unseen);
        Self { spec, remote, is_whole_run: false }
    }

    /// The tool of an agent that is a remote one: its failures fail the run, and it continues conversations.
    pub(crate) fn alone(remote: Arc<dyn Remote>) -> Self {
        let mut tool = Self::shared(remote);
        tool.spec.parameters["properties"][CONVERSATION] = json!({ "type": "string" });
        // The engine writes its arguments.
        tool.spec.is_typed = true;
        tool.spec.on_failure = OnToolFailure::EndRun;
        // It is the run's answer, and not output that a model sees a part of.
        tool.spec.output_bytes = Some(usize::MAX);
        tool.is_whole_run = true;
        tool
    }

    /// Changes the declaration: schema, approval, time limit. Its contract for a stop is the remote's.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(ToolSpec) -> ToolSpec) -> Self {
        let on_stop = self.spec.on_stop;
        self.spec = change(self.spec).on_stop(on_stop);
        self
    }
}

impl Tool for RemoteTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call(&self, cx: ToolContext, args: Value) -> BoxFuture<'static, ToolResult> {
        let text_of = |name: &str| args.get(name).and_then(Value::as_str).map(str::to_owned);
        let brief = RemoteTask {
            text: text_of(TASK).unwrap_or_else(|| args.to_string()),
            conversation: text_of(CONVERSATION).unwrap_or_else(|| cx.idempotency_key().to_owned()),
            key: cx.idempotency_key().to_owned(),
            task: cx.remote_task().map(str::to_owned),
            earlier: cx.earlier(),
            most_bytes: cx.host().output_bytes(),
        };
        let (remote, is_whole_run) = (Arc::clone(&self.remote), self.is_whole_run);
        Box::pin(async move {
            let line = remote.open(brief, &cx);
            CallLoop::new(remote.spec(), line, cx).run(is_whole_run).await
        })
    }
}

impl fmt::Debug for RemoteTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteTool").field("spec", &self.spec).finish_non_exhaustive()
    }
}
