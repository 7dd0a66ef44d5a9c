//! A store of your own around another one: what sessions record is also written where your program wants it.

use std::{error::Error, sync::Arc, time::Duration};

use futures_util::TryFutureExt as _;
use safepoint::{
    Agent, Session,
    ids::{ApprovalId, SessionId},
    raw::store::{self as raw, Appended, Durability, Lease, StoreFuture, Write},
    session::{ChatPlanner, SessionStop},
    store::{MemoryStore, OwnerProcess, SessionRow, Store},
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

    pass_on! {
        create(session: raw::NewSession) -> SessionRow; open(session: &SessionId) -> SessionRow;
        list(most: usize, older: Option<raw::PageCursor>) -> Vec<SessionRow>;
        remove(session: &SessionId) -> (); renew(lease: &Lease) -> Lease; release(lease: &Lease) -> ();
        acquire(session: &SessionId, owner: OwnerProcess, ttl: Duration) -> Lease; stamp() -> raw::ChangeMark;
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
