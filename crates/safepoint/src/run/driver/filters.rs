//! What hooks make of a model's text as it arrives: only what they give is shown and kept.
//!
//! **Invariants**: text passes every filter, in the order of the hooks; what a filter keeps is given before anything of
//! another kind.

use std::sync::Arc;

use crate::{
    contract::{
        hook::{NamedHooks, TextFilter, TextKind},
        model::Delta,
    },
    sync::callback::{self, Panicked},
    value::event::{HookAction, HookReport},
};

/// The filters of one message.
pub(super) struct Filters {
    answer: Vec<Filter>,
    reasoning: Vec<Filter>,
    /// The kind of text that came last.
    kind: TextKind,
    /// How often reasoning had been changed by the last seal.
    sealed: u64,
}

/// One hook's filter, and what it has done.
struct Filter {
    hook: Arc<str>,
    it: Option<Box<dyn TextFilter>>,
    bytes_before: u64,
    bytes_after: u64,
    /// How often it gave something else than it was given.
    changes: u64,
    /// What it was given and has not given back, as far as that is known.
    kept: String,
}

/// A filter that panicked: its hook and what it said.
pub(super) type FilterPanic = (Arc<str>, Panicked);

impl Filters {
    /// The filters for one message; none if no hook has one.
    pub(super) fn of(hooks: &[NamedHooks]) -> Result<Option<Self>, FilterPanic> {
        let filters = |kind| -> Result<Vec<Filter>, FilterPanic> {
            let made = hooks.iter().map(|hooks| {
                let made = hooks.call(|it| it.text_filter(kind));
                let made = made.map_err(|panic| (Arc::clone(&hooks.name), panic))?;
                Ok(made.map(|it| Filter::new(Arc::clone(&hooks.name), it)))
            });
            made.filter_map(Result::transpose).collect()
        };
        let (answer, reasoning) = (filters(TextKind::Answer)?, filters(TextKind::Reasoning)?);
        let has_any = !answer.is_empty() || !reasoning.is_empty();
        Ok(has_any.then(|| Self { answer, reasoning, kind: TextKind::Answer, sealed: 0 }))
    }

    /// What is left of a delta, behind what was kept before it.
    pub(super) fn take(&mut self, delta: Delta) -> Result<Vec<Delta>, FilterPanic> {
        let mut given = Vec::new();
        match delta {
            Delta::Text(text) => self.text(TextKind::Answer, &text, &mut given)?,
            Delta::Reasoning(text) => self.text(TextKind::Reasoning, &text, &mut given)?,
            Delta::ReasoningSeal(_) => {
                given.extend(self.flush()?);
                let changes = self.reasoning.iter().map(|filter| filter.changes).sum();
                // A provider refuses its seal with other reasoning than it has sealed.
                if std::mem::replace(&mut self.sealed, changes) == changes {
                    given.push(delta);
                }
            }
            Delta::CallPreview { .. }
            | Delta::CallArguments { .. }
            | Delta::CallReady(_)
            | Delta::Provider(_)
            | Delta::Ended(_) => {
                given.extend(self.flush()?);
                given.push(delta);
            }
            // No part of the message.
            Delta::Retrying { .. }
            | Delta::Waiting { .. }
            | Delta::FailedOver { .. }
            | Delta::Reconnecting { .. }
            | Delta::Sent
            | Delta::Opened
            | Delta::Usage(_) => given.push(delta),
        }
        Ok(given)
    }

    /// What is still kept.
    pub(super) fn flush(&mut self) -> Result<Option<Delta>, FilterPanic> {
        let kind = self.kind;
        pass(self.filters(kind), "", true).map(|rest| said(kind, rest))
    }

    /// What they have changed so far, in the message of this round.
    pub(super) fn changed(&self, round: u32) -> Vec<HookReport> {
        self.answer.iter().chain(&self.reasoning).filter_map(|filter| filter.report(round)).collect()
    }

    fn text(&mut self, kind: TextKind, text: &str, given: &mut Vec<Delta>) -> Result<(), FilterPanic> {
        if kind != self.kind {
            given.extend(self.flush()?);
            self.kind = kind;
        }
        given.extend(said(kind, pass(self.filters(kind), text, false)?));
        Ok(())
    }

    fn filters(&mut self, kind: TextKind) -> &mut [Filter] {
        match kind {
            TextKind::Answer => &mut self.answer,
            TextKind::Reasoning => &mut self.reasoning,
        }
    }
}

impl Filter {
    fn new(hook: Arc<str>, it: Box<dyn TextFilter>) -> Self {
        Self { hook, it: Some(it), bytes_before: 0, bytes_after: 0, changes: 0, kept: String::new() }
    }

    fn take(&mut self, piece: &str, is_last: bool) -> Result<String, FilterPanic> {
        let Some(it) = &mut self.it else { return Ok(String::new()) };
        let filtered = callback::call(|| {
            let mut out = if piece.is_empty() { String::new() } else { it.push(piece) };
            if is_last {
                out.push_str(&it.flush());
            }
            out
        });
        let out = filtered.map_err(|panic| (Arc::clone(&self.hook), panic))?;
        self.bytes_before += piece.len() as u64;
        self.bytes_after += out.len() as u64;
        self.kept.push_str(piece);
        if self.kept.starts_with(&out) {
            drop(self.kept.drain(..out.len()));
            self.changes += u64::from(is_last && !self.kept.is_empty());
        } else {
            self.changes += 1;
            self.kept.clear();
        }
        if is_last {
            self.kept.clear();
        }
        Ok(out)
    }

    /// What is recorded of it; none if it has given everything back as it was.
    fn report(&self, round: u32) -> Option<HookReport> {
        let (bytes_before, bytes_after) = (self.bytes_before, self.bytes_after);
        let action = HookAction::TextChanged { round, bytes_before, bytes_after };
        (self.changes > 0 || !self.kept.is_empty()).then(|| HookReport::new(&*self.hook, action))
    }
}

impl Drop for Filter {
    fn drop(&mut self) {
        if callback::drop_caught(self.it.take()).is_err() {
            // Its message is over, and nothing waits for it.
        }
    }
}

/// One piece through all filters; the last one takes what they keep along.
fn pass(filters: &mut [Filter], piece: &str, is_last: bool) -> Result<String, FilterPanic> {
    let mut text = piece.to_owned();
    for filter in filters {
        text = filter.take(&text, is_last)?;
    }
    Ok(text)
}

fn said(kind: TextKind, text: String) -> Option<Delta> {
    let delta = match kind {
        TextKind::Answer => Delta::Text,
        TextKind::Reasoning => Delta::Reasoning,
    };
    (!text.is_empty()).then(|| delta(text))
}
