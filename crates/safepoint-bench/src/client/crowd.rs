//! Thousands that wait on silent streams: what one weighs, whether it wakes, and how fast all are stopped.

use std::time::Duration;

use super::{Site, print};
use crate::{
    peer::{Peer, Running},
    process::{resident, resident_at_rest, switches_in},
    timing::{cpu_time, machine_time},
};

/// Number: how many. Figures: KiB of one, context switches in two seconds, milliseconds until every caller knows and until the
/// server has seen every close, milliseconds of this process's CPU.
pub(super) async fn crowd<P: Peer>(mut site: Site<P>) -> anyhow::Result<()> {
    const IDLE: Duration = Duration::from_secs(2);
    const BATCH: usize = 128;
    let most = site.number(0)?;
    let begin = |peer: &P| peer.begin("do:hang".to_owned());
    // A few first, for all that is made once.
    for _ in 0..2 {
        anyhow::ensure!(site.peer.begin("do:say".to_owned()).ended().await, "a conversation failed");
    }
    let first = begin(&site.peer);
    site.count.reaches(1).await?;
    first.stop();
    first.ended().await;
    site.count.reaches(0).await?;
    let before = resident_at_rest().await?;
    let mut waiting = Vec::with_capacity(most);
    while waiting.len() < most {
        let batch = BATCH.min(most - waiting.len());
        waiting.extend((0..batch).map(|_| begin(&site.peer)));
        site.count.reaches(waiting.len()).await?;
    }
    resident_at_rest().await?;
    let weight = (resident()? - before) / most as f64;
    let switches = switches_in(IDLE).await?;
    let (cpu, began) = (cpu_time(), machine_time());
    waiting.iter().for_each(Running::stop);
    for run in waiting {
        anyhow::ensure!(!run.ended().await, "a conversation ended before it was stopped");
    }
    let (known, cpu) = (machine_time(), cpu_time() - cpu);
    let closed = site.count.reaches(0).await?;
    let millis = |until: u64| (until as f64 - began as f64) / 1e6;
    print(&[weight, switches, millis(known), millis(closed), cpu / 1e3]);
    Ok(())
}
