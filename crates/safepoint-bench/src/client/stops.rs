//! Single stops, on an idle client and on a busy one.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::{task::JoinSet, time::sleep};

use super::{Site, print};
use crate::{
    peer::{Peer, Running},
    timing::{join, machine_time},
    tools::naps,
};

/// How long a conversation waits before it is stopped, at the least, and how much longer at the most.
const WAITS: Duration = Duration::from_millis(30);
const LONGER: u64 = 20_000_000;

/// Numbers: stops, other agents that run rounds all the time. Figures, in microseconds: from the call of stop until the caller
/// knows, and until the server sees the close; the same from the moment at which the stop was to be called.
pub(super) async fn stops<P: Peer>(mut site: Site<P>, what: &str) -> anyhow::Result<()> {
    const WARM: usize = 3;
    let (times, others) = (site.number(0)?, site.number(1)?);
    let others = Others::begin(&site.peer, others);
    if !others.running.is_empty() {
        sleep(WARM_UP).await;
    }
    for time in 0..WARM + times {
        let figures = match what {
            "nap" => in_a_tool(&site, time).await?,
            silent => in_a_stream(&mut site, silent, time).await?,
        };
        if time >= WARM {
            print(&figures);
        }
    }
    others.end().await
}

const WARM_UP: Duration = Duration::from_millis(500);

async fn in_a_stream<P: Peer>(site: &mut Site<P>, what: &str, time: usize) -> anyhow::Result<[f64; 4]> {
    const APART: u64 = 20;
    let run = site.peer.begin(format!("do:{what} {APART}"));
    site.count.reaches(1).await?;
    let [intended, called, known] = stop(run, time).await?;
    let closed = site.count.reaches(0).await?;
    Ok([micros(called, known), micros(called, closed), micros(intended, known), micros(intended, closed)])
}

async fn in_a_tool<P: Peer>(site: &Site<P>, time: usize) -> anyhow::Result<[f64; 4]> {
    const LONG: usize = 60_000;
    let before = naps();
    let run = site.peer.begin(format!("do:fan 1 {LONG}"));
    while naps() == before {
        sleep(Duration::from_millis(1)).await;
    }
    let [intended, called, known] = stop(run, time).await?;
    Ok([micros(called, known), f64::NAN, micros(intended, known), f64::NAN])
}

/// When the stop was to be called, when it was, and when the caller knew of the end.
async fn stop(run: impl Running, time: usize) -> anyhow::Result<[u64; 3]> {
    // A prime, so that the moments are spread over the time between two of the server's pieces.
    const STEP: u64 = 7_368_787;
    let waits = WAITS + Duration::from_nanos(time as u64 * STEP % LONGER);
    let intended = machine_time() + u64::try_from(waits.as_nanos())?;
    sleep(waits).await;
    let called = machine_time();
    run.stop();
    let ended = run.ended().await;
    let known = machine_time();
    anyhow::ensure!(!ended, "the conversation ended before it was stopped");
    Ok([intended, called, known])
}

fn micros(from: u64, until: u64) -> f64 {
    (until as f64 - from as f64) / 1e3
}

/// Agents that run rounds until they are ended.
struct Others {
    over: Arc<AtomicBool>,
    running: JoinSet<anyhow::Result<()>>,
}

impl Others {
    fn begin<P: Peer>(peer: &P, count: usize) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let mut running = JoinSet::new();
        for _ in 0..count {
            let (over, peer) = (Arc::clone(&over), peer.clone());
            running.spawn(async move {
                // Relaxed: one more conversation is held at most, and `end` joins all.
                while !over.load(Ordering::Relaxed) {
                    anyhow::ensure!(
                        peer.begin("do:chain 10".to_owned()).ended().await,
                        "a conversation failed"
                    );
                }
                Ok(())
            });
        }
        Self { over, running }
    }

    async fn end(self) -> anyhow::Result<()> {
        // Relaxed: the joins below order the rest.
        self.over.store(true, Ordering::Relaxed);
        join(self.running).await
    }
}
