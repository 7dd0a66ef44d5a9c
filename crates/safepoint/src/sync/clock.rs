//! The time of day, as what is recorded has it. Nothing in the engine asks the machine for it elsewhere, so that a simulation can give
//! another one.

use jiff::Timestamp;
use safepoint_scope::clock;

/// Now.
pub(crate) fn now() -> Timestamp {
    // Ours begins long before and ends long after any time that a machine has.
    Timestamp::try_from(clock::time_of_day()).unwrap_or(Timestamp::MAX)
}
