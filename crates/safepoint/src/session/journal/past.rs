//! What a session was at the end of a turn, and what was done after that turn (S7.21).

use std::collections::HashMap;

use super::{JournalLine, PAGE, recover::Fold};
use crate::{
    contract::store::{Error, Store, guarded},
    value::{
        effect::EffectClass,
        event::Fact,
        history::History,
        ids::{CallId, Path, SessionId, TurnId},
        receipt::SideEffect,
        text,
    },
};

/// The most bytes that are shown of a call's arguments.
const SHOWN: usize = 200;

/// A session at the end of a turn.
pub(in crate::session) struct Past {
    pub(in crate::session) turn: TurnId,
    /// The conversation, closed.
    pub(in crate::session) history: History,
    /// The calls of later turns that changed something, or may have: what they did stands.
    pub(in crate::session) later: Vec<LaterCall>,
}

/// A call that was begun later.
#[derive(Clone, Debug)]
pub(in crate::session) struct LaterCall {
    turn: TurnId,
    name: String,
    args: String,
    effect: SideEffect,
}

/// Reads the session as it was at the end of turn `at`, or of its last turn that has ended. It needs no lease and changes
/// nothing; an owner may add more meanwhile, which is not seen.
pub(in crate::session) async fn past(
    store: &dyn Store,
    session: &SessionId,
    at: Option<TurnId>,
) -> Result<Past, Error> {
    let (mut fold, mut ends, mut calls) = (Fold::default(), Ends::default(), CallsOfTurns::default());
    let mut from = Some(0);
    while let Some(position) = from {
        let page = guarded::read(|| store.read(session, position, PAGE)).await?;
        for entry in page.entries {
            let damaged = |damage| Error::Damaged(session.clone(), damage);
            let record = entry.record.map_err(damaged)?;
            if record.is_checkpoint() {
                continue;
            }
            let line = JournalLine::read(entry.position, &record).map_err(damaged)?;
            calls.see(&line);
            let begins = matches!(line, JournalLine::Planned { .. });
            fold.take(entry.position, line);
            if begins {
                ends.see(at, fold.turn_before());
            }
        }
        from = page.next;
    }
    ends.see(at, fold.ended_turn());
    let (turn, history) = ends.found.ok_or_else(|| Error::NoTurn(session.clone(), at))?;
    Ok(Past { turn, history, later: calls.after(turn) })
}

/// The end of the turn that is sought.
#[derive(Default)]
struct Ends {
    found: Option<(TurnId, History)>,
}

impl Ends {
    /// A turn has ended: the one that is sought, or the last one so far.
    fn see(&mut self, at: Option<TurnId>, ended: Option<(TurnId, History)>) {
        if let Some(ended) = ended.filter(|(turn, _)| at.is_none_or(|at| at == *turn)) {
            self.found = Some(ended);
        }
    }
}

/// The calls of all turns that may change something.
#[derive(Default)]
struct CallsOfTurns {
    begun: Vec<LaterCall>,
    places: HashMap<(TurnId, Path, CallId), usize>,
}

impl CallsOfTurns {
    fn see(&mut self, line: &JournalLine) {
        let JournalLine::Fact { turn, path, fact, .. } = line else { return };
        match &**fact {
            Fact::CallStarted { call_id, name, args, effect, .. } if *effect != EffectClass::ReadOnly => {
                let args = text::head(&args.to_string(), SHOWN).to_owned();
                let call = LaterCall { turn: *turn, name: name.clone(), args, effect: SideEffect::Unknown };
                // A later attempt of the turn may begin the same call again.
                let place =
                    *self.places.entry((*turn, path.clone(), call_id.clone())).or_insert(self.begun.len());
                match self.begun.get_mut(place) {
                    Some(known) => *known = call,
                    None => self.begun.push(call),
                }
            }
            Fact::CallEnded { report, .. } => {
                let place = self.places.get(&(*turn, path.clone(), report.call_id.clone()));
                if let Some(call) = place.and_then(|place| self.begun.get_mut(*place)) {
                    // What a child run did is listed by its own calls.
                    call.effect = if report.child.is_some() { SideEffect::None } else { report.effect };
                }
            }
            _ => {}
        }
    }

    fn after(self, turn: TurnId) -> Vec<LaterCall> {
        let changed = |call: &LaterCall| call.turn > turn && call.effect != SideEffect::None;
        self.begun.into_iter().filter(changed).collect()
    }
}

impl std::fmt::Display for LaterCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { name, args, effect, .. } = self;
        let state = match effect {
            SideEffect::Done => "done",
            SideEffect::Unknown | SideEffect::None => "effects unknown",
        };
        write!(f, "{name} {args} ({state})")
    }
}
