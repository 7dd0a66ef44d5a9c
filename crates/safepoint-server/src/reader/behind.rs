//! What a reader has missed: the records behind the last one that it was sent, of the journal.

use std::sync::Arc;

use safepoint::{
    event::Fact,
    ids::TurnId,
    raw::{JournalFact, line::JournalEncoder, read_journal},
    store::{SessionRow, Store},
};
use serde_json::json;
use tokio::time::Instant;

use super::{Reader, ReaderStage, Until, live::LiveReader};
use crate::{
    answer::{ItemAnswer, ItemState},
    caller::items::view,
    host::{
        HostState,
        read::{self, epoch_at},
    },
    lines::{Ends, EventPlace, Frame, FrameSubject},
    problem::Answered,
};

/// That an item is at rest: the position of the last record of its turn; none of one that was withdrawn.
struct ItemRest {
    end: Option<u64>,
}

impl Reader {
    /// Sends what is recorded and was not sent, and goes to where the rest will come.
    pub(super) async fn catch_up(&mut self) -> Answered<()> {
        let seat = match self.host.opened(&self.session) {
            Some(open) => open.join().await,
            None => None,
        };
        let rest = self.rest_of_item().await?;
        let end = rest.as_ref().and_then(|rest| rest.end);
        let row = self.host.store.open(&self.session).await?;
        let (upto, partial) = match &seat {
            // What comes behind it is of other items.
            _ if end.is_some() => (end, None),
            Some(seat) => (seat.recorded, seat.partial.clone()),
            None => (row.head.checked_sub(1), None),
        };
        let is_over = self.replay(upto).await?;
        if let Some(partial) = partial.filter(|partial| self.is_meant(&partial.about)) {
            self.piece.push(partial);
        }
        self.at = match seat {
            _ if is_over => ReaderStage::Over,
            // One that runs again meanwhile has more to read.
            _ if rest.is_some() => ReaderStage::Behind,
            Some(seat) => ReaderStage::Live(LiveReader::of(seat)),
            None => ReaderStage::Journal((row.head, row.epoch)),
        };
        match (is_over, rest, self.until) {
            (false, Some(_), Until::Item(number)) => self.end_at_rest(number).await?,
            (false, _, _) => self.end_if_at_rest().await,
            (true, _, _) => {}
        }
        Ok(())
    }

    fn runs_now(&self) -> Option<TurnId> {
        Some(self.host.opened(&self.session)?.handle().current_turn()?.turn)
    }

    /// Where the turn of the item that it ends with has its end, if that is at rest.
    async fn rest_of_item(&mut self) -> Answered<Option<ItemRest>> {
        let Until::Item(number) = self.until else { return Ok(None) };
        let found = view(&self.host, &self.session, number).await?;
        let turn = found.turn.and_then(|turn| turn.parse::<TurnId>().ok());
        self.turn = match found.state {
            // A turn that was steered with it names it in no record.
            ItemState::Running => turn.or_else(|| self.runs_now()),
            ItemState::Accepted | ItemState::Rest => turn,
        };
        if found.state != ItemState::Rest {
            return Ok(None);
        }
        let Some(turn) = turn else { return Ok(Some(ItemRest { end: None })) };
        let (mut ended, mut last) = (None, None);
        read_journal(&*self.host.store, &self.session, |step| match step.what {
            Ok(JournalFact::Ended { turn: of, .. }) if of == turn => ended = Some(step.position),
            Ok(JournalFact::Planned { turn: of, .. }) if of == turn => last = Some(step.position),
            Ok(JournalFact::Fact { turn: of, path, fact, .. }) if of == turn => {
                last = Some(step.position);
                if path.is_root() && matches!(*fact, Fact::AttemptOpened { .. }) {
                    // It runs again.
                    ended = None;
                }
            }
            _ => {}
        })
        .await?;
        Ok(Some(ItemRest { end: ended.or(last) }))
    }

    /// Sends the records behind the last one up to this position, and returns whether one of them ends the stream.
    async fn replay(&mut self, upto: Option<u64>) -> Answered<bool> {
        let Some(upto) = upto.filter(|upto| self.sent.is_none_or(|sent| sent < *upto)) else {
            return Ok(false);
        };
        let store = Arc::clone(&self.host.store);
        let tenures = store.tenures(&self.session).await?;
        let (mut encoder, sent) = (JournalEncoder::new(&self.session), self.sent);
        let mut replayed = Vec::new();
        let mut is_over = false;
        let session = self.session.clone();
        read_journal(&*store, &session, |step| {
            let epoch = epoch_at(&tenures, step.position);
            encoder.begin_epoch(epoch);
            let line = encoder.step(&step);
            let is_new = sent.is_none_or(|sent| sent < step.position) && step.position <= upto;
            let is_meant = self.is_meant(&FrameSubject::of(step.what.as_ref().ok()));
            if let Some(line) = line.filter(|_| is_meant && is_new && !is_over) {
                let place = EventPlace { epoch, position: step.position };
                replayed.push(Frame::recorded(line, place, step.what.as_ref().ok()));
            }
            if step.position <= upto {
                is_over |= self.has_ended(Ends::of(step.what.as_ref().ok()));
            }
        })
        .await?;
        self.piece.append(&mut replayed);
        self.sent = Some(upto);
        if is_over {
            self.end("end", &json!({"type": "end"}));
        }
        Ok(is_over)
    }

    /// All that is recorded of an item at rest was sent. One that runs again meanwhile has more.
    async fn end_at_rest(&mut self, number: u64) -> Answered<()> {
        if view(&self.host, &self.session, number).await?.state == ItemState::Rest {
            self.end_with_item(number).await;
        }
        Ok(())
    }

    /// An item that is at rest already has no event to wait for, but there may be some that were not sent. One whose turn runs nowhere has none
    /// either, if nothing takes that up.
    pub(super) async fn end_if_at_rest(&mut self) {
        let Until::Item(number) = self.until else { return };
        self.known_at = None;
        // What cannot be read now is looked for at the next sign of life.
        let Ok(found) = view(&self.host, &self.session, number).await else { return };
        match found.state {
            ItemState::Rest => self.at = ReaderStage::Behind,
            ItemState::Accepted if found.turn.is_some() => {
                let left = read::known_in(&*self.host.store, &self.session).await.ok().flatten();
                self.known_at = left.map(|left| Instant::now() + left);
            }
            ItemState::Accepted | ItemState::Running => {}
        }
    }

    /// Shows where an item is.
    pub(super) fn say_item(&mut self, found: &ItemAnswer) {
        let mut data = serde_json::to_value(found).unwrap_or_default();
        data["type"] = json!("item");
        self.say("item", &data);
    }

    pub(super) async fn end_with_item(&mut self, number: u64) {
        if let Ok(found) = view(&self.host, &self.session, number).await {
            self.say_item(&found);
        }
        self.end("end", &json!({"type": "end"}));
    }
}

/// The position before the turn of an item, or before all that comes, where no turn has had it yet.
pub(super) async fn before(store: &dyn Store, row: &SessionRow, item: u64) -> Answered<Option<u64>> {
    let mut begins = None;
    read_journal(store, &row.id, |step| {
        if let Ok(JournalFact::Planned { items, .. }) = &step.what
            && items.contains(&item)
        {
            begins = begins.or(Some(step.position));
        }
    })
    .await?;
    Ok(begins.unwrap_or(row.head).checked_sub(1))
}

/// The position of an id, if it names a record of the session that is still there.
pub(crate) async fn known(host: &HostState, row: &SessionRow, last: &str) -> Answered<Option<u64>> {
    let Some(place) = EventPlace::parse(last).filter(|place| place.position < row.head) else {
        return Ok(None);
    };
    let tenures = host.store.tenures(&row.id).await?;
    Ok((epoch_at(&tenures, place.position) == place.epoch).then_some(place.position))
}
