//! Runs that went on in the background of an owner, and ended with it: found in the records, and told to the person and
//! the model, each once.
//!
//! **Invariants**: nobody takes such a run up again; what of it may have happened is named.

use std::collections::HashMap;

use crate::{
    run::steer::Steer,
    value::{
        effect::EffectClass,
        event::Fact,
        ids::{CallId, Path, SteerId, TurnId},
        message::UserMessage,
        receipt::{CallKind, Ending},
    },
};

/// A run that went on in the background, and ended with the owner of its session.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LostRun {
    /// The turn that began it.
    pub turn: TurnId,
    /// Which run of the tree it was.
    pub path: Path,
    /// The tools of its calls that had begun, may have changed something, and have no recorded end.
    pub unknown: Vec<String>,
}

impl LostRun {
    pub(super) fn id(&self) -> SteerId {
        Steer::notice_id(format_args!("{}/{}", self.turn, self.path))
    }

    /// What the model is told, with the next request that is made anyway: the same of the same run, every time.
    pub(super) fn notice(&self) -> Steer {
        let path = &self.path;
        let end = format!(
            "[ended early: what was started in the background as {path} was stopped, or its process ended"
        );
        let said = match &*self.unknown {
            [] => format!("{end}. It does not go on. What it did stands; the rest was not done.]"),
            tools => format!(
                "{end}. It does not go on. Calls of it had begun ({}): their effects are unknown and may have happened. \
                 Check before repeating them.]",
                tools.join(", ")
            ),
        };
        Steer::notice(format_args!("{}/{}", self.turn, self.path), UserMessage::from(said))
    }
}

/// What the records say of runs in the background, as they are read.
#[derive(Default)]
pub(super) struct Aside {
    /// Those whose calls have said that they go on by themselves.
    begun: Vec<(TurnId, Path)>,
    /// How runs below the root have ended; none: not yet.
    ended: HashMap<(TurnId, Path), Option<Ending>>,
    /// Calls that may have changed something, and have no end.
    open: Vec<(TurnId, Path, CallId, String)>,
    /// What the model was told, and in which turn.
    told: HashMap<SteerId, TurnId>,
}

impl Aside {
    pub(super) fn take(&mut self, turn: TurnId, path: &Path, fact: &Fact) {
        match fact {
            Fact::AttemptOpened { .. } if !path.is_root() => {
                self.ended.insert((turn, path.clone()), None);
            }
            Fact::Settled { receipt, .. } if !path.is_root() => {
                self.ended.insert((turn, path.clone()), Some(receipt.ending));
            }
            Fact::CallStarted { call_id, name, effect, work: CallKind::Tool, .. }
                if *effect != EffectClass::ReadOnly && !path.is_root() =>
            {
                self.open.push((turn, path.clone(), call_id.clone(), name.clone()));
            }
            Fact::CallEnded { report, .. } => {
                self.open.retain(|(of, at, call, _)| (*of, at, call) != (turn, path, &report.call_id));
                if let Some(run) = begun_behind(fact) {
                    self.begun.push((turn, run));
                }
            }
            Fact::SteerTaken { steers, .. } => {
                let notices = steers.iter().filter(|steer| steer.is_notice());
                self.told.extend(notices.map(|steer| (steer.id.clone(), turn)));
            }
            _ => {}
        }
    }

    /// The turn is taken out of the conversation, with what it began and what it was told.
    pub(super) fn forget(&mut self, turn: TurnId) {
        self.begun.retain(|(of, _)| *of != turn);
        self.told.retain(|_, of| *of != turn);
    }

    /// Those that ended with their process, or with the session that it owned, and of which the model has not been told.
    pub(super) fn lost(self) -> Vec<LostRun> {
        let Self { begun, ended, open, told } = self;
        let is_cut =
            |run: &(TurnId, Path)| !matches!(ended.get(run), Some(Some(Ending::Done | Ending::Failed)));
        let lost = begun.into_iter().filter(is_cut).map(|(turn, path)| {
            let is_of_it =
                |(of, at, ..): &&(TurnId, Path, CallId, String)| *of == turn && at.is_within(&path);
            let mut unknown: Vec<String> =
                open.iter().filter(is_of_it).map(|(.., name)| name.clone()).collect();
            unknown.sort_unstable();
            unknown.dedup();
            LostRun { turn, path, unknown }
        });
        lost.filter(|lost| !told.contains_key(&lost.id())).collect()
    }
}

/// The run that goes on by itself, since its call ended when it had begun.
pub(super) fn begun_behind(fact: &Fact) -> Option<Path> {
    let Fact::CallEnded { report, .. } = fact else { return None };
    let child = report.child.as_ref().filter(|child| child.work == CallKind::Background);
    child.map(|child| child.path.clone())
}
