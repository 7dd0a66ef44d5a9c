//! Backends for the suite: the engine itself, and a foreign runtime behind a handle settled by hand, good and
//! bad.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::{
    StreamExt as _,
    future::{BoxFuture, Either, select},
    stream,
};
use safepoint::{
    Agent, History, Model, RunHandle,
    message::ToolCall,
    model::{Conversation, Delta, DeltaStream, Finish, ModelSpec},
    raw::backend::{ActiveWork, Backend, BackendSpec, RunInput, WrappedEnd, wrap},
    receipt::StopSupport,
    tool,
};
use safepoint_testkit::{
    backend_suite::{Account, Probe, Subject},
    peer::{OnPeerStop, Peer},
    tool_gate::ToolGate,
};
use tokio::{sync::Notify, time::sleep};

/// The account of work in this process.
#[derive(Clone, Debug, Default)]
pub(crate) struct World {
    pub(crate) gate: ToolGate,
    begun: Arc<AtomicUsize>,
    in_flight: Arc<AtomicUsize>,
    stops: Arc<AtomicUsize>,
    shown: Arc<AtomicUsize>,
}

/// Work that runs until this is dropped; unless it ended by itself, its caller went.
struct AtWork {
    world: World,
    caller: Caller,
}

#[derive(PartialEq)]
enum Caller {
    Waits,
    IsServed,
}

impl World {
    fn begin(&self) -> AtWork {
        self.begun.fetch_add(1, Ordering::SeqCst);
        self.in_flight.fetch_add(1, Ordering::SeqCst);
        AtWork { world: self.clone(), caller: Caller::Waits }
    }

    fn count_stop(&self) {
        self.stops.fetch_add(1, Ordering::SeqCst);
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        if self.caller == Caller::Waits {
            self.world.count_stop();
        }
        self.world.in_flight.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Probe for World {
    fn look(&self) -> BoxFuture<'_, Account> {
        let of = |count: &AtomicUsize| count.load(Ordering::SeqCst);
        let account =
            Account { begun: of(&self.begun), in_flight: of(&self.in_flight), stops: of(&self.stops) };
        Box::pin(std::future::ready(account))
    }

    fn finish(&self) {
        self.gate.open_for_all();
    }

    fn shown(&self) -> usize {
        self.shown.load(Ordering::SeqCst)
    }
}

/// A model whose one call is the work.
struct Held {
    world: World,
    says: Says,
}

#[derive(Clone, Copy, PartialEq)]
enum Says {
    Text,
    Call,
}

impl Model for Held {
    fn name(&self) -> &str {
        "held"
    }

    fn open(&self, _: ModelSpec) -> Box<dyn Conversation> {
        Box::new(Held { world: self.world.clone(), says: self.says })
    }
}

impl Conversation for Held {
    fn stream(&mut self, history: &History) -> DeltaStream {
        let (world, says) = (self.world.clone(), self.says);
        let is_first = history.entries().len() == 1;
        let reply = stream::once(async move {
            let said = match says {
                Says::Call if is_first => {
                    let (id, name, args) = ("call_1".into(), "work".into(), "{}".into());
                    Delta::CallReady(ToolCall { id, name, args })
                }
                Says::Call => Delta::Text("done".into()),
                Says::Text => {
                    let mut running = world.begin();
                    world.gate.pass().await;
                    running.caller = Caller::IsServed;
                    Delta::Text("done".into())
                }
            };
            stream::iter([Ok(said), Ok(Delta::Ended(Finish::Natural))])
        });
        Box::pin(stream::iter([Ok(Delta::Sent)]).chain(reply.flatten()))
    }
}

/// The engine; its work is the model's call.
pub(crate) fn model_call() -> Subject {
    let world = World::default();
    let agent = Agent::builder(Held { world: world.clone(), says: Says::Text }).build();
    Subject { backend: Arc::new(agent), probe: Arc::new(world) }
}

/// The engine; its work is a tool's call.
pub(crate) fn tool_call() -> Subject {
    let world = World::default();
    let of_tool = world.clone();
    let work = tool::from_fn("work", "Works", move |_cx, _: Nothing| {
        let world = of_tool.clone();
        async move {
            let mut running = world.begin();
            world.gate.pass().await;
            running.caller = Caller::IsServed;
            Ok("done")
        }
    });
    let agent = Agent::builder(Held { world: world.clone(), says: Says::Call }).tool(work).build();
    Subject { backend: Arc::new(agent), probe: Arc::new(world) }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

/// A scripted peer, declared as `grade`.
pub(crate) fn peer(on_stop: OnPeerStop, grade: StopSupport) -> Subject {
    let peer = Peer::new("peer").waits().answers("done").on_stop(on_stop).declared(grade);
    Subject { backend: Arc::new(Agent::remote(peer.clone()).build()), probe: Arc::new(peer) }
}

/// What a foreign runtime does on a stop request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Manner {
    /// Ends the work, then says so.
    TearsDown,
    /// Continues to the end, and says when that was.
    Drains,
    /// Says that it has stopped, but continues to the end.
    OnlySays,
    /// Says that it has stopped, and ends a while later.
    SaysSoEarly,
    /// Ends the work, and hands its own stop on twice.
    StopsTwice,
    /// Ends the work, says so, and continues to show output.
    ShowsLate,
}

/// A foreign runtime behind a handle settled by hand.
struct Own {
    spec: BackendSpec,
    manner: Manner,
    world: World,
}

pub(crate) fn own(manner: Manner, grade: StopSupport) -> Subject {
    let world = World::default();
    let spec = BackendSpec { name: format!("{manner:?}"), grade };
    Subject { backend: Arc::new(Own { spec, manner, world: world.clone() }), probe: Arc::new(world) }
}

impl Backend for Own {
    fn spec(&self) -> BackendSpec {
        self.spec.clone()
    }

    fn start(&self, task: RunInput) -> RunHandle {
        let (handle, ready) = wrap(&self.spec, task);
        let (world, manner, of_run) = (self.world.clone(), self.manner, handle.clone());
        tokio::spawn(async move {
            // The handle is out, and the work has not begun.
            tokio::task::yield_now().await;
            let Ok(working) = ready.begin() else { return };
            tokio::task::yield_now().await;
            work(world, manner, working, of_run).await;
        });
        handle
    }
}

async fn work(world: World, manner: Manner, working: ActiveWork, handle: RunHandle) {
    let mut running = world.begin();
    running.caller = Caller::IsServed;
    let stop = Arc::new(Notify::new());
    working.on_stop({
        let (world, stop) = (world.clone(), Arc::clone(&stop));
        move |_reason| {
            world.count_stop();
            if manner == Manner::StopsTwice {
                world.count_stop();
            }
            stop.notify_one();
        }
    });
    let passes = world.gate.clone();
    let mut ends = Box::pin(async move { passes.pass().await });
    let stopped = match select(&mut ends, Box::pin(stop.notified())).await {
        Either::Left(_) => false,
        Either::Right(_) => true,
    };
    let said = if stopped { WrappedEnd::Stopped } else { WrappedEnd::Done("done".into()) };
    match manner {
        _ if !stopped => drop(running),
        Manner::TearsDown | Manner::StopsTwice | Manner::ShowsLate => drop(running),
        Manner::Drains => {
            ends.await;
            drop(running);
        }
        Manner::OnlySays => {
            working.complete(said).unwrap();
            ends.await;
            return drop(running);
        }
        Manner::SaysSoEarly => {
            working.complete(said).unwrap();
            sleep(Duration::from_secs(3)).await;
            return drop(running);
        }
    }
    let landed = working.complete(said);
    assert!(landed.is_ok() || manner == Manner::Drains || !stopped, "{manner:?}");
    if manner == Manner::ShowsLate {
        drop(handle.quiet().await);
        sleep(Duration::from_millis(1)).await;
        world.shown.fetch_add(1, Ordering::SeqCst);
    }
}
