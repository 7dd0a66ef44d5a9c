//! A reader of a session's events: what is recorded behind its last event, then what comes, each record once.
//!
//! **Invariants**: a reader holds no more than one piece of what comes next; it keeps its place among the frames by a number, and
//! goes back to the journal when those are gone.

mod behind;
mod live;

pub(crate) use behind::known;

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use safepoint::{
    ids::{SessionId, TurnId},
    store::SessionRow,
};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout, timeout_at};

use self::live::LiveReader;
use crate::{
    answer::ItemState,
    caller::{
        Caller, Kept, Owner,
        items::{ItemPush, PushedItem, view},
        sessions::whole,
    },
    host::{HostState, open::Seen, setup::Setup},
    lines::{Ends, Frame, FrameSubject, frame},
    load::{Load, ReaderPlace},
    problem::Answered,
    sse::{DirectBody, KEEP_ALIVE, KEPT_ALIVE},
};

/// How often the journal of a session that is not open here is looked at.
const LOOK: Duration = Duration::from_millis(250);

/// What a stream ends with. Exhaustive: it goes on, or until an item of this number is at rest, or nothing of a turn is alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Until {
    Never,
    Item(u64),
    Turn(TurnId),
}

/// A reader.
pub(crate) struct Reader {
    host: Arc<HostState>,
    load: Arc<Load>,
    session: SessionId,
    until: Until,
    /// What was seen of the turn that it ends with: its end, and that nothing of it is alive. Either is recorded first.
    seen: (bool, bool),
    /// The turn that has the item that it ends with, once that is known.
    turn: Option<TurnId>,
    /// The last position that was sent.
    sent: Option<u64>,
    /// When it is known whether the turn of the item that it ends with is cut, while it is not: no record says that.
    known_at: Option<Instant>,
    at: ReaderStage,
    /// What is sent next.
    piece: Vec<Frame>,
    /// Where the fan writes in its place.
    direct: DirectBody,
    _place: ReaderPlace,
}

/// Where a reader reads. Exhaustive: it has yet to find that out, among the frames of an open session, in the journal of one
/// that is not open here, or nowhere any more.
enum ReaderStage {
    Behind,
    Live(LiveReader),
    Journal(JournalPlace),
    Over,
}

/// How many records a journal has, and which owner the session.
type JournalPlace = (u64, u64);

impl Reader {
    /// A reader that continues behind `last`, the id of an event; `None`: it begins with the session's first.
    ///
    /// # Errors
    /// `too_many_readers`, and the store's.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(crate) async fn start(by: &Caller, row: &SessionRow, last: Option<&str>) -> Answered<Self> {
        Self::at(ReaderPlace::take(&by.load, by.who.name())?, by, row, last).await
    }

    /// The same, at a place that was taken before.
    ///
    /// # Errors
    /// The store's.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(crate) async fn at(
        place: ReaderPlace,
        by: &Caller,
        row: &SessionRow,
        last: Option<&str>,
    ) -> Answered<Self> {
        let shown = whole(&by.host, row, &Setup::of(row)).await?;
        let shown_frame = frame(None, "session", &serde_json::to_value(&shown)?);
        let mut piece = vec![Frame::unrecorded(shown_frame)];
        let sent = match last {
            None => None,
            Some(last) => match behind::known(&by.host, row, last).await? {
                Some(position) => Some(position),
                None => {
                    let data = json!({"type": "reset", "cursor": shown.cursor});
                    piece.push(Frame::unrecorded(frame(None, "reset", &data)));
                    row.head.checked_sub(1)
                }
            },
        };
        Ok(Self {
            host: Arc::clone(&by.host),
            load: Arc::clone(&by.load),
            session: row.id.clone(),
            until: Until::Never,
            seen: (false, false),
            turn: None,
            sent,
            known_at: None,
            at: ReaderStage::Behind,
            piece,
            direct: DirectBody::default(),
            _place: place,
        })
    }

    /// It is read as this body.
    pub(crate) fn direct(self, direct: DirectBody) -> Self {
        Self { direct, ..self }
    }

    /// It ends by this.
    pub(crate) fn until(self, until: Until) -> Self {
        Self { until, ..self }
    }

    /// Pushes an item, and reads what happens from there on until it is at rest. The reader is there first: it misses nothing, and
    /// without it nothing is pushed. It begins with the item, and with the item's turn where the item was there before.
    ///
    /// # Errors
    /// `too_many_readers`, and why the item is refused.
    ///
    /// # Cancel safety
    /// It may have been pushed.
    pub(crate) async fn push(
        by: &Caller,
        kept: &Kept,
        owner: &Owner,
        item: &ItemPush,
    ) -> Answered<(PushedItem, Self)> {
        let reader = Self::start(by, &kept.row, None).await?;
        let seat = match owner {
            Owner::Here(open) => open.join().await,
            Owner::Elsewhere => None,
        };
        let pushed = by.push(kept, owner, item).await?;
        let mut reader = reader.until(Until::Item(pushed.number));
        if let (Some(seat), Seen::First) = (seat, pushed.seen) {
            // Among its frames is that the item was accepted.
            reader.sent = seat.recorded;
            reader.at = ReaderStage::Live(LiveReader::of(seat));
            return Ok((pushed, reader));
        }
        reader.sent = match pushed.seen {
            Seen::First => kept.row.head.checked_sub(1),
            Seen::Again => behind::before(by.store(), &kept.row, pushed.number).await?,
        };
        let found = view(&by.host, kept.id(), pushed.number).await?;
        if found.state != ItemState::Rest {
            reader.say_item(&found);
        }
        Ok((pushed, reader))
    }

    /// What comes next, at least one frame; `None` at the end.
    ///
    /// # Cancel safety
    /// Nothing is lost: what was read is there at the next call.
    pub(crate) async fn next(&mut self) -> Option<Vec<Frame>> {
        while self.piece.is_empty() {
            match &self.at {
                ReaderStage::Over => return None,
                ReaderStage::Behind => {
                    if self.catch_up().await.is_err() {
                        self.end("bye", &json!({"type": "bye", "reason": "store"}));
                    }
                }
                ReaderStage::Live(_) => self.live().await,
                ReaderStage::Journal(place) => {
                    let place = *place;
                    self.look(place).await;
                }
            }
        }
        Some(std::mem::take(&mut self.piece))
    }

    fn say(&mut self, event: &str, data: &Value) {
        self.piece.push(Frame::unrecorded(frame(None, event, data)));
    }

    fn end(&mut self, event: &str, data: &Value) {
        self.say(event, data);
        self.at = ReaderStage::Over;
    }

    /// The session is closed here: the rest is in the journal.
    async fn leave(&mut self) {
        self.at = ReaderStage::Behind;
        if self.host.is_draining() {
            // What could not be read now is there for the reader that comes back.
            drop(self.catch_up().await);
            if !matches!(self.at, ReaderStage::Over) {
                self.end("bye", &json!({"type": "bye", "reason": "drain"}));
            }
        }
    }

    async fn send(&mut self, frames: Vec<Frame>) {
        for frame in frames {
            if !frame.is_new(&mut self.sent) {
                continue;
            }
            let ends = frame.ends;
            if let (Until::Item(meant), Ends::Item(number)) = (self.until, ends)
                && meant == number
            {
                return self.end_with_item(number).await;
            }
            if self.is_meant(&frame.about) {
                self.piece.push(frame);
            }
            if self.has_ended(ends) {
                return self.end("end", &json!({"type": "end"}));
            }
            // A turn that was suspended, and resumed, ends for its items by its record alone.
            if matches!(ends, Ends::Turn(_)) {
                self.end_if_at_rest().await;
            }
            // What is left of them is recorded, and read from there.
            if !matches!(self.at, ReaderStage::Live(_)) {
                return;
            }
        }
    }

    /// Whether it shows what is about this: a reader of one item has nothing of other items and other turns.
    fn is_meant(&mut self, about: &FrameSubject) -> bool {
        match self.until {
            Until::Item(number) => about.is_of(number, &mut self.turn),
            Until::Never | Until::Turn(_) => true,
        }
    }

    /// Whether the turn that it ends with has ended, and nothing of it is alive.
    fn has_ended(&mut self, ends: Ends) -> bool {
        match (self.until, ends) {
            (Until::Turn(meant), Ends::Turn(turn)) if meant == turn => self.seen.0 = true,
            (Until::Turn(meant), Ends::Quiet(turn)) if meant == turn => self.seen.1 = true,
            _ => {}
        }
        self.seen == (true, true)
    }

    async fn keep_alive(&mut self) {
        self.piece.push(Frame::unrecorded(Bytes::from_static(KEPT_ALIVE)));
        self.end_if_at_rest().await;
    }

    /// Waits until there is more in the journal, or the session is opened here.
    async fn look(&mut self, place: JournalPlace) {
        let host = Arc::clone(&self.host);
        let mut opens = host.opens();
        let looked = async {
            loop {
                if host.opened(&self.session).is_some() || host.is_draining() {
                    return;
                }
                // A session that was opened here shows what streams; what another process records is looked for.
                if timeout(LOOK, opens.changed()).await.is_ok() {
                    continue;
                }
                match host.store.open(&self.session).await {
                    Ok(row) if (row.head, row.epoch) == place => {}
                    Ok(_) | Err(_) => return,
                }
            }
        };
        let silent = Instant::now() + KEEP_ALIVE;
        match timeout_at(self.known_at.map_or(silent, |at| at.min(silent)), looked).await {
            Ok(()) if self.host.is_draining() => self.end("bye", &json!({"type": "bye", "reason": "drain"})),
            Ok(()) => self.at = ReaderStage::Behind,
            Err(_elapsed) if Instant::now() < silent => self.end_if_at_rest().await,
            Err(_elapsed) => self.keep_alive().await,
        }
    }
}

#[cfg(test)]
mod tests;
