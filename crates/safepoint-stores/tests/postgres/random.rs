//! Random requests to the server and to the model in memory: the same answers, and the same to be seen. S7.4-S7.7, S8.2.

use std::{sync::Arc, time::Duration};

use futures_util::{StreamExt as _, stream};
use proptest::{collection::vec, prelude::*, sample::select};
use safepoint::{
    ids::SessionId,
    raw::store::{
        Among, ApprovalClose, ApprovalsToWithdraw, Durability, Leaving, Liveness, NewDecision, NewItem,
        NewSession, Rest, StopIntent, Write,
    },
    store::{MemoryStore, NewNode, Store},
};
use safepoint_testkit::store_suite::{
    item, owner,
    play::{Picture, PlayStep, Player, StoreQuery, Which, alike, ask, decision},
    record,
};

use super::support::{model, open, runtime, schema, world};

fn session() -> impl Strategy<Value = SessionId> {
    select(vec!["a", "b"]).prop_map(SessionId::from)
}

fn word() -> impl Strategy<Value = &'static str> {
    select(vec!["x", "y", "z"])
}

fn closed() -> impl Strategy<Value = ApprovalClose> {
    select(vec![ApprovalClose::Used, ApprovalClose::Withdrawn, ApprovalClose::Expired])
}

fn write() -> impl Strategy<Value = Write> {
    prop_oneof![
        4 => word().prop_map(|says| Write::Record(record(says))),
        2 => (1..4_u64).prop_map(Write::TakeItem),
        1 => (1..4_u64).prop_map(Write::PutBackItem),
        1 => (1..4_u64).prop_map(Write::RemoveItem),
        1 => Just(Write::CloseInbox),
        2 => Just(Write::OpenInbox),
        1 => (0..3_u64).prop_map(Write::StopSeen),
        2 => word().prop_map(ask),
        2 => (word(), closed()).prop_map(|(id, closed)| Write::CloseApproval(id.into(), closed)),
        1 => word().prop_map(|says| Write::Label(says.into())),
        1 => word().prop_map(|says| Write::Title(says.into())),
        1 => word().prop_map(|says| Write::Setup(says.into())),
        2 => Just(Write::AtWork),
        1 => Just(Write::AtRest),
    ]
}

fn which() -> impl Strategy<Value = Which> {
    prop_oneof![5 => Just(Which::Newest), 1 => Just(Which::First)]
}

fn step() -> impl Strategy<Value = PlayStep> {
    let class = select(vec![Durability::Recorded, Durability::Durable]);
    let push = || {
        (word(), word(), any::<bool>()).prop_map(|(client, says, is_named)| {
            let push = item(client, says);
            NewItem { client_id: push.client_id.filter(|_| is_named), ..push }
        })
    };
    let only = word().prop_map(|id| ApprovalsToWithdraw::Only(vec![id.into()]));
    let stop = prop_oneof![Just(ApprovalsToWithdraw::Stay), Just(ApprovalsToWithdraw::Withdrawn), only]
        .prop_map(|approvals| StopIntent { bytes: b"stop".to_vec(), approvals });
    let decide = (word(), word(), any::<bool>()).prop_map(|(id, who, is_right)| {
        let decision = decision(id, who);
        if is_right { decision } else { NewDecision { digest: "other".into(), ..decision } }
    });
    prop_oneof![
        2 => (session(), vec(push(), 0..4))
            .prop_map(|(session, items)| PlayStep::Create(session, items)),
        1 => session().prop_map(PlayStep::Remove),
        1 => session().prop_map(PlayStep::RemoveIfAtRest),
        3 => (1..3_u32).prop_map(PlayStep::Join),
        2 => (1..3_u32).prop_map(PlayStep::Beat),
        1 => (1..3_u32, select(vec![Leaving::Draining, Leaving::Gone]))
            .prop_map(|(pid, how)| PlayStep::Leave(pid, how)),
        1 => Just(PlayStep::Bury),
        6 => (session(), 1..3_u32).prop_map(|(session, pid)| PlayStep::Acquire(session, pid)),
        1 => (session(), which(), select(vec![Rest::Nothing, Rest::Now]))
            .prop_map(|(session, which, rest)| PlayStep::Release(session, which, rest)),
        2 => (1..3_usize).prop_map(PlayStep::Due),
        1 => session().prop_map(PlayStep::Unpark),
        1 => (1..3_u32).prop_map(|pid| PlayStep::AskStops(
            if pid == 1 { Among::Held } else { Among::These(vec!["a".into(), "b".into()]) },
            StopIntent { bytes: b"all".to_vec(), approvals: ApprovalsToWithdraw::Stay },
        )),
        1 => session().prop_map(|session| PlayStep::Look(session, StoreQuery::Nodes)),
        12 => (session(), which(), vec(write(), 0..4), class)
            .prop_map(|(session, which, writes, class)| PlayStep::Append(session, which, writes, class)),
        6 => (session(), push()).prop_map(|(session, push)| PlayStep::Push(session, push)),
        2 => (session(), 1..4_u64).prop_map(|(session, item)| PlayStep::Withdraw(session, item)),
        2 => (session(), stop).prop_map(|(session, stop)| PlayStep::AskStop(session, stop)),
        4 => (session(), decide).prop_map(|(session, decision)| PlayStep::Decide(session, decision)),
        1 => select(vec![1, 6, 20]).prop_map(|seconds| PlayStep::Pass(Duration::from_secs(seconds))),
        1 => (1..3_u32, select(vec![Liveness::Alive, Liveness::Dead, Liveness::Unknown]))
            .prop_map(|(pid, life)| PlayStep::Say(pid, life)),
    ]
}

async fn compare(steps: Vec<PlayStep>) {
    let schema = schema();
    let (time, lives, outside) = world();
    let handles: [Arc<dyn Store>; 2] = [0, 1].map(|_| Arc::new(open(&schema, &outside)) as Arc<dyn Store>);
    let mut handle = Arc::clone(&handles[0]);
    let mut player = Player::of(Arc::clone(&handle), &time, &lives);
    let mut model = model();
    for (number, step) in steps.iter().enumerate() {
        if number % 8 == 7 {
            // Another process continues.
            handle = Arc::clone(&handles[number / 8 % 2]);
            player = player.on(Arc::clone(&handle));
        }
        let (is, should_be) = (player.play(step).await, model.play(step).await);
        assert_eq!(format!("{is:?}"), format!("{should_be:?}"), "step {number}, {step:?}");
    }
    let (is, should_be) = (Picture::of(&*handle).await.unwrap(), Picture::of(&*model.store).await.unwrap());
    assert!(is.iter().all(Picture::is_sound));
    alike("at the end", &is, &should_be).unwrap();
}

/// What each of these sessions answers to its appends, which are asked at once or one after the other; and the store's picture then.
async fn appended(
    store: &dyn Store,
    lists: &[(Vec<Write>, Vec<Write>)],
    is_at_once: bool,
) -> (Vec<String>, Vec<Picture>) {
    let mut leases = Vec::new();
    let new =
        NewNode { id: "one".into(), name: "one".into(), ..NewNode::of(owner(1), Duration::from_secs(60)) };
    let node = store.join(new).await.unwrap();
    for number in 0..lists.len() {
        let session = store.create(NewSession::of(format!("session {number:02}"))).await.unwrap().id;
        for (client, says) in [("x", "1"), ("y", "2"), ("z", "3")] {
            store.push(&session, item(client, says)).await.unwrap();
        }
        let stop = StopIntent { bytes: b"stop".to_vec(), approvals: ApprovalsToWithdraw::Stay };
        store.ask_stop(&session, stop).await.unwrap();
        leases.push(store.acquire(&session, &node).await.unwrap());
    }
    let mut answers = Vec::new();
    for get in [|lists: &(Vec<Write>, _)| lists.0.clone(), |lists: &(_, Vec<Write>)| lists.1.clone()] {
        let appends = leases.iter().zip(lists);
        let append = |(lease, lists)| store.append(lease, get(lists), Durability::Durable);
        let at_once = if is_at_once { lists.len() } else { 1 };
        answers.extend(stream::iter(appends.map(append)).buffered(at_once).collect::<Vec<_>>().await);
    }
    let answers = answers.iter().map(|answer| format!("{answer:?}")).collect();
    (answers, Picture::of(store).await.unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    /// S7.52: what an append does and answers is what it would be alone, also where it shares a statement with others.
    #[test]
    fn appends_at_once_do_what_each_does_alone(
        lists in vec((vec(write(), 0..5), vec(write(), 0..5)), 2..24),
    ) {
        runtime().block_on(async {
            let (_, _, outside) = world();
            let store = open(&schema(), &outside);
            let at_once = appended(&store, &lists, true).await;
            let (_, _, outside) = world();
            let alone = appended(&MemoryStore::new(outside), &lists, false).await;
            assert_eq!(at_once.0, alone.0);
            alike("at the end", &at_once.1, &alone.1).unwrap();
        });
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// S7.11, S7.4, S7.6, S8.2, S6.2
    #[test]
    fn the_server_answers_as_the_model_does(
        start in session(),
        steps in vec(step(), 1..60),
    ) {
        // Most lives begin with a session that is held; some of these steps are refused again, by both.
        let begun = vec![PlayStep::Create(start.clone(), vec![]), PlayStep::Join(1), PlayStep::Acquire(start, 1)];
        runtime().block_on(compare(begun.into_iter().chain(steps).collect()));
    }
}
