//! Tool calls: announced, permitted, and handed to a task.

use std::sync::Arc;

use safepoint_scope::{Mode, Reason, SafePoints, Scope};
use serde_json::Value;

use super::{Driver, LogFailure, children::Begin, host::RunHost, parent::ChildStart, running::CallMail};
use crate::{
    contract::{
        hook::{HookAnswer, HookCall, HookOf},
        log::Recorded,
        tool::{CallSite, ToolContext},
    },
    definition::toolset::Callable,
    run::{
        executor::{ResultHooks, RunCall, RunningCall},
        machine::{Call, CallState, SharedCall},
        spans,
    },
    sync::clock,
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
            if let Some(hooked) = self.hook_call(&call, &args) {
                let of = HookOf::Call(call.id.clone());
                if !self.hook_passed(&of, |hooks| hooks.before_call(&hooked), HookAnswer::Call) {
                    // Calls after this one may not overtake it.
                    break;
                }
            }
            self.start_call(&call, args, gate, how).await?;
            begun += 1;
        }
        if begun == 0 { self.wait().await } else { Ok(()) }
    }

    /// The call as hooks see it; `None` where there are none.
    fn hook_call(&self, call: &ToolCall, args: &Arc<Value>) -> Option<HookCall> {
        let message = self.machine.message().filter(|_| !self.cx.def.hooks.is_empty())?;
        Some(HookCall {
            call_id: call.id.clone(),
            name: call.name.clone(),
            args: Value::clone(args),
            run: self.cx.shared.run.clone(),
            path: self.cx.shared.path.clone(),
            round: self.machine.rounds(),
            message: Arc::clone(message),
            history: Arc::new(self.machine.history().clone()),
        })
    }

    /// The hooks that see the call's result first; `None` where there are none.
    pub(super) fn result_hooks(
        &self,
        call: &ToolCall,
        args: &Arc<Value>,
        scope: &Scope,
    ) -> Option<ResultHooks> {
        let hooked = Arc::new(self.hook_call(call, args)?);
        let (hooks, bound) = (self.cx.def.hooks.clone(), self.cx.def.limits.callback_timeout);
        Some(ResultHooks {
            hooks,
            call: hooked,
            bound,
            scope: scope.clone(),
            stop: self.cx.shared.stop.clone(),
        })
    }

    async fn start_call(
        &mut self,
        call: &SharedCall,
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
            at: clock::now(),
        }
    }

    /// Begins an announced call, if the gate lets it pass.
    pub(super) async fn begin_call(
        &mut self,
        call: &SharedCall,
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
        let (stop, board) = (site.stop.clone(), Arc::clone(&site.board));
        let tool = match work {
            Callable::Body(tool) => tool,
            Callable::Child(child) => {
                let call = call.clone();
                let begin = Begin { permit, child, call, args, entry, started_at };
                return Box::pin(self.start_child(begin)).await;
            }
        };
        let host = RunHost::new(&self.cx.shared, call, permit.scope(), &board, &self.cx.def);
        let earlier = if self.cx.def.is_remote { self.machine.history_now().earlier() } else { Vec::new() };
        let values = self.cx.shared.values();
        let site_of = CallSite { id: call.id.clone(), name: call.name.clone(), key, named, earlier, values };
        let hooks = self.result_hooks(call, &args, permit.scope());
        let cx = ToolContext::new(permit.scope().clone(), site_of, Arc::new(host));
        let running = RunningCall {
            scope: permit.scope().clone(),
            stop,
            tool,
            board,
            limits: Arc::clone(&self.cx.def.limits),
            secrets: self.cx.def.secrets.clone(),
            hooks,
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
