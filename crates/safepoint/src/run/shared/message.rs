//! What a driver is sent.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::{Activity, tree::Reply};
use crate::{
    contract::{
        hook::{HookAnswer, HookKey},
        model::ModelError,
        tool::Asks,
    },
    run::{
        executor::{CallEnd, CallReply},
        steer::{Steer, SteerWithdrawal},
    },
    sync::callback::Panicked,
    value::{
        approval::{ApprovalRequest, Ruled},
        ids::{ApprovalId, CallId, SteerId},
        receipt::{ChildReport, CleanupReport, ProcessReport, QuietReport, RemoteReport},
    },
};
/// The messages of a driver. Exhaustive: it must handle each.
pub(crate) enum RunMessage {
    /// The model's stream is over.
    ModelEnded { round: u32, error: Option<ModelError> },
    /// The model's request waits to be sent, or to be sent again.
    ModelWaits,
    /// The model's message exceeds its limit.
    TooLong { round: u32 },
    /// A call is over. Boxed: it is the largest message, and is handed on several times.
    CallEnded { call_id: CallId, ending: Box<CallEnd> },
    /// The clean-ups of a stopped call are done.
    Cleaned { call_id: CallId, cleanups: Vec<CleanupReport>, processes: Vec<ProcessReport> },
    /// A call that was left running has ended.
    Late { call_id: CallId, what: String },
    /// What is known now of the remote agent that does, or did, a call's work.
    Remote { call_id: CallId, remote: RemoteReport },
    /// The remote agent named a call's work.
    Named { call_id: CallId, task: String, recorded: oneshot::Sender<()> },
    /// A running call asks a person.
    Asks { call_id: CallId, asks: Asks, reply: CallReply },
    /// A decision was made.
    Decided { id: ApprovalId, ruled: Ruled, reply: Reply },
    /// The approver has left without an answer.
    Left { id: ApprovalId },
    /// The question expired.
    Expired { id: ApprovalId },
    /// A hook answered.
    Hooked { key: HookKey, answer: Result<HookAnswer, Panicked> },
    /// A hook panicked where it was called by what it guards: the run fails.
    HookPanicked { hook: Arc<str>, message: String },
    /// A hook that was notified has ended, perhaps by a panic.
    HookNotified { panicked: Option<String> },
    /// The approver panicked.
    AskingPanicked { message: String },
    /// The run is steered; the round is sent when the steer is recorded.
    Steer { steer: Steer, landed: oneshot::Sender<u32> },
    /// The sender withdraws a steer. Dropped unanswered, the run is over.
    WithdrawSteer { steer: SteerId, reply: oneshot::Sender<SteerWithdrawal> },
    /// The run that is a call's work waits for a person inside, or no longer does.
    ChildActivity { call_id: CallId, activity: Activity },
    /// To a run that waits for a person: all runs wait, so suspend.
    Suspend,
    /// The run that is a call's work has suspended itself.
    ChildSuspended { call_id: CallId, child: ChildReport, approvals: Vec<ApprovalRequest> },
    /// A background run has settled; its call ended long before.
    ChildSettled { call_id: CallId, child: ChildReport },
    /// A child run is quiet, or its time for that is over.
    ChildQuiet { call_id: CallId, quiet: QuietReport },
    /// A single call was asked to stop, or withdrew a question: check again.
    Look,
}
