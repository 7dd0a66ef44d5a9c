//! Remote agents: agents that others run, behind a protocol, driven by the same handle as a run of this process.
//!
//! A protocol is one module here, and implements two traits of the engine and nothing else:
//! [`Remote`](safepoint::raw::remote::Remote), which describes the remote agent and opens a call to it, and
//! [`RemoteCall`](safepoint::raw::remote::RemoteCall), which reads the agent's reports about one piece of work, sends it a person's
//! answers, and asks it to stop. The engine does the rest: the call that the work is in, its time, its place in the
//! history, questions as approvals, the stop with its deadline, and the row in the receipt.
//!
//! To add a protocol:
//!
//! 1. `Remote::spec`: a [`RemoteSpec`](safepoint::raw::remote::RemoteSpec) with the peer's address for people, and the
//!    [`StopSupport`](safepoint::receipt::StopSupport) that the protocol promises, which the user may lower for a peer that is known
//!    to work on.
//! 2. `Remote::open`: no effect and no wait; keep what the call needs. Commands that are started belong to
//!    `safepoint_tools::process`, and into the row of the call (`ToolContext::report_process`).
//! 3. `RemoteCall::next`: everything that the peer says, in order, with every wait inside. It is dropped and called again at
//!    any await: keep what was received in the call, not in the future. Send the request at its first poll. Say
//!    `RemoteEvent::Begun` as soon as the peer names the work, `RemoteEvent::Lost` when the connection breaks for good, and
//!    `RemoteEvent::Failed(Failure::unreachable())` only where nothing can have been done.
//! 4. `RemoteCall::answer`: a decision as the peer's protocol says it.
//! 5. `RemoteCall::stop`: send the stop, cancel its open questions in the protocol's terms, and report its answer: only a
//!    terminal state, or a process that is gone, is `RemoteStopReply::confirmed`. A peer that took note is `RemoteStopReply::acknowledged`; if
//!    it ends later, `RemoteCall::next` says `RemoteEvent::Ended`, or
//!    `RemoteEvent::Parted` where more is to be said of that.
//! 6. Put it through `safepoint_testkit::backend_suite`, against a peer whose log says whether work continues: the
//!    grade is measured, and a wrong one fails.
//! 7. Name it in `agent/backend.rs` of the command line, for `--backend KIND:WHERE`.

mod cancel;
mod conversation_ids;
mod exchange;

pub mod a2a;
pub mod acp;
pub mod responses;
