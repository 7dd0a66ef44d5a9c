//! The figures of the guide: `cargo test -p safepoint-nodes --features graphile --test graphile figures -- --nocapture`.

use std::{sync::Arc, time::Duration};

use futures_util::{FutureExt as _, future::pending};
use safepoint_nodes::{Here, NodeCapacity, Placement as _};

use super::world::World;
use crate::{figures, nodes::StoreHands};

/// S7.71: a wake makes an owner, each time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn figures_of_here_and_graphile() {
    let world = World::new().await;
    let store = world.store();
    let (here, hands) = (Arc::<Here>::default(), StoreHands::join(&store, &[]).await);
    let capacity = NodeCapacity { pools: Vec::new(), room: 100, lease: Duration::from_secs(60) };
    let (serves, taker) = (Arc::clone(&here), Arc::clone(&hands));
    let served = tokio::spawn(async move { serves.serve(taker, capacity, pending().boxed()).await });
    here.has_room().await;
    figures::print("here", &store, &*here, &hands).await;
    assert!(!served.is_finished());
    let (asks, one) = (world.node(&[], 0).await, world.node(&[], 100).await);
    figures::print("graphile", &store, &*asks.placement, &one.hands).await;
    assert_eq!(one.failure(), None);
}
