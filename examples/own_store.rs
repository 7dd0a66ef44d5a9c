//! A store of your own around another one: what sessions record is also written where your program wants it.

use std::{error::Error, sync::Arc};

use futures_util::TryFutureExt as _;
use safepoint::{
    Agent, Session,
    ids::{ApprovalId, NodeId, SessionId},
    raw::store::*,
    session::{ChatPlanner, SessionStop},
    store::{MemoryStore, NewNode, OwnerProcess, SessionRow, Store},
};
use safepoint_models::openai;

/// The other store decides: what it refuses has not happened, and is not written down.
#[derive(Debug)]
pub(crate) struct Audited(pub(crate) Arc<dyn Store>);

type To<'s, T> = StoreFuture<'s, T>;
macro_rules! pass_on {
    ($($name:ident($($argument:ident: $type:ty),*) -> $answer:ty;)*) => {
        $(fn $name(&self, $($argument: $type),*) -> $answer { self.0.$name($($argument),*) })*
    };
}

impl Store for Audited {
    fn append(&self, lease: &Lease, writes: Vec<Write>, class: Durability) -> StoreFuture<'_, Appended> {
        let appended = self.0.append(lease, writes, class);
        Box::pin(appended.inspect_ok(|done| (done.first..done.next).for_each(|at| println!("kept {at}"))))
    }

    pass_on! {
        create(session: NewSession) -> To<'_, SessionRow>; open(session: &SessionId) -> To<'_, SessionRow>;
        list(most: usize, older: Option<PageCursor>) -> To<'_, Vec<SessionRow>>; remove(session: &SessionId) -> To<'_, ()>;
        join(node: NewNode) -> To<'_, NodeLease>; beat(node: &NodeLease, load: u32) -> To<'_, NodeState>; remove_if_at_rest(session: &SessionId) -> To<'_, bool>;
        leave(node: &NodeId, how: Leaving) -> To<'_, ()>; nodes() -> To<'_, Vec<NodeRow>>; changes(node: &NodeLease) -> ChangeStream;
        bury() -> To<'_, Vec<NodeId>>; due(most: usize, pools: Vec<String>) -> To<'_, Vec<Due>>; accepted(session: &SessionId, item: u64) -> To<'_, Option<jiff::Timestamp>>;
        acquire(session: &SessionId, node: &NodeLease) -> To<'_, Lease>; release(lease: &Lease, seen: Changes, rest: Rest) -> To<'_, ()>;
        unpark(session: &SessionId) -> To<'_, ()>; tenures(session: &SessionId) -> To<'_, Vec<Tenure>>; image(session: &SessionId) -> To<'_, SessionImage>;
        restore(image: SessionImage, over: OverImage) -> To<'_, SessionRow>; ask_stops(among: Among, stop: StopIntent) -> To<'_, u64>; read(session: &SessionId, from: u64, most: usize) -> To<'_, Page>;
        check(session: &SessionId) -> To<'_, ChainCheck>; inbox(session: &SessionId) -> To<'_, Vec<InboxRow>>;
        push(session: &SessionId, item: NewItem) -> To<'_, Pushed>; withdraw(session: &SessionId, item: u64) -> To<'_, Withdrawn>;
        ask_stop(session: &SessionId, stop: StopIntent) -> To<'_, u64>; stops(session: &SessionId, after: u64) -> To<'_, Vec<StopRow>>;
        decide(session: &SessionId, decision: NewDecision) -> To<'_, DecisionResult>;
        approval(session: &SessionId, id: &ApprovalId) -> To<'_, Option<ApprovalRow>>;
        open_approvals(most: usize, after: Option<ApprovalCursor>) -> To<'_, Vec<SessionApproval>>;
        approvals(session: &SessionId) -> To<'_, Vec<ApprovalRow>>; notice(session: &SessionId) -> To<'_, Changes>;
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let builder = Session::builder(ChatPlanner::new(Agent::builder(openai::from_env("gpt-5.2")?).build()));
    let store = Arc::new(Audited(Arc::new(MemoryStore::default())));
    let session: Session<String> = builder.open(store, "diary".into(), OwnerProcess::here()).await?;
    println!("{:?}", session.push("Hello?".to_owned()).map_err(|error| error.to_string())?.outcome().await);
    session.stop(SessionStop::at_turn_end());
    session.done().await;
    Ok(())
}
