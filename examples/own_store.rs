//! A store of your own around another one: what sessions record is also written where your program wants it.

use std::{error::Error, sync::Arc};

use futures_util::TryFutureExt as _;
use safepoint::{
    Agent, Session,
    ids::{ApprovalId, NodeId, SessionId},
    raw::store::{self as raw, Appended, Durability, Lease, StoreFuture, Write},
    session::{ChatPlanner, SessionStop},
    store::{MemoryStore, NewNode, OwnerProcess, SessionRow, Store},
};
use safepoint_models::openai;

/// The other store decides: what it refuses has not happened, and is not written down.
#[derive(Debug)]
pub(crate) struct Audited(pub(crate) Arc<dyn Store>);

macro_rules! pass_on {
    ($($name:ident($($argument:ident: $type:ty),*) -> $answer:ty;)*) => {
        $(fn $name(&self, $($argument: $type),*) -> StoreFuture<'_, $answer> {
            self.0.$name($($argument),*)
        })*
    };
}

impl Store for Audited {
    fn append(&self, lease: &Lease, writes: Vec<Write>, class: Durability) -> StoreFuture<'_, Appended> {
        let appended = self.0.append(lease, writes, class);
        Box::pin(appended.inspect_ok(|done| (done.first..done.next).for_each(|at| println!("kept {at}"))))
    }

    fn changes(&self, node: &raw::NodeLease) -> raw::ChangeStream {
        self.0.changes(node)
    }

    pass_on! {
        create(session: raw::NewSession) -> SessionRow; open(session: &SessionId) -> SessionRow;
        list(most: usize, older: Option<raw::PageCursor>) -> Vec<SessionRow>;
        remove(session: &SessionId) -> (); join(node: NewNode) -> raw::NodeLease;
        beat(node: &raw::NodeLease, load: u32) -> (); leave(node: &NodeId, how: raw::Leaving) -> ();
        nodes() -> Vec<raw::NodeRow>; bury() -> Vec<NodeId>; due(most: usize) -> Vec<raw::Due>;
        acquire(session: &SessionId, node: &raw::NodeLease) -> Lease;
        release(lease: &Lease, seen: raw::Changes, rest: raw::Rest) -> (); unpark(session: &SessionId) -> ();
        tenures(session: &SessionId) -> Vec<raw::Tenure>;
        ask_stops(among: raw::Among, stop: raw::StopIntent) -> u64;
        read(session: &SessionId, from: u64, most: usize) -> raw::Page;
        check(session: &SessionId) -> raw::ChainCheck; inbox(session: &SessionId) -> Vec<raw::InboxRow>;
        push(session: &SessionId, item: raw::NewItem) -> raw::Pushed;
        withdraw(session: &SessionId, item: u64) -> raw::Withdrawn;
        ask_stop(session: &SessionId, stop: raw::StopIntent) -> u64;
        stops(session: &SessionId, after: u64) -> Vec<raw::StopRow>;
        decide(session: &SessionId, decision: raw::NewDecision) -> raw::DecisionResult;
        approval(session: &SessionId, id: &ApprovalId) -> Option<raw::ApprovalRow>;
        approvals(session: &SessionId) -> Vec<raw::ApprovalRow>; notice(session: &SessionId) -> raw::Changes;
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let builder = Session::builder(ChatPlanner::new(Agent::builder(openai::from_env("gpt-5.2")?).build()));
    let store = Arc::new(Audited(Arc::new(MemoryStore::default())));
    let session: Session<String> = builder.open(store, "diary".into(), OwnerProcess::here()).await?;
    let ticket = session.push("Hello?".to_owned()).map_err(|error| error.to_string())?;
    println!("{:?}", ticket.outcome().await);
    session.stop(SessionStop::at_turn_end());
    session.done().await;
    Ok(())
}
