//! Tool calls: announced, permitted, and handed to a task.

use std::sync::Arc;

use jiff::Timestamp;
use safepoint_scope::{Mode, Reason, SafePoints};
use serde_json::Value;

use super::{Driver, LogFailure, children::Begin, host::RunHost, parent::ChildStart, running::CallMail};
use crate::{
    contract::{
        hook::{HookCall, HookOf},
        log::Recorded,
        tool::{CallSite, ToolContext},
    },
    definition::toolset::Callable,
    run::{
        executor::{RunCall, RunningCall},
        machine::{Call, CallState},
        spans,
    },
    value::{event::Fact, ids::CallId, message::ToolCall, receipt::StopSource},
};

impl Driver {
    pub(super) async fn start_calls(
        &mut self,
        calls: Vec<usize>,
        gate: SafePoints,
    ) -> Result<(), LogFailure> {
        let mut begun = 0;
        for index in calls {
            let Some(due) = self.machine.call(index) else { continue };
            let CallState::Ready { args, .. } = &due.step else { continue };
            let how = (entry_of(due), due.named.clone());
            let (call, args) = (due.call.clone(), Arc::clone(args));
            let hooked = || {
                let args = Value::clone(&args);
                HookCall { call_id: call.id.clone(), name: call.name.clone(), args }
            };
            let key = HookOf::Call(call.id.clone());
            if !self.hook_passed(key, |hooks, _| hooks.before_call(&hooked())) {
                // Calls after this one may not overtake it.
                break;
            }
            self.start_call(&call, args, gate, how).await?;
            begun += 1;
        }
        if begun == 0 { self.wait().await } else { Ok(()) }
    }

    async fn start_call(
        &mut self,
        call: &ToolCall,
        args: Arc<Value>,
        gate: SafePoints,
        how: (ChildStart, Option<String>),
    ) -> Result<(), LogFailure> {
        // Its arguments fitted when it was let begin, and neither they nor the tools have changed since.
        let Some(work) = self.cx.def.tools.get(&call.name).cloned() else { return Ok(()) };
        let announced = self.record(self.start_of(call, args, &work)).await?;
        self.begin_call(call, (work, announced), gate, how).await
    }

    /// The fact that announces the call.
    pub(super) fn start_of(&self, call: &ToolCall, args: Arc<Value>, work: &Callable) -> Fact {
        Fact::CallStarted {
            call_id: call.id.clone(),
            name: call.name.clone(),
            round: self.machine.rounds(),
            args,
            effect: work.spec().effect,
            key: [self.cx.shared.run.as_str(), call.id.as_str()].join(":"),
            work: work.kind(),
            at: Timestamp::now(),
        }
    }

    /// Begins an announced call, if the gate lets it pass.
    pub(super) async fn begin_call(
        &mut self,
        call: &ToolCall,
        (work, announced): (Callable, Recorded),
        gate: SafePoints,
        (entry, named): (ChildStart, Option<String>),
    ) -> Result<(), LogFailure> {
        let Fact::CallStarted { key, args, at, .. } = &**announced.fact() else { return Ok(()) };
        let (key, args, started_at) = (key.clone(), Arc::clone(args), *at);
        let site = self.calls.look_at(&self.cx, &call.id);
        site.started_at = Some(started_at);
        let permit = match site.scope.pass::<RunCall>(gate, &announced) {
            Ok(permit) => permit,
            Err(stop) => {
                let reason = stop.reason().clone();
                drop(stop);
                return self.not_started(call, (reason, gate), entry).await;
            }
        };
        let tool = match work {
            Callable::Body(tool) => tool,
            Callable::Child(child) => {
                let call = call.clone();
                let begin = Begin { permit, child, call, args, entry, started_at };
                return Box::pin(self.start_child(begin)).await;
            }
        };
        let host = RunHost::new(&self.cx.shared, call.id.clone(), permit.scope(), &site.board, &self.cx.def);
        let earlier = if self.cx.def.is_remote { self.machine.history_now().earlier() } else { Vec::new() };
        let values = self.cx.shared.values();
        let site_of = CallSite { id: call.id.clone(), name: call.name.clone(), key, named, earlier, values };
        let cx = ToolContext::new(permit.scope().clone(), site_of, Arc::new(host));
        let running = RunningCall {
            scope: permit.scope().clone(),
            stop: site.stop.clone(),
            tool,
            board: Arc::clone(&site.board),
            limits: Arc::clone(&self.cx.def.limits),
            secrets: self.cx.def.secrets.clone(),
            run: self.cx.scope.clone(),
            started_at,
            span: spans::tool_call(&call.name, call.id.as_str()),
            mail: CallMail::new(&self.cx.shared, &call.id),
        };
        self.run_call(permit, Arc::new(running), (cx, Arc::unwrap_or_clone(args)));
        Ok(())
    }

    async fn not_started(
        &mut self,
        call: &ToolCall,
        (reason, gate): (Reason, SafePoints),
        entry: ChildStart,
    ) -> Result<(), LogFailure> {
        let by = match self.cx.scope.demand() {
            Some(demand) if demand.mode == Mode::Now || self.call_is_silent(&call.id) => {
                self.observe(Some(gate)).await?;
                StopSource::Run
            }
            _ => StopSource::Call,
        };
        let Some(of) = self.machine.find(&call.id) else { return Ok(()) };
        let ending = self.unbegun(of, entry, (reason, by));
        self.end_call(call, ending).await
    }

    /// Whether no stop was requested for this call alone.
    fn call_is_silent(&self, id: &CallId) -> bool {
        let run = self.cx.scope.requests().len();
        self.calls.get(id).is_none_or(|site| site.scope.requests().len() == run)
    }
}

/// Whether the call's run, if it has one, was begun earlier.
pub(super) fn entry_of(call: &Call) -> ChildStart {
    match (&call.step, call.has_run()) {
        (_, false) => ChildStart::Anew,
        (CallState::Ready { asks_again, .. } | CallState::Resuming { asks_again, .. }, true) => {
            ChildStart::Again { asks: *asks_again }
        }
        (_, true) => ChildStart::Again { asks: false },
    }
}
