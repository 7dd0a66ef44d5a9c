//! What arrives after its time: it goes to the audit and into the account, and changes nothing else (S3.5).

use super::Conductor;
use crate::{
    run::{
        executor,
        shared::{DecideError, Msg},
    },
    sync,
    value::{
        event::EventKind,
        ids::CallId,
        receipt::{CleanupReport, ProcessReport, Receipt, RemoteReport},
    },
};

impl Conductor {
    pub(super) fn late(&mut self, msg: Msg, receipt: &mut Receipt) {
        match msg {
            Msg::Cleaned { call_id, cleanups, processes } => add(receipt, &call_id, cleanups, processes),
            Msg::Remote { call_id, remote } => name_remote(receipt, &call_id, remote),
            Msg::Late { call_id, what } => {
                self.name_late(executor::late(&call_id, &what), receipt);
            }
            Msg::CallEnded { call_id, ending } => {
                let what = executor::late(&call_id, &format!("ended as {}", ending.status.as_str()));
                self.name_late(what, receipt);
            }
            Msg::Decided { id, reply, .. } => {
                let closed = self.shared.tree.closings.of(&id).unwrap_or(DecideError::RunEnded);
                sync::reply(reply, Err(closed));
            }
            Msg::Told { panicked: Some(message) } | Msg::AskingPanicked { message } => {
                self.name_late(format!("a callback panicked: {message}"), receipt);
            }
            Msg::ChildQuiet { call_id, quiet } => self.child_quiet(call_id, quiet),
            Msg::ChildSettled { call_id, child } => self.child_settled(call_id, child),
            Msg::ModelEnded { .. }
            | Msg::Told { panicked: None }
            | Msg::TooLong { .. }
            | Msg::ChildSuspended { .. }
            | Msg::Parked { .. }
            | Msg::Suspend
            | Msg::Expired { .. }
            | Msg::Left { .. }
            | Msg::Hooked { .. }
            // Dropped unanswered: taken back with its call.
            | Msg::Asks { .. }
            | Msg::Named { .. }
            // Dropped unanswered, so it comes back to whoever steered.
            | Msg::Steer { .. }
            | Msg::TakeBack { .. }
            | Msg::Look => {}
        }
    }

    pub(super) fn name_late(&self, what: String, receipt: &mut Receipt) {
        self.shared.audit.push(EventKind::Late(what.clone()));
        receipt.late.push(what);
    }

    /// What comes from a call that was stopped while the run goes on: kept for the receipt at the end.
    pub(super) fn take_late(&mut self, msg: Msg) {
        match msg {
            Msg::Cleaned { call_id, cleanups, processes } => {
                self.machine.add_rows(&call_id, cleanups, processes)
            }
            Msg::Remote { call_id, remote } => self.machine.name_remote(&call_id, remote),
            Msg::Late { call_id, what } => {
                self.shared.audit.push(EventKind::Late(executor::late(&call_id, &what)));
            }
            Msg::ChildQuiet { call_id, quiet } => self.child_quiet(call_id, quiet),
            Msg::ChildSettled { call_id, child } => self.child_settled(call_id, child),
            Msg::Parked { call_id, parking } => self.parked(call_id, parking),
            Msg::Suspend => {
                if let Some(up) = &mut self.up {
                    up.heard();
                }
            }
            Msg::ModelEnded { .. }
            | Msg::Told { .. }
            | Msg::AskingPanicked { .. }
            | Msg::TooLong { .. }
            | Msg::CallEnded { .. }
            | Msg::ChildSuspended { .. }
            | Msg::Asks { .. }
            | Msg::Named { .. }
            | Msg::Decided { .. }
            | Msg::Expired { .. }
            | Msg::Left { .. }
            | Msg::Hooked { .. }
            | Msg::Steer { .. }
            | Msg::TakeBack { .. }
            | Msg::Look => {}
        }
    }
}

fn add(receipt: &mut Receipt, id: &CallId, cleanups: Vec<CleanupReport>, processes: Vec<ProcessReport>) {
    if let Some(call) = receipt.calls.iter_mut().find(|call| call.call_id == *id) {
        call.cleanups.extend(cleanups);
        call.processes.extend(processes);
    }
}

fn name_remote(receipt: &mut Receipt, id: &CallId, remote: RemoteReport) {
    if let Some(call) = receipt.calls.iter_mut().find(|call| call.call_id == *id) {
        call.remote = Some(Box::new(remote));
    }
}

/// The work of peers that is not known to have ended, by name.
pub(super) fn unended(receipt: &Receipt) -> Vec<String> {
    let peers = receipt.calls.iter().filter_map(|call| call.remote.as_deref());
    peers.flat_map(RemoteReport::survivors).collect()
}
