//! The figures of the guide: with `SAFEPOINT_RESTATE_SERVER`,
//! `cargo test -p safepoint-nodes --features restate --test restate figures -- --nocapture`.

use super::world::World;
use crate::figures;

/// S7.72: a wake makes an owner, each time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn figures_of_restate() {
    let world = World::new().await;
    let (one, address) = world.node(&[], 100).await;
    let (asks, _) = world.node(&[], 0).await;
    world.engine.register(address).await;
    figures::print("restate", &world.store, &*asks.placement, &one.hands).await;
    assert_eq!((one.failure(), asks.failure()), (None, None));
}
