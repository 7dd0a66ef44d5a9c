//! What stores, adapters and front ends need beside the API of programs.
//!
//! Nothing here is under the promise of semantic versioning: a minor release may change it. A program that only runs agents
//! names none of it.

use safepoint_scope::Scope;

use crate::run::Run;

pub use crate::{
    definition::secret::Cleaned,
    session::{
        journal::{JournalFact, JournalStep, read_journal, read_journal_from},
        stored_item::{ItemError, decode_item, decode_row, encode_item},
        stored_stop::store_stop,
        stored_stop::{StoredStop, StoredStopError},
    },
    value::{
        approval::{StoredApprovalError, decode_approval, digest},
        event::{OutputExtent, RecordedSteer, RunLimits, SteerSource, StreamEvent},
        receipt::{demand_name, exit_code, is_background_run, lasting, mode_name, reach_name},
    },
};
pub use safepoint_model::history::{
    Earlier, Entries, Omission, OmissionKind, Omitted, OpenCall, OpenEnd, Repair,
};

/// What an [`EventLine`](crate::event::EventLine) is made of, and the schema of all lines.
pub mod line {
    #[cfg(feature = "schema")]
    pub use crate::lines::schema::event_schema;
    pub use crate::lines::{
        journal::JournalEncoder,
        line::{LineText, into_parts},
    };
}

/// Runs of your own runtime: one trait, one handle (S10.1).
pub mod backend {
    pub use crate::external::backend::{
        ActiveWork, Backend, BackendSpec, PendingWork, RunInput, TooLate, WrappedEnd, wrap, wrap_finished,
    };
}

/// What the code that `#[safepoint::tool]` makes names.
#[cfg(feature = "macros")]
#[doc(hidden)]
pub mod derive {
    pub use {schemars, serde};
}

/// JSON from outside: how large it is, before it is read as values.
pub mod json {
    pub use safepoint_model::raw::json::{MOST_VALUES, Unread, bytes, is_wide, read, weight};
}

/// What the adapter of a protocol implements (S10).
///
/// A remote agent does the work *in a call*, so that a stop, a question, a restart and a late word find it where they
/// find every other tool. Give one to an agent as a tool ([`RemoteTool`](crate::remote::RemoteTool)), or make an agent of it
/// ([`Agent::remote`](crate::Agent::remote)): then each message of a person is one call, and everything that runs have
/// (sessions, a store, approvals, receipts) it has.
///
/// To add a protocol, implement [`Remote`](remote::Remote) and [`RemoteCall`](remote::RemoteCall), nothing else, and say
/// only what the peer said.
pub mod remote {
    pub use crate::contract::remote::{
        AfterWord, DEFAULT_LISTEN, DEFAULT_STOP_WITHIN, LAST_LOOK, LAST_PROCESSES, LAST_WORDS, Lives,
        Reattach, Remote, RemoteCall, RemoteEnd, RemoteEvent, RemoteQuestion, RemoteSpec, RemoteStopReply,
        RemoteTask, Term,
    };
}

/// A JSON Schema, compiled once: which values fit it, and where and why another does not. It needs the feature `schema`.
#[cfg(feature = "schema")]
pub mod schema {
    pub use crate::value::schema::{InvalidSchema, Misfit, Schema};
}

/// Files for what is too large to be kept elsewhere, which only their owner can see or replace (S4.16).
pub mod spill {
    pub use crate::value::spill::private_file;
}

/// Machines of a simulation, their clocks, and ids that follow from a seed (S7.63).
pub mod simulation {
    pub use safepoint_model::raw::ids::Seeded;
    pub use safepoint_scope::{
        clock,
        simulation::{OnMachine, SimulatedMachine},
    };
}

/// What a store keeps for sessions, and what it promises of it (S7): rows, leases, the chain of digests, and what it
/// asks of its environment.
pub mod store {
    pub use crate::contract::store::{
        Among, Appended, ApprovalClose, ApprovalCursor, ApprovalRow, ApprovalState, ApprovalsToWithdraw,
        Cause, Chain, ChainCheck, ChainReader, ChainSummary, Change, ChangeStream, Changes, Clock,
        CloseResult, Damage, DamageKind, DecisionResult, DecisionUse, Due, Durability, Environment,
        FORGOTTEN_AFTER, ImageStamp, InboxRow, ItemState, JournalEntry, Lease, LeaseHolder, Leaving,
        Liveness, LivenessCheck, MOST_TRIES, NAMED_AGAIN_AFTER, NewApproval, NewDecision, NewItem,
        NewSession, NodeLease, NodeRow, NodeState, OverImage, PARKED, Page, PageCursor, Pushed, Record, Rest,
        SessionApproval, SessionImage, Since, StopIntent, StopRow, StoreFuture, Tenure, Uptime, Withdrawn,
        Write, export, is_free, of_micros, retry_after, truncate_to_micros, uptime,
    };
}

/// Traces that span processes: where a run hangs in one, and what a request takes along (S11.14). The engine has spans of
/// `tracing`; what joins them with an exporter is a [`Propagator`](trace::Propagator).
pub mod trace {
    use crate::agent::runs::Agent;

    pub use crate::contract::trace::{Propagator, RunTrace, TraceContext, current, install, is_installed};

    /// The agent with all of its runs in one trace: for a planner, whose plans name agents and no runs.
    #[must_use]
    pub fn traced(agent: &Agent, trace: RunTrace) -> Agent {
        agent.traced(trace)
    }

    /// The agent under this name, unless it [has one](crate::AgentBuilder::name).
    #[must_use]
    pub fn named(agent: &Agent, name: &str) -> Agent {
        agent.named(name)
    }
}

/// Makes a run a part of a family before it starts: what is asked of `family` reaches it as a child run, and its
/// background runs belong to the family instead of to it (S9.1). Handles that were taken before are of no use.
///
/// # Panics
/// If it has started.
pub fn within<T>(run: Run<T>, family: &Scope) -> Run<T> {
    run.within(family)
}
