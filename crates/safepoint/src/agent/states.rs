//! Runs that are kept by the program itself: as one value, or in the program's log (S7.18 to S7.20).

use std::{error::Error as StdError, future::Future, sync::Arc};

use super::runs::resumed;
use crate::{
    agent::Agent,
    contract::log::{Log, MemoryLog},
    definition::identity::AgentIdentity,
    run::{
        Run,
        attempt::AttemptLock,
        driver::Start,
        state::{RunState, RunStateError},
    },
    sync::callback::{self, Panicked},
    value::{
        approval::{Decision, Ruled},
        history::History,
        ids::{ApprovalId, Path, RunId},
        message::UserMessage,
    },
};

impl Agent {
    /// Resumes a run that was saved as a value, in any process, as [`resume`](Self::resume) does. The decisions that
    /// [were added](RunState::with_decision) are applied first.
    ///
    /// A value can be copied, and only one copy may continue. `claim` makes sure of that where you keep the value: it gets
    /// the run and the digest of the value, marks it as taken in one step (compare and set), and says whether it did. It is
    /// called once, before anything else; the run that is returned has not started. When that run ends early again, keep its
    /// new state, whose digest is another one, in place of the old.
    ///
    /// If the process dies after the claim and before a new state is kept, it is unknown what the run did since. Its state
    /// stays claimed; [`resume_unclaimed`](Self::resume_unclaimed) continues it with what is safe. A run that must survive
    /// that belongs in a session or [in a log](Self::run_recorded).
    ///
    /// # Errors
    /// If another agent or other tools began the run, or if `claim` fails or says that the value is taken.
    ///
    /// # Cancel safety
    /// If it is dropped while it waits for `claim`, the value may be claimed, and nothing is resumed.
    pub async fn resume_state<F, Fut>(&self, state: RunState, claim: F) -> Result<Run, RunStateError>
    where
        F: FnOnce(RunId, String) -> Fut,
        Fut: Future<Output = Result<bool, Box<dyn StdError + Send + Sync>>> + Send,
    {
        state.check_agent(&AgentIdentity::of(&self.def))?;
        let (run, digest) = (state.run().clone(), state.digest().to_owned());
        let claimed = callback::run_boxed(|| Box::pin(claim(run, digest))).await;
        let claimed = claimed.unwrap_or_else(|Panicked(why)| Err(format!("it panicked: {why}").into()));
        match claimed {
            Ok(true) => Ok(self.of_state(state, AttemptLock::default())),
            Ok(false) => Err(RunStateError::claimed()),
            Err(source) => Err(RunStateError::claim_failed(source)),
        }
    }

    /// Resumes a copy of a run that nothing keeps another copy from resuming too: the model is called, and calls that only
    /// read or that may be repeated run. Every other call is refused, and so is what a person approved before: the model is
    /// informed of each (S7.19). That holds for all later attempts of this copy.
    ///
    /// # Errors
    /// If another agent or other tools began the run, or if decisions were added.
    pub fn resume_unclaimed(&self, state: RunState) -> Result<Run, RunStateError> {
        state.check_agent(&AgentIdentity::of(&self.def))?;
        if state.has_decisions() {
            return Err(RunStateError::not_claimed());
        }
        Ok(self.of_state(state, AttemptLock::of_a_copy()))
    }

    /// The same run for this agent, which differs from the one that began it: after a change to its instructions or tools.
    /// A call that was approved and has not run is asked about again where its tool has changed (S8.8). The digest is then
    /// another one: keep the new value before you claim it.
    ///
    /// # Errors
    /// If a record cannot be written again.
    pub fn adopt_state(&self, state: RunState) -> Result<RunState, RunStateError> {
        state.bound_to(AgentIdentity::of(&self.def))
    }

    fn of_state(&self, state: RunState, lock: AttemptLock) -> Run {
        let (run, records, decisions) = state.into_parts();
        let log = Arc::new(MemoryLog::of(records));
        Run::new(Arc::clone(&self.def), (run, Path::default()), log, Start::Resume(resumed(decisions), lock))
    }

    /// A run on one input that continues a conversation, as [`run_on`](Self::run_on), whose facts are recorded in `log`, a
    /// log of your own. What is recorded survives this process: [`resume_recorded`](Self::resume_recorded) continues the
    /// run after a crash.
    pub fn run_recorded(
        &self,
        log: Arc<dyn Log>,
        mut history: History,
        input: impl Into<UserMessage>,
    ) -> Run {
        history.close();
        let root = (RunId::fresh(), Path::default());
        Run::new(Arc::clone(&self.def), root, log, Start::on(history, input.into()))
    }

    /// Resumes a run from its log, in any process, as [`resume_with`](Self::resume_with): after a stop, a suspension, a
    /// failure or the death of its process. `run` is the id that its [handle](crate::RunHandle::id) had.
    ///
    /// One process may record: the log must refuse the append of any other (see [`Log`]).
    pub fn resume_recorded(
        &self,
        run: RunId,
        log: Arc<dyn Log>,
        decisions: Vec<(ApprovalId, Decision)>,
    ) -> Run {
        self.resume_ruled(run, log, resumed(decisions))
    }

    /// The same with decisions that say who made them.
    pub(crate) fn resume_ruled(
        &self,
        run: RunId,
        log: Arc<dyn Log>,
        decisions: Vec<(ApprovalId, Ruled)>,
    ) -> Run {
        let start = Start::Resume(decisions, AttemptLock::default());
        Run::new(Arc::clone(&self.def), (run, Path::default()), log, start)
    }
}
