//! Which node opens a session that wants an owner.
//!
//! ```text
//! what gives an owner something to do ─▶ `Store::due`                     (the truth, in the same transaction)
//! each node: wake_due ─▶ Placement::wake ─▶ … ─▶ Placement::serve ─▶ Taker::take ─▶ `Store::acquire`   (the authority)
//! ```
//!
//! A placement is a hint (S7.61): a wake may be lost, come twice, come late, or come to the wrong node. The store knows what wants an owner, and
//! decides who becomes it. A program on one machine needs nothing of this crate but [`Here`], which hands each wake to its own
//! process. One that runs on many machines can put a queue between them: [`QueuePlacement`], by [`WakeQueue`]s of this crate or of
//! the program. A session waits for no queue: the node that finds it due takes it without one (S7.70).

mod due;
#[cfg(feature = "graphile")]
mod graphile;
mod here;
mod placement;
mod queue;
#[cfg(feature = "restate")]
mod restate;
mod taker;

pub use due::wake_due;
#[cfg(feature = "graphile")]
pub use graphile::GraphileQueue;
pub use here::Here;
pub use placement::{Placement, PlacementError};
pub use queue::{QueuePlacement, WakeQueue};
#[cfg(feature = "restate")]
pub use restate::{RestateOptions, RestateQueue};
pub use taker::{NodeCapacity, TakeResult, Taker, Wake};
