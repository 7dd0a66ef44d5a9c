//! The loop as it applies facts: where they lead, which step is due, and what they cost.

use jiff::Timestamp;
use safepoint_scope::{Code, Reach};
use serde_json::json;

use super::*;
use crate::{
    contract::log::{self, MemoryLog},
    value::{
        approval::Decision,
        effect::EffectClass,
        event::{OutputExtent, RecordedSteer, Resolution, RunLimits, SteerSource},
        history::OpenEnd,
        ids::{ApprovalId, Path, RunId, SteerId},
        limits::Limits,
        message::{Block, UserMessage},
        receipt::{CallStatus, ChildReport, ModelState, Receipt, RemoteReport, StopSource},
        usage::{ExtraBilling, Price, UsageSource},
    },
};

pub(super) mod made;

use made::{child, ended, question, tool_call};

const AT_ALL: SafePoints = SafePoints::AFTER_ALL_CALLS;
const AT_MODEL: SafePoints = SafePoints::AFTER_MODEL;

/// A machine, and the log whose facts it applies.
struct Logged {
    machine: Machine,
    log: MemoryLog,
}

impl Logged {
    async fn begun(machine: Machine) -> Self {
        let mut logged = Self { machine, log: MemoryLog::default() };
        let mut history = History::new();
        history.push(Message::User(UserMessage::from("hi")));
        logged.opened(1, Some(history), None).await;
        logged
    }

    async fn record(&mut self, fact: Fact) {
        let recorded =
            log::record(&self.log, &Path::default(), Arc::new(fact), Duration::from_secs(20)).await;
        self.machine.apply(&recorded.expect("it is recorded"));
    }

    async fn opened(&mut self, attempt: u32, history: Option<History>, price: Option<Price>) {
        let limits = Some(RunLimits::of(&Limits::default(), price.as_ref()));
        let (run, at, on_unknown) = (RunId::from("r"), Timestamp::UNIX_EPOCH, OnUnknownEffect::Tell);
        self.record(Fact::AttemptOpened { run, attempt, history, at, on_unknown, limits }).await;
    }

    async fn said(&mut self, round: u32, message: AssistantMessage, whole: Completion) {
        self.reported(message, whole, report(round, ModelState::Completed)).await;
    }

    async fn reported(&mut self, message: AssistantMessage, whole: Completion, report: ModelReport) {
        self.record(Fact::ModelStarted { round: report.round }).await;
        self.record(Fact::ModelEnded { message: Arc::new(message), whole, report }).await;
    }

    async fn started(&mut self, id: &str, work: CallKind) {
        let (call_id, name, effect) = (CallId::from(id), "work".into(), EffectClass::Unsafe);
        let (args, key, at) = (json!("given"), String::new(), Timestamp::UNIX_EPOCH);
        self.record(Fact::CallStarted { call_id, name, round: 1, args: args.into(), effect, key, work, at })
            .await;
    }

    async fn ended(&mut self, id: &str, child: Option<ChildReport>) {
        let CallState::Ended { mut report, result } = ended(id, CallStatus::Completed, None) else { return };
        Arc::make_mut(&mut report).child = child;
        self.record(Fact::CallEnded { report, result, extent: OutputExtent::All }).await;
    }

    fn due(&self, demand: Option<Demand>, steered: PendingSteer) -> NextStep {
        let limits = Limits::default();
        self.machine.next_step(
            demand,
            &StepContext { limits: &limits, price: None, meter: None, steered, is_unsent: false },
        )
    }

    fn reached(&self, limits: &Limits, price: Option<&Price>) -> Option<Code> {
        let bounds = StepContext { limits, price, meter: None, steered: PendingSteer::No, is_unsent: false };
        bounds.reached(&self.machine).map(|due| match due {
            NextStep::Limit { code, .. } => code,
            other => panic!("no limit: {other:?}"),
        })
    }
}

fn report(round: u32, state: ModelState) -> ModelReport {
    ModelReport {
        model: "m".into(),
        round,
        state,
        usage: Usage::new(40, 2),
        started_at: Timestamp::UNIX_EPOCH,
        ended_at: Timestamp::UNIX_EPOCH,
        retries: Vec::new(),
        calls_left_out: 0,
    }
}

fn message(text: &str, calls: &[&str]) -> AssistantMessage {
    let said = Block::Text { text: text.into() };
    AssistantMessage {
        blocks: std::iter::once(said).chain(calls.iter().map(|id| Block::Call(tool_call(id)))).collect(),
    }
}

fn error() -> ErrorReport {
    ErrorReport::new("broken", "it broke", None)
}

fn demand(mode: Mode) -> Option<Demand> {
    Some(Demand { mode, reach: Reach::Root, deadline: None, cleanup_cap: Duration::ZERO })
}

fn now() -> Option<Demand> {
    demand(Mode::Now)
}

fn at(points: SafePoints) -> Option<Demand> {
    demand(Mode::At(points))
}

/// A child run of this cost, which used 7 tokens.
fn costing(cost: f64) -> ChildReport {
    let receipt = Receipt {
        run: RunId::from("r"),
        path: Path::default(),
        attempt: 1,
        ending: Ending::Done,
        stop: None,
        rounds: 1,
        model: None,
        summaries: Vec::new(),
        provider_tools: Vec::new(),
        approvals_open: Vec::new(),
        calls: Vec::new(),
        approvals_cancelled: Vec::new(),
        waiting: Vec::new(),
        usage: Usage::default(),
        cost: None,
        usage_total: Usage::new(7, 0),
        cost_total: None,
        worked_ms: 9,
        started_at: Timestamp::UNIX_EPOCH,
        settled_at: Timestamp::UNIX_EPOCH,
        quiet_at: None,
        survivors: Vec::new(),
        late: Vec::new(),
        unrecorded: None,
    };
    ChildReport { receipt: Some(Arc::new(receipt)), cost, ..child() }
}

/// S1.3, S2.1, S2.4: what is due in each phase of a round, and where the run then stands.
#[tokio::test]
async fn a_round_goes_from_phase_to_phase() {
    let mut logged = Logged::begun(Machine::default()).await;
    let ready = AT_ALL | SafePoints::AFTER_STARTED_CALLS;
    assert_eq!((logged.machine.phase(), logged.machine.next_round()), ("not yet started", 1));
    assert_eq!(logged.due(None, PendingSteer::No), NextStep::CallModel { gate: SafePoints::ANY });
    assert_eq!(logged.due(at(AT_MODEL), PendingSteer::No), NextStep::Settle(Ending::Stopped));
    assert_eq!(logged.machine.boundary(), Some(SafePoints::ANY));
    logged.record(Fact::ModelStarted { round: 1 }).await;
    assert_eq!((logged.machine.phase(), logged.machine.boundary()), ("the model was streaming", None));
    assert_eq!(
        (logged.due(None, PendingSteer::Waiting), logged.due(at(AT_MODEL), PendingSteer::No)),
        (NextStep::Wait, NextStep::Wait)
    );
    assert_eq!(logged.due(now(), PendingSteer::No), NextStep::CutModel(Completion::Stopped));
    assert_eq!(logged.due(None, PendingSteer::AtOnce), NextStep::CutModel(Completion::Steered));
    logged.said(1, message("so", &["c0", "c1"]), Completion::Complete).await;
    assert_eq!((logged.machine.phase(), logged.machine.last_words().as_str()), ("calls were running", "so"));
    assert_eq!(logged.due(None, PendingSteer::No), NextStep::Judge(vec![0, 1]));
    assert_eq!(logged.due(at(AT_MODEL), PendingSteer::No), NextStep::Settle(Ending::Stopped));
    let taken = ["c0", "c1", "c2"].map(|id| logged.machine.is_taken(&CallId::from(id)));
    assert_eq!((taken, logged.machine.open_calls().len()), ([true, true, false], 2));
    assert!(logged.machine.call(1).is_some() && logged.machine.call(2).is_none());
    logged.machine.clear(0, json!(1).into(), true);
    logged.machine.clear(1, json!(2).into(), true);
    let gate = AT_MODEL | SafePoints::AFTER_STARTED_CALLS;
    assert_eq!(logged.due(None, PendingSteer::No), NextStep::StartCalls { calls: vec![0, 1], gate });
    logged.started("c0", CallKind::Tool).await;
    assert_eq!(logged.machine.boundary(), Some(SafePoints::AFTER_STARTED_CALLS));
    assert_eq!(
        logged.machine.find(&CallId::from("c0")).and_then(|call| call.given.as_ref()),
        Some(&json!("given").into())
    );
    assert!(logged.machine.running_call(&CallId::from("c0")).is_some());
    assert!(logged.machine.running_call(&CallId::from("c1")).is_none());
    assert_eq!(logged.due(now(), PendingSteer::No), NextStep::Wait);
    logged.ended("c0", None).await;
    assert_eq!(logged.due(now(), PendingSteer::No), NextStep::Settle(Ending::Stopped));
    logged.ended("c1", None).await;
    assert_eq!((logged.machine.phase(), logged.machine.call_reports().len()), ("between rounds", 2));
    assert_eq!((logged.machine.effect(), logged.machine.boundary()), (SideEffect::Unknown, Some(ready)));
    assert_eq!(logged.due(at(AT_MODEL), PendingSteer::No), NextStep::CallModel { gate: ready });
    assert_eq!(logged.due(at(AT_ALL), PendingSteer::No), NextStep::Settle(Ending::Stopped));
    assert_eq!(logged.due(None, PendingSteer::Noticed), NextStep::TakeSteer);
    assert_eq!((logged.machine.history().entries().len(), logged.machine.last_words().as_str()), (3, "so"));
    logged.said(2, message("yes", &[]), Completion::Complete).await;
    assert_eq!((logged.machine.phase(), logged.machine.last_words().as_str()), ("it was ending", "yes"));
    assert_eq!((logged.machine.rounds(), logged.machine.next_round(), logged.machine.attempt()), (2, 3, 1));
    assert_eq!((logged.machine.usage().total(), logged.machine.usage_before().total()), (84, 42));
    assert_eq!(logged.machine.model().map(|model| model.round), Some(2));
}

/// S6.4, S2.11: a final answer is followed by what steers the run, unless a stop was asked or a limit is reached.
#[tokio::test]
async fn an_answer_is_followed_by_a_steer() {
    let mut logged = Logged::begun(Machine::default()).await;
    logged.said(1, message("yes", &[]), Completion::Complete).await;
    for steered in [PendingSteer::No, PendingSteer::Noticed] {
        assert_eq!(logged.due(None, steered), NextStep::Settle(Ending::Done));
    }
    for steered in [PendingSteer::Waiting, PendingSteer::AtOnce] {
        assert_eq!(logged.due(None, steered), NextStep::TakeSteer);
        assert_eq!(logged.due(at(AT_ALL), steered), NextStep::Settle(Ending::Done));
        let limits = Limits { max_rounds: 1, ..Limits::default() };
        let bounds = StepContext { limits: &limits, price: None, meter: None, steered, is_unsent: false };
        assert_eq!(logged.machine.next_step(None, &bounds), NextStep::Settle(Ending::Done));
    }
    let steer = RecordedSteer {
        id: SteerId::from("s"),
        message: UserMessage::from("and?"),
        source: SteerSource::Handle,
    };
    logged.record(Fact::SteerTaken { round: 2, steers: vec![steer] }).await;
    assert!(matches!(logged.due(None, PendingSteer::No), NextStep::CallModel { .. }));
    let last = logged.machine.history().entries().last().cloned();
    assert_eq!(last.as_deref(), Some(&Message::User(UserMessage::from("and?"))));
}

/// S2.5, S2.13, S5.1: a message that was cut, overtaken or failed leads to a stop, on, or to a failure; what had arrived stays open.
#[tokio::test]
async fn a_message_that_is_not_whole_leads_on_as_it_ended() {
    let mut cut = Logged::begun(Machine::default()).await;
    cut.said(1, message("par", &["c0"]), Completion::Stopped).await;
    assert_eq!((cut.machine.phase(), cut.machine.last_words().as_str()), ("the model was streaming", "par"));
    assert_eq!(cut.due(now(), PendingSteer::No), NextStep::Settle(Ending::Stopped));
    assert!(matches!(cut.machine.history_now().tail(), OpenEnd::Cut { .. }));
    assert_eq!(cut.machine.history().tail(), &OpenEnd::Whole);
    let mut failed = Logged::begun(Machine::default()).await;
    failed.said(1, message("par", &[]), Completion::Failed(error())).await;
    assert_eq!(
        (failed.due(None, PendingSteer::No), failed.machine.failure()),
        (NextStep::Settle(Ending::Failed), Some(&error()))
    );
    let mut overtaken = Logged::begun(Machine::default()).await;
    overtaken.said(1, message("par", &["c0"]), Completion::Steered).await;
    assert!(overtaken.machine.is_taken(&CallId::from("c0")));
    assert!(matches!(overtaken.due(None, PendingSteer::No), NextStep::CallModel { .. }));
    for start in [Fact::ModelStarted { round: 1 }, Fact::SummaryStarted { round: 1 }] {
        let mut streams = Logged::begun(Machine::default()).await;
        streams.record(start).await;
        streams.machine.fail(error());
        assert_eq!(streams.due(None, PendingSteer::No), NextStep::CutModel(Completion::Stopped));
    }
}

/// S2.21: a request that waits to be sent stands at the boundary before it, and a stop that names that cuts it; one that was sent is
/// read to its end.
#[tokio::test]
async fn a_request_that_waits_to_be_sent_is_cut_by_what_names_its_boundary() {
    let mut logged = Logged::begun(Machine::default()).await;
    let limits = Limits::default();
    let due = |logged: &Logged, points, is_unsent| {
        let bounds =
            StepContext { limits: &limits, price: None, meter: None, steered: PendingSteer::No, is_unsent };
        logged.machine.next_step(at(points), &bounds)
    };
    let cut = || NextStep::CutModel(Completion::Stopped);
    logged.record(Fact::ModelStarted { round: 1 }).await;
    for points in [AT_MODEL, AT_ALL] {
        assert_eq!((due(&logged, points, true), due(&logged, points, false)), (cut(), NextStep::Wait));
    }
    logged.reported(message("so", &["c0"]), Completion::Complete, report(1, ModelState::Completed)).await;
    logged.ended("c0", None).await;
    logged.record(Fact::ModelStarted { round: 2 }).await;
    assert_eq!(due(&logged, AT_MODEL, true), NextStep::Wait, "it stands behind the calls of a round");
    assert_eq!((due(&logged, AT_ALL, true), due(&logged, AT_ALL, false)), (cut(), NextStep::Wait));
}

/// S12.2: while the history is summarised the run still stands at the boundary before it, and a stop that names it cuts the
/// summary.
#[tokio::test]
async fn a_summary_is_cut_by_what_names_its_boundary() {
    let mut logged = Logged::begun(Machine::default()).await;
    logged.said(1, message("so", &["c0"]), Completion::Complete).await;
    logged.ended("c0", None).await;
    logged.record(Fact::SummaryStarted { round: 2 }).await;
    assert_eq!(logged.machine.phase(), "its history was being summarised");
    assert_eq!(
        (logged.due(None, PendingSteer::No), logged.due(at(AT_MODEL), PendingSteer::No)),
        (NextStep::Wait, NextStep::Wait)
    );
    assert_eq!(logged.due(at(AT_ALL), PendingSteer::No), NextStep::CutModel(Completion::Stopped));
    let report = report(2, ModelState::Completed);
    logged.record(Fact::SummaryEnded { whole: Completion::Failed(error()), report, shortened: None }).await;
    assert_eq!((logged.machine.summaries().len(), logged.machine.usage().total()), (1, 84));
    assert_eq!(logged.due(None, PendingSteer::No), NextStep::Settle(Ending::Failed));
}

/// S12.2, S3.9: only what a provider said of a whole message measures the history.
#[tokio::test]
async fn only_exact_figures_of_a_whole_message_measure() {
    for (whole, source, measures) in [
        (Completion::Complete, UsageSource::Exact, true),
        (Completion::Complete, UsageSource::Estimated, false),
        (Completion::Stopped, UsageSource::Exact, false),
    ] {
        let mut logged = Logged::begun(Machine::default()).await;
        let mut report = report(1, ModelState::Completed);
        report.usage = Usage::new(4_000, 0).with_source(source);
        logged.reported(message("", &[]), whole, report).await;
        assert_eq!(logged.machine.history().tokens(0) >= 4_000, measures);
    }
}

/// S12.6, S2.15: a model call of which nothing was sent is no round, and a whole message of which nothing was sent is no model's.
#[tokio::test]
async fn what_was_never_sent_is_no_round() {
    let never = ModelState::NeverSent;
    for (whole, state, calls, model) in [
        (Completion::Stopped, never, 0, true),
        (Completion::Complete, never, 1, false),
        (Completion::Stopped, ModelState::Closed, 1, true),
        (Completion::Complete, ModelState::Completed, 1, true),
    ] {
        let mut logged = Logged::begun(Machine::default()).await;
        logged.reported(message("so", &[]), whole, report(1, state)).await;
        assert_eq!((logged.machine.model_calls(), logged.machine.model().is_some()), (calls, model));
        let limits = Limits { max_rounds: 1, ..Limits::default() };
        assert_eq!(logged.reached(&limits, None), (calls == 1).then_some(Code::MAX_ROUNDS));
    }
}

/// S12.1: tokens and cost count child runs, by their own prices; a limit on cost binds once anything has a price.
#[tokio::test]
async fn tokens_and_cost_are_those_of_the_tree() {
    let mut logged = Logged::begun(Machine::default()).await;
    logged.said(1, message("so", &["c0", "c1", "c2"]), Completion::Complete).await;
    let cost = |max| Limits { max_cost: Some(max), ..Limits::default() };
    let free = Price::new(0.0, 0.0, 0.0);
    assert_eq!(
        (logged.reached(&cost(0.0), None), logged.reached(&cost(0.0), Some(&free))),
        (None, Some(Code::MAX_COST))
    );
    logged.ended("c0", Some(costing(2.0))).await;
    logged.ended("c1", Some(costing(3.0))).await;
    assert_eq!((logged.machine.tokens(), logged.machine.cost(None)), (56, 5.0));
    assert_eq!(
        (logged.reached(&cost(5.0), None), logged.reached(&cost(5.1), None)),
        (Some(Code::MAX_COST), None)
    );
    let million = Price::new(1_000_000.0, 0.0, 1_000_000.0);
    assert_eq!(logged.machine.cost(Some(&million)), million.of(logged.machine.usage()) + 5.0);
    let tokens = |max| Limits { max_tokens: Some(max), ..Limits::default() };
    assert_eq!(
        (logged.reached(&tokens(56), None), logged.reached(&tokens(57), None)),
        (Some(Code::MAX_TOKENS), None)
    );
    assert_eq!((over_attempts(1), over_attempts(2)), (String::new(), ", over 2 attempts".into()));
}

/// S12.6, S3.9: the usage of an attempt that ended with its process counts in the next one, and its receipt
/// is still pending; a model call in progress counts as an estimate.
#[tokio::test]
async fn a_dead_attempt_counts_in_the_next() {
    let price = Price::new(1_000_000.0, 0.0, 1_000_000.0);
    let mut logged = Logged::begun(Machine::default()).await;
    logged.opened(1, None, Some(price)).await;
    logged.said(1, message("so", &["c0", "c1"]), Completion::Complete).await;
    let own = price.of(logged.machine.usage());
    logged.ended("c0", Some(costing(2.0))).await;
    logged.ended("c1", Some(costing(3.0))).await;
    logged.record(Fact::TimeTaken { ms: 5 }).await;
    logged.opened(2, None, Some(price)).await;
    assert_eq!((logged.machine.tokens(), logged.machine.cost(Some(&price))), (56, own + 5.0));
    assert_eq!(
        (logged.machine.unreported().cost, logged.machine.unreported().usage.total()),
        (own + 5.0, 56)
    );
    assert_eq!(
        (logged.machine.worked_before(), logged.machine.usage().total()),
        (Duration::from_millis(5), 0)
    );
    assert_eq!((logged.machine.attempt(), logged.machine.call_reports().len()), (2, 0));
    logged.record(Fact::ModelStarted { round: 2 }).await;
    logged.record(Fact::TimeTaken { ms: 3 }).await;
    logged.opened(3, None, Some(price)).await;
    let lost = logged.machine.tokens() - 56;
    let unreported = &logged.machine.unreported().usage;
    assert!(lost > 0 && logged.machine.unreported().cost > own + 5.0);
    assert_eq!(
        (unreported.source, unreported.billed_beyond),
        (UsageSource::Estimated, ExtraBilling::Unknown)
    );
    assert_eq!(
        (logged.machine.worked_before(), logged.machine.phase()),
        (Duration::from_millis(8), "not yet started")
    );
    let receipt = costing(0.0).receipt.expect("it has one");
    logged.record(Fact::Settled { receipt, error: None }).await;
    logged.opened(4, None, Some(price)).await;
    assert_eq!(
        (logged.machine.worked_before(), logged.machine.unreported().cost),
        (Duration::from_millis(17), 0.0)
    );
}

/// S3.12: what an attempt cost that ended with its process is reported by the next one, by the price that it began with.
#[tokio::test]
async fn a_dead_attempt_has_its_own_price() {
    let price = Price::new(1_000_000.0, 0.0, 1_000_000.0);
    let cost_of_the_first = async |first: Option<Price>| {
        let mut logged = Logged::begun(Machine::default()).await;
        logged.opened(1, None, first).await;
        logged.said(1, message("so", &[]), Completion::Complete).await;
        logged.opened(2, None, Some(price)).await;
        logged.machine.unreported().known.sum()
    };
    assert_eq!(cost_of_the_first(Some(price)).await, Some(42.0));
    assert_eq!(cost_of_the_first(None).await, None, "it used something at an unknown price");
}

/// S8.4: a question that a running call asks belongs to the call, which keeps running.
#[tokio::test]
async fn a_question_of_a_running_call_leaves_it_running() {
    let mut logged = Logged::begun(Machine::default()).await;
    logged.said(1, message("so", &["c0"]), Completion::Complete).await;
    logged.record(Fact::ApprovalRequested(question("before"))).await;
    assert!(logged.machine.asked(&ApprovalId::from("before")).is_some());
    assert!(logged.machine.asked(&ApprovalId::from("other")).is_none());
    assert_eq!(
        (logged.machine.boundary(), logged.due(None, PendingSteer::No)),
        (Some(SafePoints::ANY), NextStep::Settle(Ending::Suspended))
    );
    assert_eq!(
        logged.due(at(AT_ALL), PendingSteer::No),
        NextStep::Settle(Ending::Stopped),
        "a safe point for every set"
    );
    let (id, call_id) = (ApprovalId::from("before"), CallId::from("c0"));
    logged
        .record(Fact::ApprovalResolved { id, call_id, answer: Resolution::Decided(Decision::Approve) })
        .await;
    assert_eq!(logged.due(None, PendingSteer::No), NextStep::Judge(vec![0]));
    logged.started("c0", CallKind::Tool).await;
    assert!(!logged.machine.waits_for_a_person(0, 1));
    for id in ["one", "two"] {
        let request = ApprovalRequest { question: ApprovalKind::DuringCall, ..question(id) };
        logged.record(Fact::ApprovalRequested(request)).await;
    }
    assert_eq!(logged.machine.live().count(), 2);
    assert!(logged.machine.running_call(&CallId::from("c0")).is_some());
    assert!(logged.machine.waits_for_a_person(0, 1), "one call asks, however much");
    let (id, call_id) = (ApprovalId::from("one"), CallId::from("c0"));
    logged.record(Fact::ApprovalResolved { id, call_id, answer: Resolution::Expired }).await;
    assert_eq!(logged.machine.live().map(|request| request.id.as_str()).collect::<Vec<_>>(), ["two"]);
    assert_eq!((logged.machine.is_resting(1), logged.machine.is_resting(0)), (true, false));
    let (id, call_id) = (ApprovalId::from("before"), CallId::from("c0"));
    logged
        .record(Fact::ApprovalResolved { id, call_id, answer: Resolution::Decided(Decision::Approve) })
        .await;
    assert_eq!(
        (logged.machine.live().count(), logged.machine.is_resting(1)),
        (1, false),
        "it was of the call itself"
    );
}

/// S8.3, S9.4: a waiting child run is known by its questions, and continues when it is woken, with them or
/// anew.
#[tokio::test]
async fn a_child_that_waits_is_known_by_its_questions() {
    let mut logged = Logged::begun(Machine::default()).await;
    logged.said(1, message("so", &["c0"]), Completion::Complete).await;
    assert_eq!(logged.machine.runs_to_resume().next(), None);
    logged.started("c0", CallKind::Child).await;
    assert!(logged.machine.runs_to_resume().eq([&CallId::from("c0")]));
    let (call_id, approvals) = (CallId::from("c0"), vec![question("q")]);
    logged.record(Fact::ChildSuspended { call_id: call_id.clone(), child: costing(2.0), approvals }).await;
    assert_eq!((logged.machine.suspended().count(), logged.machine.cost(None)), (1, 2.0));
    assert_eq!(logged.machine.suspended_on(&ApprovalId::from("q")), Some(call_id.clone()));
    assert_eq!(logged.machine.suspended_on(&ApprovalId::from("other")), None);
    logged.machine.resume_child(&call_id);
    let questions = |logged: &Logged| match logged.machine.call(0).map(|call| call.step.clone()) {
        Some(CallState::Resuming { asks_again, .. } | CallState::Ready { asks_again, .. }) => {
            Some(asks_again)
        }
        _ => None,
    };
    assert_eq!((questions(&logged), logged.machine.suspended().count()), (Some(false), 0));
    logged.machine.ask_again();
    assert_eq!(questions(&logged), Some(true));
    logged.machine.clear(0, json!(1).into(), false);
    assert_eq!(questions(&logged), Some(true), "the rules do not forget them");
}

/// S9.3, S2.14: nothing more begins once a stop has taken effect where the run stands, or the run fails.
#[tokio::test]
async fn a_run_winds_down_where_a_stop_takes_effect() {
    let mut logged = Logged::begun(Machine::default()).await;
    assert!(!logged.machine.is_winding_down(None) && logged.machine.is_winding_down(at(AT_ALL)));
    logged.record(Fact::ModelStarted { round: 1 }).await;
    assert!(!logged.machine.is_winding_down(at(SafePoints::ANY)) && logged.machine.is_winding_down(now()));
    logged.said(1, message("so", &["c0", "c1"]), Completion::Complete).await;
    assert!(!logged.machine.is_winding_down(at(AT_ALL)) && logged.machine.is_winding_down(at(AT_MODEL)));
    let CallState::Ended { report, result } = ended("c0", CallStatus::Stopped, Some(StopSource::Run)) else {
        return;
    };
    logged.record(Fact::CallEnded { report, result, extent: OutputExtent::All }).await;
    assert!(logged.machine.is_winding_down(None), "the run's stop has ended a call");
    assert_eq!(logged.due(None, PendingSteer::No), NextStep::Settle(Ending::Stopped));
    let mut fails = Logged::begun(Machine::default()).await;
    fails.machine.fail(error());
    assert!(fails.machine.is_winding_down(None));
}

/// S2.14, S1.3: a call that was announced and not let pass has not begun: the run stands before the first call again; a blank
/// message is no entry.
#[tokio::test]
async fn what_was_not_let_pass_has_not_begun() {
    let mut logged = Logged::begun(Machine::default()).await;
    logged.said(1, message("so", &["c0", "c1"]), Completion::Complete).await;
    logged.started("c0", CallKind::Tool).await;
    let before = SafePoints::AFTER_MODEL | SafePoints::AFTER_STARTED_CALLS;
    for (status, stands) in
        [(CallStatus::Completed, SafePoints::AFTER_STARTED_CALLS), (CallStatus::NotStarted, before)]
    {
        let CallState::Ended { report, result } = ended("c0", status, None) else { return };
        logged.record(Fact::CallEnded { report, result, extent: OutputExtent::All }).await;
        assert_eq!(logged.machine.boundary(), Some(stands), "{status:?}");
    }
    let mut blank = Logged::begun(Machine::default()).await;
    blank.said(1, message("", &[]), Completion::Complete).await;
    assert_eq!(blank.machine.history().entries().len(), 1);
    blank.said(2, message("yes", &[]), Completion::Complete).await;
    assert_eq!(blank.machine.history().entries().len(), 2);
}

/// S3.7: rows that come after a call's end stand in its account, in an open round and in one that is over; a call that was not let
/// pass left nothing.
#[tokio::test]
async fn late_rows_stand_in_the_account() {
    let mut logged = Logged::begun(Machine::default()).await;
    logged.said(1, message("so", &["c0", "c1"]), Completion::Complete).await;
    logged.ended("c0", None).await;
    let remote = RemoteReport::of("peer", crate::value::receipt::StopSupport::Hard);
    logged.machine.name_remote(&CallId::from("c0"), remote.clone());
    logged.started("c1", CallKind::Child).await;
    let CallState::Ended { report, result } = ended("c1", CallStatus::NotStarted, None) else { return };
    logged.record(Fact::CallEnded { report, result, extent: OutputExtent::All }).await;
    logged.machine.name_remote(&CallId::from("c1"), remote.clone());
    let cleanup = crate::value::receipt::CleanupReport {
        label: "tidy".into(),
        end: crate::value::receipt::CleanupEnd::Ran,
    };
    logged.machine.add_rows(&CallId::from("c1"), vec![cleanup], Vec::new());
    let rows = logged.machine.call_reports();
    assert!(rows.iter().all(|row| row.remote.as_deref() == Some(&remote)));
    assert_eq!(rows.iter().map(|row| row.cleanups.len()).collect::<Vec<_>>(), [0, 1]);
}

/// S4.11, S5.5: an answer that does not match its schema is requested again, a limited number of times, as
/// text or as a call.
#[tokio::test]
async fn an_answer_that_does_not_fit_is_asked_for_again() {
    let form = || Arc::new(AnswerSchema::of::<u32>(|_| false).with_repairs(1));
    let mut logged = Logged::begun(Machine::answering(Some(form()))).await;
    logged.said(1, message("7", &[]), Completion::Complete).await;
    assert_eq!(
        (logged.due(None, PendingSteer::No), logged.machine.last_words().as_str()),
        (NextStep::Settle(Ending::Done), "7")
    );
    let mut missed = Logged::begun(Machine::answering(Some(form()))).await;
    for (round, fails) in [(1, false), (2, true)] {
        missed.said(round, message("seven", &[]), Completion::Complete).await;
        assert_eq!(missed.machine.failure().is_some(), fails);
    }
    for (name, fails) in [(form().name().to_owned(), true), ("work".to_owned(), false)] {
        let mut called = Logged::begun(Machine::answering(Some(form()))).await;
        for round in 1..=2 {
            let id = format!("c{round}");
            called.said(round, message("so", &[&id]), Completion::Complete).await;
            let CallState::Ended { report, mut result } = ended(&id, CallStatus::Failed, None) else {
                return;
            };
            result.name.clone_from(&name);
            result.verdict = crate::value::message::ResultStatus::Error;
            called.record(Fact::CallEnded { report, result, extent: OutputExtent::All }).await;
        }
        assert_eq!(called.machine.failure().is_some(), fails, "{name}");
    }
}
