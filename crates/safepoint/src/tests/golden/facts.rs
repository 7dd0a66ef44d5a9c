//! Facts: every record of a run's machine.

use safepoint_golden::each;
use serde_json::json;

use super::{
    golden,
    messages::{decisions, histories, shortened},
    receipts::{call, child, full_receipt, plain_call, plain_receipt, request},
    samples::{assistant, at, error, model, plain_model, plain_question, question, refused, result},
};
use crate::{
    History,
    approval::OnUnknownEffect,
    event::{Completion, Fact, HookAction, HookReport, Resolution},
    outcome::ErrorKind,
    raw::{OutputExtent, RecordedSteer, Repair, RunLimits, SteerSource},
    receipt::{CallKind, ModelState},
    tool::EffectClass,
    usage::Price,
};

fn limits() -> Vec<RunLimits> {
    let price = Price::new(1.0, 0.1, 5.0);
    vec![
        RunLimits { max_rounds: 50, max_tokens: None, max_cost: None, wall_time_ms: None, price: None },
        RunLimits {
            max_rounds: 50,
            max_tokens: Some(100_000),
            max_cost: Some(1.5),
            wall_time_ms: Some(60_000),
            price: Some(price),
        },
    ]
}

/// Each source of a steer; each is read through `StoredSteer`.
fn steers() -> Vec<RecordedSteer> {
    let sources = each!(SteerSource {
        SteerSource::Handle => SteerSource::Handle;
        SteerSource::Item => SteerSource::Item;
        SteerSource::Session => SteerSource::Session;
    });
    let steer = |source| RecordedSteer { id: "item-3".into(), message: "use b".into(), source };
    sources.into_iter().map(steer).collect()
}

fn wholes() -> Vec<Completion> {
    each!(Completion {
        Completion::Complete => Completion::Complete;
        Completion::Stopped => Completion::Stopped;
        Completion::Steered => Completion::Steered;
        Completion::Failed(_) => Completion::Failed(error());
    })
}

fn extents() -> Vec<OutputExtent> {
    each!(OutputExtent {
        OutputExtent::All => OutputExtent::All;
        OutputExtent::Truncated { .. } =>
            OutputExtent::Truncated { bytes: 70_000, file: None },
            OutputExtent::Truncated { bytes: 70_000, file: Some("/tmp/output.txt".into()) };
    })
}

fn answers() -> Vec<Resolution> {
    each!(Resolution {
        Resolution::Decided(_) => Resolution::Decided(decisions().remove(0));
        Resolution::Expired => Resolution::Expired;
        Resolution::Withdrawn => Resolution::Withdrawn;
    })
}

pub(super) fn hook_actions() -> Vec<HookAction> {
    let call_id = || "call_1".into();
    let (bytes_before, bytes_after) = (40, 12);
    let digest = |of: &str| format!("sha256:{of}");
    each!(HookAction {
        HookAction::RequestChanged { .. } =>
            HookAction::RequestChanged { round: 2, before: digest("1a"), after: digest("2b"), messages: 3 };
        HookAction::RunAnswered { .. } => HookAction::RunAnswered { round: 1, text: "I only talk about trains.".into() };
        HookAction::TextChanged { .. } => HookAction::TextChanged { round: 2, bytes_before, bytes_after };
        HookAction::ArgsChanged { .. } =>
            HookAction::ArgsChanged { call_id: call_id(), before: digest("1a"), args: json!({"dry_run": true}).into() };
        HookAction::CallRefused { .. } => HookAction::CallRefused { call_id: call_id() };
        HookAction::CallAnswered { .. } => HookAction::CallAnswered { call_id: call_id() };
        HookAction::ResultChanged { .. } =>
            HookAction::ResultChanged { call_id: call_id(), bytes_before, bytes_after };
        HookAction::ResultWithheld { .. } => HookAction::ResultWithheld { call_id: call_id() };
    })
}

pub(super) fn attempt(
    history: Option<History>,
    on_unknown: OnUnknownEffect,
    limits: Option<RunLimits>,
) -> Fact {
    Fact::AttemptOpened { run: "run_1".into(), attempt: 1, history, at: at(0), on_unknown, limits }
}

fn call_started(effect: EffectClass, work: CallKind) -> Fact {
    let args = json!({"command": "ls"});
    let (call_id, name, key) = ("call_1".into(), "shell".into(), "run_1/call_1".into());
    Fact::CallStarted { call_id, name, round: 1, args: args.into(), effect, key, work, at: at(110) }
}

fn effects() -> Vec<EffectClass> {
    each!(EffectClass {
        EffectClass::ReadOnly => EffectClass::ReadOnly;
        EffectClass::Idempotent => EffectClass::Idempotent;
        EffectClass::Keyed => EffectClass::Keyed;
        EffectClass::Unsafe => EffectClass::Unsafe;
    })
}

/// At least one of each, with and without what may be left out.
pub(super) fn facts() -> Vec<Fact> {
    let closed = |answer| Fact::ApprovalResolved { id: "apr_1".into(), call_id: "call_1".into(), answer };
    let ended = |extent| Fact::CallEnded { report: call().into(), result: result(), extent };
    let repairs = vec![Repair::AnsweredCall { call_id: "call_0".into() }, Repair::DroppedEmpty];
    let summary = || shortened().pop();
    let mut facts = each!(Fact {
        Fact::AttemptOpened { .. } =>
            attempt(histories().pop(), OnUnknownEffect::Ask, limits().pop()), attempt(None, OnUnknownEffect::Tell, None);
        Fact::TimeTaken { .. } => Fact::TimeTaken { ms: 1234 };
        Fact::HistoryRepaired { .. } => Fact::HistoryRepaired { repairs };
        Fact::ModelStarted { .. } => Fact::ModelStarted { round: 1 };
        Fact::ModelEnded { .. } =>
            Fact::ModelEnded { message: assistant().into(), whole: Completion::Complete, report: plain_model() };
        Fact::ModelTooLong { .. } => Fact::ModelTooLong { report: plain_model(), error: error() };
        Fact::HookActed(_) => Fact::HookActed(HookReport::new("dry-run", hook_actions().remove(0)));
        Fact::SteerTaken { .. } => Fact::SteerTaken { round: 2, steers: steers() };
        Fact::HistoryShortened(_) => Fact::HistoryShortened(shortened().remove(0));
        Fact::SummaryStarted { .. } => Fact::SummaryStarted { round: 2 };
        Fact::SummaryEnded { .. } =>
            Fact::SummaryEnded { whole: Completion::Complete, report: model(ModelState::Completed), shortened: summary() },
            Fact::SummaryEnded { whole: Completion::Stopped, report: model(ModelState::Closed), shortened: None };
        Fact::CallStarted { .. } => call_started(EffectClass::Unsafe, CallKind::Tool);
        Fact::RemoteTaskNamed { .. } => Fact::RemoteTaskNamed { call_id: "call_1".into(), task: "task-1".into() };
        Fact::CallEnded { .. } => Fact::CallEnded { report: plain_call().into(), result: result(), extent: OutputExtent::All };
        Fact::ChildSuspended { .. } => Fact::ChildSuspended {
            call_id: "call_1".into(), child: child(CallKind::Child), approvals: vec![question()],
        };
        Fact::ApprovalRequested(_) => Fact::ApprovalRequested(plain_question()), Fact::ApprovalRequested(question());
        Fact::ApprovalResolved { .. } => closed(Resolution::Expired);
        Fact::StopRequested(_) => Fact::StopRequested(request());
        Fact::StopEscalated => Fact::StopEscalated;
        Fact::StopObserved { .. } => Fact::StopObserved { at: at(5000) };
        Fact::Settled { .. } =>
            Fact::Settled { receipt: plain_receipt().into(), error: None },
            Fact::Settled { receipt: full_receipt().into(), error: Some(error()) };
    });
    facts.extend(effects().into_iter().map(|effect| call_started(effect, CallKind::Background)));
    facts.extend(wholes().into_iter().map(|whole| Fact::ModelEnded {
        message: assistant().into(),
        whole,
        report: model(ModelState::Closed),
    }));
    facts.extend(extents().into_iter().map(ended));
    facts.extend(answers().into_iter().chain(decisions().into_iter().map(Resolution::Decided)).map(closed));
    facts
}

fn kinds() -> Vec<ErrorKind> {
    each!(ErrorKind {
        ErrorKind::Authentication => ErrorKind::Authentication;
        ErrorKind::NotFound => ErrorKind::NotFound;
        ErrorKind::RateLimit => ErrorKind::RateLimit;
        ErrorKind::InvalidRequest => ErrorKind::InvalidRequest;
        ErrorKind::TooLong => ErrorKind::TooLong;
        ErrorKind::Overloaded => ErrorKind::Overloaded;
        ErrorKind::Provider => ErrorKind::Provider;
        ErrorKind::Timeout => ErrorKind::Timeout;
        ErrorKind::Unreachable => ErrorKind::Unreachable;
        ErrorKind::Broken => ErrorKind::Broken;
        ErrorKind::Malformed => ErrorKind::Malformed;
        ErrorKind::Refused => ErrorKind::Refused;
        ErrorKind::Truncated => ErrorKind::Truncated;
        ErrorKind::Answer => ErrorKind::Answer;
        ErrorKind::Tool => ErrorKind::Tool;
        ErrorKind::Callback => ErrorKind::Callback;
        ErrorKind::Approval => ErrorKind::Approval;
        ErrorKind::Store => ErrorKind::Store;
        ErrorKind::Conflict => ErrorKind::Conflict;
        ErrorKind::Runtime => ErrorKind::Runtime;
        ErrorKind::Other => ErrorKind::Other;
    })
}

#[test]
fn every_fact_of_a_run() {
    golden("facts")
        .json("fact", facts())
        .json("whole", wholes())
        .json("extent", extents())
        .json("answer", answers())
        .json("hook action", hook_actions())
        .json("steer", steers())
        .json("limits", limits())
        .json("effect class", effects())
        .json("error", [error(), refused()])
        .json("kind of error", kinds())
        .lines("kind of error in words", kinds().into_iter().map(ErrorKind::as_str))
        .check();
}
