//! What a call's context can reach of its run.

use std::sync::{Arc, Weak};

use futures_core::future::BoxFuture;
use safepoint_scope::{Scope, StopAck, StopRequest};
use tokio::{runtime, sync::oneshot, time::Instant};

use crate::{
    contract::{
        hook::NamedHooks,
        tool::{Asks, Host, Output},
    },
    definition::{Definition, secret::Secrets},
    run::{
        executor::{self, CallBoard, CallReply},
        machine::SharedCall,
        shared::{RunMessage, SharedRun},
    },
    sync::callback::Panicked,
    value::{
        approval::Decision,
        event::EventKind,
        limits::Limits,
        receipt::{ProcessReport, RemoteReport},
    },
};

/// The engine behind one call's context. It holds the run weakly: a retained context does not keep the run
/// alive.
pub(super) struct RunHost {
    shared: Weak<SharedRun>,
    call: SharedCall,
    scope: Scope,
    board: Arc<CallBoard>,
    limits: Arc<Limits>,
    secrets: Secrets,
    /// What the call shows, they see first.
    hooks: Vec<NamedHooks>,
    is_remote: bool,
}

impl RunHost {
    pub(super) fn new(
        shared: &Arc<SharedRun>,
        call: &SharedCall,
        scope: &Scope,
        board: &Arc<CallBoard>,
        def: &Definition,
    ) -> Self {
        let (board, limits, secrets) = (Arc::clone(board), Arc::clone(&def.limits), def.secrets.clone());
        let (shared, scope) = (Arc::downgrade(shared), scope.clone());
        let (call, hooks) = (call.clone(), def.hooks.clone());
        Self { shared, call, scope, board, limits, secrets, hooks, is_remote: def.is_remote }
    }

    fn post(&self, msg: RunMessage) {
        if let Some(shared) = self.shared.upgrade() {
            shared.post(msg);
        }
    }

    /// What hooks leave of a text that the call shows, secrets removed. Where a hook panics, nothing, and the run fails.
    fn seen(&self, text: String) -> String {
        let mut text = self.secrets.clean_text(text);
        for hooks in &self.hooks {
            if text.is_empty() {
                break;
            }
            match hooks.call(|it| it.on_progress(&self.call.name, &text)) {
                Ok(None) => {}
                Ok(Some(changed)) => text = changed,
                Err(Panicked(message)) => {
                    self.post(RunMessage::HookPanicked { hook: Arc::clone(&hooks.name), message });
                    return String::new();
                }
            }
        }
        text
    }

    fn show(&self, kind: EventKind) {
        if let Some(shared) = self.shared.upgrade() {
            shared.feed.push(kind);
        }
    }
}

impl Host for RunHost {
    fn progress(&self, text: String) {
        let text = self.seen(text);
        self.board.progress(&text, self.limits.call_output_bytes);
        self.show(EventKind::Progress { call_id: self.call.id.clone(), text });
    }

    fn notice(&self, text: String) {
        let text = self.seen(text);
        self.board.progress(&format!("[{text}]\n"), self.limits.call_output_bytes);
        self.show(EventKind::Notice { call_id: self.call.id.clone(), text });
    }

    fn denied(&self) -> Vec<String> {
        self.board.denied()
    }

    fn add_text(&self, text: &str) -> bool {
        // What hooks leave of it is all that there is of it.
        let seen = (!self.hooks.is_empty()).then(|| self.seen(text.to_owned()));
        let text = seen.as_deref().unwrap_or(text);
        let is_kept = self.board.add_text(text);
        if is_kept {
            let text = self.secrets.clean_text(text.to_owned());
            self.board.progress(&text, self.limits.call_output_bytes);
            // That of a remote agent is the run's text, and is shown only as that.
            let call_id = self.call.id.clone();
            self.show(if self.is_remote {
                EventKind::Text(text.into())
            } else {
                EventKind::Progress { call_id, text }
            });
        }
        is_kept
    }

    fn answer_is_shown(&self) {
        self.board.answer_is_shown();
    }

    fn answer(&self, whole: Option<String>) -> String {
        self.board.answer(whole)
    }

    fn keep(&self, output: Output) {
        self.board.keep(self.secrets.clean_output(output));
    }

    /// A clean-up registered after the call's own clean-ups runs at once, and its row follows as a message.
    fn on_cleanup(&self, label: String, work: BoxFuture<'static, ()>) {
        let Some(cleanup) = self.board.cleanup((label, work)) else { return };
        if runtime::Handle::try_current().is_err() {
            // Without a runtime nothing can run any more: the work is dropped, which releases what it holds.
            return;
        }
        let (scope, shared, bound) =
            (self.scope.clone(), Weak::clone(&self.shared), self.limits.cleanup_timeout);
        let call_id = self.call.id.clone();
        drop(self.scope.spawn("a late clean-up", async move {
            let cleanups = vec![executor::clean(&scope, cleanup, bound, Instant::now()).await];
            if let Some(shared) = shared.upgrade() {
                shared.post(RunMessage::Cleaned { call_id, cleanups, processes: Vec::new() });
            }
        }));
    }

    fn report_process(&self, process: ProcessReport) {
        if let Some(process) = self.board.process(process) {
            let call_id = self.call.id.clone();
            self.post(RunMessage::Cleaned { call_id, cleanups: Vec::new(), processes: vec![process] });
        }
    }

    fn report_remote(&self, mut remote: RemoteReport) {
        remote.word = self.seen(remote.word);
        remote.said = self.seen(remote.said);
        if let Some(remote) = self.board.remote(remote) {
            self.post(RunMessage::Remote { call_id: self.call.id.clone(), remote });
        }
    }

    fn name_work(&self, task: String) -> oneshot::Receiver<()> {
        let (recorded, is_recorded) = oneshot::channel();
        self.post(RunMessage::Named { call_id: self.call.id.clone(), task, recorded });
        is_recorded
    }

    fn late(&self, what: String) {
        let what = self.seen(what);
        self.post(RunMessage::Late { call_id: self.call.id.clone(), what });
    }

    /// If the run is gone, the answer's sender is dropped: the question is withdrawn.
    fn ask(&self, asks: Asks) -> oneshot::Receiver<Decision> {
        let (reply, answer) = oneshot::channel();
        let (call_id, reply) = (self.call.id.clone(), CallReply::new(reply, &self.board));
        self.post(RunMessage::Asks { call_id, asks, reply });
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

    fn end_with_the_run(&self) {
        let reason = self.scope.reason().filter(|_| !self.scope.is_stopping());
        if let (Some(reason), Some(shared)) = (reason, self.shared.upgrade()) {
            self.board.end_with_the_run();
            shared.stop_call(&self.call.id, StopRequest::now().with_reason(reason));
        }
    }
}
