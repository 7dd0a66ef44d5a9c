//! Lines of a session's events: those of its turns' runs, and its own.

use std::mem;

use jiff::Timestamp;

use super::{
    body::{ItemWord, PreemptedLine, ReceiptLine, SessionLine},
    encoder::{EventEncoder, TurnState, catch_up},
    line::EventLine,
};
use crate::{
    session::{ItemOutcome, PreemptOutcome, SessionEvent},
    value::{
        event::{Event, Events},
        ids::{ItemId, TurnId},
        limits::millis,
    },
};

impl EventEncoder {
    /// The line of one event of a session; as [`event`](Self::event) for those of its turns' runs. A turn's number and run
    /// are learned from [`SessionEvent::TurnStarted`], so the encoder must get the session's events from the first one on.
    ///
    /// # Examples
    /// ```no_run
    /// # use safepoint::{SessionHandle, event::EventEncoder, ids::SessionId};
    /// # async fn print(session: SessionHandle<String>) {
    /// let (mut encoder, mut events) = (EventEncoder::new(&SessionId::from("trip")), session.events());
    /// while let Some(event) = events.next().await {
    ///     if let Some(line) = encoder.session_event(&event) {
    ///         println!("{line}");
    ///     }
    /// }
    /// # }
    /// ```
    pub fn session_event(&mut self, event: &Event<SessionEvent>) -> Option<EventLine> {
        match &event.kind {
            SessionEvent::Run { turn, event } | SessionEvent::Background { turn, event } => {
                self.among(*turn, |encoder| encoder.event(event))
            }
            own => self.own(own, event.at),
        }
    }

    /// As [`catch_up`](Self::catch_up), for the events of a session.
    pub fn catch_up_session(&mut self, events: &mut Events<SessionEvent>, seq: u64) {
        catch_up(events, seq, |event| drop(self.session_event(event)));
    }

    /// Makes a line as one of this turn, if it is known.
    fn among(
        &mut self,
        turn: TurnId,
        line: impl FnOnce(&mut Self) -> Option<EventLine>,
    ) -> Option<EventLine> {
        let state = self.turns.remove(&turn.number())?;
        let before = mem::replace(&mut self.turn, state);
        let line = line(self);
        self.turns.insert(turn.number(), mem::replace(&mut self.turn, before));
        line
    }

    /// Makes a line of this turn; of a turn that is not known, its number is all that the line says of it.
    fn of_turn(&mut self, turn: Option<TurnId>, line: EventLine, at: Timestamp) -> EventLine {
        let state = turn.map_or_else(TurnState::default, |turn| TurnState {
            number: Some(turn.number()),
            run: self.turns.get(&turn.number()).and_then(|state| state.run.clone()),
            ..TurnState::default()
        });
        let before = mem::replace(&mut self.turn, state);
        let line = self.number(line, at);
        self.turn = before;
        line
    }

    fn own(&mut self, event: &SessionEvent, at: Timestamp) -> Option<EventLine> {
        let (turn, line) = match event {
            SessionEvent::Run { .. } | SessionEvent::Background { .. } => return None,
            SessionEvent::Accepted(item) => (None, SessionLine::ItemAccepted { item: *item }),
            SessionEvent::Requeued(item) => (None, SessionLine::ItemRequeued { item: *item }),
            SessionEvent::Blocked { item, turn } => (Some(*turn), SessionLine::ItemBlocked { item: *item }),
            SessionEvent::Planning => (None, SessionLine::TurnPlanning {}),
            SessionEvent::TurnStarted { turn, items, run } => {
                self.turns.insert(turn.number(), TurnState::of(turn.number(), run.id()));
                (Some(*turn), SessionLine::TurnStarted { items })
            }
            SessionEvent::BackgroundLost(lost) => {
                (Some(lost.turn), SessionLine::BackgroundLost { path: &lost.path, unknown: &lost.unknown })
            }
            SessionEvent::Steered { item, delivered } => {
                (Some(delivered.turn), SessionLine::ItemSteered { item: *item, round: delivered.round })
            }
            SessionEvent::Preempted { item, preempted } => preempted_line(*item, *preempted),
            SessionEvent::ItemSettled { item, fate } => {
                let (turn, outcome, returned) = words(*fate);
                (turn, SessionLine::ItemSettled { item: *item, outcome, returned })
            }
            SessionEvent::StopRequested { cause, once_idle_for } => {
                let once_idle_for_ms = once_idle_for.map(millis);
                (None, SessionLine::SessionStopRequested { cause: cause.as_deref(), once_idle_for_ms })
            }
            SessionEvent::TurnEnded { turn, fate, receipt } => {
                let (outcome, receipt) = (words(*fate).1, ReceiptLine::of(receipt));
                (Some(*turn), SessionLine::TurnEnded { outcome, receipt })
            }
            SessionEvent::TurnQuiet { turn, survivors } => {
                let line =
                    self.of_turn(Some(*turn), EventLine::of(&SessionLine::TurnQuiet { survivors }), at);
                // A turn with survivors may show more.
                if survivors.is_empty() {
                    self.turns.remove(&turn.number());
                }
                return Some(line);
            }
            SessionEvent::Unreadable { number, why } => {
                (None, SessionLine::ItemUnreadable { number: *number, why })
            }
            SessionEvent::Missed(count) => (None, SessionLine::Missed { count: *count }),
            SessionEvent::Ended => (None, SessionLine::SessionEnded {}),
        };
        Some(self.of_turn(turn, EventLine::of(&line), at))
    }
}

fn preempted_line(item: ItemId, preempted: PreemptOutcome) -> (Option<TurnId>, SessionLine<'static>) {
    let (turn, preempted) = match preempted {
        PreemptOutcome::StoppedTurn(turn) => (Some(turn), PreemptedLine::StoppedTurn),
        PreemptOutcome::NoTurn => (None, PreemptedLine::NoTurn),
        PreemptOutcome::TurnEndedFirst => (None, PreemptedLine::TurnEndedFirst),
        PreemptOutcome::SupersededByStop => (None, PreemptedLine::SupersededByStop),
    };
    (turn, SessionLine::ItemPreempted { item, preempted })
}

/// What became of an item: in which turn, in a word, and the code with which it went back.
fn words(outcome: ItemOutcome) -> (Option<TurnId>, ItemWord, Option<&'static str>) {
    match outcome {
        ItemOutcome::Completed(turn) => (Some(turn), ItemWord::Completed, None),
        ItemOutcome::Preempted(turn) => (Some(turn), ItemWord::Preempted, None),
        ItemOutcome::Failed(turn) => (Some(turn), ItemWord::Failed, None),
        ItemOutcome::Interrupted(turn) => (Some(turn), ItemWord::Interrupted, None),
        ItemOutcome::Suspended(turn) => (Some(turn), ItemWord::Suspended, None),
        ItemOutcome::RolledBack(turn) => (Some(turn), ItemWord::RolledBack, None),
        ItemOutcome::Dropped => (None, ItemWord::Dropped, None),
        ItemOutcome::Withdrawn => (None, ItemWord::Withdrawn, None),
        ItemOutcome::Returned(why) => (None, ItemWord::Returned, Some(why.code())),
        ItemOutcome::Unhandled => (None, ItemWord::Unhandled, None),
    }
}
