//! The scripted model server, seen from a raw socket: what it says on each wire, how it breaks, and what it
//! saw.

#![expect(clippy::unwrap_used, reason = "helpers of tests, which clippy does not know as such")]

#[path = "server/faults.rs"]
mod faults;
#[path = "server/gemini.rs"]
mod gemini;
#[path = "server/load.rs"]
mod load;
#[path = "server/peer.rs"]
mod peer;
#[path = "server/responses.rs"]
mod responses;
#[path = "server/watching.rs"]
mod watching;
#[path = "server/wires.rs"]
mod wires;
