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
    use PlayStep::{
        Acquire, Append, AskStop, AskStops, Beat, Bury, Create, Decide, Due, Join, Leave, Pass, Push,
        Release, Remove, Say, Unpark, Withdraw,
    };
    use Which::{First, Newest};
    let [a, b, c] = ["a", "b", "c"].map(SessionId::from);
    let write = |writes: Vec<Write>| Append(a.clone(), Newest, writes, Durability::Durable);
    let close = |id: &str, how| Write::CloseApproval(id.into(), how);
    let decide = |id: &str| Decide(a.clone(), decision(id, "ann"));
    let run = StopIntent { bytes: b"the run".to_vec(), approvals: ApprovalsToWithdraw::Withdrawn };
    let mut steps = vec![
        Create(a.clone(), vec![]),
        Push(a.clone(), item("1", "hello")),
        AskStop(a.clone(), StopIntent { bytes: b"early".to_vec(), approvals: ApprovalsToWithdraw::Stay }),
        Due(10),
        Join(1),
        Acquire(a.clone(), 1),
        write(vec![
            Write::AtWork,
            Write::StopSeen(1),
            Write::TakeItem(1),
            Write::Record(record("turn planned")),
        ]),
        Append(a.clone(), Newest, vec![Write::Record(record("model started"))], Durability::Recorded),
        Push(a.clone(), item("2", "and this")),
        Push(a.clone(), item("2", "and this")),
        Push(a.clone(), item("3", "never mind")),
        Withdraw(a.clone(), 3),
        Pass(Duration::from_secs(1)),
        Create(b.clone(), vec![item("1", "from the beginning"), item("2", "too")]),
        Create(b.clone(), vec![item("3", "there is such a session")]),
        Create(c.clone(), ["1", "2", "3", "4"].map(|id| item(id, "one too many")).into()),
        Acquire(b.clone(), 1),
        Append(
            b.clone(),
            Newest,
            vec![Write::Record(record("elsewhere")), Write::Label("x".into())],
            Durability::Durable,
        ),
        write(vec![ask("q"), ask("r"), ask("s"), Write::Label("suspended".into())]),
        decide("q"),
        write(vec![close("q", ApprovalClose::Used), Write::Record(record("call started"))]),
        write(vec![close("r", ApprovalClose::Withdrawn)]),
        decide("r"),
        AskStop(a.clone(), run),
        decide("s"),
        Beat(1),
        write(vec![Write::TakeItem(9), Write::Record(record("refused"))]),
        write(vec![Write::PutBackItem(1), Write::TakeItem(2), Write::RemoveItem(2), Write::CloseInbox]),
        Push(a.clone(), item("4", "too late")),
        Join(2),
        Say(1, Liveness::Dead),
        Acquire(a.clone(), 2),
        Beat(1),
        Append(a.clone(), First, vec![Write::Record(record("late"))], Durability::Durable),
        write(vec![
            Write::OpenInbox,
            Write::Title("a title".into()),
            Write::Record(record("resumed")),
            Write::AtRest,
        ]),
        Due(10),
        Release(a.clone(), Newest, Rest::Nothing),
        Remove(b),
        Unpark(a.clone()),
        AskStops(Among::Held, StopIntent { bytes: b"all".to_vec(), approvals: ApprovalsToWithdraw::Stay }),
        Leave(2, Leaving::Draining),
        Acquire(a.clone(), 2),
        Due(10),
        Due(10),
        Leave(2, Leaving::Gone),
        Bury,
        // Last comes what a picture shows.
        Push(a.clone(), item("5", "more")),
    ];
    steps.extend(looks().map(|look| PlayStep::Look(a.clone(), look)));
    steps
}

/// Each request that changes nothing.
fn looks() -> [StoreQuery; 11] {
    [
        StoreQuery::Row,
        StoreQuery::List,
        StoreQuery::Journal,
        StoreQuery::Check,
        StoreQuery::Inbox,
        StoreQuery::Stops,
        StoreQuery::Approval("q".into()),
        StoreQuery::Approvals,
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
