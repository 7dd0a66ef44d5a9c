//! Messages that arrive after the settlement: they go to the audit and into the final receipt, and change nothing
//! else (S3.5). `queue` handles what arrives after the end of a call while the run continues.

use super::Driver;
use crate::{
    run::{
        executor,
        shared::{DecideError, RunMessage},
    },
    sync,
    value::{
        event::EventKind,
        ids::CallId,
        receipt::{CallReport, Receipt, RemoteReport},
    },
};

impl Driver {
    pub(super) fn late(&mut self, msg: RunMessage, receipt: &mut Receipt) {
        match msg {
            RunMessage::Cleaned { call_id, cleanups, processes } => {
                if let Some(call) = row(receipt, &call_id) {
                    call.cleanups.extend(cleanups);
                    call.processes.extend(processes);
                }
            }
            RunMessage::Remote { call_id, remote } => {
                if let Some(call) = row(receipt, &call_id) {
                    call.remote = Some(Box::new(remote));
                }
            }
            RunMessage::Late { call_id, what } => {
                self.name_late(executor::late(&call_id, &what), receipt);
            }
            RunMessage::CallEnded { call_id, ending } => {
                self.calls.has_ended(&call_id);
                let what = executor::late(&call_id, &format!("ended as {}", ending.status.as_str()));
                self.name_late(what, receipt);
            }
            RunMessage::Decided { id, reply, .. } => {
                let closed = self.cx.shared.tree.closings.of(&id).unwrap_or(DecideError::RunEnded);
                sync::reply(reply, Err(closed));
            }
            RunMessage::HookNotified { panicked: Some(message) }
            | RunMessage::HookPanicked { message, .. }
            | RunMessage::AskingPanicked { message } => {
                self.name_late(format!("a callback panicked: {message}"), receipt);
            }
            RunMessage::ChildQuiet { call_id, quiet } => self.tree.children.quiet(call_id, quiet),
            RunMessage::ChildSettled { call_id, child } => self.tree.children.settle(call_id, child),
            RunMessage::ModelEnded { .. }
            | RunMessage::HookNotified { panicked: None }
            | RunMessage::ModelWaits
            | RunMessage::TooLong { .. }
            | RunMessage::ChildSuspended { .. }
            | RunMessage::ChildActivity { .. }
            | RunMessage::Suspend
            | RunMessage::Expired { .. }
            | RunMessage::Left { .. }
            | RunMessage::Hooked { .. }
            // Dropped unanswered: withdrawn with its call.
            | RunMessage::Asks { .. }
            | RunMessage::Named { .. }
            // Dropped unanswered, so it returns to its sender.
            | RunMessage::Steer { .. }
            | RunMessage::WithdrawSteer { .. }
            | RunMessage::Look => {}
        }
    }

    pub(super) fn name_late(&self, what: String, receipt: &mut Receipt) {
        self.cx.shared.audit.push(EventKind::Late(what.clone()));
        receipt.late.push(what);
    }
}

/// The row of a call.
fn row<'r>(receipt: &'r mut Receipt, id: &CallId) -> Option<&'r mut CallReport> {
    receipt.calls.iter_mut().find(|call| call.call_id == *id)
}

/// Remote work that is not known to have ended, by name.
pub(super) fn unended(receipt: &Receipt) -> Vec<String> {
    let peers = receipt.calls.iter().filter_map(|call| call.remote.as_deref());
    peers.flat_map(RemoteReport::survivors).collect()
}
