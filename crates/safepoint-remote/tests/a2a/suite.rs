//! The contract of backends, over servers of every kind: what they are declared to do is what they do.

use std::{path::Path, sync::Arc, time::Duration};

use futures_util::future::join_all;
use safepoint::{Agent, receipt::StopSupport};
use safepoint_remote::a2a::A2a;
use safepoint_testkit::{
    a2a::{A2aManners, A2aWire, OnCancel},
    backend_suite::{self, Measured, Subject, table},
};

use super::world;

const CANCELED: &str = "‥ publishes that it is canceled, and works on";
const REFUSED: &str = "‥ answers with an error, publishes that it is canceled, and works on";

fn subject(manners: A2aManners, change: impl Fn(A2a) -> A2a) -> Subject {
    let server = world::server(manners);
    let backend = Arc::new(Agent::remote(change(world::peer(&server))).build());
    Subject { backend, probe: Arc::new(server) }
}

async fn measured(name: &str, manners: A2aManners, grade: StopSupport) -> Measured {
    // A peer that never answers is waited for; the others answer as fast as they can.
    const BRIEFLY: Duration = Duration::from_millis(100);
    let is_deaf = manners.on_cancel == OnCancel::Deaf;
    let change = |peer: A2a| if is_deaf { peer.stop_within(BRIEFLY) } else { peer };
    let fresh = || subject(manners.clone(), |peer| change(peer.grade(grade)));
    match backend_suite::all(&fresh).await {
        Ok(measured) => Measured { name: name.into(), ..measured },
        Err(broken) => panic!("{name}: {broken}"),
    }
}

/// S10.1, S10.2, S10.3 / T3, T7: the suite is green for peers of every kind, on both wires, each with the grade that is
/// true of it, and the table in docs/backends.md says what was measured.
#[tokio::test(flavor = "multi_thread")]
async fn the_table_says_what_was_measured() {
    let (hard, caller, none) = (StopSupport::Hard, StopSupport::CallerSide, StopSupport::None);
    let newer = |on_cancel| A2aManners::honest(A2aWire::V1).on_cancel(on_cancel);
    let rows = join_all([
        measured("A2A 1.0, a peer that ends its work", newer(OnCancel::Ends), hard),
        measured(CANCELED, newer(OnCancel::Says), caller),
        measured("‥ nods, and works on", newer(OnCancel::Nods), caller),
        measured(REFUSED, newer(OnCancel::RefusesAndSays), none),
        measured("‥ says nothing", newer(OnCancel::Deaf), caller),
        measured("A2A 0.3, a peer that ends its work", A2aManners::honest(A2aWire::V03), hard),
        measured(
            "‥ like Spring AI's: publishes that it is canceled, and works on",
            A2aManners::like_spring_ai(),
            caller,
        ),
        measured("‥ like Embabel's: nobody has written what a stop does", A2aManners::like_embabel(), none),
        measured("‥ like Koog's: refuses by default", A2aManners::like_koog(), none),
    ])
    .await;
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/backends.md");
    if let Err(differs) = table::check(&document, "A2A agents", &rows) {
        panic!("{differs}");
    }
}

/// S10.1: a peer that is declared to end its work, and only says so, is found out; so is one that is declared less than it
/// does.
#[tokio::test]
async fn a_declaration_that_is_not_true_is_red() {
    let says = || subject(A2aManners::like_spring_ai(), |peer| peer.grade(StopSupport::Hard));
    let found = backend_suite::grade(&says).await.unwrap_err().to_string();
    assert!(found.contains("the work continues"), "{found}");
    let modest = || subject(A2aManners::honest(A2aWire::V1), |peer| peer.grade(StopSupport::CallerSide));
    let found = backend_suite::grade(&modest).await.unwrap_err().to_string();
    assert!(found.contains("declared caller-side, and is hard"), "{found}");
}
