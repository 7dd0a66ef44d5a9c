//! `shell_outside`: a line of shell for which something of the sandbox is opened, once a person has said yes.
//!
//! It is a separate tool, so that a lasting approval or a rule for `shell` never covers it.

use std::sync::Arc;

use safepoint::{
    approval::ToolApproval,
    tool::{EffectClass, FnTool, OnStop, from_fn},
};
use safepoint_sandbox::{Confinement, Opening};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Shell, ShellArgs};
use crate::{Root, process::Processes, root::refusal};

/// Its name, which `shell` says to the model.
pub(super) const NAME: &str = "shell_outside";

#[derive(Deserialize, JsonSchema)]
struct OutsideArgs {
    /// The line, for `/bin/sh`.
    command: String,
    /// What it needs, and no more: the network, files outside of the root, or everything.
    opens: Opens,
    /// Why it needs that, in one sentence, for the person who is asked.
    why: String,
    /// How long it may take, in seconds. It is stopped when this has passed.
    timeout_seconds: Option<f64>,
    /// Whether it continues in the background: the call returns at once, and the output goes to a file.
    background: Option<bool>,
}

// No comment on a case: it would become a schema that not every provider takes.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Opens {
    Network,
    Files,
    Everything,
}

/// Runs commands in `root`'s directory for which a part of `confinement` is opened, each after its own approval.
#[must_use]
pub fn shell_outside(root: Arc<Root>, processes: Processes, confinement: Confinement) -> FnTool {
    let about = "Runs a line of shell outside of the sandbox of `shell`, after a person has said yes to this one command. Use \
                 it only where `shell` was refused something that the task needs, and open no more than that.";
    let place = root.place();
    from_fn(NAME, about, move |cx, args: OutsideArgs| {
        let confinement = match args.opens {
            Opens::Network => Some(confinement.clone().open(Opening::Network)),
            Opens::Files => Some(confinement.clone().open(Opening::Files)),
            Opens::Everything => None,
        };
        let shell = Shell { directory: root.path().to_owned(), processes: processes.clone(), confinement };
        async move {
            if args.why.trim().is_empty() {
                return Err(
                    refusal("`why` is empty: say in one sentence why it needs that".to_owned()).into()
                );
            }
            let OutsideArgs { command, timeout_seconds, background, .. } = args;
            shell.call(cx, ShellArgs { command, timeout_seconds, background }).await
        }
    })
    .with(|spec| {
        let asked = spec.approval(ToolApproval::Required);
        asked.effect(EffectClass::Unsafe).on_stop(OnStop::Cooperate(None)).place(place)
    })
}
