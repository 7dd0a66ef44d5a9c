//! Receipts: what is stored and sent of them, and in a separate file the text for people.

use safepoint_golden::each;

use super::{
    golden,
    samples::{at, model, path, plain_model, reason, usage},
};
use crate::{
    Receipt, Usage,
    ids::Path,
    receipt::{
        CallKind, CallReport, CallStatus, ChildReport, CleanupEnd, CleanupReport, Ending, Escalation,
        ModelReport, ModelState, OpenApproval, Outside, Permission, ProcessReport, ProviderToolReport,
        ReasonReport, RemoteReport, RemoteStopState, RequestReport, RuledBy, RuledReport, SideEffect,
        StopReport, StopSource, StopSupport,
    },
};

fn process() -> ProcessReport {
    ProcessReport {
        pid: 30638,
        label: "sleep 100".into(),
        ended: "signal 2".into(),
        signals: vec!["SIGINT".into(), "SIGTERM".into()],
        left_behind: vec!["cat (pid 9)".into()],
        ended_with: vec!["cat (pid 9)".into(), "sh (pid 8)".into()],
        survivors: vec!["nohup (pid 7)".into()],
        containment: "cgroup".into(),
    }
}

fn plain_process() -> ProcessReport {
    let none = Vec::new;
    ProcessReport { signals: none(), left_behind: none(), ended_with: none(), survivors: none(), ..process() }
}

fn cleanups() -> Vec<CleanupReport> {
    let ends = each!(CleanupEnd {
        CleanupEnd::Ran => CleanupEnd::Ran;
        CleanupEnd::Failed => CleanupEnd::Failed;
        CleanupEnd::TimedOut => CleanupEnd::TimedOut;
    });
    ends.into_iter().map(|end| CleanupReport { label: "remove the folder".into(), end }).collect()
}

fn policies() -> Vec<RuledBy> {
    each!(RuledBy {
        RuledBy::Rule => RuledBy::Rule;
        RuledBy::NoRule => RuledBy::NoRule;
        RuledBy::Auto => RuledBy::Auto;
        RuledBy::Deny => RuledBy::Deny;
        RuledBy::NoApprover => RuledBy::NoApprover;
        RuledBy::Always => RuledBy::Always;
    })
}

fn permissions() -> Vec<Permission> {
    each!(Permission {
        Permission::Allowed => Permission::Allowed;
        Permission::Denied => Permission::Denied;
    })
}

pub(super) fn ruled() -> Vec<RuledReport> {
    let of = |permission, by| RuledReport {
        tool: "write".into(),
        what: "/tmp/a".into(),
        permission,
        by,
        times: 1,
    };
    let mut ruled: Vec<RuledReport> = policies().into_iter().map(|by| of(Permission::Allowed, by)).collect();
    ruled.extend(permissions().into_iter().map(|permission| RuledReport {
        what: String::new(),
        times: 3,
        ..of(permission, RuledBy::Rule)
    }));
    ruled
}

fn grades() -> Vec<StopSupport> {
    each!(StopSupport {
        StopSupport::Hard => StopSupport::Hard;
        StopSupport::CallerSide => StopSupport::CallerSide;
        StopSupport::None => StopSupport::None;
    })
}

fn stops() -> Vec<RemoteStopState> {
    each!(RemoteStopState {
        RemoteStopState::Requested => RemoteStopState::Requested;
        RemoteStopState::Acknowledged => RemoteStopState::Acknowledged;
        RemoteStopState::Confirmed => RemoteStopState::Confirmed;
        RemoteStopState::Refused => RemoteStopState::Refused;
        RemoteStopState::Unreachable => RemoteStopState::Unreachable;
    })
}

fn outsides() -> Vec<Outside> {
    each!(Outside {
        Outside::Unasked => Outside::Unasked;
        Outside::None => Outside::None;
        Outside::Unseen => Outside::Unseen;
        Outside::Named(_) =>
            Outside::Named(vec!["sleep (pid 7)".into()]),
            Outside::Named(vec!["sleep (pid 7)".into(), "cat (pid 8)".into()]);
    })
}

/// A remote report with every field set.
fn full_remote() -> RemoteReport {
    RemoteReport {
        peer: "a2a:https://example.org".into(),
        task: Some("task-1".into()),
        grade: StopSupport::CallerSide,
        stop: Some(RemoteStopState::Acknowledged),
        word: "canceling".into(),
        said_bytes: 100,
        said: "as far as\nI know".into(),
        within_ms: Some(2000),
        asked_at: Some(at(5000)),
        replied_at: Some(at(5020)),
        ended_at: Some(at(5030)),
        claimed_at: None,
        lost_at: Some(at(5040)),
        outside: Outside::Named(vec!["sleep (pid 7)".into()]),
    }
}

fn plain_remote(grade: StopSupport) -> RemoteReport {
    RemoteReport {
        task: None,
        grade,
        stop: None,
        word: String::new(),
        said_bytes: 0,
        said: String::new(),
        within_ms: None,
        asked_at: None,
        replied_at: None,
        ended_at: None,
        lost_at: None,
        outside: Outside::Unasked,
        ..full_remote()
    }
}

/// Every grade with every answer and everything outside, running and ended, and what is lost or cut.
fn remotes() -> Vec<RemoteReport> {
    let mut remotes = vec![full_remote()];
    for grade in grades() {
        remotes.push(plain_remote(grade));
        remotes.push(RemoteReport {
            lost_at: Some(at(5040)),
            said_bytes: 4,
            said: "half".into(),
            ..plain_remote(grade)
        });
        for stop in stops() {
            let open = RemoteReport { stop: Some(stop), ended_at: None, ..full_remote() };
            let ended =
                RemoteReport { stop: Some(stop), ended_at: Some(at(5030)), grade, ..plain_remote(grade) };
            remotes.push(ended);
            remotes.extend(outsides().into_iter().map(|outside| RemoteReport {
                grade,
                outside,
                ..open.clone()
            }));
        }
    }
    for stop in stops() {
        let claimed =
            RemoteReport { stop: Some(stop), ended_at: None, claimed_at: Some(at(5030)), ..full_remote() };
        remotes.push(RemoteReport { lost_at: None, outside: Outside::Unasked, ..claimed });
    }
    remotes
}

/// A call with nothing that may be left out.
pub(super) fn plain_call() -> CallReport {
    CallReport {
        call_id: "call_1".into(),
        name: "shell".into(),
        round: 1,
        status: CallStatus::Completed,
        effect: SideEffect::Done,
        started_at: None,
        ended_at: None,
        reason: None,
        stopped_by: None,
        processes: Vec::new(),
        cleanups: Vec::new(),
        ruled: Vec::new(),
        child: None,
        remote: None,
    }
}

/// A call with every field set.
pub(super) fn call() -> CallReport {
    CallReport {
        call_id: "call_1".into(),
        name: "shell".into(),
        round: 1,
        status: CallStatus::Stopped,
        effect: SideEffect::Unknown,
        started_at: Some(at(110)),
        ended_at: Some(at(6510)),
        reason: Some(reason()),
        stopped_by: Some(StopSource::Run),
        processes: vec![process(), plain_process()],
        cleanups: cleanups(),
        ruled: ruled(),
        child: Some(child(CallKind::Child)),
        remote: Some(Box::new(full_remote())),
    }
}

fn statuses() -> Vec<CallStatus> {
    each!(CallStatus {
        CallStatus::Completed => CallStatus::Completed;
        CallStatus::Failed => CallStatus::Failed;
        CallStatus::Denied => CallStatus::Denied;
        CallStatus::Expired => CallStatus::Expired;
        CallStatus::TimedOut => CallStatus::TimedOut;
        CallStatus::NotStarted => CallStatus::NotStarted;
        CallStatus::Stopped => CallStatus::Stopped;
        CallStatus::Killed => CallStatus::Killed;
        CallStatus::LeftRunning => CallStatus::LeftRunning;
        CallStatus::Unreachable => CallStatus::Unreachable;
    })
}

fn effects() -> Vec<SideEffect> {
    each!(SideEffect {
        SideEffect::None => SideEffect::None;
        SideEffect::Done => SideEffect::Done;
        SideEffect::Unknown => SideEffect::Unknown;
    })
}

fn stopped_by() -> Vec<StopSource> {
    each!(StopSource {
        StopSource::Run => StopSource::Run;
        StopSource::Call => StopSource::Call;
    })
}

fn calls() -> Vec<CallReport> {
    let mut calls = vec![plain_call(), call()];
    calls.extend(statuses().into_iter().map(|status| CallReport { status, ..plain_call() }));
    calls.extend(effects().into_iter().map(|effect| CallReport { effect, ..plain_call() }));
    calls.extend(stopped_by().into_iter().map(|by| CallReport { stopped_by: Some(by), ..plain_call() }));
    calls
}

fn works() -> Vec<CallKind> {
    each!(CallKind {
        CallKind::Tool => CallKind::Tool;
        CallKind::Child => CallKind::Child;
        CallKind::Background => CallKind::Background;
    })
}

/// A child run with its own account.
pub(super) fn child(work: CallKind) -> ChildReport {
    let receipt = Receipt { path: path(), ..plain_receipt() };
    ChildReport { path: path(), work, receipt: Some(receipt.into()), cost: 0.25 }
}

fn children() -> Vec<ChildReport> {
    let running = |work| ChildReport { receipt: None, cost: 0.0, ..child(work) };
    works().into_iter().flat_map(|work| [child(work), running(work)]).collect()
}

fn states() -> Vec<ModelState> {
    each!(ModelState {
        ModelState::NeverSent => ModelState::NeverSent;
        ModelState::Closed => ModelState::Closed;
        ModelState::Draining => ModelState::Draining;
        ModelState::Completed => ModelState::Completed;
    })
}

fn models() -> Vec<ModelReport> {
    [plain_model()].into_iter().chain(states().into_iter().map(model)).collect()
}

/// A request for a stop with a grace.
pub(super) fn request() -> RequestReport {
    RequestReport {
        seq: 1,
        at: at(4000),
        reason: reason(),
        mode: "after-model,after-started-calls,after-all-calls".into(),
        reach: "tree".into(),
        within_ms: Some(5000),
        asked: "first".into(),
    }
}

fn requests() -> Vec<RequestReport> {
    let by = |code: &str, asked: &str| RequestReport {
        seq: 2,
        reason: ReasonReport {
            code: code.into(),
            actor: "ann".into(),
            text: String::new(),
            at: None,
            caused_by: None,
        },
        mode: "now".into(),
        reach: "root".into(),
        within_ms: None,
        asked: asked.into(),
        ..request()
    };
    vec![request(), by("user", "strengthened"), by("user", "nothing_added"), by("shutdown", "too_late")]
}

fn escalations() -> Vec<Escalation> {
    each!(Escalation {
        Escalation::No => Escalation::No;
        Escalation::ByRequest => Escalation::ByRequest;
        Escalation::ByDeadline => Escalation::ByDeadline;
    })
}

fn stop(escalated: Escalation) -> StopReport {
    StopReport {
        reason: reason(),
        asked: request().mode,
        fired: Some("now".into()),
        escalated,
        requested_at: at(4000),
        observed_at: Some(at(9000)),
        phase: "calls were running".into(),
        requests: requests(),
    }
}

fn stop_reports() -> Vec<StopReport> {
    let unseen = StopReport { fired: None, observed_at: None, requests: Vec::new(), ..stop(Escalation::No) };
    escalations().into_iter().map(stop).chain([unseen]).collect()
}

/// A receipt with nothing that may be left out.
pub(super) fn plain_receipt() -> Receipt {
    Receipt {
        run: "run_1".into(),
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
        usage_total: Usage::default(),
        cost_total: None,
        worked_ms: 0,
        started_at: at(0),
        settled_at: at(1000),
        quiet_at: None,
        survivors: Vec::new(),
        late: Vec::new(),
        unrecorded: None,
    }
}

/// A receipt with every field set.
pub(super) fn full_receipt() -> Receipt {
    let mut total = usage();
    (total.input, total.output) = (5000, 999);
    Receipt {
        run: "run_1".into(),
        path: path(),
        attempt: 3,
        ending: Ending::Stopped,
        stop: Some(stop(Escalation::ByDeadline)),
        rounds: 2,
        model: Some(model(ModelState::Closed)),
        summaries: vec![plain_model()],
        // They have a receipt of their own.
        provider_tools: Vec::new(),
        approvals_open: Vec::new(),
        calls: vec![call(), plain_call()],
        approvals_cancelled: vec!["apr_1".into()],
        waiting: children(),
        usage: usage(),
        cost: None,
        usage_total: total,
        cost_total: None,
        worked_ms: 4321,
        started_at: at(0),
        settled_at: at(9000),
        quiet_at: Some(at(9500)),
        survivors: vec!["nohup (pid 7)".into()],
        late: vec!["the result of call_9".into()],
        unrecorded: Some("the disk is full".into()),
    }
}

fn endings() -> Vec<Ending> {
    each!(Ending {
        Ending::Done => Ending::Done;
        Ending::Stopped => Ending::Stopped;
        Ending::Failed => Ending::Failed;
        Ending::Suspended => Ending::Suspended;
    })
}

fn provider_tools() -> Vec<ProviderToolReport> {
    let report = |tool: &str, uses, unfinished| ProviderToolReport {
        tool: tool.into(),
        wire: "anthropic".into(),
        uses,
        unfinished,
    };
    vec![report("web_search", 1, 0), report("code_execution", 3, 1)]
}

/// Each ending with and without a stop, and each row that a receipt can have.
pub(super) fn receipts() -> Vec<Receipt> {
    let mut receipts = vec![plain_receipt(), full_receipt()];
    for ending in endings() {
        let exact = Usage::new(10, 5);
        let quiet = Receipt { ending, quiet_at: Some(at(1001)), usage: exact, ..plain_receipt() };
        receipts.push(Receipt { model: Some(plain_model()), stop: None, ..quiet.clone() });
        receipts.push(Receipt { stop: Some(stop(Escalation::No)), ..quiet });
    }
    let base = || Receipt { ending: Ending::Stopped, ..plain_receipt() };
    receipts.extend(models().into_iter().map(|model| Receipt { model: Some(model), ..base() }));
    receipts.extend(stop_reports().into_iter().map(|stop| Receipt { stop: Some(stop), ..base() }));
    receipts.push(Receipt { survivors: vec!["sleep 300 (pid 7)".into()], ..base() });
    receipts.push(Receipt { calls: calls(), ..base() });
    for outside in outsides() {
        let remote = RemoteReport { outside, ended_at: Some(at(900)), ..plain_remote(StopSupport::Hard) };
        let calls = vec![CallReport { remote: Some(Box::new(remote)), ..plain_call() }];
        receipts.push(Receipt { calls, quiet_at: Some(at(1001)), ..base() });
    }
    receipts.push(priced());
    receipts.push(Receipt { model: Some(plain_model()), provider_tools: provider_tools(), ..base() });
    let ending = Ending::Suspended;
    receipts.push(Receipt { ending, approvals_open: approvals_open(), stop: None, ..base() });
    receipts
}

fn approvals_open() -> Vec<OpenApproval> {
    let asked = |id: &str, args: &str| OpenApproval {
        id: id.into(),
        call_id: "call_1".into(),
        tool: "pay".into(),
        args: args.into(),
    };
    vec![asked("apr_1", r#"{"cents":12000}"#), asked("apr_2", "{}")]
}

/// A receipt of runs that have prices.
fn priced() -> Receipt {
    let usage_total = Usage::new(2_000, 700);
    let (cost, cost_total) = (Some(0.001_234), Some(0.125));
    Receipt { model: Some(plain_model()), cost, usage_total, cost_total, ..plain_receipt() }
}

/// Calls with each remote report, in one receipt.
fn with_remotes() -> Receipt {
    let call = |remote| CallReport { remote: Some(Box::new(remote)), ..plain_call() };
    Receipt { calls: remotes().into_iter().map(call).collect(), ..plain_receipt() }
}

#[test]
fn what_is_stored_of_a_receipt() {
    golden("receipts")
        .json("receipt", receipts())
        .json("call", calls())
        .json("call status", statuses())
        .lines("call status in words", statuses().into_iter().map(CallStatus::as_str))
        .json("effect", effects())
        .json("stopped by", stopped_by())
        .json("process", [process(), plain_process()])
        .json("clean-up", cleanups())
        .json("clean-up end", cleanups().into_iter().map(|cleanup| cleanup.end))
        .json("ruled", ruled())
        .json("policy", policies())
        .json("permission", permissions())
        .json("child", children())
        .json("work", works())
        .json("remote", remotes())
        .json("grade", grades())
        .lines("grade in words", grades().into_iter().map(StopSupport::as_str))
        .json("remote stop", stops())
        .lines("remote stop in words", stops().into_iter().map(RemoteStopState::as_str))
        .json("outside", outsides())
        .json("model", models())
        .json("model state", states())
        .json("provider tool", provider_tools())
        .json("open approval", approvals_open())
        .json("retry", model(ModelState::Closed).retries)
        .json("reason", [reason()])
        .json("request", requests())
        .json("stop", stop_reports())
        .json("escalated", escalations())
        .json("ending", endings())
        .lines("ending in words", endings().into_iter().map(Ending::as_str))
        .check();
}

/// The wording may change, and then this file alone.
#[test]
fn what_a_receipt_says_to_people() {
    let shown = receipts().into_iter().chain([with_remotes()]).flat_map(|receipt| {
        let text = receipt.to_string();
        text.lines().map(str::to_owned).chain([String::new()]).collect::<Vec<_>>()
    });
    golden("receipts.people")
        .lines("receipts", shown)
        .lines("ruled", ruled().iter().map(ToString::to_string))
        .check();
}
