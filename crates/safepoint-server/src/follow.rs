//! What happens with one item, event by event until it is at rest: what the surfaces read that speak of one task, one response or
//! one call.
//!
//! **Invariants**: each recorded event of the item's turn is there once, in the order of the journal; the last thing that is read is
//! where the item rests, or that the server ends.

use std::collections::VecDeque;

use safepoint::{
    approval::ApprovalRequest,
    event::Fact,
    ids::{ApprovalId, SessionId},
    raw::{JournalFact, line::JournalEncoder, read_journal},
    store::Store,
};
use serde_json::Value;

use crate::{
    answer::ItemAnswer,
    caller::{
        Caller, Kept, Owner,
        items::{ItemPush, view},
        sessions::view as session_view,
    },
    host::read,
    lines::{Frame, text_of},
    load::ReaderPlace,
    problem::Answered,
    reader::{Reader, Until},
};

/// What happens with one item.
pub(crate) struct ItemEvents {
    by: Caller,
    kept: Kept,
    number: u64,
    reader: Reader,
    read: VecDeque<Frame>,
    /// The turn that has the item, once that is known.
    turn: Option<u64>,
}

/// The next of it. Exhaustive: an event of its turn, nothing for a while, its rest, or the end of the server before that.
#[derive(Debug)]
pub(crate) enum ItemEvent {
    Shown(ShownEvent),
    KeepAlive,
    Rest(ItemAnswer),
    Bye,
}

/// An event of the item's turn, as the stream of the session has it.
#[derive(Clone, Debug)]
pub(crate) struct ShownEvent {
    /// Its place in the journal; none: it is not recorded.
    pub(crate) position: Option<u64>,
    /// Its name.
    pub(crate) kind: String,
    /// Its JSON.
    pub(crate) data: Value,
}

impl ShownEvent {
    /// Whether the turn's own run did it. What a run below that does is the work of a call, which is shown.
    pub(crate) fn is_root(&self) -> bool {
        let path = &self.data["path"];
        path.is_null() || path.as_array().is_some_and(Vec::is_empty)
    }
}

impl ItemEvents {
    /// All that happens with the item, from its turn's first event on, whatever of it is past.
    ///
    /// # Errors
    /// `too_many_readers`, and the store's.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(crate) async fn of(by: &Caller, kept: &Kept, number: u64) -> Answered<Self> {
        Self::at(ReaderPlace::take(&by.load, by.who.name())?, by, kept, number).await
    }

    /// The same, at a place that was taken before.
    ///
    /// # Errors
    /// The store's.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(crate) async fn at(place: ReaderPlace, by: &Caller, kept: &Kept, number: u64) -> Answered<Self> {
        let reader = Reader::at(place, by, &kept.row, None).await?;
        Ok(Self::read(by, kept, number, reader.until(Until::Item(number))))
    }

    /// Pushes an item, and reads all that happens with it.
    ///
    /// # Errors
    /// As [`Reader::push`].
    ///
    /// # Cancel safety
    /// As [`Reader::push`].
    pub(crate) async fn push(
        by: &Caller,
        kept: &Kept,
        owner: &Owner,
        item: &ItemPush,
    ) -> Answered<(u64, Self)> {
        let (pushed, reader) = Reader::push(by, kept, owner, item).await?;
        Ok((pushed.number, Self::read(by, kept, pushed.number, reader)))
    }

    fn read(by: &Caller, kept: &Kept, number: u64, reader: Reader) -> Self {
        Self { by: by.clone(), kept: kept.clone(), number, reader, read: VecDeque::new(), turn: None }
    }

    /// What comes next.
    ///
    /// # Errors
    /// The store's, at the end.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(crate) async fn next(&mut self) -> Answered<ItemEvent> {
        loop {
            while let Some(frame) = self.read.front().cloned() {
                // It is read once it is known what it means: a caller that looks elsewhere meanwhile finds it again.
                let meant = self.meant(&frame).await?;
                self.read.pop_front();
                if let Some(event) = meant {
                    return Ok(event);
                }
            }
            match self.reader.next().await {
                Some(frames) => self.read.extend(frames),
                None => return Ok(ItemEvent::Bye),
            }
        }
    }

    async fn meant(&mut self, frame: &Frame) -> Answered<Option<ItemEvent>> {
        let Some((kind, text)) = frame.event() else { return Ok(Some(ItemEvent::KeepAlive)) };
        match kind {
            "end" => {
                let answer = view(&self.by.host, self.kept.id(), self.number).await?;
                return Ok(Some(ItemEvent::Rest(answer)));
            }
            "bye" => return Ok(Some(ItemEvent::Bye)),
            "session" | "item" | "reset" => return Ok(None),
            _ => {}
        }
        let data: Value = serde_json::from_str(text)?;
        let turn = data["turn"].as_u64();
        if kind == "turn_started" && has_item(&data, self.number) {
            self.turn = turn;
        }
        let is_meant = self.turn.is_some() && turn == self.turn;
        let event = ShownEvent { position: frame.position, kind: kind.to_owned(), data };
        Ok(is_meant.then_some(ItemEvent::Shown(event)))
    }
}

fn has_item(started: &Value, number: u64) -> bool {
    started["items"].as_array().is_some_and(|items| items.iter().any(|item| *item == number))
}

/// What is recorded of the item's turn by now, whichever process has the session: the same events as a reader of it gets.
///
/// # Errors
/// The store's.
///
/// # Cancel safety
/// Nothing is lost.
pub(crate) async fn recorded(
    store: &dyn Store,
    session: &SessionId,
    number: u64,
) -> Answered<Vec<ShownEvent>> {
    let tenures = store.tenures(session).await?;
    let (mut encoder, mut turn) = (JournalEncoder::new(session), None);
    let mut all = Vec::new();
    read_journal(store, session, |step| {
        encoder.begin_epoch(read::epoch_at(&tenures, step.position));
        let Some(line) = encoder.step(&step) else { return };
        let kind = line.kind().to_owned();
        let Ok(data) = serde_json::from_str::<Value>(&text_of(line)) else { return };
        let of = data["turn"].as_u64();
        if kind == "turn_started" && has_item(&data, number) {
            turn = of;
        }
        if of.is_some() && of == turn {
            all.push(ShownEvent { position: Some(step.position), kind, data });
        }
    })
    .await?;
    Ok(all)
}

/// The item in whose turn this question was asked, if it was.
///
/// # Errors
/// The store's.
///
/// # Cancel safety
/// Nothing is lost.
pub(crate) async fn asked_by(
    store: &dyn Store,
    session: &SessionId,
    approval: &str,
) -> Answered<Option<u64>> {
    let (mut items, mut found) = (std::collections::HashMap::new(), None);
    read_journal(store, session, |step| match step.what {
        Ok(JournalFact::Planned { turn, items: of }) => drop(items.insert(turn, of)),
        Ok(JournalFact::Fact { turn, fact, .. }) => {
            if let Fact::ApprovalRequested(asked) = &*fact
                && asked.id.as_str() == approval
            {
                found = items.get(&turn).and_then(|of: &Vec<u64>| of.first().copied());
            }
        }
        _ => {}
    })
    .await?;
    Ok(found)
}

/// An item that waits for a decision, and a reader that waits with it.
pub(crate) struct SuspendedItem {
    by: Caller,
    kept: Kept,
    number: u64,
    reader: Reader,
    is_looked_at: bool,
    shown: Vec<ApprovalId>,
}

/// What happens with it. Exhaustive: it waits no more, nothing for a while, or the end of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SuspendedEvent {
    Awake,
    KeepAlive,
    Bye,
}

impl SuspendedItem {
    /// # Errors
    /// `too_many_readers`, and the store's.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(crate) async fn of(by: &Caller, kept: &Kept, number: u64) -> Answered<Self> {
        let row = by.store().open(kept.id()).await?;
        let place = session_view(&by.host, &row, &kept.setup).await?.cursor;
        let reader = Reader::start(by, &row, place.as_deref()).await?;
        let shown = Vec::new();
        Ok(Self { by: by.clone(), kept: kept.clone(), number, reader, is_looked_at: false, shown })
    }

    /// The caller shows these questions: any other one is something that happened with it.
    pub(crate) fn shows(&mut self, asked: &[ApprovalRequest]) {
        self.shown.extend(asked.iter().map(|asked| asked.id.clone()));
    }

    async fn waits(&self) -> Answered<bool> {
        let answer = view(&self.by.host, self.kept.id(), self.number).await?;
        if answer.outcome != Some("suspended") {
            return Ok(false);
        }
        let open = self.by.questions(self.kept.id()).await?;
        Ok(open.iter().all(|asked| self.shown.contains(&asked.id)))
    }

    /// Waits until the item waits no more.
    ///
    /// # Errors
    /// The store's.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(crate) async fn next(&mut self) -> Answered<SuspendedEvent> {
        loop {
            // The reader was there before the first look.
            if !self.is_looked_at {
                let waits = self.waits().await?;
                self.is_looked_at = true;
                if !waits {
                    return Ok(SuspendedEvent::Awake);
                }
            }
            let Some(frames) = self.reader.next().await else { return Ok(SuspendedEvent::Bye) };
            self.is_looked_at = !frames.iter().any(|frame| frame.position.is_some());
            if frames.iter().any(|frame| frame.event().is_some_and(|(kind, _)| kind == "bye")) {
                return Ok(SuspendedEvent::Bye);
            }
            if self.is_looked_at && frames.iter().all(|frame| frame.event().is_none()) {
                return Ok(SuspendedEvent::KeepAlive);
            }
        }
    }
}
