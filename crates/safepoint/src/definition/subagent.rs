//! An agent as a tool of another: the work of the call is a run, with its own scope, path and receipt (S9).

use std::{fmt, sync::Arc, time::Duration};

use safepoint_scope::{Grace, Link};
use serde_json::{Value, json};

use crate::{
    contract::tool::{Concurrency, ToolSpec},
    definition::Definition,
    value::{message::UserMessage, receipt::CallKind},
};

/// An agent that another can call like a tool: made by [`Agent::as_subagent`](crate::Agent::as_subagent), given to
/// [`AgentBuilder::child`](crate::AgentBuilder::child).
///
/// The call's arguments become the child's input: by default one text named `task`. Its answer is the call's result.
/// Unless it is in the [background](Subagent::background) it is the work of its call: the parent waits for it, and a stop
/// that ends the call ends it.
///
/// ```no_run
/// # use safepoint::{Agent, Model};
/// # fn team(big: impl Model, small: impl Model) -> Agent {
/// let reader = Agent::builder(small).system("You read one file and say what is in it.").build();
/// Agent::builder(big).child(reader.as_subagent("read", "Reads a file and sums it up")).build()
/// # }
/// ```
#[derive(Clone)]
#[must_use = "give it to `AgentBuilder::child`"]
pub struct Subagent {
    spec: ToolSpec,
    def: Arc<Definition>,
    link: Link,
    grace: Option<Grace>,
    input: Arc<dyn Fn(&Value) -> UserMessage + Send + Sync>,
}

impl Subagent {
    /// An attached child run of an agent that is defined so, under the name that the model uses.
    pub(crate) fn of(name: impl Into<String>, description: impl Into<String>, def: Arc<Definition>) -> Self {
        Self {
            spec: ToolSpec::new(name, description).parameters(task_schema()).overlap(Concurrency::Parallel),
            def,
            link: Link::Attached,
            grace: None,
            input: Arc::new(default_input),
        }
    }

    /// Makes it a background run: the call ends at once, and only a stop of the whole tree reaches the run
    /// (S9.2).
    pub fn background(mut self) -> Self {
        self.link = Link::Background;
        self
    }

    /// Sets how long a safe-point stop of the tree waits until this child is at a safe point itself, before
    /// the child is stopped now (S9.5). Default: as long as the stop itself waits.
    pub fn grace(mut self, grace: Grace) -> Self {
        self.grace = Some(grace);
        self
    }

    /// Sets how the call's arguments become the child's input. Default: the text of `task` if that is all there is,
    /// else the arguments as JSON.
    pub fn input(mut self, input: impl Fn(&Value) -> UserMessage + Send + Sync + 'static) -> Self {
        self.input = Arc::new(input);
        self
    }

    /// Changes the declaration: schema, approval, time limit. Its effect and its contract for a stop are
    /// ignored: its own calls report the effect, and a stop reaches it as a run.
    pub fn with(mut self, change: impl FnOnce(ToolSpec) -> ToolSpec) -> Self {
        self.spec = change(self.spec);
        self
    }

    pub(crate) fn spec(&self) -> &ToolSpec {
        &self.spec
    }
    pub(crate) fn def(&self) -> &Arc<Definition> {
        &self.def
    }
    pub(crate) fn link(&self) -> Link {
        self.link
    }
    pub(crate) fn grace_time(&self) -> Option<Duration> {
        self.grace.map(Grace::as_duration)
    }
    pub(crate) fn input_of(&self, args: &Value) -> UserMessage {
        (self.input)(args)
    }
    pub(crate) fn kind(&self) -> CallKind {
        match self.link {
            Link::Attached => CallKind::Child,
            Link::Background => CallKind::Background,
        }
    }
}

/// The argument with the task of an agent that is called like a tool.
pub(crate) const TASK: &str = "task";

/// The arguments of such an agent.
pub(crate) fn task_schema() -> Value {
    json!({
        "type": "object",
        "properties": { TASK: { "type": "string", "description": "What to do, with all that it needs to know" } },
        "required": [TASK],
        "additionalProperties": false,
    })
}

fn default_input(args: &Value) -> UserMessage {
    match (args.get(TASK), args.as_object().map(serde_json::Map::len)) {
        (Some(Value::String(task)), Some(1)) => task.as_str().into(),
        _ => args.to_string().into(),
    }
}

impl fmt::Debug for Subagent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subagent").field("spec", &self.spec).field("link", &self.link).finish_non_exhaustive()
    }
}
