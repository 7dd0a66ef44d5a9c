//! Each way in which a call ends: its status, whose stop it was, and what the model sees.

use serde_json::json;

use super::*;
use crate::value::{
    ids::Path,
    receipt::{CallKind, RemoteStopState, StopSupport},
};

fn call() -> ToolCall {
    ToolCall { id: CallId::from("c1"), name: "work".into(), args: "{}".into() }
}

fn child() -> ChildReport {
    ChildReport { path: Path::default(), work: CallKind::Child, receipt: None, cost: 0.0 }
}

fn scope_stopped() -> (Scope, Reason) {
    let (scope, handle) = Scope::root();
    handle.stop(safepoint_scope::StopRequest::now().with_reason(Reason::user("enough")));
    (scope, Reason::user("enough"))
}

fn process(signals: &[&str]) -> ProcessReport {
    ProcessReport {
        pid: 1,
        label: "sh".into(),
        ended: "signal".into(),
        signals: signals.iter().map(|signal| (*signal).to_owned()).collect(),
        left_behind: Vec::new(),
        ended_with: Vec::new(),
        survivors: Vec::new(),
        containment: "cgroup".into(),
    }
}

/// What the model sees of an end without output.
fn text_of(mut ending: CallEnd) -> String {
    ending.finish(Output::default());
    ending.text
}

/// S4.5, S3.8: a failure that says that nothing was done is believed, also where a stop came with it.
#[test]
fn a_failure_that_did_nothing_left_no_effect() {
    let (_, reason) = scope_stopped();
    for (says, effect) in
        [(Failure::new("no").without_effect(), SideEffect::None), (Failure::new("no"), SideEffect::Unknown)]
    {
        let mut ending = CallEnd::returned(Ok(Err(Halt::Failed(says))), Some(reason.clone()));
        ending.judge_effect(EffectClass::Unsafe);
        assert_eq!((ending.status, ending.effect), (CallStatus::Stopped, effect));
        assert_eq!(ending.reason.as_ref().map(Reason::text), Some("enough"));
    }
    let mut failed = CallEnd::returned(Ok(Err(Halt::Failed(Failure::new("no").without_effect()))), None);
    failed.judge_effect(EffectClass::Unsafe);
    assert_eq!((failed.status, failed.effect), (CallStatus::Failed, SideEffect::None));
}

/// S4.3, S4.7: a call that continues, or whose end was not seen, may have done anything, and names the stop
/// that left it.
#[test]
fn what_nobody_saw_end_is_unknown() {
    let (scope, reason) = scope_stopped();
    let left = CallEnd::left_running(Some(reason.clone()));
    assert_eq!((left.status, left.stopped_by), (CallStatus::LeftRunning, Some(StopSource::Run)));
    assert_eq!(left.reason.as_ref().map(Reason::text), Some("enough"));
    let stopped = CallEnd::stopped(Some(reason));
    assert_eq!((stopped.status, stopped.stopped_by), (CallStatus::Stopped, Some(StopSource::Run)));
    assert_eq!(stopped.reason.as_ref().map(Reason::text), Some("enough"));
    assert_eq!(
        (CallEnd::unwatched().status, CallEnd::unwatched().effect),
        (CallStatus::Failed, SideEffect::Unknown)
    );
    drop(scope);
}

/// S2.10, S8.10: the run's stop outranks the call's own, and one that gave no reason has the call's; an ending that no stop made
/// has neither.
#[test]
fn an_ending_says_whose_stop_it_was() {
    let (stopped, _) = scope_stopped();
    let (open, _) = Scope::root();
    for (run, ends, by) in
        [(&open, false, StopSource::Call), (&open, true, StopSource::Run), (&stopped, false, StopSource::Run)]
    {
        let mut ending = CallEnd::stopped(None);
        ending.name_stop(&stopped, (run, ends));
        assert_eq!((ending.stopped_by, ending.reason.as_ref().map(Reason::text)), (Some(by), Some("enough")));
        let mut done = answered("yes".into());
        done.name_stop(&stopped, (run, ends));
        assert!(done.stopped_by.is_none() && done.reason.is_none());
    }
    let mut own = CallEnd::stopped(Some(Reason::user("mine")));
    own.name_stop(&stopped, (&stopped, false));
    assert_eq!(own.reason.as_ref().map(Reason::text), Some("mine"));
}

/// S4.1, S4.9: a stop that had to use SIGKILL is reported as such; a command that was killed otherwise is
/// not.
#[test]
fn only_a_stop_that_had_to_kill_says_killed() {
    for (ending, signals, status) in [
        (CallEnd::stopped(None), &["SIGINT", "SIGTERM", "SIGKILL"][..], CallStatus::Killed),
        (CallEnd::stopped(None), &["SIGINT"], CallStatus::Stopped),
        (answered("yes".into()), &["SIGKILL"], CallStatus::Completed),
    ] {
        let mut ending = ending;
        let remote = RemoteReport::of("peer", StopSupport::Hard);
        ending.name_rows((vec![process(signals)], Some(remote.clone())));
        assert_eq!((ending.status, ending.processes.len()), (status, 1));
        ending.name_rows((Vec::new(), None));
        assert_eq!(ending.remote.as_deref(), Some(&remote), "the last word stands");
    }
}

/// S10.3: what a remote agent has not confirmed is not reported as stopped, and the model sees the agent's
/// name for it.
#[test]
fn work_that_may_go_on_is_not_said_to_be_stopped() {
    let remote = |stop, task: Option<&str>| RemoteReport {
        stop: Some(stop),
        task: task.map(str::to_owned),
        ..RemoteReport::of("peer", StopSupport::Hard)
    };
    let killed = || CallEnd::new(CallStatus::Killed, "");
    let limit = || CallEnd::timed_out(Duration::from_secs(1));
    let continues = "remote work t1 at peer may go on";
    for (ending, stop, status, said) in [
        (
            CallEnd::stopped(None),
            RemoteStopState::Refused,
            CallStatus::LeftRunning,
            [continues, note::STILL_RUNNING],
        ),
        (killed(), RemoteStopState::Refused, CallStatus::LeftRunning, [continues, note::STILL_RUNNING]),
        (
            limit(),
            RemoteStopState::Requested,
            CallStatus::TimedOut,
            [continues, note::TIMED_OUT_STILL_RUNNING],
        ),
        (
            CallEnd::stopped(None),
            RemoteStopState::Confirmed,
            CallStatus::Stopped,
            ["", note::STOPPED_HARMLESS],
        ),
        (
            limit(),
            RemoteStopState::Confirmed,
            CallStatus::TimedOut,
            ["its limit of 1s passed", note::TIMED_OUT],
        ),
    ] {
        let mut ending = ending;
        ending.name_remote(Some(remote(stop, Some("t1"))));
        assert_eq!((ending.status, ending.remote.is_some()), (status, true));
        let text = text_of(ending);
        assert!(said.iter().all(|said| text.contains(said)), "{text}");
        assert!(
            !text.starts_with('\n') && text.contains(continues) == (stop != RemoteStopState::Confirmed),
            "{text}"
        );
    }
    let mut nameless = CallEnd::stopped(None);
    nameless.name_remote(Some(remote(RemoteStopState::Refused, None)));
    assert_eq!(text_of(nameless), note::STILL_RUNNING);
}

/// S4.1, S9.4: each end has its words, and those of a run that was stopped say what it did.
#[test]
fn each_end_has_its_words() {
    let run = |status, effect| ended_as_run(status, String::new(), effect, child());
    let alone = |effect| CallEnd { stopped_by: Some(StopSource::Call), effect, ..CallEnd::stopped(None) };
    let with = |effect| CallEnd { effect, ..CallEnd::stopped(None) };
    for (ending, text) in [
        (run(CallStatus::Stopped, SideEffect::None), note::CHILD_STOPPED_HARMLESS),
        (run(CallStatus::Killed, SideEffect::Done), note::CHILD_STOPPED),
        (run(CallStatus::Stopped, SideEffect::Unknown), note::STOPPED_UNKNOWN),
        (run(CallStatus::Completed, SideEffect::None), ""),
        (run(CallStatus::Completed, SideEffect::Done), ""),
        (alone(SideEffect::None), note::STOPPED_ALONE),
        (with(SideEffect::None), note::STOPPED_HARMLESS),
        (with(SideEffect::Done), note::STOPPED_UNKNOWN),
        (with(SideEffect::Unknown), note::STOPPED_UNKNOWN),
        (CallEnd::new(CallStatus::Completed, ""), ""),
        (CallEnd::new(CallStatus::TimedOut, ""), note::TIMED_OUT),
        (CallEnd::new(CallStatus::TimedOut, "").with_live_body(), note::TIMED_OUT_STILL_RUNNING),
        (CallEnd::left_running(None), note::STILL_RUNNING),
        (CallEnd::new(CallStatus::NotStarted, ""), note::NOT_STARTED),
        (CallEnd::new(CallStatus::Denied, ""), note::DENIED),
        (CallEnd::new(CallStatus::Denied, "not this"), "not this"),
        (CallEnd::new(CallStatus::Expired, ""), note::EXPIRED),
    ] {
        assert_eq!(text_of(ending), text);
    }
}

/// S4.5, S4.7: a call that was ended keeps its output, each part on a separate line, and where the whole
/// output is; a result stands alone.
#[test]
fn what_was_emitted_stands_before_what_is_known() {
    let whole = FullOutput { bytes: 9, file: None };
    let emitted = || Output { whole: Some(whole.clone()), ..Output::from("half\n") };
    let mut late = CallEnd::timed_out(Duration::from_secs(1));
    late.finish(emitted());
    assert_eq!(late.text, format!("half\nits limit of 1s passed\n{}", note::TIMED_OUT));
    assert_eq!(late.extent, OutputExtent::Truncated { bytes: 9, file: None });
    let mut done =
        CallEnd::returned(Ok(Ok(Output { whole: Some(whole.clone()), ..Output::from("all") })), None);
    assert_eq!(done.extent, OutputExtent::Truncated { bytes: 9, file: None });
    done.extent = OutputExtent::All;
    done.finish(emitted());
    assert_eq!((done.text.as_str(), &done.extent), ("all", &OutputExtent::All));
}

/// S8.10: text that arrives in pieces has no secret in it once it is complete, nor has its hint.
#[test]
fn an_ending_tells_no_secret() {
    let secrets = Secrets::of([("KEY".to_owned(), "hunter22".to_owned())]);
    let failure = Failure::new("said hunter22").with_hint("not hunter22");
    let mut ending = CallEnd::returned(Ok(Err(Halt::Failed(failure))), None);
    ending.clean(&secrets);
    assert_eq!(ending.hint.as_deref(), Some("not [secret KEY]"));
    assert_eq!(ending.text, "error: said [secret KEY]\nhint: not [secret KEY]");
}

/// S4.7: what is longer than the budget is shortened and nothing else is; of what its tool had shortened no second file is made.
#[tokio::test]
async fn only_what_is_too_long_is_shortened() {
    let (run, _) = Scope::root();
    let patience = Duration::from_secs(20);
    for (length, fits) in [(29, true), (30, true), (31, false)] {
        let mut ending = CallEnd::returned(Ok(Ok(Output::json(json!("x".repeat(length - 2))))), None);
        assert_eq!(ending.is_within(30), fits);
        ending.fit(30, patience, &run).await;
        assert_eq!((ending.text.contains("left out"), ending.structured.is_some()), (!fits, fits));
        let file = matches!(&ending.extent, OutputExtent::Truncated { bytes: 31, file: Some(_) });
        assert_eq!((file, ending.extent == OutputExtent::All), (!fits, fits));
    }
    let short = Output { whole: Some(FullOutput { bytes: 99, file: None }), ..Output::from("x".repeat(31)) };
    let mut ending = CallEnd::returned(Ok(Ok(short)), None);
    ending.fit(30, patience, &run).await;
    assert!(ending.text.contains("more left out"));
    assert_eq!(ending.extent, OutputExtent::Truncated { bytes: 99, file: None });
}

/// S4.1: only a result is reported as good, with everything that belongs to it.
#[test]
fn only_a_result_is_told_as_good() {
    let part = Part::image_at("http://localhost/a.png");
    let output = Output::json(json!(1)).with(part.clone());
    let (report, result, _) = CallEnd::returned(Ok(Ok(output)), None).into_parts(&call(), 3);
    assert_eq!((report.status, report.round, result.verdict), (CallStatus::Completed, 3, ResultStatus::Ok));
    assert_eq!((result.parts, result.structured), (vec![part], Some(Box::new(json!(1)))));
    let (_, result, _) =
        CallEnd::returned(Ok(Err(Halt::Failed(Failure::new("no")))), None).into_parts(&call(), 3);
    assert_eq!((result.verdict, result.text.as_str()), (ResultStatus::Error, "error: no"));
}

/// S7.3, S5.3: a call that was running when its process ended is stopped and unknown, whatever stops it now;
/// what a person reports as done, was done.
#[test]
fn a_lost_call_is_unknown_until_a_person_says() {
    let lost = end_unknown("no one knows", None);
    assert_eq!((lost.status, lost.effect, lost.stopped_by), (CallStatus::Stopped, SideEffect::Unknown, None));
    assert_eq!(lost.text, format!("no one knows\n{}", note::CUT_OFF));
    let doubted = stopped_unknown((Reason::user("enough"), StopSource::Run), None);
    assert_eq!((doubted.effect, doubted.stopped_by), (SideEffect::Unknown, Some(StopSource::Run)));
    assert_eq!(
        (doubted.reason.as_ref().map(Reason::text), doubted.text.as_str()),
        (Some("enough"), note::CUT_OFF)
    );
    let done = done_before("paid".into());
    assert_eq!(
        (done.status, done.effect, done.text.as_str()),
        (CallStatus::Completed, SideEffect::Done, "paid")
    );
    let not = not_begun(CallStatus::NotStarted, "", Some((Reason::user("enough"), StopSource::Run)));
    assert_eq!((not.stopped_by, not.text.as_str()), (Some(StopSource::Run), note::NOT_STARTED));
    assert!(not.reason.is_some());
}

/// S4.7: what comes after a call's end is named with its call, in a few words.
#[test]
fn what_comes_late_is_named() {
    let (scope, _) = scope_stopped();
    let stop = scope.stopping().expect("it was asked");
    for (result, words) in [
        (Ok(Ok(Output::from("four"))), "returned 4 bytes"),
        (Ok(Err(Halt::Failed(Failure::new("no disk")))), "failed: no disk"),
        (Ok(Err(Halt::Stop(stop))), "ended with its stop"),
        (Err(TaskEnd::Panicked("ouch".into())), "panicked: ouch"),
        (Err(TaskEnd::Dropped), "was dropped"),
    ] {
        assert_eq!(
            late(&CallId::from("c1"), &super::super::status::describe(&result, true)),
            format!("call c1 {words}")
        );
    }
}
