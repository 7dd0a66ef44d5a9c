//! A run as one value that is kept anywhere: read back, claimed, resumed once, and refused where it is not what it was.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use futures_util::future::BoxFuture;
use safepoint::{
    Agent, AgentBuilder, History, Limits, Outcome, Run, StopRequest,
    approval::{ApprovalMode, Decision, OnUnknownEffect, ToolApproval, WithoutApprover},
    event::Fact,
    ids::RunId,
    log::{Log, LogError, RunRecord},
    receipt::{CallStatus, Ending},
    state::{RunState, RunStateError, RunStateErrorKind},
    tool::EffectClass,
};
use serde_json::Value;

use crate::{
    children::hire,
    world::{Reply, agent, ask, call_started, does, say},
};

/// Counts what tools did.
#[derive(Clone, Default)]
struct Ledger(Arc<AtomicUsize>);

impl Ledger {
    fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

/// An agent that must be asked before it pays, and may look freely.
fn payer(replies: impl IntoIterator<Item = Reply>, paid: &Ledger) -> AgentBuilder {
    let ledger = paid.clone();
    let pay = does("pay", move |_cx| {
        let ledger = ledger.clone();
        async move {
            ledger.0.fetch_add(1, Ordering::SeqCst);
            Ok("paid".to_owned())
        }
    });
    let look = does("look", |_cx| async { Ok("all quiet".to_owned()) });
    agent(replies)
        .approvals(ApprovalMode::Ask(None, WithoutApprover::Suspend))
        .tool(pay.with(|spec| spec.approval(ToolApproval::Required)))
        .tool(look.with(|spec| spec.effect(EffectClass::ReadOnly)))
}

/// The state of a run that waits for an approval, as bytes.
async fn suspended() -> Vec<u8> {
    let outcome = payer([ask(&["pay", "look"])], &Ledger::default()).build().run("go").await;
    assert_eq!(outcome.ending(), Ending::Suspended);
    outcome.state().await.unwrap().to_bytes()
}

fn approved(bytes: &[u8]) -> RunState {
    let state = RunState::from_bytes(bytes).unwrap();
    let asked = state.approvals();
    assert_eq!(asked.len(), 1);
    state.with_decision(asked[0].id.clone(), Decision::Approve)
}

/// A table with the newest state of each run, in which one update claims it.
#[derive(Clone, Default)]
struct Table(Arc<Mutex<HashMap<RunId, (String, bool)>>>);

impl Table {
    fn keep(&self, state: &RunState) {
        self.0.lock().unwrap().insert(state.run().clone(), (state.digest().to_owned(), false));
    }

    async fn resume(&self, agent: &Agent, state: RunState) -> Result<Run, RunStateError> {
        let table = self.clone();
        let claim = |run: RunId, digest: String| async move {
            let mut rows = table.0.lock().unwrap();
            match rows.get_mut(&run) {
                Some((newest, is_claimed)) if *newest == digest && !*is_claimed => {
                    *is_claimed = true;
                    Ok(true)
                }
                _ => Ok(false),
            }
        };
        agent.resume_state(state, claim).await
    }
}

/// S7.18, S8.4: a suspended run goes through bytes, and the decision that comes with its resume is applied once.
#[tokio::test]
async fn a_suspended_run_is_resumed_elsewhere() {
    let bytes = suspended().await;
    let (paid, table) = (Ledger::default(), Table::default());
    let elsewhere = payer([say("done")], &paid).build();
    let state = approved(&bytes);
    table.keep(&state);
    let outcome = table.resume(&elsewhere, state).await.unwrap().await;
    assert_eq!((outcome.answer(), paid.count()), (Some("done"), 1));
    assert!(outcome.history().entries().len() >= 4, "the conversation is all there");
    let report = &outcome.receipt().calls;
    assert!(report.iter().all(|call| call.status == CallStatus::Completed), "{report:?}");
}

/// S7.18: a stopped run continues with the calls that never started, through any format of serde.
#[tokio::test]
async fn a_stopped_run_is_resumed_elsewhere() {
    let limits = Limits::default().with_parallel_calls(1);
    let build = |replies: Vec<Reply>, paid: &Ledger| {
        let wait = does("wait", |cx| async move {
            drop(cx.stopped().await);
            Ok(String::new())
        });
        let builder = payer(replies, paid).approvals(ApprovalMode::Auto).limits(limits.clone());
        builder.tool(wait.with(|spec| spec.effect(EffectClass::ReadOnly))).build()
    };
    let paid = Ledger::default();
    let handle = build(vec![ask(&["wait", "pay"])], &paid).run("go").detach();
    call_started(&handle).await;
    handle.stop(StopRequest::now());
    let outcome = handle.done().await;
    let value: Value = serde_json::to_value(outcome.state().await.unwrap()).unwrap();
    assert_eq!(paid.count(), 0);

    let state: RunState = serde_json::from_value(value).unwrap();
    let table = Table::default();
    table.keep(&state);
    let run = table.resume(&build(vec![say("done")], &paid), state).await.unwrap();
    let handle = run.detach();
    call_started(&handle).await;
    handle.stop(StopRequest::now());
    assert_eq!(handle.done().await.ending(), Ending::Stopped, "it is stopped like any other run");
    let attempts = handle.done().await.state().await.unwrap();
    assert!(
        attempts.to_bytes().windows(13).any(|part| part == b"attempt\\\":2,\\"),
        "it is the second attempt"
    );
}

/// S7.19, S7.4: of two copies one continues, and the effect happens once.
#[tokio::test]
async fn of_two_copies_one_goes_on() {
    let bytes = suspended().await;
    let (paid, table) = (Ledger::default(), Table::default());
    table.keep(&RunState::from_bytes(&bytes).unwrap());
    let (one, other) = (payer([say("one")], &paid).build(), payer([say("other")], &paid).build());
    let (first, second) =
        tokio::join!(table.resume(&one, approved(&bytes)), table.resume(&other, approved(&bytes)));
    assert_eq!(second.map(drop).unwrap_err().kind(), RunStateErrorKind::Claimed);
    assert_eq!(first.unwrap().await.answer(), Some("one"));
    assert_eq!(paid.count(), 1);
}

/// S7.19: a process dies between its claim and the next state. The claim holds, and without one the run does only what any
/// copy may do: it reads, and the model is informed of what was refused.
#[tokio::test]
async fn without_a_claim_only_what_is_repeatable_runs() {
    let bytes = suspended().await;
    let (paid, table) = (Ledger::default(), Table::default());
    table.keep(&RunState::from_bytes(&bytes).unwrap());
    drop(table.resume(&payer([], &paid).build(), approved(&bytes)).await.unwrap());
    let before = paid.count();
    let again = payer([ask(&["pay", "look"]), say("I could not pay.")], &paid).build();
    let refused = table.resume(&again, approved(&bytes)).await.map(drop).unwrap_err();
    assert_eq!(refused.kind(), RunStateErrorKind::Claimed);
    let refused = again.resume_unclaimed(approved(&bytes)).map(drop).unwrap_err();
    assert_eq!(refused.kind(), RunStateErrorKind::NotClaimed, "a decision is good for one copy");

    let deny = Decision::Deny { message: String::new() };
    let outcome = again.resume_unclaimed(RunState::from_bytes(&bytes).unwrap()).unwrap().detach();
    let asked = RunState::from_bytes(&bytes).unwrap().approvals();
    outcome.decide(&asked[0].id, deny).await.unwrap();
    let outcome = outcome.done().await;
    assert_eq!((outcome.answer(), paid.count()), (Some("I could not pay."), before));
    let sent = serde_json::to_string(outcome.history()).unwrap();
    assert!(sent.contains("from a copy without a claim"), "{sent}");
    assert_eq!(sent.matches("all quiet").count(), 2, "what only reads ran in both rounds");
}

/// S7.19, S8.2: an approval that is recorded and not used yet is refused to a copy that no one claimed, also in its later
/// attempts in this process.
#[tokio::test]
async fn an_approval_is_good_for_one_copy() {
    let paid = Ledger::default();
    // The approved call waits for the one before it, which is stopped.
    let limits = Limits::default().with_parallel_calls(1);
    let build = |replies: Vec<Reply>| {
        let wait = does("wait", |cx| async move {
            drop(cx.stopped().await);
            Ok(String::new())
        });
        let wait = wait.with(|spec| spec.approval(ToolApproval::Required));
        payer(replies, &paid).limits(limits.clone()).tool(wait).build()
    };
    let first = build(vec![ask(&["wait", "pay"])]).run("go").await;
    let asked = first.state().await.unwrap().approvals();
    let yes = asked.iter().map(|request| (request.id.clone(), Decision::Approve)).collect();
    let handle = build(vec![]).resume_with(&first, yes).detach();
    call_started(&handle).await;
    handle.stop(StopRequest::now());
    let bytes = handle.done().await.state().await.unwrap().to_bytes();
    assert_eq!(paid.count(), 0);

    let copy = RunState::from_bytes(&bytes).unwrap();
    let outcome = build(vec![say("refused")]).resume_unclaimed(copy).unwrap().await;
    assert_eq!((outcome.answer(), paid.count()), (Some("refused"), 0));
    let again = build(vec![ask(&["pay"]), say("still refused")]);
    let later = again.run_on(outcome.history().clone(), "again").await;
    assert_eq!(later.ending(), Ending::Suspended, "a new run is no copy: it asks");

    let claimed = RunState::from_bytes(&bytes).unwrap();
    let run = build(vec![say("paid")]).resume_state(claimed, |_, _| async { Ok(true) }).await.unwrap();
    let outcome = run.await;
    assert_eq!((outcome.answer(), paid.count()), (Some("paid"), 1), "its approval is not asked for again");
}

/// S7.19: an unclaimed copy stays one in the attempts that follow in this process.
#[tokio::test]
async fn a_copy_stays_a_copy() {
    let bytes = suspended().await;
    let paid = Ledger::default();
    let copy = RunState::from_bytes(&bytes).unwrap();
    let asked = copy.approvals();
    let waiting = payer([], &paid).build().resume_unclaimed(copy).unwrap().await;
    assert_eq!(waiting.ending(), Ending::Suspended);
    let yes = vec![(asked[0].id.clone(), Decision::Approve)];
    let outcome = payer([say("no")], &paid).build().resume_with(&waiting, yes).await;
    assert_eq!((outcome.answer(), paid.count()), (Some("no"), 0));
}

/// S7.18: whatever byte of a value is changed, it is refused or it is the same value.
#[tokio::test]
async fn a_changed_byte_is_found() {
    let bytes = suspended().await;
    let whole = RunState::from_bytes(&bytes).unwrap();
    for (index, byte) in bytes.iter().enumerate() {
        for change in [1_u8, 0x20, 0x80] {
            let mut changed = bytes.clone();
            changed[index] = byte ^ change;
            match RunState::from_bytes(&changed) {
                Err(error) => {
                    let kind = error.kind();
                    let is_known = matches!(kind, RunStateErrorKind::Damaged | RunStateErrorKind::Newer);
                    assert!(is_known, "byte {index}: {error}");
                }
                Ok(state) => assert_eq!(state.to_bytes(), whole.to_bytes(), "byte {index}"),
            }
        }
    }
    for end in [0, 1, bytes.len() / 2, bytes.len() - 1] {
        let error = RunState::from_bytes(&bytes[..end]).unwrap_err();
        assert_eq!(error.kind(), RunStateErrorKind::Damaged, "cut at {end}");
        assert!(!error.hint().is_empty());
    }
}

/// S7.18: of another form with a fitting digest nothing is taken either: no records, another run's, a newer version.
#[tokio::test]
async fn a_value_with_other_content_is_refused() {
    let bytes = suspended().await;
    let value: Value = serde_json::from_slice(&bytes).unwrap();
    let with = |name: &str, member: Value| {
        let mut value = value.clone();
        value[name] = member;
        value
    };
    for (value, kind) in [
        (with("version", 2.into()), RunStateErrorKind::Newer),
        (with("version", 0.into()), RunStateErrorKind::Damaged),
        (with("records", "".into()), RunStateErrorKind::Damaged),
        (with("run", "run_1".into()), RunStateErrorKind::Damaged),
        (with("agent", "sha256:0".into()), RunStateErrorKind::Damaged),
        (with("tools", serde_json::json!({})), RunStateErrorKind::Damaged),
    ] {
        let error = RunState::from_bytes(value.to_string().as_bytes()).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(serde_json::from_value::<RunState>(value).is_err());
    }
    let later = with("later", "a member of a newer release".into());
    let newer = serde_json::json!({"version": 9, "all": "else is new"});
    assert!(
        RunState::from_bytes(later.to_string().as_bytes()).is_ok(),
        "the version says what a reader must know"
    );
    let error = RunState::from_bytes(newer.to_string().as_bytes()).unwrap_err();
    assert_eq!(error.kind(), RunStateErrorKind::Newer, "{error}");
    assert!(error.to_string().contains("version 9"), "{error}");
}

/// S7.18, S8.8: another agent, or one with other tools, is refused by name. Given to it on purpose the run continues, and asks
/// again about a tool that has changed.
#[tokio::test]
async fn another_agent_is_refused() {
    let bytes = suspended().await;
    let paid = Ledger::default();
    let resume = async |builder: AgentBuilder| {
        let state = approved(&bytes);
        builder.build().resume_state(state, |_, _| async { Ok(true) }).await.map(drop)
    };
    let error = resume(payer([], &paid).system("You are someone else.")).await.unwrap_err();
    assert_eq!(error.kind(), RunStateErrorKind::OtherAgent, "{error}");
    let extra = does("extra", |_| async { Ok(String::new()) });
    let error = resume(payer([], &paid).tool(extra)).await.unwrap_err();
    assert!(error.to_string().ends_with("had other tools: `extra` is new"), "{error}");
    let error = resume(agent([])).await.unwrap_err();
    assert_eq!(error.kind(), RunStateErrorKind::OtherTools);
    assert!(error.to_string().ends_with("`look` is gone, `pay` is gone"), "{error}");

    let changed = does("pay", |_| async { Ok("paid in gold".to_owned()) });
    let changed = changed.with(|spec| spec.approval(ToolApproval::Required).place("gold"));
    let look = does("look", |_cx| async { Ok("all quiet".to_owned()) });
    let look = look.with(|spec| spec.effect(EffectClass::ReadOnly));
    let other =
        agent([]).approvals(ApprovalMode::Ask(None, WithoutApprover::Suspend)).tool(changed).tool(look);
    let other = other.build();
    let adopted = other.adopt_state(approved(&bytes)).unwrap();
    assert_ne!(adopted.digest(), approved(&bytes).digest());
    let run = other.resume_state(adopted, |_, _| async { Ok(true) }).await.unwrap();
    let outcome = run.await;
    assert_eq!((outcome.ending(), paid.count()), (Ending::Suspended, 0), "it asks again");
}

/// S7.18: what cannot be saved says why and what to do, and a claim that fails is no claim.
#[tokio::test]
async fn what_cannot_be_saved_says_why() {
    let done = agent([say("done")]).build().run("go").await;
    assert_eq!(done.state().await.unwrap_err().kind(), RunStateErrorKind::Done);
    let own = payer([ask(&["pay"])], &Ledger::default()).build();
    let own = own.run_recorded(Arc::new(Rows::default()), History::new(), "go").await;
    assert_eq!(own.ending(), Ending::Suspended);
    let error = own.state().await.unwrap_err();
    assert_eq!(error.kind(), RunStateErrorKind::KeptElsewhere, "{error}");
    let agent = payer([], &Ledger::default()).build();
    let failed =
        agent.resume_state(approved(&suspended().await), |_, _| async { Err("no database".into()) }).await;
    let error = failed.map(drop).unwrap_err();
    assert_eq!(error.kind(), RunStateErrorKind::ClaimFailed);
    assert_eq!(error.to_string(), "the claim of the run failed: no database");
    let panics = |_, _| async { panic!("the claim is broken") };
    let error = agent.resume_state(approved(&suspended().await), panics).await.map(drop).unwrap_err();
    assert_eq!(error.kind(), RunStateErrorKind::ClaimFailed, "{error}");
}

/// S7.18, S9.6: the question of a child run is in the value, and the decision reaches it.
#[tokio::test]
async fn a_child_run_is_in_the_value() {
    let paid = Ledger::default();
    let root = |replies: Vec<Reply>, below: Vec<Reply>| {
        let child = payer(below, &paid).build().as_subagent("clerk", "Pays");
        agent(replies).child(child).build()
    };
    let outcome = root(vec![hire(&["clerk"])], vec![ask(&["pay"])]).run("go").await;
    assert_eq!(outcome.ending(), Ending::Suspended, "{outcome:?}");
    let bytes = outcome.state().await.unwrap().to_bytes();
    let unclaimed = root(vec![say("no")], vec![say("not paid")]);
    let copy = unclaimed.resume_unclaimed(RunState::from_bytes(&bytes).unwrap()).unwrap().detach();
    let asked = RunState::from_bytes(&bytes).unwrap().approvals();
    copy.decide(&asked[0].id, Decision::Approve).await.unwrap();
    assert_eq!((copy.done().await.answer(), paid.count()), (Some("no"), 0), "a copy pays at no depth");
    let elsewhere = root(vec![say("all done")], vec![say("paid")]);
    let run = elsewhere.resume_state(approved(&bytes), |_, _| async { Ok(true) }).await.unwrap();
    assert_eq!((run.await.answer(), paid.count()), (Some("all done"), 1));
}

/// A log in rows that owners share; each knows how many rows it has seen.
#[derive(Clone, Default)]
struct Rows {
    table: Arc<Mutex<Vec<String>>>,
    known: Arc<Mutex<usize>>,
}

impl Rows {
    /// The same rows for another owner.
    fn other(&self) -> Self {
        Self { table: Arc::clone(&self.table), known: Arc::default() }
    }

    /// The rows up to the first fact that is so: what a process that died there left.
    fn up_to(&self, is_last: impl Fn(&Fact) -> bool) -> Self {
        let all = self.table.lock().unwrap().clone();
        let record = |row: &String| serde_json::from_str::<RunRecord>(row).unwrap();
        let end = all.iter().position(|row| is_last(&record(row).fact)).unwrap();
        Self { table: Arc::new(Mutex::new(all[..=end].to_vec())), known: Arc::default() }
    }
}

impl Log for Rows {
    fn append(&self, record: RunRecord) -> BoxFuture<'_, Result<u64, LogError>> {
        let (mut table, mut known) = (self.table.lock().unwrap(), self.known.lock().unwrap());
        let place = *known as u64;
        let appended = if table.len() == *known {
            table.push(serde_json::to_string(&record).unwrap());
            *known += 1;
            Ok(place)
        } else {
            Err(LogError::new("another owner has this run"))
        };
        Box::pin(async move { appended })
    }

    fn read(&self) -> BoxFuture<'_, Result<Vec<RunRecord>, LogError>> {
        let table = self.table.lock().unwrap();
        *self.known.lock().unwrap() = table.len();
        let records = table.iter().map(|row| serde_json::from_str(row).map_err(LogError::new)).collect();
        Box::pin(async move { records })
    }
}

/// S7.20, S7.3: a run in a log of its program's survives its process: what had begun is not done twice, and the rest is.
#[tokio::test]
async fn a_run_survives_in_its_programs_log() {
    let paid = Ledger::default();
    let build = |replies: Vec<Reply>| {
        payer(replies, &paid).approvals(ApprovalMode::Auto).on_unknown(OnUnknownEffect::Tell).build()
    };
    let rows = Rows::default();
    let handle = build(vec![ask(&["pay"]), say("done")])
        .run_recorded(Arc::new(rows.clone()), History::new(), "go")
        .detach();
    assert_eq!(handle.done().await.answer(), Some("done"));
    assert_eq!(paid.count(), 1);

    let before = rows.up_to(|fact| matches!(fact, Fact::ModelEnded { .. }));
    let resumed =
        build(vec![say("done")]).resume_recorded(handle.id().clone(), Arc::new(before), Vec::new()).await;
    assert_eq!((resumed.answer(), paid.count()), (Some("done"), 2), "a call that had not begun runs");
    let begun = rows.up_to(|fact| matches!(fact, Fact::CallStarted { .. }));
    let resumed =
        build(vec![say("unknown")]).resume_recorded(handle.id().clone(), Arc::new(begun), Vec::new()).await;
    assert_eq!((resumed.answer(), paid.count()), (Some("unknown"), 2), "a call that had begun does not");
}

/// S7.20, S7.4: of two owners of one log the first to record continues; the other's run fails before any effect.
#[tokio::test]
async fn of_two_owners_of_a_log_one_records() {
    let paid = Ledger::default();
    let rows = Rows::default();
    let waiting =
        payer([ask(&["pay"])], &paid).build().run_recorded(Arc::new(rows.clone()), History::new(), "go");
    let run = waiting.handle().id().clone();
    let waiting = waiting.await;
    let Outcome::Suspended(suspended) = &waiting else { panic!("{waiting:?}") };
    let yes = vec![(suspended.approvals()[0].id.clone(), Decision::Approve)];
    let (one, other) = (rows.other(), rows.other());
    // Both have read the same rows.
    drop((one.read().await.unwrap(), other.read().await.unwrap()));
    let first =
        payer([say("done")], &paid).build().resume_recorded(run.clone(), Arc::new(one), yes.clone()).await;
    assert_eq!((first.answer(), paid.count()), (Some("done"), 1));
    let late = Late(other);
    let second = payer([say("twice")], &paid).build().resume_recorded(run, Arc::new(late), yes).await;
    let Outcome::Failed(error) = second else { panic!("{second:?}") };
    assert_eq!((error.code(), paid.count()), ("store", 1));
}

/// An owner that read its rows before another one wrote.
struct Late(Rows);

impl Log for Late {
    fn append(&self, record: RunRecord) -> BoxFuture<'_, Result<u64, LogError>> {
        self.0.append(record)
    }

    fn read(&self) -> BoxFuture<'_, Result<Vec<RunRecord>, LogError>> {
        let known = *self.0.known.lock().unwrap();
        let rows = self.0.table.lock().unwrap()[..known].to_vec();
        let records = rows.iter().map(|row| serde_json::from_str(row).map_err(LogError::new)).collect();
        Box::pin(async move { records })
    }
}
