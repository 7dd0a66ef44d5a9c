//! Hooks see the result of a call before anything else does: it is not recorded, shown, sent or written to a file until
//! they have answered.
//!
//! **Invariants**: what a hook does not answer in time is withheld, and never used as it was; nothing here outlasts the
//! bound of a callback, nor a stop by more than [`AT_ONCE`].

use std::{pin::pin, sync::Arc, time::Duration};

use futures_util::future::{Either, select};
use safepoint_scope::{Scope, StopHandle, TaskEnd};
use tokio::time::{sleep, timeout};

use super::{AT_ONCE, CallEnd};
use crate::{
    contract::hook::{HookCall, HookWork, NamedHooks, ResultVerdict, by_hook},
    sync::callback::{self, Panicked},
    value::event::HookAction,
};

/// The hooks that see the result of one call.
pub(crate) struct ResultHooks {
    pub(crate) hooks: Vec<NamedHooks>,
    /// The call, as it began.
    pub(crate) call: Arc<HookCall>,
    /// How long one hook may take.
    pub(crate) bound: Duration,
    /// The scope of the call.
    pub(crate) scope: Scope,
    /// What stops the run.
    pub(crate) stop: StopHandle,
}

impl ResultHooks {
    /// Asks each hook, in order, and changes the end as they say. A panic is kept in the end, for the driver.
    pub(crate) async fn check(&self, end: &mut CallEnd) {
        for hooks in &self.hooks {
            let Some(result) = end.hooked(&self.call) else { return };
            let call_id = self.call.call_id.clone();
            let asked = hooks.call(|it| it.on_result(&result));
            let verdict = match asked {
                Ok(None) => continue,
                Ok(Some(work)) => self.verdict(work).await,
                Err(panic) => Err(panic),
            };
            match verdict {
                Ok(Some(ResultVerdict::Proceed)) => {}
                Ok(Some(ResultVerdict::Stop(request))) => {
                    self.stop.stop(by_hook(&hooks.name, request));
                }
                Ok(Some(ResultVerdict::Change(output))) => {
                    let bytes_before = result.text.len() as u64;
                    let bytes_after = output.text.len() as u64;
                    end.change(output);
                    end.acted(&hooks.name, HookAction::ResultChanged { call_id, bytes_before, bytes_after });
                }
                Ok(None) => {
                    end.withhold();
                    return end.acted(&hooks.name, HookAction::ResultWithheld { call_id });
                }
                Err(panic) => {
                    end.withhold();
                    end.hook_panicked(&hooks.name, panic);
                    return end.acted(&hooks.name, HookAction::ResultWithheld { call_id });
                }
            }
        }
    }

    /// What a hook says; none if it takes too long, or a stop comes first.
    async fn verdict(&self, work: HookWork<ResultVerdict>) -> Result<Option<ResultVerdict>, Panicked> {
        let mut task = match work {
            HookWork::Ready(verdict) => return Ok(Some(verdict)),
            HookWork::Async(work) => self.scope.spawn("hook", callback::run(work)),
            HookWork::Blocking(work) => {
                self.scope.spawn_blocking("hook that blocks", move || callback::call(work))
            }
        };
        let stopped = async {
            drop(self.scope.stopped().await);
            sleep(AT_ONCE).await;
        };
        let over = pin!(timeout(self.bound, stopped));
        // The answer is looked for first: one that is there is used.
        match select(&mut task, over).await {
            Either::Left((Ok(said), _)) => said.map(Some),
            Either::Left((Err(TaskEnd::Panicked(message)), _)) => Err(Panicked(message)),
            Either::Left((Err(TaskEnd::Dropped), _)) => Ok(None),
            Either::Right(_) => {
                task.dropper().drop_now();
                Ok(None)
            }
        }
    }
}
