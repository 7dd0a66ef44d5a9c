//! Rounds of one agent and of many, and a round with many tools.

use std::time::Instant;

use super::{Site, print};
use crate::{
    peer::{Peer, Running as _},
    process::peak,
    timing::cpu_time,
};

/// Numbers: agents, rounds, repetitions. Figures: rounds a second, microseconds of CPU a round, MiB
/// at the peak so far.
pub(super) async fn chain<P: Peer>(site: Site<P>) -> anyhow::Result<()> {
    let (agents, rounds, times) = (site.number(0)?, site.number(1)?, site.number(2)?);
    let warm = times.div_ceil(4);
    for time in 0..warm + times {
        let (began, cpu) = (Instant::now(), cpu_time());
        let running: Vec<_> = (0..agents).map(|_| site.peer.begin(format!("do:chain {rounds}"))).collect();
        for run in running {
            anyhow::ensure!(run.ended().await, "a conversation failed");
        }
        let (took, all) = (began.elapsed().as_secs_f64(), (agents * rounds) as f64);
        if time >= warm {
            print(&[all / took, (cpu_time() - cpu) / all, peak()? / 1024.0]);
        }
    }
    Ok(())
}

/// Numbers: naps of a round, milliseconds of each, repetitions. Figure: milliseconds of all.
pub(super) async fn fan<P: Peer>(site: Site<P>) -> anyhow::Result<()> {
    const WARM: usize = 3;
    let (naps, ms, times) = (site.number(0)?, site.number(1)?, site.number(2)?);
    for time in 0..WARM + times {
        let began = Instant::now();
        let run = site.peer.begin(format!("do:fan {naps} {ms}"));
        anyhow::ensure!(run.ended().await, "a conversation failed");
        if time >= WARM {
            print(&[began.elapsed().as_secs_f64() * 1e3]);
        }
    }
    Ok(())
}
