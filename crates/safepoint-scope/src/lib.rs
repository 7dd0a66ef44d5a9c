#![doc = include_str!("../README.md")]

pub mod clock;
mod halt;
mod reason;
mod request;
mod scope;
pub mod simulation;
mod sync;

pub use halt::{Failure, Halt};
pub use reason::{Actor, Code, Reason};
pub use request::{
    DEFAULT_CLEANUP_CAP, Grace, InvalidRequest, Onset, StopRequest,
    demand::{Demand, Mode, Reach},
    points::SafePoints,
    secs,
};
pub use scope::{
    Link, Scope,
    fired::{Fired, FiredBy},
    handle::StopHandle,
    logged::{LoggedRequest, StopAck},
    node::QuietGuard,
    permit::{Effect, Permit},
    stop::Stop,
    task::{DropHandle, Task, TaskEnd},
    tracker::Label,
};
