//! Shows the events of an open session to its readers: what is recorded in the order of the journal, each record once, and
//! between the records what streams.
//!
//! **Invariants**: a recorded frame is made of the journal alone, so that a reader that comes back gets the same one; a reader
//! joins between two frames, and everything before that is in the journal.

use std::{collections::VecDeque, sync::Arc};

use safepoint::{
    SessionHandle,
    event::{Event, EventEncoder, EventKind},
    ids::{ItemId, SessionId, TurnId},
    raw::{JournalStep, StreamEvent as _, line::JournalEncoder, read_journal_from},
    session::{ItemOutcome, SessionEvent},
    store::{Error, Store},
};
use serde_json::json;

use crate::{
    answer::outcome_words,
    lines::{Ends, EventPlace, Frame, FrameSubject, Tail, frame, frame_of},
};

/// A reader's place among the frames; it is free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Seat {
    pub(crate) tail: Arc<Tail>,
    pub(crate) next: u64,
    /// The last position that was recorded before the frames of this reader; none: nothing was.
    pub(crate) recorded: Option<u64>,
    /// The message that streams, as far as it is.
    pub(crate) partial: Option<Frame>,
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.tail.leave();
    }
}

/// Makes the frames of one session, while it has readers.
pub(super) struct Shower {
    store: Arc<dyn Store>,
    session: SessionId,
    epoch: u64,
    tail: Arc<Tail>,
    live: EventEncoder,
    kept: JournalEncoder,
    /// What was read of the journal and not shown.
    ahead: VecDeque<JournalStep>,
    /// The position that is read next.
    next: u64,
}

impl Shower {
    pub(super) fn new(store: Arc<dyn Store>, session: &SessionHandle<String>, tail: Arc<Tail>) -> Self {
        let epoch = session.epoch().expect("a host's session is in its store");
        let mut kept = JournalEncoder::new(session.id());
        kept.begin_epoch(epoch);
        Self {
            store,
            session: session.id().clone(),
            epoch,
            tail,
            live: EventEncoder::of_session(session),
            kept,
            ahead: VecDeque::new(),
            next: 0,
        }
    }

    /// Gives a reader its place. The first one finds everything that is recorded by now in the journal.
    ///
    /// # Errors
    /// The store's.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(super) async fn seat(&mut self) -> Result<Seat, Error> {
        if !self.tail.is_read() {
            self.read_on().await?;
            for step in self.ahead.drain(..) {
                // Its line is made for what later ones say.
                drop(self.kept.step(&step));
            }
        }
        let joined = self.tail.join();
        let before = self.next - self.ahead.len() as u64;
        let recorded = before.checked_sub(1);
        Ok(Seat { tail: Arc::clone(&self.tail), next: joined.next, recorded, partial: joined.partial })
    }

    /// Shows an event. `number` names the item that a session's event is about.
    ///
    /// # Cancel safety
    /// Records may stay unshown until the next event.
    pub(super) async fn show(&mut self, event: &Event<SessionEvent>, number: impl Fn(ItemId) -> Option<u64>) {
        self.tail.follow(&event.kind);
        let line = self.live.session_event(event);
        if !self.tail.is_read() {
            return;
        }
        if let Some(position) = event.position() {
            // A journal that cannot be read now is read at the next event.
            drop(self.show_until(position).await);
        }
        if is_recorded(&event.kind) {
            return;
        }
        match &event.kind {
            SessionEvent::Accepted(item) => self.show_item(number(*item), None),
            // It waits in the store, as before.
            SessionEvent::ItemSettled { fate: ItemOutcome::Unhandled, .. } => {}
            SessionEvent::ItemSettled { item, fate } => self.show_item(number(*item), Some(*fate)),
            SessionEvent::Steered { item, delivered } => self.show_steered(number(*item), delivered.turn),
            // They name an item by its place with this owner.
            SessionEvent::Requeued(_) | SessionEvent::Blocked { .. } | SessionEvent::Preempted { .. } => {}
            // A fact that is no record of its own.
            SessionEvent::Run { event, .. } if !event.kind.is_provisional() && line.is_none() => {}
            _ => {
                if let Some(line) = line {
                    let about = FrameSubject::of_event(&event.kind);
                    self.tail.show(Frame::unrecorded(frame_of(line, None)).about(about));
                }
            }
        }
    }

    fn show_item(&self, number: Option<u64>, outcome: Option<ItemOutcome>) {
        let Some(number) = number else { return };
        let words = outcome.map(outcome_words);
        let data = json!({
            "type": "item", "id": format!("item-{number}"),
            "state": if outcome.is_some() { "rest" } else { "accepted" },
            "turn": words.and_then(|(_, turn, _)| turn).map(|turn| turn.to_string()),
            "outcome": words.map(|(word, ..)| word),
            "returned": words.and_then(|(.., code)| code),
        });
        let ends = if outcome.is_some() { Ends::Item(number) } else { Ends::Nothing };
        let shown = Frame::unrecorded(frame(None, "item", &data));
        self.tail.show(Frame { ends, ..shown.about(FrameSubject::Item(number)) });
    }

    /// The turn has the item that it was steered with from here on.
    fn show_steered(&self, number: Option<u64>, turn: TurnId) {
        let Some(number) = number else { return };
        let data = json!({
            "type": "item", "id": format!("item-{number}"), "state": "running", "turn": turn.to_string(),
            "outcome": null, "returned": null,
        });
        let about = FrameSubject::TurnOf(turn, [number].into());
        self.tail.show(Frame::unrecorded(frame(None, "item", &data)).about(about));
    }

    /// Shows every record up to this position that was not shown with a record of another run of the tree.
    async fn show_until(&mut self, position: u64) -> Result<(), Error> {
        if position >= self.next {
            self.read_on().await?;
        }
        let count = self.ahead.partition_point(|step| step.position <= position);
        for step in self.ahead.drain(..count).collect::<Vec<_>>() {
            self.show_step(&step);
        }
        Ok(())
    }

    fn show_step(&mut self, step: &JournalStep) {
        let Some(line) = self.kept.step(step) else { return };
        let place = EventPlace { epoch: self.epoch, position: step.position };
        self.tail.show(Frame::recorded(line, place, step.what.as_ref().ok()));
    }

    async fn read_on(&mut self) -> Result<(), Error> {
        let mut read = Vec::new();
        read_journal_from(&*self.store, &self.session, self.next, |step| read.push(step)).await?;
        if let Some(last) = read.last() {
            self.next = last.position + 1;
        }
        self.ahead.extend(read);
        Ok(())
    }
}

/// Whether the journal has what this shows. Where it was not recorded, no reader sees it.
fn is_recorded(event: &SessionEvent) -> bool {
    match event {
        SessionEvent::TurnStarted { .. }
        | SessionEvent::TurnEnded { .. }
        | SessionEvent::TurnQuiet { .. } => true,
        SessionEvent::Run { event, .. } | SessionEvent::Background { event, .. } => {
            let mut kind = &event.kind;
            while let EventKind::Child { event, .. } = kind {
                kind = event;
            }
            matches!(kind, EventKind::Fact(_))
        }
        _ => false,
    }
}
