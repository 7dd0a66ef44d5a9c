//! Background runs that ended with their session's owner: found in the records, and reported once to the user
//! and once to the model.
//!
//! **Invariants**: such a run is never resumed; calls that may have had effects are named.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

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

/// A background run that ended with the owner of its session.
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

    /// The notice for the model, sent with the next request that is made anyway. The same run always gives
    /// the same notice.
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

/// What the records say of background runs, as they are read. A checkpoint of the journal keeps it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct FoldedBackground {
    /// Runs whose calls have reported them as running in the background.
    begun: Vec<(TurnId, Path)>,
    /// How runs below the root have ended; `None`: not yet.
    #[serde(with = "crate::value::json::pairs")]
    ended: BTreeMap<(TurnId, Path), Option<Ending>>,
    /// Calls that may have changed something, and have no end.
    open: Vec<(TurnId, Path, CallId, String)>,
    /// The notices that the model got, and in which turn.
    #[serde(with = "crate::value::json::pairs")]
    notified: BTreeMap<SteerId, TurnId>,
}

impl FoldedBackground {
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
                if let Some(run) = background_begun(fact) {
                    self.begun.push((turn, run));
                }
            }
            Fact::SteerTaken { steers, .. } => {
                let notices = steers.iter().filter(|steer| steer.is_notice());
                self.notified.extend(notices.map(|steer| (steer.id.clone(), turn)));
            }
            _ => {}
        }
    }

    /// How much there is of it.
    pub(super) fn entries(&self) -> usize {
        self.begun.len() + self.ended.len() + self.open.len() + self.notified.len()
    }

    /// Removes a turn from the conversation, with the runs that it began and the notices that it got.
    pub(super) fn forget(&mut self, turn: TurnId) {
        self.begun.retain(|(of, _)| *of != turn);
        self.notified.retain(|_, of| *of != turn);
    }

    /// The runs that ended with their process or session, and that the model has not been notified of.
    pub(super) fn lost(self) -> Vec<LostRun> {
        let Self { begun, ended, open, notified } = self;
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
        lost.filter(|lost| !notified.contains_key(&lost.id())).collect()
    }
}

/// The run that continues in the background after its call ended.
pub(super) fn background_begun(fact: &Fact) -> Option<Path> {
    let Fact::CallEnded { report, .. } = fact else { return None };
    let child = report.child.as_ref().filter(|child| child.work == CallKind::Background);
    child.map(|child| child.path.clone())
}
