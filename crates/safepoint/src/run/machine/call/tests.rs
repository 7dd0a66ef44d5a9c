//! A call that is resumed, answered, or closed as it is: from each state, for each effect.

use serde_json::json;

use super::*;
use crate::{
    run::machine::tests::made::{child, ended, question, tool_call},
    value::{
        approval::AllowScope,
        message::{AssistantMessage, Block},
    },
};

const STOPPED: CallStatus = CallStatus::Stopped;
const BY_RUN: Option<StopSource> = Some(StopSource::Run);

fn call(effect: impl Into<Option<EffectClass>>, step: CallState) -> Call {
    let message = Arc::new(AssistantMessage { blocks: vec![Block::Call(tool_call("c0"))] });
    let call = SharedCall::all(&message).next().expect("the message has a call");
    Call { effect: effect.into(), step, ..Call::new(call) }
}

fn with_run(call: Call) -> Call {
    Call { run: Some(json!("run").into()), ..call }
}

fn suspended(questions: &[&str]) -> CallState {
    CallState::Suspended { child: child(), approvals: questions.iter().map(|id| question(id)).collect() }
}

fn cleared(asks_again: bool) -> CallState {
    CallState::Ready { args: json!("cleared").into(), asks_again }
}

/// The step in a word, with what it keeps.
fn word(call: &Call) -> String {
    match &call.step {
        CallState::Requested => "wanted".into(),
        CallState::AwaitingApproval(request) => format!("asked {:?}", request.id.as_str()),
        CallState::Approved(allowed) => format!("approved {} {}", allowed.args, allowed.is_changed),
        CallState::Resuming { args, asks_again } => format!("again {args} {asks_again}"),
        CallState::Ready { args, asks_again } => format!("cleared {args} {asks_again}"),
        CallState::Running => "running".into(),
        CallState::Suspended { approvals, .. } => format!("suspended {}", approvals.len()),
        CallState::EffectUnknown => "lost".into(),
        CallState::Ended { report, .. } => format!("ended {:?}", report.stopped_by),
    }
}

fn reopened(mut call: Call, on_unknown: OnUnknownEffect) -> (String, bool) {
    call.reopen(on_unknown);
    (word(&call), call.is_in_doubt())
}

/// S5.3, S7.3: a call that the run's stop ended is begun again only if that repeats nothing; for the others
/// the model gets the result, or a person is asked.
#[test]
fn a_stopped_call_is_begun_again_where_that_repeats_nothing() {
    use EffectClass::{Idempotent, Keyed, ReadOnly, Unsafe};
    let stopped = || ended("c0", STOPPED, BY_RUN);
    for (effect, on_unknown, word, doubt) in [
        (None, OnUnknownEffect::Tell, "wanted", false),
        (Some(ReadOnly), OnUnknownEffect::Tell, "wanted", false),
        (Some(Idempotent), OnUnknownEffect::Tell, "wanted", true),
        (Some(Keyed), OnUnknownEffect::Ask, "wanted", true),
        (Some(Unsafe), OnUnknownEffect::Ask, "lost", true),
        (Some(Unsafe), OnUnknownEffect::Tell, "ended None", false),
    ] {
        assert_eq!(reopened(call(effect, stopped()), on_unknown), (word.into(), doubt), "{effect:?}");
    }
    let mut harmless = call(Unsafe, stopped());
    if let CallState::Ended { report, .. } = &mut harmless.step {
        Arc::make_mut(report).effect = SideEffect::None;
    }
    assert_eq!(reopened(harmless, OnUnknownEffect::Ask), ("ended None".into(), false));
    let named = Call { named: Some("t1".into()), ..call(Unsafe, stopped()) };
    assert_eq!(
        reopened(named, OnUnknownEffect::Tell),
        ("ended None".into(), false),
        "it was stopped at its peer"
    );
    let unbegun = call(Unsafe, ended("c0", CallStatus::NotStarted, BY_RUN));
    assert_eq!(reopened(unbegun, OnUnknownEffect::Ask), ("wanted".into(), false));
    let alone = call(None, ended("c0", STOPPED, Some(StopSource::Call)));
    assert_eq!(
        reopened(alone, OnUnknownEffect::Ask),
        ("ended Some(Call)".into(), false),
        "a person ended it"
    );
}

/// S5.3, S8.3: a run that is a call's work resumes where it is; a stop withdrew its questions, a failure
/// above and a crash did not.
#[test]
fn a_child_run_goes_on_where_it_is() {
    let stopped = with_run(call(EffectClass::Unsafe, ended("c0", STOPPED, BY_RUN)));
    assert_eq!(reopened(stopped.clone(), OnUnknownEffect::Tell).0, "again \"run\" true");
    let mut failed = stopped;
    if let CallState::Ended { report, .. } = &mut failed.step {
        let reason = safepoint_scope::Reason::new(safepoint_scope::Code::PARENT)
            .with_actor(safepoint_scope::Actor::Engine);
        Arc::make_mut(report).reason = Some(ReasonReport::from(&reason));
    }
    assert_eq!(reopened(failed, OnUnknownEffect::Tell).0, "again \"run\" false");
    for (step, with, without) in [
        (suspended(&["q"]), "again \"run\" false", "wanted"),
        (CallState::Running, "again \"run\" false", "lost"),
        (cleared(true), "again \"cleared\" true", "wanted"),
        (cleared(false), "again \"cleared\" false", "wanted"),
    ] {
        let plain = call(EffectClass::Unsafe, step);
        assert_eq!(reopened(with_run(plain.clone()), OnUnknownEffect::Tell).0, with);
        assert_eq!(reopened(plain, OnUnknownEffect::Tell).0, without);
    }
}

/// S7.3, S7.2: a call that was running when its process ended may have happened; open questions stay open,
/// and an approval stays valid.
#[test]
fn a_call_of_a_dead_process_is_in_doubt() {
    use EffectClass::{Keyed, ReadOnly, Unsafe};
    for (effect, word, doubt) in
        [(ReadOnly, "wanted", false), (Keyed, "wanted", true), (Unsafe, "lost", true)]
    {
        assert_eq!(reopened(call(effect, CallState::Running), OnUnknownEffect::Tell), (word.into(), doubt));
    }
    let named = Call { named: Some("t1".into()), ..call(Unsafe, CallState::Running) };
    assert_eq!(
        reopened(named, OnUnknownEffect::Tell),
        ("wanted".into(), true),
        "its peer is asked for the same work"
    );
    let again = CallState::Resuming { args: json!(1).into(), asks_again: false };
    for (step, word) in [
        (CallState::AwaitingApproval(question("q")), "asked \"q\""),
        (CallState::EffectUnknown, "lost"),
        (again, "again 1 false"),
    ] {
        assert_eq!(reopened(with_run(call(Unsafe, step)), OnUnknownEffect::Tell).0, word);
    }
    assert_eq!(reopened(call(None, CallState::Requested), OnUnknownEffect::Tell).0, "wanted");
    let mut allowed = call(Unsafe, CallState::AwaitingApproval(question("q")));
    allowed.answered(&ApprovalId::from("q"), &Resolution::Decided(Decision::Approve));
    allowed.step = cleared(false);
    assert_eq!(reopened(allowed, OnUnknownEffect::Tell).0, "approved \"asked\" false");
}

/// S8.2, S7.3: an answer moves the call as it says, and one that is given up or expires is followed by its end.
#[test]
fn an_answer_moves_its_call() {
    let changed = || Decision::approve_with(json!("changed"));
    let always = || Decision::ApproveAlways { covers: AllowScope::Tool };
    for (answer, word) in [
        (Resolution::Decided(Decision::Approve), "approved \"asked\" false"),
        (Resolution::Decided(always()), "approved \"asked\" false"),
        (Resolution::Decided(changed()), "approved \"changed\" true"),
        (Resolution::Decided(Decision::Deny { message: String::new() }), "asked \"q\""),
        (Resolution::Expired, "asked \"q\""),
        (Resolution::Withdrawn, "wanted"),
    ] {
        let mut asked = call(None, CallState::AwaitingApproval(question("q")));
        asked.answered(&ApprovalId::from("q"), &answer);
        assert_eq!(self::word(&asked), word, "{answer:?}");
    }
    for (effect, word) in [(EffectClass::Unsafe, "lost"), (EffectClass::Keyed, "wanted")] {
        let mut doubtful = call(effect, CallState::AwaitingApproval(question("q")));
        doubtful.begin_to_doubt();
        doubtful.answered(&ApprovalId::from("q"), &Resolution::Withdrawn);
        assert_eq!(self::word(&doubtful), word);
    }
    let mut unbegun = call(EffectClass::Unsafe, CallState::AwaitingApproval(question("q")));
    unbegun.answered(&ApprovalId::from("q"), &Resolution::Withdrawn);
    assert_eq!(word(&unbegun), "wanted");
}

/// S8.3: a child run resumes when the last of its questions is answered, and not before.
#[test]
fn a_child_run_waits_for_all_its_answers() {
    let mut waits = with_run(call(None, suspended(&["one", "two"])));
    let yes = Resolution::Decided(Decision::Approve);
    for (id, word) in [("other", "suspended 2"), ("one", "suspended 1"), ("two", "again \"run\" true")] {
        waits.answered(&ApprovalId::from(id), &yes);
        assert_eq!(self::word(&waits), word);
    }
}

/// S5.3, S2.11: closing a round reports for each call what is known: its result, that it never began, or that
/// its effect is unknown.
#[test]
fn a_closed_call_says_what_is_known() {
    let doubtful = |step| {
        let mut call = call(EffectClass::Unsafe, step);
        call.begin_to_doubt();
        call
    };
    let plain = |step| call(None, step);
    let again = || CallState::Resuming { args: json!(1).into(), asks_again: false };
    for (call, text) in [
        (plain(ended("c0", STOPPED, None)), "end of c0"),
        (plain(CallState::Running), note::CUT_OFF),
        (plain(CallState::EffectUnknown), note::CUT_OFF),
        (plain(suspended(&["q"])), note::STOPPED_UNKNOWN),
        (plain(again()), note::STOPPED_UNKNOWN),
        (plain(cleared(false)), note::NOT_STARTED),
        (with_run(plain(cleared(false))), note::STOPPED_UNKNOWN),
        (plain(CallState::Requested), note::NOT_STARTED),
        (plain(CallState::AwaitingApproval(question("q"))), note::NOT_STARTED),
        (doubtful(CallState::Requested), note::CUT_OFF),
        (doubtful(CallState::AwaitingApproval(question("q"))), note::CUT_OFF),
        (doubtful(cleared(false)), note::CUT_OFF),
    ] {
        let result = call.result();
        assert_eq!((result.text.as_str(), result.call_id.as_str()), (text, "c0"), "{}", word(&call));
    }
}

/// S8.3, S7.3: a run resumes with its call if that waits or was cut, and not if it was never begun or a
/// person ended it.
#[test]
fn a_run_goes_on_with_the_call_that_waits_or_was_cut() {
    let again = CallState::Resuming { args: json!(1).into(), asks_again: false };
    for (step, goes_on) in [
        (ended("c0", STOPPED, BY_RUN), true),
        (ended("c0", STOPPED, Some(StopSource::Call)), false),
        (ended("c0", CallStatus::Completed, None), false),
        (CallState::Running, true),
        (again, true),
        (cleared(false), true),
        (CallState::Requested, false),
        (suspended(&["q"]), true),
        (CallState::EffectUnknown, false),
    ] {
        let plain = call(None, step);
        assert!(!plain.has_run_to_resume() && !plain.has_run());
        let run = with_run(plain);
        assert_eq!((run.has_run_to_resume(), run.has_run()), (goes_on, true), "{}", word(&run));
    }
    let given = Call { given: Some(json!("given").into()), ..call(None, CallState::Running) };
    assert_eq!(
        (given.given.as_ref(), call(None, CallState::Running).given.as_ref()),
        (Some(&json!("given").into()), None)
    );
}
