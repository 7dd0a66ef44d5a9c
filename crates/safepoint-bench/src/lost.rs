//! Stops at arbitrary moments: not one is lost.

use std::time::Duration;

use safepoint::{Agent, StopRequest};
use safepoint_models::openai;
use safepoint_testkit::{
    script::{Reply, Script},
    server::ModelServer,
};

use crate::table::Table;

/// Many stops, thirty-two at once.
pub(crate) async fn measure(table: &mut Table) -> anyhow::Result<()> {
    const STOPS: usize = 10_000;
    const AT_ONCE: usize = 32;
    const LONG: Duration = Duration::from_secs(10);
    let server = ModelServer::start(Script {
        repeat: true,
        ..Script::of([Reply::text("words and words and words").paced(2, Duration::from_millis(1))])
    })
    .await?;
    let agent = Agent::builder(openai::model("m").base_url(server.url())).build();
    let mut running = tokio::task::JoinSet::new();
    let mut lost = 0_usize;
    for n in 0..STOPS {
        let agent = agent.clone();
        running.spawn(async move {
            let handle = agent.run("go").detach();
            tokio::time::sleep(Duration::from_micros((n as u64 * 37) % 8000)).await;
            handle.stop(StopRequest::now());
            tokio::time::timeout(LONG, handle.done()).await.is_ok()
        });
        if running.len() >= AT_ONCE
            && let Some(ended) = running.join_next().await
        {
            lost += usize::from(!ended?);
        }
    }
    while let Some(ended) = running.join_next().await {
        lost += usize::from(!ended?);
    }
    table.alone("stops lost, of 10,000 at arbitrary moments, 32 at once", "lost", lost as f64, 0.0);
    Ok(())
}
