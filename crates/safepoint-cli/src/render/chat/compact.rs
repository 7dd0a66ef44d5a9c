//! `/compact`: the message that asks for it, and what is said of it.

use safepoint::{
    event::Fact,
    raw::{Omission, OmissionKind},
    receipt::Ending,
};

use super::{
    meter::tokens,
    queue::PushKind,
    state::{Action, State, Tone},
};

/// The message of a turn that compacts the conversation. It says what it is to a model too, which sees it in later turns.
const ASKED: &str = "[compact the conversation]";
const KEEP: &str = " Keep: ";

/// The message that asks for it, with what the summary must keep.
pub(crate) fn asked(keep: &str) -> String {
    if keep.is_empty() { ASKED.to_owned() } else { format!("{ASKED}{KEEP}{keep}") }
}

/// What the summary must keep, if this message asks for it; empty: nothing in particular.
pub(crate) fn keep(message: &str) -> Option<&str> {
    let rest = message.strip_prefix(ASKED)?;
    if rest.is_empty() { Some("") } else { rest.strip_prefix(KEEP) }
}

/// The turn that compacts the conversation, while it runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Compaction {
    #[default]
    No,
    Asked,
    /// Its summary is there.
    Done,
}

impl State {
    /// `/compact [what to keep]`.
    pub(super) fn compact(&mut self, keep: &str) {
        if self.work.is_some() || !self.questions.is_empty() {
            return self
                .tell(Tone::Aside, "a turn is running or waits for an answer: /compact when it has ended");
        }
        self.actions.push(Action::Push { text: asked(keep), how: PushKind::Queue });
    }

    /// Whether this message asks for it: it is said in the person's words then.
    pub(super) fn begins_compaction(&mut self, message: &str) -> bool {
        let Some(keep) = keep(message) else { return false };
        self.meter.compaction = Compaction::Asked;
        let keep = if keep.is_empty() { String::new() } else { format!(", keeping: {keep}") };
        self.tell(Tone::Aside, &format!("compacting the conversation{keep}"));
        true
    }

    /// What is left out from now on, in one line.
    pub(super) fn shortened(&mut self, fact: &Fact) {
        let cut = match fact {
            Fact::SummaryEnded { shortened: Some(cut), .. } | Fact::HistoryShortened(cut) => cut,
            _ => return,
        };
        let Omission { omitted, tokens_before, tokens_after, .. } = cut;
        let was = std::mem::replace(&mut self.meter.compaction, Compaction::Done);
        let what = match (was, omitted.by) {
            (Compaction::Asked, _) => "compacted to a summary and the newest messages",
            (_, OmissionKind::Summary) => "window full: the oldest messages became a summary",
            (_, OmissionKind::Note) => "window full: the oldest messages are not sent",
        };
        let (before, after) = (tokens(*tokens_before), tokens(*tokens_after));
        self.tell(Tone::Aside, &format!("{what}: about {before} tokens, now {after}"));
    }

    /// The turn has ended, and `last` is its receipt.
    pub(super) fn end_compaction(&mut self) {
        let ending = self.last.as_ref().map(|receipt| receipt.ending);
        let said = match (std::mem::take(&mut self.meter.compaction), ending) {
            (Compaction::Asked, Some(Ending::Done)) => "there is nothing to compact yet",
            (Compaction::Asked, _) => "the conversation was not compacted: nothing is left out",
            (Compaction::No | Compaction::Done, _) => return,
        };
        self.tell(Tone::Aside, said);
    }
}

#[cfg(test)]
mod tests {
    use super::{asked, keep};

    #[test]
    fn the_message_says_what_is_to_be_kept() {
        for kept in ["", "the names", "a\nb"] {
            assert_eq!(keep(&asked(kept)), Some(kept));
        }
        for other in ["compact", "[compact the conversation] please", "x [compact the conversation]"] {
            assert_eq!(keep(other), None, "{other}");
        }
    }
}
