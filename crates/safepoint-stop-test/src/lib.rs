//! What does a stop really do? Point this at an agent, a program or a library by an adapter, and it plays the model, stops the agent in
//! its own documented way at each moment where stops fail, and compares what was said with what was so.
//!
//! [`judge`] is pure: from [`Facts`] and [`Claims`] to one [`Verdict`]. [`play`] is one trial, [`SCENARIOS`] are the moments.

mod claims;
mod door;
mod facts;
mod guard;
mod judge;
mod report;
mod scenario;
mod stage;
mod trial;
mod verdict;

pub use claims::{Claims, Said};
pub use door::{RequestFile, ScreenTexts, Target};
pub use facts::{Facts, Next, Work, WorkEnd, WorkKind};
pub use guard::Guard;
pub use judge::{Judged, VerdictLimits, judge};
#[cfg(any(test, feature = "schema"))]
pub use report::report_schema;
pub use report::{Report, Row};
pub use scenario::{CONTROL, SCENARIOS, Scenario, StopMoment, UNPLAYED};
pub use stage::StageError;
pub use trial::{Trial, play};
pub use verdict::Verdict;
