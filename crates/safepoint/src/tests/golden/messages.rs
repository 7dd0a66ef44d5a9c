//! Messages, histories and what a model sends.

use std::{sync::Arc, time::Duration};

use safepoint_golden::each;
use serde_json::json;

use super::{
    golden,
    samples::{assistant, parts, plain_question, question, result, usage},
};
use crate::{
    History, Usage,
    approval::{AllowScope, ApprovalKind, ApprovalRequest, Decision, Holds, OnUnknownEffect},
    history::Message,
    ids::{ApprovalId, CallId, ItemId, NodeId, Path, RunId, SessionId, SteerId, TurnId},
    message::{
        AssistantMessage, Block, CallResult, Citation, Part, PartKind, PartSource, ProviderBlock,
        ProviderPart, Reasoning, ResultStatus, ToolCall, UserMessage,
    },
    model::{Delta, Finish},
    raw::{Omission, OmissionKind, Omitted, OpenCall, OpenEnd, Repair},
    steer::SteerTiming,
    usage::{ExtraBilling, Price, UsageSource},
};

#[test]
fn ids_and_numbers() {
    golden("values")
        .json("run id", [RunId::from("run_1")])
        .json("call id", [CallId::from("call_1")])
        .json("approval id", [ApprovalId::from("apr_1")])
        .json("steer id", [SteerId::from("str_1")])
        .json("session id", [SessionId::from("ses_1")])
        .json("node id", [NodeId::from("node_1")])
        .json("item id", [ItemId::new(7)])
        .json("turn id", [TurnId::new(7)])
        .json("path", [Path::default(), super::samples::path()])
        .lines(
            "shown ids",
            [ItemId::new(7).to_string(), TurnId::new(7).to_string(), super::samples::path().to_string()],
        )
        .json(
            "usage source",
            each!(UsageSource {
                UsageSource::Exact => UsageSource::Exact;
                UsageSource::Estimated => UsageSource::Estimated;
            }),
        )
        .json(
            "billed beyond",
            each!(ExtraBilling {
                ExtraBilling::Nothing => ExtraBilling::Nothing;
                ExtraBilling::Unknown => ExtraBilling::Unknown;
            }),
        )
        .json("usage", [Usage::default(), usage()])
        .json("price", [Price::new(1.0, 0.1, 5.0), Price::new(1.25, 0.125, 10.0).with_cache_write(1.5)])
        .json(
            "when",
            each!(SteerTiming {
                SteerTiming::NextRequest => SteerTiming::NextRequest;
                SteerTiming::AtOnce => SteerTiming::AtOnce;
            }),
        )
        .check();
}

#[test]
fn messages() {
    let call = || ToolCall { id: "call_1".into(), name: "shell".into(), args: "{".into() };
    let reasoning = || Reasoning { text: "hm".into(), seal: None };
    golden("messages")
        .json::<Part>("part", parts())
        .json(
            "part kind",
            each!(PartKind {
                PartKind::Image => PartKind::Image;
                PartKind::File => PartKind::File;
                PartKind::Audio => PartKind::Audio;
            }),
        )
        .json(
            "part source",
            each!(PartSource {
                PartSource::Base64(_) => PartSource::Base64("Zm9v".into());
                PartSource::Url(_) => PartSource::Url("https://example.org".into());
            }),
        )
        .json(
            "user message",
            [
                UserMessage { text: "hello".into(), parts: Vec::new() },
                UserMessage { text: "see \"this\"".into(), parts: parts() },
            ],
        )
        .json(
            "block",
            each!(Block {
                Block::Text { .. } => Block::Text { text: "hello".into() };
                Block::Reasoning(_) => Block::Reasoning(reasoning());
                Block::Call(_) => Block::Call(call());
                Block::Provider(_) => Block::Provider(Box::new(provider_blocks().remove(0)));
            }),
        )
        .json("provider block", provider_blocks())
        .json("citation", [citation(), Citation::default()])
        .json("assistant message", [AssistantMessage { blocks: Vec::new() }, assistant()])
        .json(
            "verdict",
            each!(ResultStatus {
                ResultStatus::Ok => ResultStatus::Ok;
                ResultStatus::Error => ResultStatus::Error;
            }),
        )
        .json(
            "call result",
            [
                CallResult { parts: Vec::new(), structured: None, verdict: ResultStatus::Error, ..result() },
                result(),
            ],
        )
        .check();
}

fn citation() -> Citation {
    Citation::new(Some("https://example.org/a".into()), Some("A".into()), Some("as found".into()))
}

/// A block of each part.
pub(super) fn provider_blocks() -> Vec<ProviderBlock> {
    let (id, tool) = (|| "s1".to_owned(), || "web_search".to_owned());
    let input = || "rust 2024".to_owned();
    let unfinished = ProviderPart::Use { id: String::new(), tool: tool(), input: input(), result: None };
    let parts = each!(ProviderPart {
        ProviderPart::Use { .. } =>
            ProviderPart::Use { id: id(), tool: tool(), input: input(), result: Some(ResultStatus::Ok) };
        ProviderPart::Result { .. } =>
            ProviderPart::Result { id: id(), tool: tool(), status: ResultStatus::Error, text: "down".into() };
        ProviderPart::Citations(_) => ProviderPart::Citations(vec![citation()]);
    });
    let raw = json!({"type": "server_tool_use", "id": "s1"});
    let all = parts.into_iter().map(|part| ProviderBlock::new("anthropic", part, raw.clone()));
    all.chain([ProviderBlock::new("gemini", unfinished, json!(null))]).collect()
}

fn entries() -> Vec<Message> {
    each!(Message {
        Message::User(_) => Message::User(UserMessage { text: "list".into(), parts: parts() });
        Message::Assistant(_) => Message::Assistant(assistant().into());
        Message::Results { .. } => Message::Results { results: vec![result()] };
    })
}

fn tails() -> Vec<OpenEnd> {
    let open = || OpenCall { result: result() };
    each!(OpenEnd {
        OpenEnd::Whole => OpenEnd::Whole;
        OpenEnd::Cut { .. } => OpenEnd::Cut { message: assistant().into() };
        OpenEnd::Open { .. } => OpenEnd::Open { message: assistant().into(), calls: vec![open()] };
    })
}

pub(super) fn shortened() -> Vec<Omission> {
    let shortened = |by| Omission {
        omitted: Omitted {
            entries: 2,
            keeps_from: 1,
            rounds: 1,
            by,
            entry: Arc::new(Message::User("earlier".into())),
        },
        tokens_before: 9000,
        tokens_after: 400,
    };
    let by = each!(OmissionKind {
        OmissionKind::Note => OmissionKind::Note;
        OmissionKind::Summary => OmissionKind::Summary;
    });
    by.into_iter().map(shortened).collect()
}

/// Histories with each tail, and with each thing that a view can say: `Entries`, `View` and `Measured`.
pub(super) fn histories() -> Vec<History> {
    let of = |tail| {
        let mut history = History::new();
        entries().into_iter().for_each(|entry| history.push(entry));
        history.leave_open(tail);
        history
    };
    let mut histories: Vec<History> = tails().into_iter().map(of).collect();
    let mut short = of(OpenEnd::Whole);
    short.shorten(&shortened()[0]);
    let mut measured = of(OpenEnd::Whole);
    measured.measure(77);
    histories.extend([History::new(), short, measured]);
    histories
}

#[test]
fn history() {
    golden("history")
        .json("entry", entries())
        .json("tail", tails())
        .json("history", histories())
        .json("shortened", shortened())
        .json(
            "repair",
            each!(Repair {
                Repair::AnsweredCall { .. } => Repair::AnsweredCall { call_id: "call_1".into() };
                Repair::DroppedResult { .. } => Repair::DroppedResult { call_id: "call_1".into() };
                Repair::DroppedEmpty => Repair::DroppedEmpty;
                Repair::RenamedCall { .. } => Repair::RenamedCall { call_id: "call_1".into() };
                Repair::RestoredOmitted => Repair::RestoredOmitted;
            }),
        )
        .lines("notes", notes())
        .check();
}

/// The texts that a model is sent in place of what did not happen: they are stored, and change with a format.
fn notes() -> Vec<String> {
    use crate::history::note;
    let fixed = [
        note::NOT_STARTED,
        note::OVERTAKEN,
        note::STOPPED_UNKNOWN,
        note::STOPPED_HARMLESS,
        note::CHILD_STOPPED_HARMLESS,
        note::CHILD_STOPPED,
        note::TIMED_OUT,
        note::TIMED_OUT_STILL_RUNNING,
        note::STILL_RUNNING,
        note::DENIED,
        note::EXPIRED,
        note::STOPPED_ALONE,
        note::INTERRUPTED,
        note::MISSING,
        note::CUT_OFF,
    ];
    fixed.into_iter().map(str::to_owned).chain([note::calls_left_out(3).trim().to_owned()]).collect()
}

/// What a model sends, as the recorder of the test kit writes it.
#[test]
fn deltas() {
    let (after, error) = (Duration::from_millis(1500), || "503".to_owned());
    let call = || ToolCall { id: "call_1".into(), name: "shell".into(), args: "{}".into() };
    golden("deltas")
        .json("delta", each!(Delta {
            Delta::Retrying { .. } => Delta::Retrying { failed: 1, after, error: error() };
            Delta::FailedOver { .. } => Delta::FailedOver { from: "a".into(), to: "b".into(), error: error() };
            Delta::Reconnecting { .. } => Delta::Reconnecting { failed: 1, after, error: error() };
            Delta::Waiting { .. } => Delta::Waiting { what: "the rate limit of openai".into() };
            Delta::Sent => Delta::Sent;
            Delta::Opened => Delta::Opened;
            Delta::Text(_) => Delta::Text("hello".into());
            Delta::Reasoning(_) => Delta::Reasoning("hm".into());
            Delta::ReasoningSeal(_) => Delta::ReasoningSeal(json!({"signature": "abc"}));
            Delta::CallPreview { .. } => Delta::CallPreview { name: "shell".into() };
            Delta::CallReady(_) => Delta::CallReady(call());
            Delta::CallArguments { .. } => Delta::CallArguments {
                id: "call_1".into(),
                name: "shell".into(),
                text: "{\"comm".into(),
            };
            Delta::Provider(_) => Delta::Provider(Box::new(provider_blocks().remove(0)));
            Delta::Usage(_) => Delta::Usage(usage());
            Delta::Ended(_) => Delta::Ended(Finish::Natural);
        }))
        .json("finish", each!(Finish {
            Finish::Natural => Finish::Natural;
            Finish::Length => Finish::Length;
            Finish::Filtered => Finish::Filtered;
            Finish::Other(_) => Finish::Other("odd".into());
        }))
        .check();
}

#[test]
fn approvals() {
    golden("approvals")
        .json(
            "question",
            each!(ApprovalKind {
                ApprovalKind::BeforeCall => ApprovalKind::BeforeCall;
                ApprovalKind::AfterUnknownEnd => ApprovalKind::AfterUnknownEnd;
                ApprovalKind::DuringCall => ApprovalKind::DuringCall;
            }),
        )
        .json(
            "holds",
            each!(Holds {
                Holds::Once => Holds::Once;
                Holds::Session => Holds::Session;
            }),
        )
        .json(
            "on unknown",
            each!(OnUnknownEffect {
                OnUnknownEffect::Tell => OnUnknownEffect::Tell;
                OnUnknownEffect::Ask => OnUnknownEffect::Ask;
            }),
        )
        .json(
            "covers",
            each!(AllowScope {
                AllowScope::Call => AllowScope::Call;
                AllowScope::Tool => AllowScope::Tool;
            }),
        )
        .json("decision", decisions())
        .json(
            "decision with a message",
            [Decision::ApproveWith { args: json!({"amount": 5}), message: "the user lowered it".into() }],
        )
        .json::<ApprovalRequest>("approval request", [plain_question(), question()])
        .check();
}

pub(super) fn decisions() -> Vec<Decision> {
    each!(Decision {
        Decision::Approve => Decision::Approve;
        Decision::ApproveAlways { .. } =>
            Decision::ApproveAlways { covers: AllowScope::Call }, Decision::ApproveAlways { covers: AllowScope::Tool };
        Decision::ApproveWith { .. } => Decision::approve_with(json!({"amount": 5}));
        Decision::Deny { .. } => Decision::Deny { message: "no".into() };
        Decision::Respond { .. } => Decision::Respond { result: "done by hand".into() };
    })
}
