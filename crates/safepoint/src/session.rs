//! A session: a conversation with an inbox, turn after turn, that can be talked to while it works (S6).
//!
//! ```no_run
//! # use safepoint::{Agent, Session, session::{ChatPlanner, SessionStop, Policy, Push}};
//! # async fn talk(agent: Agent) {
//! let session: Session<String> = Session::builder(ChatPlanner::new(agent)).start();
//! let first = session.push("What changed last week?".to_owned()).expect("an open session");
//! session.push(Push::new("Only in the docs.".to_owned()).policy(Policy::steer())).expect("room");
//! println!("{:?}", first.outcome().await);
//! session.stop(SessionStop::at_turn_end());
//! let exit = session.done().await;
//! assert!(exit.unhandled().is_empty());
//! # }
//! ```
//!
//! One task owns all of it; every push, stop, timer and turn end is one message to that task, and a pure machine says
//! what follows. That machine is explored exhaustively in the tests.

mod builder;
mod driver;
mod event;
mod exit;
mod fork;
pub(crate) mod handle;
mod inbox;
mod item;
mod item_stop;
pub(crate) mod journal;
mod label;
mod lost_runs;
mod machine;
mod message;
mod node;
mod open;
mod outcome;
mod planner;
mod reader;
mod runs;
mod shared;
mod stop;
mod store_watch;
pub(crate) mod stored_item;
pub(crate) mod stored_stop;
mod ticket;

pub use crate::definition::OnRestart;
pub use builder::SessionBuilder;
pub use event::SessionEvent;
pub use exit::{ExitReason, OpenTurn, SessionExit};
pub use fork::{Fork, Forked};
pub use item::{Item, Policy, Preempt, Push, PushError};
pub use item_stop::{ItemStopAck, ItemStopTicket};
pub use lost_runs::LostRun;
pub use machine::{OnTurnFailure, PlanRequest, PreemptedItems, QueueAfterStop};
pub use node::Node;
pub use open::PendingItems;
pub use outcome::{IfUndelivered, ItemOutcome, PreemptOutcome, RejectReason};
pub use planner::{Arrival, ChatPlanner, Plan, PlanContext, Planner, QueuedItem, TurnPlan};
pub use reader::Reader;
pub use shared::TurnView;
pub use stop::{SessionStop, StopPersistence, StopTicket, StoppedTurn, TurnStopAck, TurnStopTicket};
pub use ticket::{Delivery, Ticket};

use builder::Settings;
use handle::{Session, SessionHandle};
use shared::{SharedSession, ShownTurn};
