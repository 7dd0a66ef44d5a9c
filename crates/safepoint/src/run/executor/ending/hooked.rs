//! The end of a call as hooks see and change it.

use std::sync::Arc;

use super::CallEnd;
use crate::{
    contract::{
        hook::{HookCall, HookedResult},
        tool::Output,
    },
    sync::callback::Panicked,
    value::event::{HookAction, HookReport, OutputExtent},
};

/// What the model sees of a result that is withheld.
const WITHHELD: &str = "[the output is withheld: a hook that checks it has not answered]";

/// What hooks did to the end of a call.
#[derive(Debug, Default)]
pub(crate) struct HookedEnd {
    /// What is recorded of it.
    pub(crate) acted: Vec<HookReport>,
    /// The hook that panicked, and what it said.
    pub(crate) panicked: Option<(Arc<str>, Panicked)>,
}

impl CallEnd {
    /// The result for the next hook; `None` if there is nothing of the tool in it.
    pub(in crate::run::executor) fn hooked(&self, call: &Arc<HookCall>) -> Option<HookedResult> {
        let text = self.body().to_owned();
        let has_output = self.note().is_none() || !text.is_empty();
        let (structured, parts) = (self.structured.as_deref().cloned(), self.parts.clone());
        has_output.then(|| HookedResult {
            call: Arc::clone(call),
            status: self.status,
            text,
            structured,
            parts,
        })
    }

    /// Uses this in place of what the tool gave. A file of the tool with all of it is not named any more.
    pub(in crate::run::executor) fn change(&mut self, output: Output) {
        let note = self.note();
        self.extent = OutputExtent::All;
        self.hint = None;
        self.text = String::new();
        *self = std::mem::replace(self, Self::new(self.status, "")).holding(output);
        if let Some(note) = note {
            let between = if self.text.is_empty() { "" } else { "\n" };
            self.text.push_str(between);
            self.text.push_str(note);
        }
    }

    /// Uses nothing of what the tool gave.
    pub(in crate::run::executor) fn withhold(&mut self) {
        self.change(Output::from(WITHHELD));
    }

    pub(in crate::run::executor) fn acted(&mut self, hook: &Arc<str>, action: HookAction) {
        self.hooked.acted.push(HookReport::new(&**hook, action));
    }

    pub(in crate::run::executor) fn hook_panicked(&mut self, hook: &Arc<str>, panic: Panicked) {
        self.hooked.panicked = Some((Arc::clone(hook), panic));
    }

    /// The text without the note that the engine adds.
    fn body(&self) -> &str {
        let Some(note) = self.note() else { return &self.text };
        self.text.strip_suffix(note).map_or(&*self.text, |body| body.strip_suffix('\n').unwrap_or(body))
    }
}
