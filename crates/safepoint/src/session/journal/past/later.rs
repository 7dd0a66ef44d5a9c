//! What was done, and where in the journal that stands: so that it is known what came after a place in it.

use std::{collections::HashMap, fmt};

use super::super::JournalLine;
use crate::{
    session::lost_runs::background_begun,
    value::{
        effect::EffectClass,
        event::Fact,
        ids::{CallId, Path, SteerId, TurnId},
        receipt::{CallKind, CallReport, Ending, SideEffect},
        text,
    },
};

/// The most bytes that are shown of a call's arguments.
const SHOWN: usize = 200;

/// A call of a tool that may have changed something.
#[derive(Clone, Debug)]
pub(in crate::session) struct LaterCall {
    name: String,
    args: String,
    effect: SideEffect,
    /// Whether an earlier try of it may have changed something, whatever the last one says.
    is_in_doubt: bool,
    is_of_child: bool,
    began: u64,
    ended: Option<u64>,
}

impl LaterCall {
    /// Whether it did, or may have done, something that the records before `cut` do not tell. A call of a child run that was not
    /// over by then is named, too: it may be one of a run in the background, of which the conversation knows nothing.
    fn is_after(&self, cut: u64) -> bool {
        let was_open = self.is_of_child && self.ended.is_none_or(|ended| ended > cut);
        self.effect != SideEffect::None && (self.began > cut || was_open)
    }

    pub(in crate::session) fn tool(&self) -> &str {
        &self.name
    }
}

impl fmt::Display for LaterCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, args, effect, .. } = self;
        let state = match effect {
            SideEffect::Done => "done",
            SideEffect::Unknown | SideEffect::None => "effects unknown",
        };
        write!(f, "{name} {args} ({state})")
    }
}

/// A run in the background.
struct Background {
    turn: TurnId,
    path: Path,
    began: u64,
    /// Where its end, or the notice of that, stands.
    reported: Option<u64>,
}

/// The calls and the runs in the background, of all turns.
#[derive(Default)]
pub(super) struct Later {
    calls: Vec<LaterCall>,
    places: HashMap<(TurnId, Path, CallId), usize>,
    background: Vec<Background>,
}

impl Later {
    pub(super) fn see(&mut self, position: u64, line: &JournalLine) {
        let JournalLine::Fact { turn, path, fact, .. } = line else { return };
        match &**fact {
            Fact::CallStarted { call_id, work: CallKind::Tool, effect, .. } => {
                let key = (*turn, path.clone(), call_id.clone());
                let known = self.places.get(&key).and_then(|place| self.calls.get_mut(*place));
                match known {
                    // A later attempt tries it again.
                    Some(call) => {
                        call.is_in_doubt |= call.effect != SideEffect::None;
                        (call.began, call.ended, call.effect) = (position, None, SideEffect::Unknown);
                    }
                    None if *effect == EffectClass::ReadOnly => {}
                    None => {
                        self.places.insert(key, self.calls.len());
                        self.calls.extend(begun(position, path, fact));
                    }
                }
            }
            Fact::CallEnded { report, .. } => {
                self.ended((*turn, path, position), report);
                if let Some(path) = background_begun(fact) {
                    let (turn, reported) = (*turn, None);
                    self.background.push(Background { turn, path, began: position, reported });
                }
            }
            Fact::Settled { receipt, .. } if matches!(receipt.ending, Ending::Done | Ending::Failed) => {
                self.reported(position, |run| (run.turn, &run.path) == (*turn, path));
            }
            Fact::SteerTaken { steers, .. } => {
                for steer in steers.iter().filter(|steer| steer.is_notice()) {
                    self.reported(position, |run| notice_of(run) == steer.id);
                }
            }
            _ => {}
        }
    }

    fn ended(&mut self, (turn, path, position): (TurnId, &Path, u64), report: &CallReport) {
        let place = self.places.get(&(turn, path.clone(), report.call_id.clone()));
        if let Some(call) = place.and_then(|place| self.calls.get_mut(*place)) {
            call.ended = Some(position);
            let is_none = report.effect == SideEffect::None;
            call.effect = if is_none && call.is_in_doubt { SideEffect::Unknown } else { report.effect };
        }
    }

    fn reported(&mut self, position: u64, is_it: impl Fn(&Background) -> bool) {
        for run in self.background.iter_mut().filter(|run| run.reported.is_none() && is_it(run)) {
            run.reported = Some(position);
        }
    }

    /// The calls that the records before `cut` do not tell of.
    pub(super) fn calls(self, cut: u64) -> Vec<LaterCall> {
        self.calls.into_iter().filter(|call| call.is_after(cut)).collect()
    }

    /// The runs in the background that began before `cut`, and had not reported by then.
    pub(super) fn background(&self, cut: u64) -> Vec<Path> {
        let open = |run: &&Background| run.began < cut && run.reported.is_none_or(|at| at > cut);
        self.background.iter().filter(open).map(|run| run.path.clone()).collect()
    }
}

fn notice_of(run: &Background) -> SteerId {
    crate::run::steer::Steer::notice_id(format_args!("{}/{}", run.turn, run.path))
}

fn begun(position: u64, path: &Path, fact: &Fact) -> Option<LaterCall> {
    let Fact::CallStarted { name, args, .. } = fact else { return None };
    let (written, name) = (args.to_string(), name.clone());
    let shown = text::head(&written, SHOWN);
    let args = if shown.len() < written.len() { format!("{shown}…") } else { written };
    Some(LaterCall {
        name,
        args,
        effect: SideEffect::Unknown,
        is_in_doubt: false,
        is_of_child: !path.is_root(),
        began: position,
        ended: None,
    })
}
