//! Sessions over a real socket and in process: turns, pushes, steers, preempts, stops, and where every item
//! came to rest.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, also in its helpers")]

#[path = "session/accepted.rs"]
mod accepted;
#[path = "session/always.rs"]
mod always;
#[path = "session/announced.rs"]
mod announced;
#[path = "session/aside.rs"]
mod aside;
#[path = "session/at_once.rs"]
mod at_once;
#[path = "session/at_rest.rs"]
mod at_rest;
#[path = "session/basics.rs"]
mod basics;
#[path = "session/behind.rs"]
mod behind;
#[path = "session/blank.rs"]
mod blank;
#[path = "session/callbacks.rs"]
mod callbacks;
#[path = "session/checkpoint.rs"]
mod checkpoint;
#[path = "session/damage.rs"]
mod damage;
#[path = "session/deep.rs"]
mod deep;
#[path = "session/desk.rs"]
mod desk;
#[path = "session/dice.rs"]
mod dice;
#[path = "session/doors.rs"]
mod doors;
#[path = "session/durable.rs"]
mod durable;
#[path = "session/durable_doubt.rs"]
mod durable_doubt;
#[path = "session/durable_faults.rs"]
mod durable_faults;
#[path = "session/elsewhere.rs"]
mod elsewhere;
#[path = "session/expired.rs"]
mod expired;
#[path = "session/field.rs"]
mod field;
#[path = "session/fire.rs"]
mod fire;
#[path = "session/first.rs"]
mod first;
#[path = "session/forgetful.rs"]
mod forgetful;
#[path = "session/fork.rs"]
mod fork;
#[path = "session/fork_damaged.rs"]
mod fork_damaged;
#[path = "session/given.rs"]
mod given;
#[path = "session/given_up.rs"]
mod given_up;
#[path = "session/gone.rs"]
mod gone;
#[path = "session/held.rs"]
mod held;
#[path = "session/hold.rs"]
mod hold;
#[path = "session/item_stops.rs"]
mod item_stops;
#[path = "session/item_stops_stored.rs"]
mod item_stops_stored;
#[path = "session/kept.rs"]
mod kept;
#[path = "session/late.rs"]
mod late;
#[path = "session/lent.rs"]
mod lent;
#[path = "session/lost.rs"]
mod lost;
#[path = "session/meant.rs"]
mod meant;
#[path = "session/mute.rs"]
mod mute;
#[path = "session/next_owner.rs"]
mod next_owner;
#[path = "session/node.rs"]
mod node;
#[path = "session/numbered.rs"]
mod numbered;
#[path = "session/orders.rs"]
mod orders;
#[path = "session/page.rs"]
mod page;
#[path = "session/panics.rs"]
mod panics;
#[path = "session/payments.rs"]
mod payments;
#[path = "session/positions.rs"]
mod positions;
#[path = "session/races.rs"]
mod races;
#[path = "session/restart.rs"]
mod restart;
#[path = "session/still_open.rs"]
mod still_open;
#[path = "session/suspended.rs"]
mod suspended;
#[path = "session/taken_back.rs"]
mod taken_back;
#[path = "session/titled.rs"]
mod titled;
#[path = "session/unbegun.rs"]
mod unbegun;
#[path = "session/walk.rs"]
mod walk;
#[path = "session/whose.rs"]
mod whose;
#[path = "session/world.rs"]
mod world;
