//! What a session costs the server: open and at rest, and unloaded.

use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use safepoint::model::Delta;
use tokio::time::sleep;

use super::host::{QUICK, Served};
use crate::{
    models::model,
    process::{in_a_process, resident_at_rest},
    table::Table,
};

/// The hidden argument that makes this program a server with sessions at rest: `open` or `unloaded`.
pub(crate) const AT_REST: &str = "__at_rest";

/// The sessions that are weighed, after as many of which the program has what it uses once.
const WEIGHED: usize = 2_000;
/// How often it is looked whether all are unloaded.
const LOOK: Duration = Duration::from_millis(100);

pub(crate) fn measure(table: &mut Table) -> anyhow::Result<()> {
    let [open] = in_a_process(&[AT_REST, "open"])?;
    table.alone("served: memory of a session that is open and at rest", "KiB", open, 40.0);
    let [unloaded] = in_a_process(&[AT_REST, "unloaded"])?;
    table.alone("served: memory of a session that is unloaded", "KiB", unloaded, 1.0);
    Ok(())
}

/// The server itself: prints KiB of a session.
pub(crate) async fn gather(kind: &str) -> anyhow::Result<()> {
    let is_unloaded = kind == "unloaded";
    let unload = if is_unloaded { Duration::from_millis(100) } else { Duration::from_secs(600) };
    let none = model(|_| stream::iter([Ok(Delta::Sent)]).chain(stream::pending()).boxed());
    let served = Served::of(none, unload).await?;
    let turn = async || -> anyhow::Result<f64> {
        served.many(QUICK, WEIGHED).await?;
        while is_unloaded && served.open_now().await? > 0 {
            sleep(LOOK).await;
        }
        resident_at_rest().await
    };
    let before = turn().await?;
    let after = turn().await?;
    println!("{}", (after - before) / WEIGHED as f64);
    served.end().await?;
    Ok(())
}
