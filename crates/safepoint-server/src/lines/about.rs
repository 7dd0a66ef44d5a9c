//! What a frame is about, for the readers of one item.

use std::sync::Arc;

use safepoint::{ids::TurnId, raw::JournalFact, session::SessionEvent};

/// What a frame is about. Exhaustive: the session, an item of this number, a turn, or that a turn has these items from here on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FrameSubject {
    Session,
    Item(u64),
    Turn(TurnId),
    TurnOf(TurnId, Arc<[u64]>),
}

impl FrameSubject {
    /// What a record is about.
    pub(crate) fn of(fact: Option<&JournalFact>) -> Self {
        match fact {
            Some(JournalFact::Planned { turn, items }) => Self::TurnOf(*turn, items.as_slice().into()),
            fact => fact.and_then(turn_of).map_or(Self::Session, Self::Turn),
        }
    }

    /// What an event is about that is not recorded.
    pub(crate) fn of_event(event: &SessionEvent) -> Self {
        match event {
            SessionEvent::Run { turn, .. }
            | SessionEvent::Background { turn, .. }
            | SessionEvent::Planning { turn } => Self::Turn(*turn),
            SessionEvent::Unreadable { number, .. } => Self::Item(*number),
            _ => Self::Session,
        }
    }

    /// Whether it is of this item, whose turn is this as far as that is known.
    pub(crate) fn is_of(&self, item: u64, turn: &mut Option<TurnId>) -> bool {
        match self {
            Self::Session => true,
            Self::Item(number) => *number == item,
            Self::Turn(of) => *turn == Some(*of),
            Self::TurnOf(of, items) => {
                if items.contains(&item) {
                    *turn = Some(*of);
                }
                *turn == Some(*of)
            }
        }
    }
}

/// The turn of a record.
pub(crate) fn turn_of(fact: &JournalFact) -> Option<TurnId> {
    match fact {
        JournalFact::Planned { turn, .. }
        | JournalFact::Fact { turn, .. }
        | JournalFact::Ended { turn, .. }
        | JournalFact::Forgotten { turn }
        | JournalFact::GivenUp { turn }
        | JournalFact::Quiet { turn, .. } => Some(*turn),
        _ => None,
    }
}
