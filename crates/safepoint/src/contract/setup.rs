//! What instructions and tools that are made anew for each run are made from.

use safepoint_scope::Failure;

use super::extensions::RunValues;
use crate::value::ids::RunId;

/// A run that is about to begin, for [`AgentBuilder::system_with`](crate::AgentBuilder::system_with) and
/// [`AgentBuilder::tools_with`](crate::AgentBuilder::tools_with).
#[derive(Debug)]
pub struct RunSetup {
    run: RunId,
    values: RunValues,
}

impl RunSetup {
    pub(crate) fn new(run: RunId, values: RunValues) -> Self {
        Self { run, values }
    }

    /// The run's id.
    #[must_use]
    pub fn run_id(&self) -> &RunId {
        &self.run
    }

    /// The value of this type in the run's context, as [`ToolContext::get`](crate::ToolContext::get) finds it.
    ///
    /// # Errors
    /// A failure that names the type and says how to give one.
    pub fn get<T: Send + Sync + 'static>(&self) -> Result<&T, Failure> {
        self.values.get()
    }
}
