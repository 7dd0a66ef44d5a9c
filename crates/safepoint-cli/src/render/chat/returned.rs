//! The queue's way back to whoever wrote it: at a stop, at the end of the chat, and when somebody else takes it out.
//!
//! **Invariants**: a stop takes back what was said before it, once, and nothing that was said after; no text is lost: it
//! comes to the input, or to where Up finds it, or is told.

use std::collections::BTreeSet;

use safepoint::{
    Code,
    event::{EventKind, Fact},
    ids::ItemId,
    session::ItemOutcome,
};

use super::{
    queue::{Origin, Pushed},
    state::{Act, Mode, State, Tone},
    work::Stage,
};

/// What was taken back, or is about to be.
#[derive(Debug, Default)]
pub(crate) struct Handed {
    asked: Asked,
    /// Whether something was said after the stop.
    since: Since,
    /// Taken back, for the input once the turn has ended.
    texts: Vec<String>,
    /// What was asked back from here, and is not heard of yet.
    own: BTreeSet<ItemId>,
}

/// Whether the stop of this turn has taken the queue back. Exhaustive: it has or it has not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Asked {
    #[default]
    No,
    Yes,
}

/// Exhaustive: something was said after the stop, or nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Since {
    #[default]
    Silence,
    Said,
}

impl Handed {
    /// What the input gets once the turn has ended.
    pub(crate) fn texts(&self) -> &[String] {
        &self.texts
    }

    /// Whether a stop that is no preempt was asked of the turn at work.
    pub(crate) fn is_asked(&self) -> bool {
        self.asked == Asked::Yes
    }

    pub(crate) fn take(&mut self) -> Vec<String> {
        std::mem::take(&mut self.texts)
    }
}

impl State {
    /// A stop is asked: what was said before it, and is in no turn, is its sender's again; at once, so that nothing that
    /// comes later makes it run.
    pub(crate) fn hand_back(&mut self) -> Option<Act> {
        if self.handed.asked == Asked::Yes || self.leaving.is_some() {
            return None;
        }
        self.handed.asked = Asked::Yes;
        self.handed.since = Since::Silence;
        Some(Act::HandBack)
    }

    /// Something is said: if that is after a stop, it goes before what the stop took back.
    pub(crate) fn said_on(&mut self) {
        if self.handed.asked == Asked::Yes {
            self.handed.since = Since::Said;
        }
    }

    /// Somebody else asked for the turn's end. A preempt wants the next turn, and leaves the queue alone.
    pub(crate) fn stop_heard(&mut self, kind: &EventKind) -> Vec<Act> {
        match kind {
            EventKind::Fact(fact) => match &**fact {
                Fact::StopRequested(asked) if asked.reason.code != Code::PREEMPTED.as_str() => {
                    self.hand_back().into_iter().collect()
                }
                _ => Vec::new(),
            },
            _ => Vec::new(),
        }
    }

    /// These are asked back from here.
    pub(crate) fn asked_back(&mut self, items: &[ItemId]) {
        self.handed.own.extend(items);
    }

    /// These have come back.
    pub(crate) fn handed(&mut self, text: String) {
        self.handed.texts.push(text);
        let is_at_work = self.work.as_ref().is_some_and(|work| work.stage == Stage::Works);
        if !is_at_work || self.handed.asked == Asked::No {
            self.hand_over();
        }
    }

    /// The turn has ended: the input gets what came back, unless the person has gone on meanwhile.
    pub(crate) fn end_hand_back(&mut self) {
        self.handed.asked = Asked::No;
        self.hand_over();
    }

    fn hand_over(&mut self) {
        let texts = self.handed.take();
        if texts.is_empty() {
            return;
        }
        let text = texts.join("\n");
        let is_free = self.mode == Mode::Typing && self.input.is_empty();
        if is_free && self.handed.since == Since::Silence {
            self.back(&text);
        } else {
            self.keep(&text, "not sent");
        }
    }

    /// An item has come to rest.
    pub(crate) fn fate(&mut self, id: ItemId, fate: ItemOutcome) {
        let item = self.items.forget(id);
        if fate == ItemOutcome::Withdrawn {
            return self.withdrawn(id, item);
        }
        let Some(item) = item.filter(|item| !item.text.is_empty()) else { return };
        match fate {
            ItemOutcome::Unhandled => self.unhandled(&item.text),
            ItemOutcome::Dropped => self.tell(Tone::Aside, &format!("dropped: {}", item.text)),
            ItemOutcome::Returned(refusal) => {
                self.tell(Tone::Bad, &format!("not taken ({refusal}): {}", item.text));
            }
            _ => {}
        }
    }

    /// A waiting item was taken out.
    fn withdrawn(&mut self, id: ItemId, item: Option<Pushed>) {
        let is_own = self.handed.own.remove(&id);
        let Some(item) = item else { return };
        match (is_own, item.origin) {
            (true, _) if self.leaving.is_some() => {
                self.tell(Tone::Aside, &format!("not sent: {}", item.text));
            }
            (true, _) => {}
            (false, Origin::Here) => self.keep(&item.text, "taken out of the queue from elsewhere"),
            (false, Origin::Elsewhere | Origin::Before) => {
                self.tell(Tone::Aside, &format!("withdrawn from elsewhere: {}", item.text));
            }
        }
    }

    /// Keeps a text where Up finds it, and says so.
    fn keep(&mut self, text: &str, why: &str) {
        self.input.remember(text.to_owned());
        self.tell(Tone::Aside, &format!("{why} (Up brings it back): {text}"));
    }

    /// So many messages waited before the session was opened.
    pub(crate) fn tell_left(&mut self, count: usize) {
        match count {
            0 => {}
            1 => self.tell(
                Tone::Plain,
                "a message waits from before: it goes before your next one; Up takes it back",
            ),
            more => self.tell(
                Tone::Plain,
                &format!("{more} messages wait from before: they go before your next one; Up takes the last one back"),
            ),
        }
    }

    /// The session is over, and no turn had this.
    fn unhandled(&mut self, text: &str) {
        if self.about.is_kept {
            let session = self.about.session.clone();
            self.tell(Tone::Aside, &format!("still waits in {session}: {text}"));
        } else {
            self.tell(Tone::Aside, &format!("not sent: {text}"));
        }
    }
}
