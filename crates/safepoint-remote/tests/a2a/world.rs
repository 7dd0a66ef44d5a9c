//! A server of this protocol, and an agent that is it.

use std::{sync::Arc, time::Duration};

use safepoint::{
    Agent, Outcome, Receipt, RunHandle, StopRequest,
    receipt::{CallReport, RemoteReport},
};
use safepoint_remote::a2a::{A2a, Bounds};
use safepoint_testkit::a2a::{A2aManners, A2aServer};

/// Bounds that a test need not wait for, and that a busy machine keeps.
pub(crate) fn bounds() -> Bounds {
    Bounds { pause: Duration::from_millis(1), look_every: Duration::from_millis(5), ..Bounds::default() }
}

pub(crate) fn server(manners: A2aManners) -> A2aServer {
    A2aServer::start(manners).unwrap()
}

/// The agent of a server. It has long to answer a stop, which only those need that never do; our end listens no longer
/// than a test likes.
pub(crate) fn peer(server: &A2aServer) -> A2a {
    const STOP_WITHIN: Duration = Duration::from_secs(8);
    const LISTEN: Duration = Duration::from_millis(100);
    A2a::at(server.url()).unwrap().bounds(bounds()).unwrap().stop_within(STOP_WITHIN).listen(LISTEN)
}

/// A run of the agent whose work has come to its gate, and whose half answer was heard.
pub(crate) async fn at_work(server: &A2aServer, peer: A2a) -> RunHandle {
    let handle = Agent::remote(peer).build().run("do it").detach();
    heard(&handle, "half").await;
    server.came(1).await;
    handle
}

/// Waits until the run shows this, as text of its own or as the progress of a call.
pub(crate) async fn heard(handle: &RunHandle, wanted: &str) {
    use safepoint::event::EventKind;
    let mut events = handle.events();
    while let Some(event) = events.next().await {
        let shown: &str = match &event.kind {
            EventKind::Text(text) => text,
            EventKind::Progress { text, .. } => text,
            _ => continue,
        };
        if shown.contains(wanted) {
            return;
        }
    }
    panic!("the run ended before it showed `{wanted}`: {:?}", handle.done().await);
}

/// The same, stopped.
pub(crate) async fn stopped(server: &A2aServer, peer: A2a) -> (RunHandle, Arc<Receipt>) {
    let handle = at_work(server, peer).await;
    handle.stop(StopRequest::now());
    let outcome = handle.done().await;
    assert!(matches!(outcome, Outcome::Stopped(_)), "{outcome:?}");
    let receipt = Arc::clone(outcome.receipt());
    (handle, receipt)
}

pub(crate) fn row(receipt: &Receipt) -> &CallReport {
    &receipt.calls[0]
}

pub(crate) fn remote(receipt: &Receipt) -> &RemoteReport {
    row(receipt).remote.as_ref().unwrap()
}
