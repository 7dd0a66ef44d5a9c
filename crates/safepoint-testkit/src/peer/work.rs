//! The peer's work: a separate task, which outlives the line to it unless it is really ended.

use std::sync::{Arc, atomic::Ordering};

use futures_util::future::{Either, select};
use safepoint::{
    raw::remote::{RemoteEnd, RemoteEvent, RemoteQuestion},
    stop::Failure,
};
use tokio::sync::{Notify, mpsc};

use super::{Given, Peer, PeerStep, World};

/// WorkChannels the work, when the peer does.
#[derive(Clone, Debug, Default)]
pub(super) struct Ender(Arc<Notify>);

impl Ender {
    pub(super) fn end(&self) {
        self.0.notify_one();
    }
}

/// Work that runs, by the peer's own account.
struct RunningWork(Arc<World>);

impl RunningWork {
    fn begin(world: &Arc<World>) -> Self {
        // Release on each update, in this order: who sees the later one sees the earlier one. Waiters are woken last.
        world.begun.fetch_add(1, Ordering::AcqRel);
        world.working.fetch_add(1, Ordering::AcqRel);
        world.moved.notify_waiters();
        Self(Arc::clone(world))
    }
}

impl Drop for RunningWork {
    fn drop(&mut self) {
        // Release: what the work did is seen by a test that sees it gone.
        self.0.working.fetch_sub(1, Ordering::AcqRel);
        self.0.moved.notify_waiters();
    }
}

/// What the work sends and receives.
pub(super) struct WorkChannels {
    pub(super) says: mpsc::UnboundedSender<RemoteEvent>,
    pub(super) receives: mpsc::UnboundedReceiver<(String, Given)>,
}

/// Begins it, before this returns.
pub(super) fn begin(peer: &Peer, ends: WorkChannels) -> Ender {
    let ender = Ender::default();
    let (steps, world) = (peer.steps.clone(), Arc::clone(&peer.world));
    let (running, ended) = (RunningWork::begin(&world), Arc::clone(&ender.0));
    tokio::spawn(async move {
        let work = Box::pin(work(steps, Arc::clone(&world), ends));
        // The work first: work that came to its end was not ended.
        if let Either::Left(_) = select(work, Box::pin(ended.notified())).await {
            // Before `at_work` is dropped: a test that sees it idle sees this.
            world.finished.fetch_add(1, Ordering::AcqRel);
        }
        drop(running);
    });
    ender
}

async fn work(steps: Vec<PeerStep>, world: Arc<World>, mut ends: WorkChannels) {
    let mut line = Some(ends.says);
    for step in steps {
        let said = match step {
            PeerStep::Says(text) => RemoteEvent::Text(text),
            PeerStep::Answers(text) => RemoteEvent::Done(Some(text), RemoteEnd::Reported),
            PeerStep::Fails(why) => RemoteEvent::Failed(Failure::new(why)),
            PeerStep::Waits => {
                world.gate.pass().await;
                continue;
            }
            PeerStep::Breaks(why) => {
                say(line.take(), RemoteEvent::Lost(Failure::new(why)));
                world.gate.pass().await;
                continue;
            }
            PeerStep::Asks { id, tool, args } => {
                say(line.clone(), RemoteEvent::Question(RemoteQuestion { id, tool, args }));
                // No answer comes after the line is gone: it works on.
                drop(ends.receives.recv().await);
                continue;
            }
        };
        say(line.clone(), said);
    }
}

fn say(line: Option<mpsc::UnboundedSender<RemoteEvent>>, said: RemoteEvent) {
    if line.is_some_and(|line| line.send(said).is_err()) {
        // There is no listener any more: the work continues.
    }
}
