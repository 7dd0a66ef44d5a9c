//! Somebody else's agent, behind a protocol: what an adapter implements, and the tool that asks one for its work (S10).
//!
//! A remote agent does the work *in a call*, so that a stop, a question, a restart and a late word find it where they
//! find every other tool. Give one to an agent as a tool ([`RemoteTool`]), or make an agent of it
//! ([`Agent::remote`](crate::Agent::remote)): then each message of a person is one call, and everything that runs have
//! (sessions, a store, approvals, receipts) it has.
//!
//! To add a protocol, implement [`Remote`] and [`RemoteCall`], nothing else, and say only what the peer said.

pub use crate::{
    contract::remote::{
        AfterWord, DEFAULT_LISTEN, DEFAULT_STOP_WITHIN, LAST_LOOK, LAST_PROCESSES, LAST_WORDS, Lives,
        Reattach, Remote, RemoteCall, RemoteEvent, RemoteQuestion, RemoteSpec, RemoteStopReply, RemoteTask,
        Term,
    },
    external::remote::RemoteTool,
};
