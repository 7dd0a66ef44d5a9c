//! The exit codes of a program that runs an agent: one table, for a `main` that returns an outcome and for the command line.

use safepoint_scope::{Code, Reason};

use super::{Ending, ReasonReport, Receipt, StopReport};

/// The run is done.
pub const DONE: u8 = 0;
/// The run failed, or its answer could not be written.
pub const FAILED: u8 = 1;
/// The run was stopped: by a limit, a lost reader, another process, a tool.
pub const STOPPED: u8 = 10;
/// The run is suspended: it waits for a decision.
pub const SUSPENDED: u8 = 11;
/// The run was stopped by SIGINT.
pub const SIGINT: u8 = 130;
/// The run was stopped by SIGTERM.
pub const SIGTERM: u8 = 143;

impl Receipt {
    /// The code with which a program ends for a run that ended so: that of `safepoint run`.
    ///
    /// | code | ending |
    /// |---|---|
    /// | 0 | done |
    /// | 1 | failed |
    /// | 10 | stopped |
    /// | 11 | suspended |
    /// | 130 | stopped, first by SIGINT ([`Reason::sigint`]) |
    /// | 143 | stopped, first by SIGTERM ([`Reason::sigterm`]) |
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self.ending {
            Ending::Done => DONE,
            Ending::Failed => FAILED,
            Ending::Suspended => SUSPENDED,
            Ending::Stopped => self.stop.as_ref().map_or(STOPPED, of_stop),
        }
    }
}

/// The first request counts: each later one only makes the stop sooner.
fn of_stop(stop: &StopReport) -> u8 {
    let first = stop.requests.first().map_or(&stop.reason, |request| &request.reason).root();
    match first {
        reason if says(reason, &Reason::sigint()) => SIGINT,
        reason if says(reason, &Reason::sigterm()) => SIGTERM,
        _ => STOPPED,
    }
}

fn says(reason: &ReasonReport, signal: &Reason) -> bool {
    reason.code == Code::USER.as_str() && reason.text == signal.text()
}
