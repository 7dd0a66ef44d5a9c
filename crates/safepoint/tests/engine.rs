//! The engine in process, on a controlled clock: contracts, outcomes, events, hooks.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, also in its helpers")]

#[path = "engine/ahead.rs"]
mod ahead;
#[path = "engine/asked_here.rs"]
mod asked_here;
#[path = "engine/before_the_outcome.rs"]
mod before_the_outcome;
#[path = "engine/blocking.rs"]
mod blocking;
#[path = "engine/children.rs"]
mod children;
#[path = "engine/children_background.rs"]
mod children_background;
#[path = "engine/children_crashes.rs"]
mod children_crashes;
#[path = "engine/children_stops.rs"]
mod children_stops;
#[path = "engine/children_waiting.rs"]
mod children_waiting;
#[path = "engine/compaction.rs"]
mod compaction;
#[path = "engine/contracts.rs"]
mod contracts;
#[path = "engine/costs.rs"]
mod costs;
#[path = "engine/decisions.rs"]
mod decisions;
#[path = "engine/doors.rs"]
mod doors;
#[path = "engine/early_decisions.rs"]
mod early_decisions;
#[path = "engine/elsewhere.rs"]
mod elsewhere;
#[path = "engine/endurance.rs"]
mod endurance;
#[path = "engine/guards.rs"]
mod guards;
#[path = "engine/hook_changes.rs"]
mod hook_changes;
#[path = "engine/hooks.rs"]
mod hooks;
#[path = "engine/limits.rs"]
mod limits;
#[path = "engine/outcomes.rs"]
mod outcomes;
#[path = "engine/panics.rs"]
mod panics;
#[path = "engine/positions.rs"]
mod positions;
#[path = "engine/read_here.rs"]
mod read_here;
#[path = "engine/rest.rs"]
mod rest;
#[path = "engine/results.rs"]
mod results;
#[path = "engine/run_window.rs"]
mod run_window;
#[path = "engine/settings.rs"]
mod settings;
#[path = "engine/states.rs"]
mod states;
#[path = "engine/streams.rs"]
mod streams;
#[path = "engine/text_filters.rs"]
mod text_filters;
#[path = "engine/too_long.rs"]
mod too_long;
#[path = "engine/tools.rs"]
mod tools;
#[path = "engine/unsent.rs"]
mod unsent;
#[path = "engine/which.rs"]
mod which;

#[path = "engine/world.rs"]
mod world;
