//! A model that says more than anybody wants: no field of any wire is collected beyond its limit, and none
//! delays a stop.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use futures_util::future::BoxFuture;
use safepoint::{
    Agent, AgentBuilder, Limits, ToolContext, Usage,
    approval::{ApprovalMode, Decision},
    event::EventKind,
    history::Message,
    message::CallResult,
    model::{Conversation, Delta, DeltaStream, Finish, ModelSpec},
    raw::remote::{Remote, RemoteCall, RemoteEvent, RemoteSpec, RemoteStopReply, RemoteTask},
    receipt::{Ending, ModelState},
    tool::{self, EffectClass},
};
use safepoint_models::{anthropic, gemini, openai, responses};
use safepoint_testkit::{
    flood::{FIELDS, Field, Flood},
    script::Reply,
    server::ServedWire,
};
use serde_json::json;

use super::world::{Ledger, WIRES, builder, close, server};

const MIB: usize = 1 << 20;

pub(crate) fn flooded(flood: &Flood, wire: ServedWire, limits: Limits) -> AgentBuilder {
    match wire {
        ServedWire::OpenAi => Agent::builder(openai::model("m").base_url(flood.url())),
        ServedWire::Anthropic => Agent::builder(anthropic::model("m").base_url(flood.url())),
        ServedWire::Responses => Agent::builder(responses::model("m").base_url(flood.url())),
        ServedWire::Gemini => Agent::builder(gemini::model("m").base_url(flood.url())),
    }
    .limits(limits)
    .approvals(ApprovalMode::Auto)
}

/// S12.4, S12.1: the limit counts every field of every wire as it is decoded, and its stop names it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_field_is_collected_beyond_the_limit() {
    const MOST: usize = MIB / 4;
    // What is beyond the limit is in buffers of the kernel, or was being decoded.
    const BUFFERS: u64 = 24 * MIB as u64;
    for wire in WIRES {
        for field in FIELDS.into_iter().filter(|field| *field != Field::Nothing) {
            let flood = Flood::start(wire, field, 16 << 10).await.unwrap();
            let limits = Limits::default().with_model_output_bytes(MOST);
            let outcome = flooded(&flood, wire, limits).build().run("go").await;
            let stop =
                outcome.receipt().stop.clone().unwrap_or_else(|| panic!("{wire:?} {field:?}: {outcome:?}"));
            assert_eq!((outcome.ending(), stop.reason.code.as_str()), (Ending::Stopped, "output_bytes"));
            assert!(stop.reason.text.contains("262144"), "{}", stop.reason.text);
            flood.until_gone(1).await.unwrap();
            let (framed, read) = (framing(field), flood.bytes());
            assert!(read < framed * MOST as u64 + BUFFERS, "{wire:?} {field:?}: {read} bytes were read");
            let kept = serde_json::to_string(outcome.history().tail()).unwrap().len();
            assert!(kept <= MOST + MOST / 4, "{wire:?} {field:?}: {kept} bytes were kept");
        }
    }
}

/// How many bytes of the wire stand for one of the field, at most.
fn framing(field: Field) -> u64 {
    if field == Field::Calls { 40 } else { 2 }
}

/// S12.4: one event that is larger than any event may be ends the reply by the limit's name, and is not
/// collected.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_huge_event_is_the_limits_stop() {
    for (wire, field) in [
        (ServedWire::OpenAi, Field::Name),
        (ServedWire::Anthropic, Field::Seal),
        (ServedWire::Gemini, Field::Args),
    ] {
        let flood = Flood::start(wire, field, 20 * MIB).await.unwrap();
        let outcome = flooded(&flood, wire, Limits::default()).build().run("go").await;
        let stop =
            outcome.receipt().stop.clone().unwrap_or_else(|| panic!("{wire:?} {field:?}: {outcome:?}"));
        assert_eq!((outcome.ending(), stop.reason.code.as_str()), (Ending::Stopped, "output_bytes"));
    }
}

/// S12.3: of three thousand calls in one message a thousand and some run, and the others are no part of the
/// history. The model learns how many they were, and the run continues.
#[tokio::test]
async fn calls_beyond_the_limit_are_left_out_and_reported() {
    const ASKED: usize = 3000;
    const LOOKED_AT: usize = 1024;
    for wire in WIRES {
        let calls = (0..ASKED)
            .fold(Reply::default(), |reply, n| reply.and_call_as(format!("c{n}"), "note", json!({})));
        let server = server([calls, Reply::text("a flood")]).await;
        let note = tool::from_fn("note", "notes", |_cx, (): ()| async move { Ok("noted") });
        let agent = builder(&server, wire).tool(note.with(|spec| spec.effect(EffectClass::ReadOnly))).build();
        let handle = agent.run("go").detach();
        let (outcome, receipt) = close(&server, &handle, &Ledger::default()).await;
        assert_eq!((outcome.answer(), receipt.calls.len()), (Some("a flood"), LOOKED_AT), "{wire:?}");
        let results: Vec<CallResult> = outcome
            .history()
            .entries()
            .iter()
            .filter_map(|entry| match &**entry {
                Message::Results { results } => Some(results.clone()),
                Message::User(_) | Message::Assistant(_) => None,
            })
            .flatten()
            .collect();
        assert_eq!(results.len(), LOOKED_AT, "{wire:?}");
        assert!(results[LOOKED_AT - 1].text.contains("1976 more calls"), "{}", results[LOOKED_AT - 1].text);
        assert_eq!(*results[0].text, "noted");
        let stopped = server.requests()[1].body.to_string();
        assert!(stopped.contains("1976 more calls") && !stopped.contains("\"c1024\""), "{wire:?}");
    }
}

/// A model that says what a test has it say, and nothing of what it sent.
#[derive(Clone)]
struct Says(Vec<Delta>);

impl safepoint::Model for Says {
    fn name(&self) -> &str {
        "says"
    }
    fn open(&self, _: ModelSpec) -> Box<dyn Conversation> {
        Box::new(self.clone())
    }
}

impl Conversation for Says {
    fn stream(&mut self, _: &safepoint::History) -> DeltaStream {
        Box::pin(futures_util::stream::iter(self.0.clone().into_iter().map(Ok)))
    }
}

/// S12.1: a message that says too much is stopped also where its end comes together with the excess, and
/// nothing of the excess is shown or kept.
#[tokio::test]
async fn the_end_does_not_hide_the_excess() {
    let text = |length: usize| Delta::Text("x".repeat(length));
    let limits = Limits::default().with_model_output_bytes(100);
    let run = |deltas: Vec<Delta>| Agent::builder(Says(deltas)).limits(limits.clone()).build().run("go");
    let ended = Delta::Ended(Finish::Natural);
    let whole = run(vec![text(60), text(40), ended.clone()]).await;
    assert_eq!(whole.ending(), Ending::Done);
    let handle = run(vec![text(60), text(41), ended]).detach();
    let mut shown = 0;
    let mut events = handle.events();
    while let Some(event) = events.next().await {
        shown += if let EventKind::Text(text) = event.kind { text.len() } else { 0 };
    }
    let outcome = handle.done().await;
    assert_eq!(outcome.ending(), Ending::Stopped, "{outcome:?}");
    assert_eq!(outcome.receipt().stop.as_ref().unwrap().reason.code, "output_bytes");
    assert_eq!((outcome.partial_text().len(), shown), (100, 60));
}

/// S2.15, S3.9: what a model says of its bill counts also where it does not say that it sent anything: the
/// limits bind.
#[tokio::test]
async fn a_bill_implies_that_something_was_sent() {
    let usage = Usage::new(700, 300);
    let call = safepoint::message::ToolCall { id: "".into(), name: "note".into(), args: "{}".into() };
    let endless = vec![Delta::CallReady(call), Delta::Usage(usage), Delta::Ended(Finish::Natural)];
    let note = tool::from_fn("note", "notes", |_cx, (): ()| async move { Ok("noted") });
    let limits = Limits::default().with_max_tokens(2500);
    let agent = Agent::builder(Says(endless)).limits(limits).tool(note).approvals(ApprovalMode::Auto).build();
    let outcome = agent.run("go").await;
    assert_eq!(outcome.ending(), Ending::Stopped);
    assert_eq!(outcome.receipt().stop.as_ref().unwrap().reason.code, "max_tokens");
    assert_eq!((outcome.usage().total(), outcome.receipt().rounds), (3000, 3));
    let text = Agent::builder(Says(vec![Delta::Text("hi".into()), Delta::Ended(Finish::Natural)])).build();
    let outcome = text.run("go").await;
    assert_ne!(outcome.receipt().model.as_ref().unwrap().state, ModelState::NeverSent);
    assert!(outcome.usage().total() > 0);
}

/// A peer that sends one thing more at each question, also after a stop.
pub(crate) struct Talker {
    spec: RemoteSpec,
    word: String,
    stopped: Arc<OnceLock<()>>,
}

impl Remote for Talker {
    fn spec(&self) -> &RemoteSpec {
        &self.spec
    }
    fn open(&self, _: RemoteTask, _: &ToolContext) -> Box<dyn RemoteCall> {
        Box::new(Talks { word: self.word.clone(), stopped: Arc::clone(&self.stopped) })
    }
}

struct Talks {
    word: String,
    stopped: Arc<OnceLock<()>>,
}

impl RemoteCall for Talks {
    fn next(&mut self) -> BoxFuture<'_, RemoteEvent> {
        let word = self.word.clone();
        Box::pin(async move { RemoteEvent::Text(word) })
    }
    fn answer(&mut self, _: String, _: Decision) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
    fn stop(&mut self) -> BoxFuture<'_, RemoteStopReply> {
        self.stopped.get_or_init(|| ());
        Box::pin(async { RemoteStopReply::acknowledged("in a moment") })
    }
}

pub(crate) fn talker(word: &str) -> (Talker, Arc<OnceLock<()>>) {
    let stopped = Arc::new(OnceLock::new());
    let spec = RemoteSpec::new("talker", "talks", "test:talker")
        .stop_within(Duration::from_millis(200))
        .listen(Duration::from_millis(100));
    (Talker { spec, word: word.into(), stopped: Arc::clone(&stopped) }, stopped)
}

/// S12.4: what a remote agent says about one piece of work is bounded as a model's message is. The run stops
/// by the limit's name, the peer gets the stop, and further output gives it no extra time for its end.
#[tokio::test]
async fn a_peer_that_says_too_much_is_stopped() {
    let (talker, stopped) = talker(&"x".repeat(1000));
    let limits = Limits::default().with_model_output_bytes(100_000);
    let handle = Agent::remote(talker).limits(limits).build().run("go").detach();
    let outcome = handle.done().await;
    assert_eq!(outcome.ending(), Ending::Stopped, "{outcome:?}");
    let stop = outcome.receipt().stop.clone().unwrap();
    assert_eq!(stop.reason.code, "output_bytes");
    assert!(stop.reason.text.contains("test:talker said more than 100000 bytes"), "{}", stop.reason.text);
    assert!(stopped.get().is_some());
    assert!(handle.quiet().await.receipt().quiet_at.is_none(), "it may continue, and says so itself");
}
