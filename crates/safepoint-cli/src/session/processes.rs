//! Who runs the commands of a session.

use safepoint_tools::process::{Deadline, Processes};

use crate::{session::survivors, settings::AgentSettings};

/// Who runs the commands of a session, and how long they may live: as long as its lease, if it is stored.
/// First kills and reports what killed runs have left in control groups.
pub(crate) async fn processes(settings: &AgentSettings) -> (Processes, Deadline) {
    survivors::sweep().await;
    let args = &settings.args;
    let keys = args.api_key_env.iter().chain(&args.known.backend_key_env).cloned();
    Processes::new(survivors::mark()).environment(settings.commands.environment(keys)).under_lease()
}
