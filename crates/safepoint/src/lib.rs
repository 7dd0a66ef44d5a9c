#![doc = include_str!("../tutorial.md")]
#![cfg_attr(not(feature = "schema"), expect(dead_code, reason = "typed answers need their schema"))]

pub mod agent;
mod contract;
mod definition;
mod external;
mod lines;
pub mod raw;
mod run;
pub mod session;
mod sync;
#[cfg(test)]
mod tests;
mod value;

pub use agent::{builder::AgentBuilder, runs::Agent};
pub use contract::tool::{Tool, ToolContext, ToolResult};
pub use run::{
    Run, RunHandle,
    outcome::{Answer, Outcome},
    steer::Steer,
};
#[cfg(feature = "macros")]
pub use safepoint_macros::tool;
pub use safepoint_model::{history::History, model::Model, usage::Usage};
pub use safepoint_scope::{Grace, Halt, Reason, SafePoints, Stop, StopRequest, secs};
pub use session::handle::{Session, SessionHandle};
pub use value::{limits::Limits, receipt::Receipt};

/// May this call run? Rules, questions and decisions (S8, in process).
///
/// ```
/// use safepoint::{Agent, Outcome, approval::Decision};
/// /// Approves small payments, and refuses the others.
/// async fn decide(agent: &Agent, outcome: &Outcome) -> Option<Outcome> {
///     let Outcome::Suspended(waiting) = outcome else { return None };
///     let decisions = waiting.approvals().iter().map(|asked| {
///         let decision = match asked.args["amount"].as_u64() {
///             Some(..100) => Decision::Approve,
///             _ => Decision::Deny { message: "Not before Friday.".into() },
///         };
///         (asked.id.clone(), decision)
///     });
///     Some(agent.resume_with(outcome, decisions.collect()).await)
/// }
/// ```
pub mod approval {
    pub use crate::{
        contract::approver::{ApprovalMode, Approver, Rule, RuleAction, ToolApproval, WithoutApprover},
        run::shared::DecideError,
        value::approval::{
            AllowScope, ApprovalKind, ApprovalRequest, Decision, Holds, OnUnknownEffect, Ruled,
        },
    };
}

/// An agent as a tool of another: the work of a call is then a run, with its scope, path and receipt (S9).
pub mod child {
    pub use crate::definition::subagent::Subagent;
}

/// What a run records (facts) and what it shows (events): a fact changes state, an event only tells.
///
/// ```
/// use safepoint::event::{Fact, HookAction};
/// fn who_changed(fact: &Fact) -> Option<String> {
///     let Fact::HookActed(report) = fact else { return None };
///     match &report.action {
///         HookAction::TextChanged { bytes_before, bytes_after, .. } => {
///             Some(format!("{} made {bytes_after} bytes of {bytes_before}", report.hook))
///         }
///         _ => None,
///     }
/// }
/// ```
pub mod event {
    pub use crate::{
        lines::{encoder::EventEncoder, line::EventLine},
        run::{
            partials::Partials,
            stream::{RunItem, RunStream},
        },
        value::event::{
            Completion, ErrorReport, Event, EventKind, Events, Fact, HookAction, HookReport, Resolution,
        },
    };
}

/// Hooks that come with the engine: against a run that goes in circles.
pub mod guard {
    pub use crate::contract::guard::LoopGuard;
}

/// A conversation as the next model call will see it, and how its open ends are closed (S5).
pub mod history {
    pub use safepoint_model::history::{Message, note};
}

/// Callbacks around model calls and tool calls. None can veto a stop; a slow one delays the run, never its stop.
pub mod hook {
    pub use crate::contract::hook::{
        CallVerdict, HookCall, HookResult, HookWork, HookedMessage, HookedResult, Hooks, ModelVerdict,
        ResultVerdict, TextFilter, TextKind, before_call, before_model, blocking, from_future, on_result,
        on_text, ready,
    };
}

/// Names of things: every id is its own type, so that none can stand where another is meant.
pub mod ids {
    pub use safepoint_model::ids::{
        ApprovalId, CallId, ItemId, NodeId, NotAnId, Path, RunId, SessionId, SteerId, TurnId,
    };
}

/// Where facts are recorded, if not in memory or in a session: a log of your own (S7.20).
pub mod log {
    pub use crate::contract::log::{Log, LogError, MemoryLog, RunRecord};
}

/// What people, models and tools say, in no provider's format.
///
/// ```
/// use safepoint::message::{AssistantMessage, ProviderPart};
/// fn searches(said: &AssistantMessage) -> Vec<&str> {
///     let uses = said.provider_blocks().filter_map(|block| match &block.part {
///         ProviderPart::Use { input, .. } => Some(input.as_str()),
///         ProviderPart::Result { .. } | ProviderPart::Citations(_) => None,
///     });
///     uses.collect()
/// }
/// ```
pub mod message {
    pub use safepoint_model::message::{
        AssistantMessage, Block, CallResult, Citation, MOST_BYTES, Part, PartKind, PartSource, ProviderBlock,
        ProviderPart, Reasoning, ResultStatus, TooLarge, ToolCall, UserMessage,
    };
}

/// What the engine asks of a model: open a conversation, stream one message at a time, be dropped at any instant.
pub mod model {
    pub use safepoint_model::model::{
        AnswerFormat, Conversation, Delta, DeltaStream, FileSearch, Finish, ModelError, ModelErrorKind,
        ModelSpec, OnModelStop, Parameter, Parameters, PromptCache, ProviderTool, ReasoningEffort,
        ToolChoice, ToolDecl, WebSearch,
    };
}

/// How long stops take, by the phase in which they were asked (S11.2).
pub mod observe {
    pub use crate::definition::stop_times::{BUCKETS_MICROS, Histogram, PhaseTimes, StopTimes};
}

/// How a run ended, with everything needed to continue from there (S3.1).
pub mod outcome {
    pub use crate::{
        run::outcome::{NotDone, Persisted, RunError, Stopped, Suspended},
        value::event::ErrorKind,
    };
}

/// The account of what a run did and what its stop did: every live thing, with its state and times (S3.7).
///
/// ```
/// use safepoint::{Receipt, receipt::{CallStatus, SideEffect}};
/// /// Shows the whole account, and what a person must look at before the work is done again.
/// fn show(receipt: &Receipt) {
///     println!("{receipt}"); // for programs: `serde_json::to_string(receipt)`
///     for call in receipt.calls.iter().filter(|call| call.effect == SideEffect::Unknown) {
///         match call.status {
///             CallStatus::LeftRunning => println!("{} may still run", call.name),
///             status => println!("{} was {}: did it change something?", call.name, status.as_str()),
///         }
///     }
/// }
/// ```
pub mod receipt {
    pub use crate::value::receipt::{
        CallKind, CallReport, CallStatus, ChildReport, CleanupEnd, CleanupReport, Ending, Escalation,
        ModelReport, ModelState, OpenApproval, Outside, Permission, ProcessReport, ProviderToolReport,
        QuietReport, ReasonReport, RemoteReport, RemoteStopState, RequestReport, RetryReport, RuledBy,
        RuledReport, SideEffect, StopReport, StopSource, StopSupport,
    };
}

/// A remote agent as a tool (S10). What an adapter of a protocol implements is in [`raw::remote`].
pub mod remote {
    pub use crate::external::remote::RemoteTool;
}

/// Secrets that the program knows: wherever one would enter a run, its name takes its place.
pub mod secret {
    pub use crate::definition::secret::{SHORTEST, Secrets};
}

/// A run between two attempts as one value (S7.18).
pub mod state {
    pub use crate::run::state::{RunState, RunStateError, RunStateErrorKind};
}

/// Steering: a new message for a running run, without stopping it (S6.5).
pub mod steer {
    pub use crate::run::steer::{SteerError, SteerOutcome, SteerTicket, SteerTiming};
}

/// What a stop is made of beside its request, and what asks for one.
pub mod stop {
    pub use safepoint_scope::{Actor, Code, Failure, Reach, Scope, StopAck, StopHandle};
}

/// Where sessions are kept (S7). What a store implements and what it keeps is in [`raw::store`].
pub mod store {
    pub use crate::contract::store::{Error, MemoryStore, NewNode, OwnerProcess, SessionRow, Store};
}

/// What a tool is: its schema, its honest effect, its contract for a stop, and what its body may ask for.
///
/// ```
/// use safepoint::tool::{self, EffectClass};
/// let look = tool::from_fn("look", "Looks at the meter", |_cx, (): ()| async { Ok(42) })
///     .with(|spec| spec.effect(EffectClass::ReadOnly)); // beside other calls, and again after a crash
/// # let _tool = tool::Tools::new().tool(look);
/// ```
pub mod tool {
    pub use crate::contract::tool::{
        Asks, Concurrency, EffectClass, FnTool, FullOutput, IntoOutput, IntoTool, Json, OnStop,
        OnToolFailure, Output, ToolSpec, Tools, from_spec,
    };
    #[cfg(feature = "schema")]
    pub use crate::contract::tool::{ToolArgs, TypedTool, from_blocking_fn, from_fn, from_fn_with_state};
}

/// What a model call used, and how sure we are of it (S3.9).
pub mod usage {
    pub use safepoint_model::usage::{ExtraBilling, Price, UsageSource};
}

/// How many tokens a model takes, and what happens when a conversation outgrows them (S12.2).
pub mod window {
    pub use crate::definition::window::{OnFull, Summariser, Window};
}
