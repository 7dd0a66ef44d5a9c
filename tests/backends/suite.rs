//! The suite over every backend of this process, and red for each that is broken.

use std::path::Path;

use safepoint::{
    raw::backend::{BackendSpec, RunInput, WrappedEnd, wrap, wrap_finished},
    receipt::StopSupport,
};
use safepoint_testkit::{
    backend_suite::{self, BrokenBackend, Measured, Subject, table},
    peer::OnPeerStop,
};

use crate::subjects::{Manner, model_call, own, peer, tool_call};

async fn measured(name: &str, fresh: impl Fn() -> Subject + Sync) -> Measured {
    match backend_suite::all(&fresh).await {
        Ok(measured) => Measured { name: name.into(), ..measured },
        Err(broken) => panic!("{name}: {broken}"),
    }
}

async fn broken(manner: Manner, grade: StopSupport) -> BrokenBackend {
    backend_suite::all(&|| own(manner, grade)).await.unwrap_err()
}

/// S10.1, S10.2 / T7, aegra/aegra#528; Agenta-AI/agenta#5160: the suite is green for every backend of this
/// process, and the table in docs/backends.md says what it measured.
#[tokio::test(start_paused = true)]
async fn the_table_says_what_was_measured() {
    let (hard, caller, none) = (StopSupport::Hard, StopSupport::CallerSide, StopSupport::None);
    let rows = [
        measured("this process, in a model call", model_call).await,
        measured("this process, in a tool's call", tool_call).await,
        measured("your runtime, which tears down", || own(Manner::TearsDown, hard)).await,
        measured("your runtime, which drains", || own(Manner::Drains, caller)).await,
        measured("your runtime, which cannot stop", || own(Manner::Drains, none)).await,
        measured("a peer that ends its work", || peer(OnPeerStop::Ends, hard)).await,
        measured("‥ ends it by and by", || peer(OnPeerStop::EndsLater, hard)).await,
        measured("‥ takes note and works on", || peer(OnPeerStop::TakesNote, caller)).await,
        measured("‥ publishes that it is canceled, and works on", || peer(OnPeerStop::OnlySays, caller))
            .await,
        measured("‥ has not implemented it", || peer(OnPeerStop::CannotStop, none)).await,
        measured("‥ refuses by default", || peer(OnPeerStop::Refuses, none)).await,
        measured("‥ says nothing", || peer(OnPeerStop::Silent, caller)).await,
        measured("‥ cannot be reached", || peer(OnPeerStop::Unreachable, caller)).await,
    ];
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/backends.md");
    if let Err(differs) = table::check(&document, "in process", &rows) {
        panic!("{differs}");
    }
}

/// S10.2: a handle that was finished when it was made holds what one of work that is over must.
#[tokio::test]
async fn a_finished_handle_is_one_of_work_that_is_over() {
    let spec = BackendSpec { name: "cached".into(), grade: StopSupport::Hard };
    for end in [WrappedEnd::Done("42".into()), WrappedEnd::Failed("no luck".into())] {
        backend_suite::already_over(&wrap_finished(&spec, RunInput::new("6 × 7"), end)).await.unwrap();
    }
    let (handle, ready) = wrap(&spec, RunInput::new("6 × 7"));
    let found = backend_suite::already_over(&handle).await.unwrap_err().to_string();
    assert!(found.contains("its handle says that it is not"), "{found}");
    drop(ready);
}

/// S10.1: one that says hard and drains is found out.
#[tokio::test(start_paused = true)]
async fn claiming_hard_and_draining_is_red() {
    let found = broken(Manner::Drains, StopSupport::Hard).await.to_string();
    assert!(found.contains("declared hard, and is caller-side"), "{found}");
    let found =
        backend_suite::all(&|| peer(OnPeerStop::OnlySays, StopSupport::Hard)).await.unwrap_err().to_string();
    assert!(found.contains("its work continues") || found.contains("the work continues"), "{found}");
}

/// S10.1: so is one that says less than is true.
#[tokio::test(start_paused = true)]
async fn a_modest_declaration_is_red() {
    let found = broken(Manner::TearsDown, StopSupport::CallerSide).await.to_string();
    assert!(found.contains("declared caller-side, and is hard"), "{found}");
}

/// S10.2: and one that hands the stop on twice.
#[tokio::test(start_paused = true)]
async fn stopping_twice_is_red() {
    let found = broken(Manner::StopsTwice, StopSupport::Hard).await.to_string();
    assert!(found.contains("asked to stop more than once"), "{found}");
}

/// S10.2: and one that shows something after it has settled.
#[tokio::test(start_paused = true)]
async fn showing_after_the_settling_is_red() {
    let found = broken(Manner::ShowsLate, StopSupport::Hard).await.to_string();
    assert!(found.contains("shown something after it had settled"), "{found}");
}

/// S10.2 / T3, anomalyco/opencode#16721: and one that says stopped before it is.
#[tokio::test(start_paused = true)]
async fn saying_stopped_too_early_is_red() {
    for manner in [Manner::SaysSoEarly, Manner::OnlySays] {
        let found = broken(manner, StopSupport::Hard).await.to_string();
        assert!(found.contains("work continues"), "{manner:?}: {found}");
    }
}
