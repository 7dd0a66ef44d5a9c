//! Returns queued messages to their sender: at a stop, at the end of the chat, and when another process
//! withdraws them.
//!
//! **Invariants**: a stop returns each message that was sent before it, once, and none that was sent after;
//! no text is lost: it goes to the input, to the history that Up reads, or to the screen.

use safepoint::{
    event::{EventKind, Fact},
    ids::ItemId,
    session::ItemOutcome,
    stop::Code,
};

use super::{
    queue::{Origin, Pushed},
    state::{Action, Mode, State, Tone},
};

impl State {
    /// A stop is requested: returns each earlier message that no turn has to its sender, at once, so that no
    /// later input makes it run.
    pub(crate) fn hand_back(&mut self) {
        if !self.handed.is_asked && self.leaving.is_none() {
            (self.handed.is_asked, self.handed.has_newer) = (true, false);
            self.actions.push(Action::HandBack);
        }
    }

    /// Another process stopped the turn. A preempt starts the next turn and leaves the queue as it is.
    pub(crate) fn stop_requested(&mut self, kind: &EventKind) {
        if let EventKind::Fact(fact) = kind
            && let Fact::StopRequested(asked) = &**fact
            && asked.reason.code != Code::PREEMPTED.as_str()
        {
            self.hand_back();
        }
    }

    /// These are asked back from here.
    pub(crate) fn asked_back(&mut self, items: &[ItemId]) {
        self.handed.own.extend(items);
    }

    /// These have come back.
    pub(crate) fn handed(&mut self, text: String) {
        self.handed.texts.push(text);
        if !self.is_running() || !self.handed.is_asked {
            self.hand_over();
        }
    }

    /// The turn has ended: the input gets what came back, unless the person has gone on meanwhile.
    pub(crate) fn end_hand_back(&mut self) {
        self.handed.is_asked = false;
        self.hand_over();
    }

    fn hand_over(&mut self) {
        let texts = self.handed.take();
        if texts.is_empty() {
            return;
        }
        let text = texts.join("\n");
        let is_free = self.mode == Mode::Typing && self.input.is_empty();
        if is_free && !self.handed.has_newer {
            self.back(&text);
        } else {
            self.keep(&text, "not sent");
        }
    }

    /// An item has settled.
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

    /// Shows that `count` messages were queued before the session was opened.
    pub(crate) fn tell_left(&mut self, count: usize) {
        match count {
            0 => {}
            1 => {
                let said = "a message is queued from before: it runs before your next one; Up edits it";
                self.tell(Tone::Plain, said);
            }
            more => {
                let said = format!(
                    "{more} messages are queued from before: they run before your next one; Up edits the last one"
                );
                self.tell(Tone::Plain, &said);
            }
        }
    }

    /// The session is over, and no turn had this.
    fn unhandled(&mut self, text: &str) {
        let said = match self.about.is_kept {
            true => format!("still queued in {}: {text}", self.about.session),
            false => format!("not sent: {text}"),
        };
        self.tell(Tone::Aside, &said);
    }
}
