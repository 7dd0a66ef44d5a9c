//! What was done, and where in the journal that stands: so that it is known what came after a place in it.

use std::{collections::HashMap, fmt};

use super::super::JournalLine;
use crate::{
    session::lost_runs::background_begun,
    value::{
        effect::EffectClass,
        event::Fact,
        ids::{CallId, Path, SteerId, TurnId},
        receipt::{CallKind, CallReport, Ending, SideEffect, provider_uses},
        text,
    },
};

/// The most bytes that are shown of a call's arguments.
const SHOWN: usize = 200;

/// What stands for the arguments of a call of which only the end can be read.
const UNREAD: &str = "with arguments that cannot be read";

/// A call of a tool that may have changed something.
#[derive(Clone, Debug)]
pub(in crate::session) struct LaterCall {
    name: String,
    args: String,
    state: CallEffect,
    /// Whether an earlier try of it may have changed something, whatever the last one says.
    is_in_doubt: bool,
    is_of_child: bool,
    began: u64,
    ended: Option<u64>,
}

/// What is known of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallEffect {
    Tool(SideEffect),
    /// The provider ran it, to its end or not: what it did outside is not known here.
    Provider {
        has_ended: bool,
    },
    /// It is no call: there are records which cannot be read, and what they say is not known.
    Unread,
}

impl LaterCall {
    /// Whether it did, or may have done, something that the records before `cut` do not tell. A call of a child run that was not
    /// over by then is named, too: it may be one of a run in the background, of which the conversation knows nothing.
    fn is_after(&self, cut: u64) -> bool {
        let was_open = self.is_of_child && self.ended.is_none_or(|ended| ended > cut);
        self.state != CallEffect::Tool(SideEffect::None) && (self.began > cut || was_open)
    }

    /// The tool; none where it is no call.
    pub(in crate::session) fn tool(&self) -> Option<&str> {
        (self.state != CallEffect::Unread).then_some(&self.name)
    }

    /// Records that cannot be read, the first of them here.
    fn unread(first: u64, count: u64) -> Self {
        let records = if count == 1 { "record" } else { "records" };
        Self {
            name: format!("{count} {records} that cannot be read, from record {first} on"),
            args: "what was done then is not known".into(),
            state: CallEffect::Unread,
            is_in_doubt: false,
            is_of_child: false,
            began: first,
            ended: None,
        }
    }
}

impl fmt::Display for LaterCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, args, .. } = self;
        let state = match self.state {
            CallEffect::Unread => return write!(f, "{name}: {args}"),
            CallEffect::Tool(SideEffect::Done) => "done",
            CallEffect::Tool(SideEffect::Unknown | SideEffect::None) => "effects unknown",
            CallEffect::Provider { has_ended: true } => "run by the provider",
            CallEffect::Provider { has_ended: false } => "run by the provider, effects unknown",
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
    /// The first record that cannot be read, and how many there are.
    unread: Option<(u64, u64)>,
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
                        call.is_in_doubt |= call.state != CallEffect::Tool(SideEffect::None);
                        (call.began, call.ended) = (position, None);
                        call.state = CallEffect::Tool(SideEffect::Unknown);
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
            Fact::ModelEnded { message, .. } => {
                let uses = provider_uses(message).into_iter().map(|used| LaterCall {
                    state: CallEffect::Provider { has_ended: used.has_ended },
                    ended: Some(position),
                    ..call(position, path, used.tool, used.input)
                });
                self.calls.extend(uses);
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
        let key = (turn, path.clone(), report.call_id.clone());
        let place = self.places.get(&key);
        let Some(begun) = place.and_then(|place| self.calls.get_mut(*place)) else {
            // Its beginning may be among what cannot be read. What a run did is known by the run's own calls.
            if self.unread.is_some() && report.child.is_none() {
                self.places.insert(key, self.calls.len());
                self.calls.push(LaterCall {
                    state: CallEffect::Tool(report.effect),
                    ended: Some(position),
                    ..call(position, path, &report.name, UNREAD)
                });
            }
            return;
        };
        begun.ended = Some(position);
        let is_none = report.effect == SideEffect::None;
        begun.state =
            CallEffect::Tool(if is_none && begun.is_in_doubt { SideEffect::Unknown } else { report.effect });
    }

    /// The record at this position cannot be read.
    pub(super) fn unreadable(&mut self, position: u64) {
        let (_, count) = self.unread.get_or_insert((position, 0));
        *count += 1;
    }

    fn reported(&mut self, position: u64, is_it: impl Fn(&Background) -> bool) {
        for run in self.background.iter_mut().filter(|run| run.reported.is_none() && is_it(run)) {
            run.reported = Some(position);
        }
    }

    /// The calls that the records before `cut` do not tell of, and last that some of them cannot be read.
    pub(super) fn calls(self, cut: u64) -> Vec<LaterCall> {
        let unread = self.unread.map(|(first, count)| LaterCall::unread(first, count));
        self.calls.into_iter().filter(|call| call.is_after(cut)).chain(unread).collect()
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
    Some(call(position, path, name, &args.to_string()))
}

/// A call whose end is not known.
fn call(position: u64, path: &Path, name: &str, args: &str) -> LaterCall {
    let shown = text::head(args, SHOWN);
    let args = if shown.len() < args.len() { format!("{shown}…") } else { args.to_owned() };
    LaterCall {
        name: name.to_owned(),
        args,
        state: CallEffect::Tool(SideEffect::Unknown),
        is_in_doubt: false,
        is_of_child: !path.is_root(),
        began: position,
        ended: None,
    }
}
