//! The peer's work: a separate task, which outlives the line to it unless it is really ended.

use std::sync::Arc;

use futures_util::future::{Either, select};
use safepoint::{
    raw::remote::{RemoteEnd, RemoteEvent, RemoteQuestion},
    stop::Failure,
};
use tokio::sync::{Notify, mpsc};

use super::{Given, Peer, PeerStep, World};

/// Work that runs, by the peer's own account.
struct RunningWork(Arc<World>);

impl RunningWork {
    fn begin(world: &Arc<World>) -> Self {
        world.counts.send_modify(|counts| {
            counts.begun += 1;
            counts.working += 1;
        });
        Self(Arc::clone(world))
    }
}

impl Drop for RunningWork {
    fn drop(&mut self) {
        self.0.counts.send_modify(|counts| counts.working -= 1);
    }
}

/// What the work sends and receives.
pub(super) struct WorkChannels {
    pub(super) says: mpsc::UnboundedSender<RemoteEvent>,
    pub(super) receives: mpsc::UnboundedReceiver<(String, Given)>,
}

/// Begins it, before this returns; what it returns ends it.
pub(super) fn begin(peer: &Peer, ends: WorkChannels) -> Arc<Notify> {
    let ender = Arc::new(Notify::new());
    let (steps, world) = (peer.steps.clone(), Arc::clone(&peer.world));
    let (running, ended) = (RunningWork::begin(&world), Arc::clone(&ender));
    tokio::spawn(async move {
        let work = Box::pin(work(steps, Arc::clone(&world), ends));
        // The work first: work that came to its end was not ended.
        if let Either::Left(_) = select(work, Box::pin(ended.notified())).await {
            // Before `at_work` is dropped: a test that sees it idle sees this.
            world.counts.send_modify(|counts| counts.finished += 1);
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
