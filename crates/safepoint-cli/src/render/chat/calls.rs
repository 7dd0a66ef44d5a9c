//! Calls as they begin and end.

use safepoint::event::Fact;

use super::state::{State, Tone};
use crate::render::approval;

impl State {
    /// A call as it began or ended: also one of before the session was opened.
    pub(crate) fn call(&mut self, fact: &Fact) {
        match fact {
            Fact::CallStarted { call_id, name, args, .. } => self.call_began(call_id, name, args),
            _ => self.call_ended(fact),
        }
    }

    fn call_ended(&mut self, fact: &Fact) {
        let Fact::CallEnded { report, result, extent } = fact else { return };
        let tone = if approval::exit(report).is_some() { Tone::Bad } else { Tone::Aside };
        self.tell(tone, &format!("▪ {}", approval::ended(report)));
        // The receipt reports a stopped call.
        if !self.edit_ended(report) && report.stopped_by.is_none() {
            self.output(&result.text, extent);
        }
    }
}
