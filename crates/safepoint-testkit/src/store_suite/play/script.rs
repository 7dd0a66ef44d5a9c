//! The script: a life of sessions and nodes, as steps.

use std::time::Duration;

use jiff::Timestamp;
use safepoint::{
    ids::SessionId,
    raw::store::{
        Among, ApprovalClose, ApprovalsToWithdraw, Durability, Leaving, Liveness, NewApproval, NewDecision,
        Rest, StopIntent, Write,
    },
};

use super::{
    super::{item, record},
    PlayStep, StoreQuery, Which,
};

/// A life of sessions in which every request occurs, and some that are refused.
#[must_use]
pub fn script() -> Vec<PlayStep> {
    let [a, b, c] = ["a", "b", "c"].map(SessionId::from);
    let looks = looks().map(|look| PlayStep::Look(a.clone(), look));
    [first_owner(&a, &b, c), questions(&a), second_owner(&a, b), no_owner(&a), looks.into()].concat()
}

/// The newest holder of a session writes.
fn write(session: &SessionId, writes: Vec<Write>) -> PlayStep {
    PlayStep::Append(session.clone(), Which::Newest, writes, Durability::Durable)
}

fn stop(says: &str, approvals: ApprovalsToWithdraw) -> StopIntent {
    StopIntent { bytes: says.as_bytes().to_vec(), approvals }
}

/// A session has an owner, which begins a turn, and so has another one.
fn first_owner(a: &SessionId, b: &SessionId, c: SessionId) -> Vec<PlayStep> {
    use PlayStep::{Acquire, Append, AskStop, Create, Due, Join, Pass, Push, Withdraw};
    let a = || a.clone();
    let begins =
        vec![Write::AtWork, Write::StopSeen(1), Write::TakeItem(1), Write::Record(record("turn planned"))];
    let elsewhere = vec![Write::Record(record("elsewhere")), Write::Label("x".into())];
    vec![
        Create(a(), vec![]),
        Push(a(), item("1", "hello")),
        AskStop(a(), stop("early", ApprovalsToWithdraw::Stay)),
        Due(10),
        Join(1),
        Acquire(a(), 1),
        write(&a(), begins),
        Append(a(), Which::Newest, vec![Write::Record(record("model started"))], Durability::Recorded),
        Push(a(), item("2", "and this")),
        Push(a(), item("2", "and this")),
        Push(a(), item("3", "never mind")),
        Withdraw(a(), 3),
        Pass(Duration::from_secs(1)),
        Create(b.clone(), vec![item("1", "from the beginning"), item("2", "too")]),
        Create(b.clone(), vec![item("3", "there is such a session")]),
        Create(c, ["1", "2", "3", "4"].map(|id| item(id, "one too many")).into()),
        Acquire(b.clone(), 1),
        write(b, elsewhere),
    ]
}

/// It asks, and is answered or not.
fn questions(a: &SessionId) -> Vec<PlayStep> {
    use PlayStep::{AskStop, Beat, Decide, Push};
    let close = |id: &str, how| Write::CloseApproval(id.into(), how);
    let decide = |id: &str| Decide(a.clone(), decision(id, "ann"));
    vec![
        write(a, vec![ask("q"), ask("r"), ask("s"), Write::Label("suspended".into())]),
        decide("q"),
        write(a, vec![close("q", ApprovalClose::Used), Write::Record(record("call started"))]),
        write(a, vec![close("r", ApprovalClose::Withdrawn)]),
        decide("r"),
        AskStop(a.clone(), stop("the run", ApprovalsToWithdraw::Withdrawn)),
        decide("s"),
        Beat(1),
        write(a, vec![Write::TakeItem(9), Write::Record(record("refused"))]),
        write(a, vec![Write::PutBackItem(1), Write::TakeItem(2), Write::RemoveItem(2), Write::CloseInbox]),
        Push(a.clone(), item("4", "too late")),
    ]
}

/// Its owner dies, and another one takes it and gives it back.
fn second_owner(a: &SessionId, b: SessionId) -> Vec<PlayStep> {
    use PlayStep::{Acquire, Append, Beat, Due, Join, Release, Remove, RemoveIfAtRest, Say};
    let resumes = vec![
        Write::OpenInbox,
        Write::Title("a title".into()),
        Write::Record(record("resumed")),
        Write::AtRest,
    ];
    vec![
        Join(2),
        Say(1, Liveness::Dead),
        Acquire(a.clone(), 2),
        Beat(1),
        RemoveIfAtRest(a.clone()),
        Append(a.clone(), Which::First, vec![Write::Record(record("late"))], Durability::Durable),
        write(a, resumes),
        Due(10),
        Release(a.clone(), Which::Newest, Rest::Nothing),
        Remove(b),
    ]
}

/// It has no owner, and others want something of it.
fn no_owner(a: &SessionId) -> Vec<PlayStep> {
    use PlayStep::{Acquire, AskStops, Bury, Due, Image, Leave, Push, Restore, Unpark};
    vec![
        Unpark(a.clone()),
        AskStops(Among::Held, stop("all", ApprovalsToWithdraw::Stay)),
        Leave(2, Leaving::Draining),
        Acquire(a.clone(), 2),
        Due(10),
        Due(10),
        Leave(2, Leaving::Gone),
        Bury,
        Image(a.clone()),
        Restore(a.clone()),
        // Last comes what a picture shows.
        Push(a.clone(), item("5", "more")),
    ]
}

/// Each request that changes nothing.
fn looks() -> [StoreQuery; 13] {
    [
        StoreQuery::Row,
        StoreQuery::List,
        StoreQuery::Journal,
        StoreQuery::Check,
        StoreQuery::Inbox,
        StoreQuery::Accepted(2),
        StoreQuery::Stops,
        StoreQuery::Approval("q".into()),
        StoreQuery::Approvals,
        StoreQuery::OpenApprovals,
        StoreQuery::Tenures,
        StoreQuery::Nodes,
        StoreQuery::Notice,
    ]
}

/// An answer to a question of [`ask`].
#[must_use]
pub fn decision(id: &str, principal: &str) -> NewDecision {
    NewDecision {
        id: id.into(),
        digest: format!("digest of {id}"),
        principal: principal.into(),
        bytes: b"yes".to_vec(),
    }
}

/// A question that stays open.
#[must_use]
pub fn ask(id: &str) -> Write {
    Write::OpenApproval(NewApproval {
        id: id.into(),
        run: "run".into(),
        call: "call".into(),
        digest: format!("digest of {id}"),
        expires: Timestamp::MAX,
        bytes: b"may it?".to_vec(),
    })
}
