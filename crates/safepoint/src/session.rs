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

mod asking;
mod builder;
mod deciding;
mod door;
mod driver;
pub(crate) mod envelope;
mod event;
mod exit;
mod family;
pub(crate) mod handle;
mod inbox;
pub(crate) mod intent;
mod item;
mod journal;
pub(crate) mod lookback;
mod lost;
mod machine;
mod mail;
mod open;
pub(crate) mod outside;
mod planner;
mod reader;
mod stop;
mod view;
mod watch;
mod words;

pub use crate::definition::OnRestart;
pub use asking::{StopPersistence, StopTicket, TurnStopAck, TurnStopTicket};
pub use builder::SessionBuilder;
pub use event::SessionEvent;
pub use exit::{ExitReason, OpenTurn, SessionExit};
pub use item::{Delivery, Item, Policy, Preempt, Push, PushError, Ticket};
pub use lost::LostRun;
pub use machine::{OnTurnFailure, PlanRequest, PreemptedItems};
pub use open::PendingItems;
pub use planner::{Arrival, ChatPlanner, Plan, PlanContext, Planner, QueuedItem, TurnPlan};
pub use reader::Reader;
pub use stop::{SessionStop, StoppedTurn};
pub use view::TurnView;
pub use words::{IfUndelivered, ItemOutcome, PreemptOutcome, RejectReason};

use builder::Settings;
use handle::{Session, SessionHandle};
use view::SharedSession;
