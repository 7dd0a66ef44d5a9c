//! Where items are now: by what this process knows of those that were pushed to it, and by what is recorded.

use std::{collections::HashMap, sync::Arc};

use safepoint::{
    ids::{SessionId, TurnId},
    raw::store::{ApprovalRow, ApprovalState, InboxRow, ItemState as RowState},
    session::ItemOutcome,
};

use crate::{
    answer::{CRASHED, ItemAnswer, ItemState, outcome_words},
    caller::is_held,
    host::{
        HostState,
        open::ended,
        read::{self, TurnRead, Turns},
    },
    problem::{Answered, Problem},
};

/// What is known of the items of a session, read once for all of them.
pub(crate) struct ReadItems {
    session: SessionId,
    pub(crate) inbox: Vec<InboxRow>,
    /// How those that were pushed here have ended. Read before the turns: the end of an item that is here is among them.
    fates: HashMap<u64, ItemOutcome>,
    pub(crate) turns: Turns,
    /// Whether a turn waits for a question that is open.
    is_asked: bool,
    /// Whether a process that may be alive has the session.
    is_held: bool,
    /// The turn that runs here. Read before the turns: that it runs again may not be recorded yet, but its end would be.
    running: Option<TurnId>,
}

impl ReadItems {
    /// Of all items.
    ///
    /// # Errors
    /// The store's.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(crate) async fn of(host: &Arc<HostState>, session: &SessionId) -> Answered<Self> {
        let open = host.opened(session);
        let inbox = host.store.inbox(session).await?;
        let fates = open.as_ref().map(|open| open.fates()).unwrap_or_default();
        Self::behind(host, session, (inbox, fates)).await
    }

    async fn behind(
        host: &Arc<HostState>,
        session: &SessionId,
        (inbox, fates): (Vec<InboxRow>, HashMap<u64, ItemOutcome>),
    ) -> Answered<Self> {
        let store = &*host.store;
        let running = host.opened(session).and_then(|open| open.handle().current_turn());
        let turns = read::turns(store, session).await?;
        let waits = turns.values().any(|turn| matches!(turn.outcome, Some(ItemOutcome::Suspended(_))));
        let is_open = |row: &ApprovalRow| row.state == ApprovalState::Open;
        let is_asked = waits && store.approvals(session).await?.iter().any(is_open);
        let is_held = is_held(&store.open(session).await?);
        Ok(Self {
            session: session.clone(),
            inbox,
            fates,
            turns,
            is_asked,
            is_held,
            running: running.map(|view| view.turn),
        })
    }

    /// Where this one is.
    pub(crate) fn answer(&self, number: u64) -> ItemAnswer {
        let row = self.inbox.iter().find(|row| row.number == number).map(|row| row.state);
        let own = self.fates.get(&number).copied();
        if own.is_none() && row == Some(RowState::Waiting) {
            return waiting(&self.session, number);
        }
        // One that steered is in no plan.
        let steered = own.and_then(|fate| outcome_words(fate).1);
        let steered = || steered.and_then(|turn| Some((turn, self.turns.get(&turn.number())?)));
        let found = read::turn_of(&self.turns, number).or_else(steered);
        let outcome = match own {
            Some(fate) if found.is_none() || outcome_words(fate).1.is_none() => own,
            // What its turn is now: it may have been decided or resumed since.
            _ => found.and_then(|(_, turn)| turn.outcome),
        };
        let is_decided = matches!(outcome, Some(ItemOutcome::Suspended(_))) && !self.is_asked;
        let is_there = row.is_some() || found.is_some();
        let is_cut =
            outcome.is_none() && found.is_some_and(|(turn, read)| read.is_cut && self.running != Some(turn));
        let (state, words) = match outcome {
            Some(outcome) if !is_decided => (ItemState::Rest, Some(outcome_words(outcome))),
            _ if is_cut => (ItemState::Rest, Some((CRASHED, None, None))),
            _ if is_there && self.runs(found) => (ItemState::Running, None),
            _ if is_there => (ItemState::Accepted, None),
            // No turn had it, and it waits no more.
            _ => (ItemState::Rest, Some(outcome_words(ItemOutcome::Withdrawn))),
        };
        let turn = words.and_then(|(_, turn, _)| turn).or(found.map(|(turn, _)| turn));
        let read = turn.and_then(|turn| self.turns.get(&turn.number()));
        ItemAnswer {
            state,
            turn: turn.map(|turn| turn.to_string()),
            outcome: words.map(|(word, ..)| word),
            returned: words.and_then(|(.., code)| code),
            answer: read
                .filter(|_| matches!(outcome, Some(ItemOutcome::Completed(_))))
                .and_then(TurnRead::completed),
            stopped_by: read.and_then(|read| read.stopped_by.clone()),
            ..waiting(&self.session, number)
        }
    }

    /// Whether the turn that has an item may run: the last one has those that are in no plan.
    fn runs(&self, found: Option<(TurnId, &TurnRead)>) -> bool {
        if found.is_some_and(|(turn, _)| self.running == Some(turn)) {
            return true;
        }
        let turn = found.map(|(_, turn)| turn).or_else(|| self.turns.values().last());
        self.is_held && turn.is_some_and(|turn| !turn.is_left)
    }
}

/// Where an item is now.
///
/// # Errors
/// `no_such_item`, and the store's.
///
/// # Cancel safety
/// Nothing is lost.
pub(crate) async fn view(host: &Arc<HostState>, session: &SessionId, number: u64) -> Answered<ItemAnswer> {
    let store = &*host.store;
    if number == 0 || number > store.notice(session).await?.items {
        return Err(Problem::no_such("item"));
    }
    let ticket = host.opened(session).and_then(|open| open.ticket(number));
    let inbox = store.inbox(session).await?;
    let own = ticket.as_ref().and_then(ended);
    // It is looked at again and again: its session's journal is not read for that.
    let waits = |row: &InboxRow| row.number == number && row.state == RowState::Waiting;
    if own.is_none() && inbox.iter().any(waits) {
        return Ok(waiting(session, number));
    }
    let fates = own.map(|fate| (number, fate)).into_iter().collect();
    Ok(ReadItems::behind(host, session, (inbox, fates)).await?.answer(number))
}

pub(super) fn waiting(session: &SessionId, number: u64) -> ItemAnswer {
    ItemAnswer {
        id: format!("item-{number}"),
        session: session.to_string(),
        state: ItemState::Accepted,
        turn: None,
        outcome: None,
        returned: None,
        answer: None,
        stopped_by: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S13.34: a turn that runs here is not cut, though no record says yet that it runs again.
    #[test]
    fn a_turn_that_runs_here_is_not_cut() {
        let mut read = TurnRead::default();
        (read.items, read.is_cut, read.is_left) = (vec![1], true, true);
        let shown = |running: Option<TurnId>| {
            let (session, turns) = (SessionId::from("ses_1"), Turns::from([(1, read.clone())]));
            let (inbox, fates) = (Vec::new(), HashMap::new());
            let all = ReadItems { session, inbox, fates, turns, is_asked: false, is_held: true, running };
            let answer = all.answer(1);
            (answer.state, answer.outcome)
        };
        assert_eq!(shown(None), (ItemState::Rest, Some(CRASHED)));
        assert_eq!(shown(Some(TurnId::new(1))), (ItemState::Running, None));
    }
}
