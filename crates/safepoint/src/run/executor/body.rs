//! The body of a call: a tool's own code, called, polled and dropped in the task of the call.
//!
//! **Invariants**: a panic of the body, in its call, in a poll or in its drop, is a value here; a body that has ended or was
//! dropped is not polled again.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use futures_core::future::BoxFuture;
use safepoint_scope::TaskEnd;
use serde_json::Value;

use crate::{
    contract::tool::{Tool, ToolContext, ToolResult},
    sync::callback::{self, Panicked},
};

/// A body.
pub(super) struct Body(Work);

/// Its work. Exhaustive: it runs, its call panicked, or it is over.
enum Work {
    Runs(BoxFuture<'static, ToolResult>),
    NotBegun(Panicked),
    Over,
}

impl Body {
    /// Calls the tool.
    pub(super) fn begin(tool: &Arc<dyn Tool>, cx: ToolContext, args: Value) -> Self {
        Self(callback::call(|| tool.call(cx, args)).map_or_else(Work::NotBegun, Work::Runs))
    }

    /// Drops it. Its end is known, so a panic of that changes nothing.
    pub(super) fn drop_now(&mut self) {
        let work = std::mem::replace(&mut self.0, Work::Over);
        if callback::drop_caught(work).is_err() {
            // Nothing waits for it any more.
        }
    }
}

impl Future for Body {
    type Output = Result<ToolResult, TaskEnd>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let polled = match &mut self.0 {
            Work::Runs(body) => callback::call(|| body.as_mut().poll(cx)),
            Work::NotBegun(panic) => Err(panic.clone()),
            Work::Over => return Poll::Ready(Err(TaskEnd::Dropped)),
        };
        let end = match polled {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(result)) => Ok(result),
            Err(Panicked(message)) => Err(TaskEnd::Panicked(message)),
        };
        self.drop_now();
        Poll::Ready(end)
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        if !matches!(self.0, Work::Over) {
            self.drop_now();
        }
    }
}
