//! A call that is taken up again, answered, or closed as it stands: from each step, for each effect.

use serde_json::json;

use super::*;
use crate::{
    run::machine::tests::made::{child, ended, question, tool_call},
    value::approval::Covers,
};

const STOPPED: CallStatus = CallStatus::Stopped;
const BY_RUN: Option<StoppedBy> = Some(StoppedBy::Run);

fn call(effect: impl Into<Option<EffectClass>>, step: Step) -> Call {
    Call { effect: effect.into(), step, ..Call::new(tool_call("c0")) }
}

fn with_run(call: Call) -> Call {
    Call { run: Some(json!("run")), ..call }
}

fn suspended(questions: &[&str]) -> Step {
    Step::Suspended { child: child(), approvals: questions.iter().map(|id| question(id)).collect() }
}

fn cleared(questions: Questions) -> Step {
    Step::Cleared { args: json!("cleared"), questions }
}

/// The step in a word, with what it keeps.
fn word(call: &Call) -> String {
    match &call.step {
        Step::Wanted => "wanted".into(),
        Step::Asked(request) => format!("asked {:?}", request.id.as_str()),
        Step::Approved(allowed) => format!("approved {} {:?}", allowed.args, allowed.shown),
        Step::Again { args, questions } => format!("again {args} {questions:?}"),
        Step::Cleared { args, questions } => format!("cleared {args} {questions:?}"),
        Step::Running => "running".into(),
        Step::Suspended { approvals, .. } => format!("suspended {}", approvals.len()),
        Step::Lost => "lost".into(),
        Step::Ended { report, .. } => format!("ended {:?}", report.stopped_by),
    }
}

fn reopened(mut call: Call, on_unknown: OnUnknown) -> (String, bool) {
    call.reopen(on_unknown);
    (word(&call), call.is_in_doubt())
}

/// S5.3, S7.3: a call that the run's stop ended is begun again only where that repeats nothing; of the rest the model is told, or
/// a person is asked.
#[test]
fn a_stopped_call_is_begun_again_where_that_repeats_nothing() {
    use EffectClass::{Idempotent, Keyed, ReadOnly, Unsafe};
    let stopped = || ended("c0", STOPPED, BY_RUN);
    for (effect, on_unknown, word, doubt) in [
        (None, OnUnknown::Tell, "wanted", false),
        (Some(ReadOnly), OnUnknown::Tell, "wanted", false),
        (Some(Idempotent), OnUnknown::Tell, "wanted", true),
        (Some(Keyed), OnUnknown::Ask, "wanted", true),
        (Some(Unsafe), OnUnknown::Ask, "lost", true),
        (Some(Unsafe), OnUnknown::Tell, "ended None", false),
    ] {
        assert_eq!(reopened(call(effect, stopped()), on_unknown), (word.into(), doubt), "{effect:?}");
    }
    let mut harmless = call(Unsafe, stopped());
    if let Step::Ended { report, .. } = &mut harmless.step {
        report.effect = Effect::None;
    }
    assert_eq!(reopened(harmless, OnUnknown::Ask), ("ended None".into(), false));
    let named = Call { named: Some("t1".into()), ..call(Unsafe, stopped()) };
    assert_eq!(reopened(named, OnUnknown::Tell), ("ended None".into(), false), "it was stopped at its peer");
    let unbegun = call(Unsafe, ended("c0", CallStatus::NotStarted, BY_RUN));
    assert_eq!(reopened(unbegun, OnUnknown::Ask), ("wanted".into(), false));
    let alone = call(None, ended("c0", STOPPED, Some(StoppedBy::Call)));
    assert_eq!(reopened(alone, OnUnknown::Ask), ("ended Some(Call)".into(), false), "a person ended it");
}

/// S5.3, S8.3: a run that is a call's work goes on where it is; a stop took its questions back, a failure above and a crash did
/// not.
#[test]
fn a_child_run_goes_on_where_it_is() {
    let stopped = with_run(call(EffectClass::Unsafe, ended("c0", STOPPED, BY_RUN)));
    assert_eq!(reopened(stopped.clone(), OnUnknown::Tell).0, "again \"run\" AskAgain");
    let mut failed = stopped;
    if let Step::Ended { report, .. } = &mut failed.step {
        let reason =
            safepoint_scope::Reason::new(safepoint_scope::Code::PARENT).by(safepoint_scope::Actor::Engine);
        report.reason = Some(ReasonReport::from(&reason));
    }
    assert_eq!(reopened(failed, OnUnknown::Tell).0, "again \"run\" Keep");
    for (step, with, without) in [
        (suspended(&["q"]), "again \"run\" Keep", "wanted"),
        (Step::Running, "again \"run\" Keep", "lost"),
        (cleared(Questions::AskAgain), "again \"cleared\" AskAgain", "wanted"),
        (cleared(Questions::Keep), "again \"cleared\" Keep", "wanted"),
    ] {
        let plain = call(EffectClass::Unsafe, step);
        assert_eq!(reopened(with_run(plain.clone()), OnUnknown::Tell).0, with);
        assert_eq!(reopened(plain, OnUnknown::Tell).0, without);
    }
}

/// S7.3, S7.2: a call that ran when its process ended may have happened; what stood open stands open, and a yes stays a yes.
#[test]
fn a_call_of_a_dead_process_is_in_doubt() {
    use EffectClass::{Keyed, ReadOnly, Unsafe};
    for (effect, word, doubt) in
        [(ReadOnly, "wanted", false), (Keyed, "wanted", true), (Unsafe, "lost", true)]
    {
        assert_eq!(reopened(call(effect, Step::Running), OnUnknown::Tell), (word.into(), doubt));
    }
    let named = Call { named: Some("t1".into()), ..call(Unsafe, Step::Running) };
    assert_eq!(
        reopened(named, OnUnknown::Tell),
        ("wanted".into(), true),
        "its peer is asked for the same work"
    );
    let again = Step::Again { args: json!(1), questions: Questions::Keep };
    for (step, word) in
        [(Step::Asked(question("q")), "asked \"q\""), (Step::Lost, "lost"), (again, "again 1 Keep")]
    {
        assert_eq!(reopened(with_run(call(Unsafe, step)), OnUnknown::Tell).0, word);
    }
    assert_eq!(reopened(call(None, Step::Wanted), OnUnknown::Tell).0, "wanted");
    let mut allowed = call(Unsafe, Step::Asked(question("q")));
    allowed.answered(&ApprovalId::from("q"), &Answered::Decided(Decision::Approve));
    allowed.step = cleared(Questions::Keep);
    assert_eq!(reopened(allowed, OnUnknown::Tell).0, "approved \"asked\" Exactly");
}

/// S8.2, S7.3: an answer moves the call as it says, and one that is given up or expires is followed by its end.
#[test]
fn an_answer_moves_its_call() {
    let changed = || Decision::ApproveWith { args: json!("changed") };
    let always = || Decision::ApproveAlways { covers: Covers::Tool };
    for (answer, word) in [
        (Answered::Decided(Decision::Approve), "approved \"asked\" Exactly"),
        (Answered::Decided(always()), "approved \"asked\" Exactly"),
        (Answered::Decided(changed()), "approved \"changed\" Others"),
        (Answered::Decided(Decision::Deny { message: String::new() }), "asked \"q\""),
        (Answered::Expired, "asked \"q\""),
        (Answered::Withdrawn, "wanted"),
    ] {
        let mut asked = call(None, Step::Asked(question("q")));
        asked.answered(&ApprovalId::from("q"), &answer);
        assert_eq!(self::word(&asked), word, "{answer:?}");
    }
    for (effect, word) in [(EffectClass::Unsafe, "lost"), (EffectClass::Keyed, "wanted")] {
        let mut doubtful = call(effect, Step::Asked(question("q")));
        doubtful.begin_to_doubt();
        doubtful.answered(&ApprovalId::from("q"), &Answered::Withdrawn);
        assert_eq!(self::word(&doubtful), word);
    }
    let mut unbegun = call(EffectClass::Unsafe, Step::Asked(question("q")));
    unbegun.answered(&ApprovalId::from("q"), &Answered::Withdrawn);
    assert_eq!(word(&unbegun), "wanted");
}

/// S8.3: a child run goes on when the last of its questions is answered, and not before.
#[test]
fn a_child_run_waits_for_all_its_answers() {
    let mut waits = with_run(call(None, suspended(&["one", "two"])));
    let yes = Answered::Decided(Decision::Approve);
    for (id, word) in [("other", "suspended 2"), ("one", "suspended 1"), ("two", "again \"run\" AskAgain")] {
        waits.answered(&ApprovalId::from(id), &yes);
        assert_eq!(self::word(&waits), word);
    }
}

/// S5.3, S2.11: who closes a round tells of each call what is known: its result, that it never began, or that nobody knows.
#[test]
fn a_closed_call_says_what_is_known() {
    let doubtful = |step| {
        let mut call = call(EffectClass::Unsafe, step);
        call.begin_to_doubt();
        call
    };
    let plain = |step| call(None, step);
    let again = || Step::Again { args: json!(1), questions: Questions::Keep };
    for (call, text) in [
        (plain(ended("c0", STOPPED, None)), "end of c0"),
        (plain(Step::Running), note::STOPPED_UNKNOWN),
        (plain(Step::Lost), note::STOPPED_UNKNOWN),
        (plain(suspended(&["q"])), note::STOPPED_UNKNOWN),
        (plain(again()), note::STOPPED_UNKNOWN),
        (plain(cleared(Questions::Keep)), note::NOT_STARTED),
        (with_run(plain(cleared(Questions::Keep))), note::STOPPED_UNKNOWN),
        (plain(Step::Wanted), note::NOT_STARTED),
        (plain(Step::Asked(question("q"))), note::NOT_STARTED),
        (doubtful(Step::Wanted), note::STOPPED_UNKNOWN),
        (doubtful(Step::Asked(question("q"))), note::STOPPED_UNKNOWN),
        (doubtful(cleared(Questions::Keep)), note::STOPPED_UNKNOWN),
    ] {
        let told = call.result();
        assert_eq!((told.text.as_str(), told.call_id.as_str()), (text, "c0"), "{}", word(&call));
    }
}

/// S8.3, S7.3: a run goes on with its call where that waits or was cut, and not where it was never begun or a person ended it.
#[test]
fn a_run_goes_on_with_the_call_that_waits_or_was_cut() {
    let again = Step::Again { args: json!(1), questions: Questions::Keep };
    for (step, goes_on) in [
        (ended("c0", STOPPED, BY_RUN), true),
        (ended("c0", STOPPED, Some(StoppedBy::Call)), false),
        (ended("c0", CallStatus::Completed, None), false),
        (Step::Running, true),
        (again, true),
        (cleared(Questions::Keep), true),
        (Step::Wanted, false),
        (suspended(&["q"]), true),
        (Step::Lost, false),
    ] {
        let plain = call(None, step);
        assert!(!plain.has_run_to_go_on() && !plain.has_run());
        let run = with_run(plain);
        assert_eq!((run.has_run_to_go_on(), run.has_run()), (goes_on, true), "{}", word(&run));
    }
    let given = Call { given: Some(json!("given")), ..call(None, Step::Running) };
    assert_eq!((given.given(), call(None, Step::Running).given()), (Some(&json!("given")), None));
}
