//! Lines of a session's events: those of its turns' runs, and its own.

use std::{fmt, future::ready, mem, sync::Arc};

use futures_core::Stream;
use futures_util::{StreamExt as _, stream};
use jiff::Timestamp;

use super::{
    body::{ReceiptLine, SessionLine, TEXT},
    encoder::{EventEncoder, TurnState, catch_up},
    line::{EventLine, TextOf},
    words::{ItemWord, PreemptedLine},
};
use crate::{
    session::{Item, ItemOutcome, PreemptOutcome, SessionEvent, handle::SessionHandle},
    value::{
        event::{Event, Events},
        ids::{ItemId, TurnId},
        limits::millis,
        message::UserMessage,
    },
};

impl EventEncoder {
    /// Makes lines of this session: with its [id](SessionHandle::id), and where it is stored with the number of its owner.
    #[must_use]
    pub fn of_session<T: Item>(session: &SessionHandle<T>) -> Self {
        let encoder = Self::new(session.id());
        match session.epoch() {
            Some(epoch) => encoder.in_epoch(epoch),
            None => encoder,
        }
    }

    /// The line of one event of a session; as [`event`](Self::event) for those of its turns' runs. A turn's number and run
    /// are learned from [`SessionEvent::TurnStarted`], so the encoder must get the session's events from the first one on.
    ///
    /// # Examples
    /// ```no_run
    /// # use safepoint::{SessionHandle, event::EventEncoder};
    /// # async fn print(session: SessionHandle<String>) {
    /// let (mut encoder, mut events) = (EventEncoder::of_session(&session), session.events());
    /// while let Some(event) = events.next().await {
    ///     if let Some(line) = encoder.session_event(&event) {
    ///         println!("{line}");
    ///     }
    /// }
    /// # }
    /// ```
    pub fn session_event(&mut self, event: &Event<SessionEvent>) -> Option<EventLine> {
        let line = match &event.kind {
            SessionEvent::Run { turn, event } | SessionEvent::Background { turn, event } => {
                self.among(*turn, |encoder| encoder.event(event))
            }
            own => self.own(own, event.at),
        };
        line.map(|line| line.of_event(event))
    }

    /// The lines of a session for a reader that has seen the event with the [id](EventLine::id) `last`; all of them where it
    /// is empty. They end with the session. As [`lines_of_run`](Self::lines_of_run).
    ///
    /// # Examples
    /// ```no_run
    /// # use safepoint::{SessionHandle, event::EventEncoder};
    /// use futures_util::StreamExt as _;
    ///
    /// # async fn send(session: SessionHandle<String>, last_event_id: &str) {
    /// let mut lines = EventEncoder::lines_of_session(&session, last_event_id);
    /// while let Some(line) = lines.next().await {
    ///     print!("id: {}\ndata: {line}\n\n", line.id());
    /// }
    /// # }
    /// ```
    pub fn lines_of_session<T: Item>(
        session: &SessionHandle<T>,
        last: &str,
    ) -> impl Stream<Item = EventLine> + Send + Unpin + use<T> {
        let (mut encoder, mut events) = (Self::of_session(session), session.events());
        let first = encoder.catch_up_session(&mut events, last);
        stream::iter(first).chain(events.filter_map(move |event| ready(encoder.session_event(&event))))
    }

    /// As [`catch_up`](Self::catch_up), for the events of a session.
    pub fn catch_up_session(&mut self, events: &mut Events<SessionEvent>, last: &str) -> Option<EventLine> {
        let Some(next) = events.behind(last) else { return self.restarted(last) };
        catch_up(events, next, |event| drop(self.session_event(event)));
        None
    }

    /// Makes a line as one of this turn, if it is known.
    pub(super) fn among(
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
    pub(super) fn of_turn(&mut self, turn: Option<TurnId>, line: EventLine, at: Timestamp) -> EventLine {
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
            SessionEvent::Planning { turn } => (Some(*turn), SessionLine::TurnPlanning {}),
            SessionEvent::TurnStarted { turn, items, run, input } => {
                self.turns.insert(turn.number(), TurnState::of(turn.number(), run.id()));
                let text = (!input.is_empty()).then_some(TEXT);
                let has_text = text.is_some();
                let mut line = EventLine::of(&SessionLine::TurnStarted { items, text });
                if has_text {
                    line = line.with("text", TextOf(Arc::clone(input), write_input).into());
                }
                return Some(self.of_turn(Some(*turn), line, at));
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
            SessionEvent::TurnQuiet { turn, survivors, .. } => {
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

/// What a turn begins with: the texts of its messages, with an empty line between two.
fn write_input(input: &Arc<[UserMessage]>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    input.iter().enumerate().try_for_each(|(place, message)| {
        f.write_str(if place == 0 { "" } else { "\n\n" })?;
        f.write_str(&message.text)
    })
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
pub(super) fn words(outcome: ItemOutcome) -> (Option<TurnId>, ItemWord, Option<&'static str>) {
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
