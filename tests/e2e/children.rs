//! Trees of runs against a real socket: each level its own agent, one server for all, one ledger, closed by
//! I1–I6 (S9).

use std::sync::Arc;

use safepoint::{
    Agent, Outcome, RunHandle, SafePoints, StopRequest,
    approval::{ApprovalMode, Decision, ToolApproval, WithoutApprover},
    event::{EventKind, Fact},
    ids::Path,
    log::{Log as _, MemoryLog},
    receipt::{CallStatus, Ending, StopSource},
    stop::Reach,
    tool::EffectClass,
};
use safepoint_testkit::{
    invariants::Invariants,
    script::{Reply, ReplyFault},
    server::{ModelServer, ServedWire},
    wait,
};
use serde_json::json;
use tokio::sync::Semaphore;

use super::world::{Ledger, WIRES, builder, close, continues, gated, server};

/// What a level of the tree says to its task, and to the result of its one call.
fn level(task: &str, call: &str, args: serde_json::Value) -> [Reply; 2] {
    [Reply::call(call, args).when(task, 0), Reply::text(format!("{task} is done")).when(task, 1)]
}

/// Root, middle and leaf; the leaf's one call waits for the gate.
struct Tree {
    server: ModelServer,
    root: Agent,
    ledger: Ledger,
    gate: Arc<Semaphore>,
}

async fn tree(wire: ServedWire, effect: EffectClass) -> Tree {
    let replies = [
        level("the whole", "middle", json!({"task": "the half"})),
        level("the half", "leaf", json!({"task": "the rest"})),
        level("the rest", "pay", json!({})),
    ];
    let server = server(replies.into_iter().flatten()).await;
    let (ledger, gate) = (Ledger::default(), Arc::new(Semaphore::new(0)));
    let leaf = builder(&server, wire).tool(gated("pay", effect, &ledger, &gate)).build();
    let middle = builder(&server, wire).child(leaf.as_subagent("leaf", "does the rest")).build();
    let root = builder(&server, wire).child(middle.as_subagent("middle", "does the half")).build();
    Tree { server, root, ledger, gate }
}

/// Waits until a call named so has started anywhere in the tree, and says where.
async fn begun(handle: &RunHandle, tool: &str) -> Path {
    let mut events = handle.events();
    while let Some(event) = events.next().await {
        if let EventKind::Child { path, event } = &event.kind
            && let EventKind::Fact(fact) = &**event
            && matches!(&**fact, Fact::CallStarted { name, .. } if name == tool)
        {
            return path.clone();
        }
    }
    panic!("the run ended before `{tool}` began");
}

/// S9.3, S5.3: three levels, stopped at a safe point of the tree and resumed, on every wire: each model is
/// called twice, once for each thing that it says, and the one payment is made once.
/// microsoft/agent-framework#3608: a cancel honoured in the first agent, ignored by the second and third.
#[tokio::test]
async fn a_tree_stops_and_continues_and_repeats_nothing() {
    for wire in WIRES {
        let Tree { server, root, ledger, gate } = tree(wire, EffectClass::Unsafe).await;
        let log = Arc::new(MemoryLog::default());
        let handle = root.run_recorded(log.clone(), safepoint::History::new(), "the whole").detach();
        let leaf = begun(&handle, "pay").await;
        assert_eq!(leaf.calls().len(), 2);
        handle.stop(StopRequest::at(SafePoints::ANY).with_reach(Reach::Tree));
        gate.add_permits(1);
        let closed = Invariants::of(&handle).server(&server).log(&*log).check().await;
        let stopped = closed.unwrap_or_else(|broken| panic!("{broken}")).outcome;
        let (_, receipt) = close(&server, &handle, &ledger).await;
        assert_eq!((stopped.ending(), receipt.calls[0].stopped_by), (Ending::Stopped, Some(StopSource::Run)));
        assert_eq!((server.requests().len(), ledger.count("commit")), (3, 1));
        let resumed = root.resume(&stopped).detach();
        let (outcome, _) = close(&server, &resumed, &ledger).await;
        assert_eq!(outcome.answer(), Some("the whole is done"));
        assert_eq!((server.requests().len(), ledger.count("commit")), (6, 1));
        let records = log.read().await.unwrap();
        assert!(records.iter().any(|record| record.path == leaf), "one log holds the tree");
    }
}

/// S9.2: with `Root` the child does all of its work, and the parent ends at its own safe point; on every wire
/// both ways on stay open.
#[tokio::test]
async fn a_stop_of_the_root_lets_the_tree_below_finish() {
    for wire in WIRES {
        let Tree { server, root, ledger, gate } = tree(wire, EffectClass::Unsafe).await;
        let handle = root.run("the whole").detach();
        begun(&handle, "pay").await;
        handle.stop(StopRequest::at(SafePoints::ANY));
        gate.add_permits(1);
        let (stopped, receipt) = close(&server, &handle, &ledger).await;
        assert_eq!((stopped.ending(), receipt.calls[0].status), (Ending::Stopped, CallStatus::Completed));
        assert_eq!((server.requests().len(), ledger.count("commit")), (5, 1));
        continues(&root, &stopped).await;
    }
}

/// S9.2, S2.2: `Now` at any depth ends the leaf's call and its model's stream alike; the history can be sent
/// again.
/// anthropics/claude-agent-sdk-typescript#352: the receipt says nothing of the work that was stopped below
/// it;
/// vicoa-ai/vicoa PR#41, anthropics/claude-code#26117: subagents that survive the stop;
/// microsoft/autogen#8091: a token that is not passed on to tools below.
#[tokio::test]
async fn now_ends_the_tree_at_any_depth() {
    for wire in WIRES {
        let Tree { server, root, ledger, gate: _gate } = tree(wire, EffectClass::Unsafe).await;
        let handle = root.run("the whole").detach();
        begun(&handle, "pay").await;
        handle.stop(StopRequest::now());
        let (stopped, receipt) = close(&server, &handle, &ledger).await;
        assert_eq!((stopped.ending(), receipt.calls[0].status), (Ending::Stopped, CallStatus::Stopped));
        continues(&root, &stopped).await;

        let replies = [
            Reply::call("ask", json!({"task": "the half"})).when("the whole", 0),
            Reply::text("never").fault(ReplyFault::StallAfter(1)).when("the half", 0),
        ];
        let server = super::world::server(replies).await;
        let child = builder(&server, wire).build();
        let root = builder(&server, wire).child(child.as_subagent("ask", "does the half")).build();
        let handle = root.run("the whole").detach();
        let exchange = server.request(1).await;
        handle.stop(StopRequest::now());
        let (_, receipt) = close(&server, &handle, &Ledger::default()).await;
        exchange.peer_closed().await;
        let nested = receipt.calls[0].child.clone().unwrap().receipt.unwrap();
        assert_eq!((nested.ending, nested.calls.len()), (Ending::Stopped, 0));
    }
}

/// S9.3: two children of one message, each stopped at its own safe point, and both taken up again.
#[tokio::test]
async fn two_children_at_once_are_stopped_and_taken_up() {
    for wire in WIRES {
        let both = Reply::default()
            .and_call("ask", json!({"task": "the left"}))
            .and_call("ask", json!({"task": "the right"}));
        let [left, left_done] = level("the left", "pay", json!({}));
        let [right, right_done] = level("the right", "pay", json!({}));
        let all_done = Reply::text("both").when("the whole", 2);
        let server = server([both.when("the whole", 0), all_done, left, left_done, right, right_done]).await;
        let (ledger, gate) = (Ledger::default(), Arc::new(Semaphore::new(0)));
        let child = builder(&server, wire).tool(gated("pay", EffectClass::Unsafe, &ledger, &gate)).build();
        let root = builder(&server, wire).child(child.as_subagent("ask", "does a part")).build();
        let handle = root.run("the whole").detach();
        wait::so("both have entered", || ledger.count("entry") >= 2).await;
        handle.stop(StopRequest::at(SafePoints::ANY).with_reach(Reach::Tree));
        gate.add_permits(2);
        let (stopped, _) = close(&server, &handle, &ledger).await;
        assert_eq!((stopped.ending(), server.requests().len()), (Ending::Stopped, 3));
        let resumed = root.resume(&stopped).detach();
        let (outcome, _) = close(&server, &resumed, &ledger).await;
        assert_eq!((outcome.answer(), ledger.count("commit"), server.requests().len()), (Some("both"), 2, 6));
    }
}

/// S9.4: a child stopped alone through its own handle: its call is stopped, its stream closes, and the
/// parent's model learns of it and answers.
#[tokio::test]
async fn a_child_stopped_alone_leaves_its_parent_running() {
    for wire in WIRES {
        let Tree { server, root, ledger, gate: _gate } = tree(wire, EffectClass::Unsafe).await;
        let handle = root.run("the whole").detach();
        let leaf = begun(&handle, "pay").await;
        handle.child(&leaf).unwrap().stop(StopRequest::now());
        let (outcome, receipt) = close(&server, &handle, &ledger).await;
        assert_eq!((outcome.answer(), receipt.stop.is_none()), (Some("the whole is done"), true));
        let middle = receipt.calls[0].child.clone().unwrap().receipt.unwrap();
        assert_eq!(
            (middle.calls[0].status, middle.calls[0].stopped_by),
            (CallStatus::Stopped, Some(StopSource::Call))
        );
    }
}

/// S9.1, S8.1: a question two levels down suspends the tree; answered with the resume, the whole tree
/// continues, once.
#[tokio::test]
async fn a_question_below_suspends_the_tree() {
    for wire in WIRES {
        let [ask, done] = level("the whole", "child", json!({"task": "the half"}));
        let [pay, paid] = level("the half", "pay", json!({}));
        let server = server([ask, done, pay, paid]).await;
        let (ledger, gate) = (Ledger::default(), Arc::new(Semaphore::new(1)));
        let pay = gated("pay", EffectClass::Unsafe, &ledger, &gate)
            .with(|spec| spec.approval(ToolApproval::Required));
        let child = builder(&server, wire)
            .tool(pay)
            .approvals(ApprovalMode::Ask(None, WithoutApprover::Suspend))
            .build();
        let root = builder(&server, wire).child(child.as_subagent("child", "does the half")).build();
        let handle = root.run("the whole").detach();
        let (waiting, _) = close(&server, &handle, &ledger).await;
        let Outcome::Suspended(open) = &waiting else { panic!("{waiting:?}") };
        let asked = open.approvals()[0].clone();
        assert_eq!(asked.path.calls().len(), 1);
        let resumed = root.resume_with(&waiting, vec![(asked.id, Decision::Approve)]).detach();
        let (outcome, _) = close(&server, &resumed, &ledger).await;
        assert_eq!((outcome.answer(), ledger.count("commit")), (Some("the whole is done"), 1));
        assert_eq!(server.requests().len(), 4);
    }
}

/// S9.1, S9.2: a run in the background outlives the root's stop and is named; the tree's stop ends it.
/// anthropics/claude-code#78151: background agents die silently while they read as running.
#[tokio::test]
async fn a_background_run_is_named_or_stopped() {
    for reach in [Reach::Root, Reach::Tree] {
        let replies = [
            Reply::call("look", json!({"task": "the half"})).when("the whole", 0),
            Reply::text("never").fault(ReplyFault::StallAfter(1)).when("the whole", 1),
            Reply::text("never").fault(ReplyFault::StallAfter(1)).when("the half", 0),
        ];
        let server = server(replies).await;
        let child = builder(&server, WIRES[0]).build();
        let look = child.as_subagent("look", "looks").background();
        let root = builder(&server, WIRES[0]).child(look).build();
        let handle = root.run("the whole").detach();
        server.request(2).await;
        handle.stop(StopRequest::now().with_reach(reach).with_cleanup_cap(std::time::Duration::ZERO));
        let receipt = Arc::clone(handle.quiet().await.receipt());
        let path = receipt.calls[0].child.clone().unwrap().path;
        let own = handle.child(&path).unwrap();
        assert_eq!(own.is_done(), reach == Reach::Tree, "{reach:?}");
        let named = receipt.survivors.iter().any(|what| what.contains(&path.to_string()));
        assert_eq!(named, reach == Reach::Root, "{:?}", receipt.survivors);
        own.stop(StopRequest::now());
        assert_eq!(own.done().await.ending(), Ending::Stopped);
        let closed = Invariants::of(&own).check().await.unwrap_or_else(|broken| panic!("{broken}"));
        assert!(closed.receipt.quiet_at.is_some());
    }
}
