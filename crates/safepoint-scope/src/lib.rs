#![doc = include_str!("../README.md")]

mod alarm;
mod core;
mod demand;
mod fired;
mod halt;
mod handle;
mod node;
mod permit;
mod points;
mod reason;
mod request;
mod scope;
mod stop;
mod sync;
mod task;
mod tracker;

pub use core::{LoggedRequest, StopAck};
pub use demand::{Demand, Mode, Reach};
pub use fired::{Fired, FiredBy};
pub use halt::{Failure, Halt};
pub use handle::StopHandle;
pub use permit::{Effect, Permit};
pub use points::SafePoints;
pub use reason::{Actor, Code, Reason};
pub use request::{DEFAULT_CLEANUP_CAP, Grace, InvalidRequest, Onset, StopRequest, secs};
pub use scope::{Link, Scope};
pub use stop::Stop;
pub use task::{DropHandle, Task, TaskEnd};
pub use tracker::{Label, QuietGuard};
