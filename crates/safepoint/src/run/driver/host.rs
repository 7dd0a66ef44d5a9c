//! What a call's context can reach of its run.

use std::sync::{Arc, Weak};

use futures_core::future::BoxFuture;
use safepoint_scope::{Scope, StopAck, StopRequest};
use tokio::{runtime, sync::oneshot};

use crate::{
    contract::tool::{Asks, Host, Output},
    definition::{Definition, secret::Secrets},
    run::{
        executor::{self, CallBoard, CallReply},
        shared::{RunMessage, SharedRun},
    },
    value::{
        approval::Decision,
        event::EventKind,
        ids::CallId,
        limits::Limits,
        receipt::{ProcessReport, RemoteReport},
    },
};

/// The engine behind one call's context. It holds the run weakly: a retained context does not keep the run
/// alive.
pub(super) struct RunHost {
    shared: Weak<SharedRun>,
    scope: Scope,
    board: Arc<CallBoard>,
    limits: Arc<Limits>,
    secrets: Secrets,
    is_remote: bool,
}

impl RunHost {
    pub(super) fn new(
        shared: &Arc<SharedRun>,
        scope: &Scope,
        board: &Arc<CallBoard>,
        def: &Definition,
    ) -> Self {
        let (board, limits, secrets) = (Arc::clone(board), Arc::clone(&def.limits), def.secrets.clone());
        let (shared, scope) = (Arc::downgrade(shared), scope.clone());
        Self { shared, scope, board, limits, secrets, is_remote: def.is_remote }
    }

    fn post(&self, msg: RunMessage) {
        if let Some(shared) = self.shared.upgrade() {
            shared.post(msg);
        }
    }

    fn show(&self, kind: EventKind) {
        if let Some(shared) = self.shared.upgrade() {
            shared.feed.push(kind);
        }
    }
}

impl Host for RunHost {
    fn progress(&self, call: &CallId, text: String) {
        let text = self.secrets.clean_text(text);
        self.board.progress(&text, self.limits.call_output_bytes);
        self.show(EventKind::Progress { call_id: call.clone(), text });
    }

    fn notice(&self, call: &CallId, text: String) {
        let text = self.secrets.clean_text(text);
        self.board.progress(&format!("[{text}]\n"), self.limits.call_output_bytes);
        self.show(EventKind::Notice { call_id: call.clone(), text });
    }

    fn denied(&self) -> Vec<String> {
        self.board.denied()
    }

    fn said(&self, call: &CallId, text: &str) -> bool {
        if !self.board.say(text) {
            return false;
        }
        if !self.is_remote {
            self.progress(call, text.to_owned());
            return true;
        }
        // It is the run's text, and is shown only as that.
        let text = self.secrets.clean_text(text.to_owned());
        self.board.progress(&text, self.limits.call_output_bytes);
        self.show(EventKind::Text(text.into()));
        true
    }

    fn said_all(&self) {
        self.board.said_all();
    }

    fn answer(&self, whole: Option<String>) -> String {
        self.board.answer(whole)
    }

    fn keep(&self, output: Output) {
        self.board.keep(self.secrets.clean_output(output));
    }

    /// A clean-up registered after the call's own clean-ups runs at once, and its row follows as a message.
    fn on_cleanup(&self, call: &CallId, label: String, work: BoxFuture<'static, ()>) {
        let Some(cleanup) = self.board.cleanup((label, work)) else { return };
        if runtime::Handle::try_current().is_err() {
            // Without a runtime nothing can run any more: the work is dropped, which releases what it holds.
            return;
        }
        let (scope, shared, bound) =
            (self.scope.clone(), Weak::clone(&self.shared), self.limits.cleanup_timeout);
        let call_id = call.clone();
        drop(self.scope.spawn("a late clean-up", async move {
            let cleanups = vec![executor::clean_up_late(&scope, cleanup, bound).await];
            if let Some(shared) = shared.upgrade() {
                shared.post(RunMessage::Cleaned { call_id, cleanups, processes: Vec::new() });
            }
        }));
    }

    fn report_process(&self, call: &CallId, process: ProcessReport) {
        if let Some(process) = self.board.process(process) {
            let call_id = call.clone();
            self.post(RunMessage::Cleaned { call_id, cleanups: Vec::new(), processes: vec![process] });
        }
    }

    fn report_remote(&self, call: &CallId, mut remote: RemoteReport) {
        remote.word = self.secrets.clean_text(remote.word);
        remote.said = self.secrets.clean_text(remote.said);
        if let Some(remote) = self.board.remote(remote) {
            self.post(RunMessage::Remote { call_id: call.clone(), remote });
        }
    }

    fn named(&self, call: &CallId, task: String) -> oneshot::Receiver<()> {
        let (recorded, is_recorded) = oneshot::channel();
        self.post(RunMessage::Named { call_id: call.clone(), task, recorded });
        is_recorded
    }

    fn late(&self, call: &CallId, what: String) {
        let what = self.secrets.clean_text(what);
        self.post(RunMessage::Late { call_id: call.clone(), what });
    }

    /// If the run is gone, the answer's sender is dropped: the question is withdrawn.
    fn ask(&self, call: &CallId, asks: Asks) -> oneshot::Receiver<Decision> {
        let (reply, answer) = oneshot::channel();
        self.post(RunMessage::Asks {
            call_id: call.clone(),
            asks,
            reply: CallReply::new(reply, &self.board),
        });
        answer
    }

    fn withdraw(&self) {
        self.post(RunMessage::Look);
    }

    fn output_bytes(&self) -> usize {
        self.limits.model_output_bytes
    }

    fn stop_run(&self, request: StopRequest) -> StopAck {
        self.shared.upgrade().map_or(StopAck::TooLate, |shared| shared.stop.stop(request))
    }

    fn end_with_the_run(&self, call: &CallId) {
        let reason = self.scope.reason().filter(|_| !self.scope.is_stopping());
        if let (Some(reason), Some(shared)) = (reason, self.shared.upgrade()) {
            self.board.end_with_the_run();
            shared.stop_call(call, StopRequest::now().with_reason(reason));
        }
    }
}
