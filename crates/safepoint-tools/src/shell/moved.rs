//! A command that its person moves to the background while it runs (S4.35).
//!
//! **Invariants**: what it wrote before is the call's result, and what it writes from then on goes to a private file; a command that
//! is being stopped is not moved.

use std::{
    io::Write as _,
    time::{Duration, Instant},
};

use safepoint::{ToolContext, ToolResult, raw::spill::private_file};

use super::keep;
use crate::{
    limits,
    process::{Process, Processes, Waited},
};

/// When a command began, and how long it may take.
#[derive(Clone, Copy)]
pub(super) struct Time {
    pub(super) began: Instant,
    pub(super) limit: Option<Duration>,
}

/// Waits for a command; none if it is to continue in the background.
pub(super) async fn wait(
    process: &mut Process,
    cx: &ToolContext,
    limit: Option<Duration>,
    processes: &Processes,
) -> Option<Waited> {
    let scope = cx.scope();
    let moved = async {
        processes.moves().await;
        if scope.stopping().is_some() {
            std::future::pending::<()>().await;
        }
    };
    process.wait_in_or(scope, limit, limits::SHELL_CLEANUP, moved).await
}

/// Ends the call, and lets the command continue as a background job.
///
/// # Errors
/// Never one of the command's: without a file for the rest of the output, that is said.
pub(super) fn into_background(
    mut process: Process,
    cx: &ToolContext,
    time: Time,
    processes: Processes,
) -> ToolResult {
    let pid = process.pid();
    let mut text = process.output().captured().text;
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    let rest = match private_file(&std::env::temp_dir()) {
        Ok((mut file, path)) => {
            process.on_output(move |chunk| {
                if file.write_all(chunk).is_err() {
                    // A full disk ends no command; what is missing is missing at the end of the file.
                }
            });
            format!("what it writes from here on goes to {}", path.display())
        }
        Err(error) => {
            process.on_output(|_chunk| {});
            format!("no file could be made for what it writes from here on: {error}")
        }
    };
    let left = time.limit.map(|limit| limit.saturating_sub(time.began.elapsed()));
    let label = format!("background command (pid {pid})");
    // The task outlives the call, and keeps the run from being called quiet while the job lives.
    drop(cx.scope().clone().spawn(label, keep(process, cx.clone(), left, processes)));
    Ok(format!("{text}[the user moved it to the background: it continues with pid {pid}; {rest}]").into())
}
