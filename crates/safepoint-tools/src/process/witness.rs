//! Who sees to the end of a command that its starter has dropped, be it while it is started or later: the run that it
//! belongs to is not quiet before its tree is gone, and gets a report of it (S4.14).

use safepoint::{ToolContext, stop::Scope};
use tokio::runtime;

use super::{holder::Holder, lease::Under, started::End, wire::Rungs};
use crate::limits;

/// The scope that a command belongs to, and the call that gets the report, if there is one.
pub(super) struct Witness {
    scope: Scope,
    cx: Option<ToolContext>,
}

impl Witness {
    /// A call.
    pub(super) fn call(cx: &ToolContext) -> Self {
        Self { scope: cx.scope().clone(), cx: Some(cx.clone()) }
    }

    /// A scope that keeps no receipt.
    #[cfg(feature = "mcp")]
    pub(super) fn scope(scope: &Scope) -> Self {
        Self { scope: scope.clone(), cx: None }
    }

    /// Kills what the holder holds, and stays until it is gone.
    pub(super) fn see_off(self, mut holder: Holder, label: String, lease: Option<Under>) {
        if runtime::Handle::try_current().is_err() {
            // No caller could wait here. The holder is dropped, and its keeper does the same work.
            return;
        }
        let Self { scope, cx } = self;
        let name = format!("the end of {label:.60}");
        let seen_off = scope.spawn(name, async move {
            holder.order(Rungs::kill(limits::KILL)).await;
            let end = loop {
                if let end @ End::Tree(_) = holder.next().await {
                    break end;
                }
            };
            if let (Some(cx), Some(started)) = (cx, holder.started()) {
                cx.report_process((&started.report(&label, end)).into());
            }
            drop(lease);
        });
        drop(seen_off);
    }
}
