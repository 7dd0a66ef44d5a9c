//! Responses in the background as remote agents: what is said of them, and what became of the work.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, also in its helpers")]

use std::{path::Path, sync::Arc, time::Duration};

use futures_util::future::join_all;
use safepoint::{
    Agent, Outcome, RunHandle, StopRequest,
    event::{EventKind, Fact},
    log::{Log, MemoryLog},
    receipt::{CallReport, CallStatus, QuietReport, RemoteStopState, SideEffect, StopSupport},
};
use safepoint_remote::responses::Responses;
use safepoint_testkit::{
    backend_suite::{self, Measured, Probe as _, Subject, table},
    background::{Begins, Ends, OnProviderCancel, Provider, ProviderManners},
    invariants::Invariants,
    wait,
};
use secrecy::SecretString;

const OFTEN: Duration = Duration::from_millis(5);

fn provider(on_cancel: OnProviderCancel, ends: Ends) -> Provider {
    Provider::start(ProviderManners { on_cancel, ends, ..ProviderManners::default() }).unwrap()
}

/// The remote agent that is the provider's. It has long to answer a stop, which only those need that never do.
fn remote(provider: &Provider) -> Responses {
    const STOP_WITHIN: Duration = Duration::from_secs(8);
    let remote = Responses::model("m").unwrap().base_url(provider.url()).unwrap();
    remote.look_every(OFTEN).stop_within(STOP_WITHIN).listen(Duration::from_millis(100))
}

fn row(outcome: &Outcome) -> &CallReport {
    &outcome.receipt().calls[0]
}

/// A run whose work goes on at the provider, which has named it.
async fn at_work(agent: &Agent, provider: &Provider) -> RunHandle {
    let handle = agent.run("write").detach();
    named(&handle).await;
    provider.gate().came(1).await;
    handle
}

async fn named(handle: &RunHandle) {
    let mut events = handle.events();
    while let Some(event) = events.next().await {
        if matches!(&event.kind, EventKind::Fact(fact) if matches!(&**fact, Fact::RemoteTaskNamed { .. })) {
            return;
        }
    }
    panic!("it was never named: {:?}", handle.done().await);
}

async fn measured(name: &str, on_cancel: OnProviderCancel, grade: StopSupport) -> Measured {
    // A provider that never answers is waited for; the others answer as fast as they can.
    const BRIEFLY: Duration = Duration::from_millis(100);
    let fresh = || {
        let provider = provider(on_cancel, Ends::Answered);
        let mut remote = remote(&provider).grade(grade);
        if on_cancel == OnProviderCancel::Deaf {
            remote = remote.stop_within(BRIEFLY);
        }
        Subject { backend: Arc::new(Agent::remote(remote).build()), probe: Arc::new(provider) }
    };
    match backend_suite::all(&fresh).await {
        Ok(measured) => Measured { name: name.into(), ..measured },
        Err(broken) => panic!("{name}: {broken}"),
    }
}

/// S10.1, S10.2, S10.3 / T3, microsoft/agent-framework#7511: the suite is green for providers of every kind, each with the
/// grade that is true of it, and the table in docs/backends.md says what was measured.
#[tokio::test(flavor = "multi_thread")]
async fn the_table_says_what_was_measured() {
    let rows = join_all([
        measured("a provider that ends its work", OnProviderCancel::Ends, StopSupport::Hard),
        measured("‥ says `cancelled`, and works on", OnProviderCancel::Says, StopSupport::CallerSide),
        measured(
            "‥ answers that it is in progress, and works on",
            OnProviderCancel::Nods,
            StopSupport::CallerSide,
        ),
        measured("‥ has no such address", OnProviderCancel::Missing, StopSupport::None),
        measured(
            "‥ answers with an error, says `cancelled`, and works on",
            OnProviderCancel::RefusesAndSays,
            StopSupport::None,
        ),
        measured("‥ says nothing", OnProviderCancel::Deaf, StopSupport::CallerSide),
    ])
    .await;
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/backends.md");
    if let Err(differs) = table::check(&document, "responses in the background", &rows) {
        panic!("{differs}");
    }
}

/// S10.1: a provider that is declared to end its work, and only says so, is found out.
#[tokio::test]
async fn a_declaration_that_is_not_true_is_red() {
    let says = || {
        let provider = provider(OnProviderCancel::Says, Ends::Answered);
        let agent = Agent::remote(remote(&provider).grade(StopSupport::Hard)).build();
        Subject { backend: Arc::new(agent), probe: Arc::new(provider) }
    };
    let found = backend_suite::grade(&says).await.unwrap_err().to_string();
    assert!(found.contains("the work continues"), "{found}");
}

/// S10.3, S3.6 / T3, microsoft/agent-framework#7511: by default `cancelled` is no more than that: the work is named, and
/// nothing is called quiet.
#[tokio::test]
async fn a_provider_that_only_says_so_is_not_believed() {
    let provider = provider(OnProviderCancel::Says, Ends::Answered);
    let handle = at_work(&Agent::remote(remote(&provider)).build(), &provider).await;
    handle.stop(StopRequest::now());
    let outcome = handle.done().await;
    let told = row(&outcome).remote.as_ref().unwrap();
    assert_eq!(row(&outcome).status, CallStatus::LeftRunning);
    assert_eq!((told.stop, told.word.as_str()), (Some(RemoteStopState::Acknowledged), "cancelled"));
    let QuietReport::NotQuiet(last) = handle.quiet().await else { panic!("it was called quiet") };
    assert!(last.survivors[0].contains("resp_1"), "{:?}", last.survivors);
    assert_eq!(provider.look().await.in_flight, 1, "and so it is");
}

/// S10.44: before the response has an id no cancel can be sent: it is said that the provider could not be told; when the id
/// comes it is told, and its word is in the last account.
#[tokio::test]
async fn a_stop_before_the_id_could_not_be_told_and_is_told_later() {
    const BRIEFLY: Duration = Duration::from_millis(50);
    const PATIENCE: Duration = Duration::from_secs(10);
    let provider =
        Provider::start(ProviderManners { begins: Begins::NamedLate, ..ProviderManners::default() }).unwrap();
    let remote = remote(&provider).grade(StopSupport::Hard).stop_within(BRIEFLY).listen(PATIENCE);
    let handle = Agent::remote(remote).build().run("write").detach();
    provider.gate().came(1).await;
    handle.stop(StopRequest::now());
    let outcome = handle.done().await;
    let told = row(&outcome).remote.as_ref().unwrap();
    assert_eq!(row(&outcome).status, CallStatus::LeftRunning, "{}", outcome.receipt());
    assert_eq!(
        (told.stop, told.asked_at),
        (Some(RemoteStopState::Unreachable), None),
        "{}",
        outcome.receipt()
    );
    assert_eq!(provider.look().await.stops, 0);
    provider.name();
    let QuietReport::Quiet(last) = handle.quiet().await else { panic!("it was told, and has ended") };
    let told = last.calls[0].remote.as_ref().unwrap();
    assert_eq!((told.stop, told.asked_at.is_some()), (Some(RemoteStopState::Confirmed), true), "{last}");
    assert_eq!((provider.look().await.stops, provider.look().await.in_flight), (1, 0));
}

/// S10.1: an answer, and the next message of the conversation, which goes on from it; with the key, which is shown nowhere.
#[tokio::test]
async fn a_conversation_goes_on_from_its_last_response() {
    let provider = provider(OnProviderCancel::Ends, Ends::Answered);
    provider.gate().open_for_all();
    let keyed = remote(&provider).key(&SecretString::from("s3cret")).unwrap().field("tools", vec!["x"]);
    assert!(!format!("{keyed:?}").contains("s3cret"));
    let agent = Agent::remote(keyed).build();
    let first = agent.run("write").await;
    assert_eq!(first.answer(), Some("done 1"));
    let second = agent.run_on(first.history().clone(), "shorter").await;
    assert_eq!(second.answer(), Some("done 2"));
    let requests = provider.requests();
    assert_eq!((&requests[0]["model"], &requests[0]["tools"][0]), (&"m".into(), &"x".into()));
    assert_eq!((&requests[0]["background"], &requests[0]["store"]), (&true.into(), &true.into()));
    assert!(requests[0]["previous_response_id"].is_null());
    assert_eq!(requests[1]["previous_response_id"], "resp_1");
    assert!(provider.bearers().iter().all(|bearer| bearer == "Bearer s3cret"));
}

/// S2.13, S3.8: other ends are told as what they are.
#[tokio::test]
async fn other_ends_are_told_as_what_they_are() {
    let cases = [
        (Ends::Failed, "out of otters", false),
        (Ends::Cut, "the response was cut: max_output_tokens", false),
        (Ends::Forgotten, "it is unknown what became of the response", true),
    ];
    for (ends, why, may_go_on) in cases {
        let provider = provider(OnProviderCancel::Ends, ends);
        provider.gate().open_for_all();
        let handle = Agent::remote(remote(&provider)).build().run("write").detach();
        let outcome = handle.done().await;
        let Outcome::Failed(error) = &outcome else { panic!("{outcome:?}") };
        assert!(error.to_string().contains(why), "{error}");
        assert_eq!(row(&outcome).remote.as_ref().unwrap().may_go_on(), may_go_on);
        assert_eq!(provider.look().await.begun, 1);
    }
}

/// S7.2, S7.3, S10.3 / T10, vercel/ai#6502: the process ends while the provider works: the next one asks for the response
/// by its id, and begins none.
#[tokio::test]
async fn a_response_that_outlives_the_process_is_asked_for_by_its_id() {
    let provider = provider(OnProviderCancel::Ends, Ends::Answered);
    let log: Arc<dyn Log> = Arc::new(MemoryLog::default());
    let agent = Agent::remote(remote(&provider)).build();
    let (of_process, to) = (agent.clone(), Arc::clone(&log));
    let process = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async move {
            let handle = of_process.run_recorded(to, safepoint::History::new(), "write").detach();
            named(&handle).await;
            handle
        })
        // Its runtime goes with it: nothing more is recorded, and nobody is told.
    });
    let before = tokio::task::spawn_blocking(|| process.join().unwrap()).await.unwrap().done().await;
    assert_eq!(provider.look().await.in_flight, 1, "its work outlives us");
    provider.gate().open_for_all();
    let outcome = agent.resume(&before).await;
    assert_eq!(outcome.answer(), Some("done 1"), "{outcome:?}");
    assert_eq!(provider.look().await.begun, 1);
}

/// S2.1, S3.8, S10.3: where nobody is, nothing was done; and what was never sent needs nobody's word.
#[tokio::test]
async fn nobody_there_did_nothing() {
    let remote = Responses::model("m").unwrap().base_url("http://127.0.0.1:9/v1").unwrap();
    let outcome = Agent::remote(remote).build().run("write").await;
    assert!(matches!(outcome, Outcome::Failed(_)), "{outcome:?}");
    assert_eq!(row(&outcome).status, CallStatus::Unreachable);
    assert!(Responses::model("m").unwrap().base_url("nowhere").is_err());
}

/// S4.5, S10.3: an answer that was there when the stop arrived is kept.
#[tokio::test]
async fn what_had_ended_when_the_stop_arrived_is_kept() {
    let provider = provider(OnProviderCancel::Ends, Ends::Answered);
    let agent = Agent::remote(remote(&provider).look_every(Duration::from_secs(3600))).build();
    let handle = at_work(&agent, &provider).await;
    provider.finish();
    wait::asked("nothing is in flight", async || provider.look().await.in_flight == 0).await;
    handle.stop(StopRequest::now());
    let closed = Invariants::of(&handle).check().await.unwrap();
    let call = &closed.receipt.calls[0];
    assert_eq!((call.status, call.effect), (CallStatus::Completed, SideEffect::Done), "{}", closed.receipt);
    assert_eq!(provider.look().await.stops, 0, "it was not called off");
    // Only its answer to the cancel says so.
    assert!(matches!(handle.quiet().await, QuietReport::NotQuiet(_)));
}

/// S10.3, S3.6, S4.5: a response that the answer to the cancel calls completed is the claim of an end, also where a look shows the
/// same meanwhile: the answer is kept as it came, and the run is not quiet. Of a provider whose stops are hard it is an end.
#[tokio::test]
async fn an_end_that_is_named_in_answer_to_the_cancel_is_a_claim() {
    for look_every in [OFTEN, Duration::from_secs(3600)] {
        for grade in [StopSupport::CallerSide, StopSupport::Hard] {
            let provider = provider(OnProviderCancel::ClaimsAnEnd, Ends::Answered);
            let agent = Agent::remote(remote(&provider).grade(grade).look_every(look_every)).build();
            let handle = at_work(&agent, &provider).await;
            handle.stop(StopRequest::now());
            let outcome = handle.done().await;
            let (receipt, known) = (outcome.receipt(), row(&outcome).remote.as_ref().unwrap());
            assert_eq!((row(&outcome).status, outcome.partial_text()), (CallStatus::Completed, "done 1"));
            assert_eq!(known.stop, Some(RemoteStopState::Acknowledged), "{receipt}");
            assert_eq!(provider.look().await.in_flight, 1, "it works on");
            let is_hard = grade == StopSupport::Hard;
            assert_eq!((known.ended_at.is_some(), known.claimed_at.is_some()), (is_hard, !is_hard));
            let claim = "stop requested, reported that its work had ended, may still be running";
            assert_eq!(receipt.to_string().contains(claim), !is_hard, "{receipt}");
            let is_quiet = matches!(handle.quiet().await, QuietReport::Quiet(_));
            assert_eq!(is_quiet, is_hard, "{receipt}");
        }
    }
}

/// S10.3, S3.6: an error is a refusal, whatever the response is called after it, and an answer about another response says
/// nothing of ours: also of a provider that is believed when it says that it stopped.
#[tokio::test]
async fn neither_an_error_nor_another_response_is_an_end() {
    const BRIEFLY: Duration = Duration::from_millis(200);
    let cases = [
        (OnProviderCancel::RefusesAndSays, RemoteStopState::Refused),
        (OnProviderCancel::SaysOfAnother, RemoteStopState::Requested),
        (OnProviderCancel::HangsUp, RemoteStopState::Requested),
    ];
    for (on_cancel, word) in cases {
        let provider = provider(on_cancel, Ends::Answered);
        let agent = Agent::remote(remote(&provider).grade(StopSupport::Hard).stop_within(BRIEFLY)).build();
        let handle = at_work(&agent, &provider).await;
        handle.stop(StopRequest::now());
        let outcome = handle.done().await;
        let told = row(&outcome).remote.as_ref().unwrap();
        assert_eq!(
            (row(&outcome).status, told.stop),
            (CallStatus::LeftRunning, Some(word)),
            "{}",
            outcome.receipt()
        );
        let QuietReport::NotQuiet(last) = handle.quiet().await else { panic!("it goes on") };
        assert_eq!(last.calls[0].remote.as_ref().unwrap().stop, Some(word));
        // A cancel that may have arrived is not sent again.
        assert_eq!((provider.look().await.stops, provider.look().await.in_flight), (1, 1));
    }
}

/// S3.8, S3.6: an error of the server's, or an answer that is none, does not say that nothing was begun; a refusal does.
#[tokio::test]
async fn only_a_refusal_says_that_nothing_was_begun() {
    let cases = [
        (Begins::Status(502), SideEffect::Unknown),
        (Begins::Status(504), SideEffect::Unknown),
        (Begins::Garbage, SideEffect::Unknown),
        (Begins::Status(400), SideEffect::None),
        (Begins::Status(429), SideEffect::None),
    ];
    for (begins, effect) in cases {
        let provider = Provider::start(ProviderManners { begins, ..ProviderManners::default() }).unwrap();
        let handle = Agent::remote(remote(&provider)).build().run("write").detach();
        let outcome = handle.done().await;
        assert_eq!((row(&outcome).status, row(&outcome).effect), (CallStatus::Failed, effect), "{begins:?}");
        let has_begun = effect == SideEffect::Unknown;
        assert_eq!(row(&outcome).remote.as_ref().unwrap().may_go_on(), has_begun, "{begins:?}");
        assert_eq!(provider.look().await.begun, usize::from(has_begun), "{begins:?}");
        assert_eq!(matches!(handle.quiet().await, QuietReport::NotQuiet(_)), has_begun, "{begins:?}");
    }
}

/// S10.1, S10.3: a provider that is busy when it is looked at is looked at again, and the work is not given up.
#[tokio::test]
async fn a_busy_provider_is_looked_at_again() {
    let provider = Provider::start(ProviderManners { busy: 2, ..ProviderManners::default() }).unwrap();
    provider.gate().open_for_all();
    let outcome = Agent::remote(remote(&provider)).build().run("write").await;
    assert_eq!(outcome.answer(), Some("done 1"), "{outcome:?}");
    assert_eq!(provider.look().await.begun, 1);
}
