//! The assembled product: real sockets, every wire, every phase of a stop. Closed by I1–I6.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, also in its helpers")]

#[path = "e2e/answer_schemas.rs"]
mod answer_schemas;
#[path = "e2e/approvals.rs"]
mod approvals;
#[path = "e2e/background.rs"]
mod background;
#[path = "e2e/before.rs"]
mod before;
#[path = "e2e/burst.rs"]
mod burst;
#[path = "e2e/children.rs"]
mod children;
#[path = "e2e/delays.rs"]
mod delays;
#[path = "e2e/elsewhere.rs"]
mod elsewhere;
#[path = "e2e/failover.rs"]
mod failover;
#[path = "e2e/failures.rs"]
mod failures;
#[path = "e2e/faults.rs"]
mod faults;
#[path = "e2e/fence.rs"]
mod fence;
#[path = "e2e/field.rs"]
mod field;
#[path = "e2e/floods.rs"]
mod floods;
#[path = "e2e/history.rs"]
mod history;
#[path = "e2e/partials.rs"]
mod partials;
#[path = "e2e/parts.rs"]
mod parts;
#[path = "e2e/points.rs"]
mod points;
#[path = "e2e/program.rs"]
mod program;
#[path = "e2e/records.rs"]
mod records;
#[path = "e2e/replay.rs"]
mod replay;
#[path = "e2e/steer.rs"]
mod steer;
#[path = "e2e/stops.rs"]
mod stops;
#[path = "e2e/swallow.rs"]
mod swallow;
#[path = "e2e/typed.rs"]
mod typed;
#[path = "e2e/window.rs"]
mod window;
#[path = "e2e/wires.rs"]
mod wires;
#[path = "e2e/world.rs"]
mod world;
