//! What is asked of the work that a client began whose input is closed, where its protocol has no other end (S13.3).

use std::time::Duration;

use safepoint::{Grace, Reason, StopRequest};

/// How long the work may take to its next safe point: clients end their servers 2 s after that.
pub(crate) const LEAVES: Duration = Duration::from_secs(1);
/// How long it may clean up then: with it a process that ignores what asks it to end has ended within 2 s.
const CLEANS: Duration = Duration::from_millis(500);

/// The stop of what such a client began.
pub(crate) fn stop(reason: Reason) -> StopRequest {
    let request = Grace::try_from(LEAVES).map_or_else(|_zero| StopRequest::now(), StopRequest::graceful);
    request.with_cleanup_cap(CLEANS).with_reason(reason)
}

#[cfg(test)]
mod tests {
    use safepoint::stop::Code;

    use super::*;

    /// S13.3: what ignores all that asks it to end has ended within 2 s.
    #[test]
    fn grace_and_clean_up_come_to_less_than_2_s() {
        let asked = stop(Reason::new(Code::DISCONNECT));
        assert!(LEAVES + asked.cleanup_cap() < Duration::from_secs(2), "{asked:?}");
    }
}
