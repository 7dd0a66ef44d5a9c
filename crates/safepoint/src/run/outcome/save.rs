//! From an outcome to a value that can be kept (S7.18).

use std::collections::HashMap;

use super::{Outcome, Persisted};
use crate::{
    contract::log::{self, RunRecord},
    definition::identity::AgentIdentity,
    run::state::{RunState, RunStateError},
    value::{event::Fact, ids::Path, receipt::Ending},
};

impl<T> Outcome<T> {
    /// The run as one value, to be kept anywhere and resumed in any process by
    /// [`Agent::resume_state`](crate::Agent::resume_state). For a run without a session and without a log of the program: those
    /// are kept where they are.
    ///
    /// # Errors
    /// If the run is done, if not all of it is recorded, or if it is kept elsewhere.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn state(&self) -> Result<RunState, RunStateError> {
        let ended = self.ended();
        match &ended.persisted {
            Persisted::Yes => {}
            Persisted::No(why) => return Err(RunStateError::not_recorded(why.clone())),
            Persisted::Unknown => return Err(RunStateError::not_recorded("the log did not answer in time")),
        }
        let of = ended.def.as_ref().filter(|_| ended.log.lasts_only_here() && ended.receipt.path.is_root());
        let Some(def) = of else { return Err(RunStateError::kept_elsewhere()) };
        let records = log::read(&*ended.log).await.map_err(RunStateError::not_recorded)?;
        check_ends(&records)?;
        RunState::of(ended.receipt.run.clone(), AgentIdentity::of(def.agent()), records)
    }
}

/// That the newest attempt of the run has ended, with all that it began, and something is left to resume.
fn check_ends(records: &[RunRecord]) -> Result<(), RunStateError> {
    let ends: HashMap<&Path, Option<Ending>> = records
        .iter()
        .map(|RunRecord { path, fact }| match &**fact {
            Fact::Settled { receipt, .. } => (path, Some(receipt.ending)),
            _ => (path, None),
        })
        .collect();
    if let Some(path) = ends.iter().find_map(|(path, end)| end.is_none().then_some(path)) {
        return Err(RunStateError::still_running(path));
    }
    match ends.get(&Path::default()) {
        Some(Some(Ending::Done)) => Err(RunStateError::done()),
        _ => Ok(()),
    }
}
