//! A stop while a model or a peer says more than anybody can read: how much is done between the request and
//! its effect.
//!
//! Counted in what the run takes of the reply, and in the processor time of the one thread that does
//! everything for the run: neither depends on what else the machine has to do.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
    thread,
    time::Duration,
};

use futures_util::{Stream, future::BoxFuture};
use rustix::time::{ClockId, clock_gettime};
use safepoint::{
    Agent, History, Limits, Model, StopRequest,
    approval::ApprovalMode,
    model::{Conversation, Delta, DeltaStream, ModelError, ModelSpec},
    receipt::Ending,
};
use safepoint_models::{anthropic, gemini, openai, responses};
use safepoint_testkit::{
    flood::{FIELDS, Field, Flood},
    server::ServedWire,
    wait::{self, InTime as _},
};
use tokio::runtime::{Builder, Runtime};

use super::{
    floods::talker,
    world::{WIRES, started},
};

/// What S12.5 promises.
const PROMPT: Duration = Duration::from_millis(50);
const MIB: u64 = 1 << 20;

/// The processor time of this thread.
fn spent() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap(), time.tv_nsec.try_into().unwrap())
}

/// Everything of a run on this thread, and nothing else.
fn alone<T>(run: impl Future<Output = T>) -> T {
    Builder::new_current_thread().enable_all().build().unwrap().block_on(run)
}

/// A model, and how often a piece of a reply was asked of it.
struct Counted {
    inner: Arc<dyn Model>,
    polls: Arc<AtomicU64>,
}

impl Model for Counted {
    fn name(&self) -> &str {
        self.inner.name()
    }
    fn open(&self, spec: ModelSpec) -> Box<dyn Conversation> {
        Box::new(CountedTalk { inner: self.inner.open(spec), polls: Arc::clone(&self.polls) })
    }
}

struct CountedTalk {
    inner: Box<dyn Conversation>,
    polls: Arc<AtomicU64>,
}

impl Conversation for CountedTalk {
    fn stream(&mut self, history: &History) -> DeltaStream {
        Box::pin(CountedReply { inner: self.inner.stream(history), polls: Arc::clone(&self.polls) })
    }
    fn release(&mut self) -> Option<BoxFuture<'static, ()>> {
        self.inner.release()
    }
    // The run reads what a wire says itself.
    fn never_blocks(&self) -> bool {
        self.inner.never_blocks()
    }
}

struct CountedReply {
    inner: DeltaStream,
    polls: Arc<AtomicU64>,
}

impl Stream for CountedReply {
    type Item = Result<Delta, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.polls.fetch_add(1, Ordering::Relaxed);
        self.inner.as_mut().poll_next(cx)
    }
}

fn model(wire: ServedWire, url: String) -> Arc<dyn Model> {
    match wire {
        ServedWire::OpenAi => Arc::new(openai::model("m").base_url(url)),
        ServedWire::Anthropic => Arc::new(anthropic::model("m").base_url(url)),
        ServedWire::Responses => Arc::new(responses::model("m").base_url(url)),
        ServedWire::Gemini => Arc::new(gemini::model("m").base_url(url)),
    }
}

/// Stops a run whose model floods this: how often its reply was polled after the request, and what the run's
/// thread did.
fn stopped(flood: &Flood, wire: ServedWire, far: u64) -> (u64, Duration) {
    alone(async {
        let polls = Arc::<AtomicU64>::default();
        let model = Counted { inner: model(wire, flood.url()), polls: Arc::clone(&polls) };
        let limits = Limits { model_output_bytes: usize::MAX, ..Limits::default() };
        let agent = Agent::builder(model).limits(limits).approvals(ApprovalMode::Auto).build();
        let handle = agent.run("go").detach();
        flood.until(far).await.unwrap();
        let (polled, began) = (polls.load(Ordering::Relaxed), spent());
        handle.stop(StopRequest::now());
        let outcome = handle.done().in_time("the run settles").await;
        let took = spent().saturating_sub(began);
        assert_eq!(outcome.ending(), Ending::Stopped, "{outcome:?}");
        (polls.load(Ordering::Relaxed) - polled, took)
    })
}

/// S12.5, S2.2: whatever a model floods, on whatever wire, in pieces as small as they come: after a stop was
/// asked its reply is not asked for another piece, and the run settles within the time that is promised.
#[test]
fn no_flood_delays_a_stop() {
    // The run gives way between any two pieces; the request may come while one is under way.
    const MOST_POLLS: u64 = 1;
    // Some of it is still in buffers of the kernel.
    let far = |field| if field == Field::Calls { 8 * MIB } else { MIB };
    let servers = Runtime::new().unwrap();
    for wire in WIRES {
        for field in FIELDS {
            let flood = servers.block_on(Flood::start(wire, field, 16)).unwrap();
            let (polls, took) = stopped(&flood, wire, far(field));
            assert!(polls <= MOST_POLLS, "{wire:?} {field:?}: it was asked for {polls} pieces more");
            assert!(took <= PROMPT, "{wire:?} {field:?}: the stop took {took:?} of the processor");
            servers.block_on(flood.until_gone(1)).unwrap();
        }
    }
}

/// S12.5: a peer that floods gets the stop as promptly.
#[test]
fn a_flood_of_a_peer_does_not_delay_a_stop() {
    let took = thread::spawn(|| {
        alone(async {
            let (talker, stop) = talker("");
            let handle = Agent::remote(talker).build().run("go").detach();
            started(&handle, 1).await;
            let began = spent();
            handle.stop(StopRequest::now());
            wait::so("the peer is asked", || stop.get().is_some()).await;
            let took = spent().saturating_sub(began);
            assert_eq!(handle.done().in_time("the run settles").await.ending(), Ending::Stopped);
            took
        })
    });
    let took = took.join().unwrap();
    assert!(took <= PROMPT, "the peer was asked after {took:?} of the processor");
}
