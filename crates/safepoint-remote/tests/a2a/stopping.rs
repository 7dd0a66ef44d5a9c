//! Stops that come too early, that race an end, and what is kept of an answer that they cut.

use std::{sync::Arc, time::Duration};

use safepoint::{
    Agent, Grace, History, Limits, Outcome, StopRequest,
    event::{EventKind, Fact},
    log::{Log, MemoryLog},
    receipt::{CallStatus, QuietReport, RemoteStopState, StopSupport},
};
use safepoint_testkit::{
    a2a::{A2aManners, A2aWire, Looks, OnCancel, Streams, Tells, WorkStep},
    invariants::Invariants,
    wait::{self, InTime as _},
};

use super::world::{at_work, peer, remote, row, server};

const WIRES: [A2aWire; 3] = [A2aWire::V1, A2aWire::V03, A2aWire::V02];

/// S10.44: before the work has a name no cancel can be sent: it is said that the peer could not be told, and not that it was
/// asked; when the name comes it is told, and its word is in the last account.
#[tokio::test]
async fn a_stop_before_the_name_could_not_be_told_and_is_told_later() {
    const BRIEFLY: Duration = Duration::from_millis(50);
    const PATIENCE: Duration = Duration::from_secs(10);
    for wire in WIRES {
        let server = server(A2aManners::honest(wire).streams(Streams::NamedLate));
        let peer = peer(&server).grade(StopSupport::Hard).stop_within(BRIEFLY).listen(PATIENCE);
        let handle = Agent::remote(peer).build().run("do it").detach();
        wait::so("it is asked", || server.asked("SendStreamingMessage") > 0).await;
        handle.stop(StopRequest::now());
        let outcome = handle.done().await;
        let receipt = outcome.receipt();
        assert_eq!(row(receipt).status, CallStatus::LeftRunning, "{receipt}");
        let known = remote(receipt);
        assert_eq!((known.stop, known.asked_at), (Some(RemoteStopState::Unreachable), None), "{receipt}");
        assert!(receipt.to_string().contains("stop not delivered, may still be running"), "{receipt}");
        assert_eq!((known.word.as_str(), server.asked("CancelTask")), ("it has not named its work yet", 0));
        server.name();
        let QuietReport::Quiet(last) = handle.quiet().await else {
            panic!("{wire:?}: it was told, and has ended")
        };
        let known = remote(&last);
        assert_eq!(
            (known.stop, known.asked_at.is_some()),
            (Some(RemoteStopState::Confirmed), true),
            "{last}"
        );
        assert_eq!((server.asked("CancelTask"), server.running()), (1, 0));
    }
}

/// S10.44: a name that comes in the peer's time is in time.
#[tokio::test]
async fn a_name_that_comes_in_the_peers_time_is_in_time() {
    let server = server(A2aManners::honest(A2aWire::V03).streams(Streams::NamedLate));
    let handle = Agent::remote(peer(&server)).build().run("do it").detach();
    wait::so("it is asked", || server.asked("SendStreamingMessage") > 0).await;
    handle.stop(StopRequest::now());
    server.name();
    let outcome = handle.done().await;
    let known = remote(outcome.receipt());
    assert_eq!((known.stop, known.word.as_str()), (Some(RemoteStopState::Acknowledged), "canceled"));
    assert_eq!(server.asked("CancelTask"), 1);
}

/// S10.45, S4.5: work that came to its end as it was asked to stop: whatever the cancel was answered with, the answer that was
/// on its way is kept.
#[tokio::test]
async fn an_answer_that_was_there_in_a_race_is_kept() {
    for wire in WIRES {
        for tells in [Tells::Task, Tells::Status] {
            let server = server(A2aManners::honest(wire).tells(tells).on_cancel(OnCancel::SaysTooLate));
            let handle = at_work(&server, peer(&server)).await;
            handle.stop(StopRequest::now());
            let outcome = handle.done().await;
            assert_eq!(row(outcome.receipt()).status, CallStatus::Completed, "{}", outcome.receipt());
            assert_eq!(outcome.partial_text(), "half done", "{wire:?} {tells:?}");
            assert!(matches!(handle.quiet().await, QuietReport::Quiet(_)));
        }
    }
}

/// S10.45: what a peer goes on to say while it has not answered the cancel is shown as it comes.
#[tokio::test]
async fn what_comes_while_a_cancel_is_not_answered_is_shown_as_it_comes() {
    const PATIENCE: Duration = Duration::from_secs(60);
    let plan = [
        WorkStep::Say("half".into()),
        WorkStep::Wait,
        WorkStep::Say(" more".into()),
        WorkStep::Wait,
        WorkStep::Say(" done".into()),
    ];
    for wire in WIRES {
        let server = server(A2aManners::honest(wire).plan(plan.clone()).on_cancel(OnCancel::Deaf));
        let handle = at_work(&server, peer(&server).stop_within(PATIENCE)).await;
        let mut events = handle.events();
        handle.stop(StopRequest::now());
        wait::so("it is told", || server.asked("CancelTask") > 0).await;
        server.let_on();
        while let Some(event) = events.next().await {
            assert!(
                !matches!(&event.kind, EventKind::Fact(fact) if matches!(&**fact, Fact::Settled { .. })),
                "{wire:?}"
            );
            if matches!(&event.kind, EventKind::Text(text) if &**text == " more") {
                break;
            }
        }
        assert!(!handle.is_done(), "{wire:?}: it has not answered");
        server.let_on();
        let outcome = handle.done().await;
        assert_eq!(
            (row(outcome.receipt()).status, outcome.partial_text()),
            (CallStatus::Completed, "half more done")
        );
    }
}

/// S4.5, S10.3: a peer that refuses the cancel of a task that it shows as completed has answered; its work was over by itself,
/// and its answer is kept.
#[tokio::test]
async fn a_cancel_that_meets_an_end_was_answered() {
    const BEGUN: usize = 3;
    // Its end is not told by its stream.
    let manners = A2aManners::honest(A2aWire::V1).streams(Streams::HushAfter(BEGUN));
    let server = server(manners.on_cancel(OnCancel::Refuses));
    let handle = at_work(&server, peer(&server)).await;
    server.let_on();
    server.idle().await;
    handle.stop(StopRequest::now());
    let outcome = handle.done().await;
    let (receipt, known) = (outcome.receipt(), remote(outcome.receipt()));
    assert_eq!((row(receipt).status, outcome.partial_text()), (CallStatus::Completed, "half done"));
    assert_eq!(known.stop, Some(RemoteStopState::Refused), "{receipt}");
    assert!(known.word.contains("its task was completed") && known.replied_at.is_some(), "{known:?}");
    assert!(known.ended_at.is_some() && known.claimed_at.is_none(), "{known:?}");
    assert!(receipt.to_string().contains("; work ended by itself, "), "{receipt}");
    assert!(matches!(handle.quiet().await, QuietReport::Quiet(_)));
}

/// S10.3, S3.6, S4.5: a task that the answer to the cancel calls completed is the claim of an end, whether its stream says so too
/// and in whichever order, and whether it is true: the answer is kept as it came, and the run is not quiet. Of a peer whose stops
/// are hard it is an end.
#[tokio::test]
async fn an_end_that_is_named_in_answer_to_the_cancel_is_a_claim() {
    const BEGUN: usize = 3;
    for (on_cancel, answer) in [(OnCancel::Completes, "half done"), (OnCancel::ClaimsAnEnd, "half")] {
        for streams in [Streams::HushAfter(BEGUN), Streams::Well] {
            for grade in [StopSupport::CallerSide, StopSupport::None, StopSupport::Hard] {
                let server = server(A2aManners::honest(A2aWire::V1).streams(streams).on_cancel(on_cancel));
                let handle = at_work(&server, peer(&server).grade(grade)).await;
                handle.stop(StopRequest::now());
                let outcome = handle.done().await;
                let (receipt, known) = (outcome.receipt(), remote(outcome.receipt()));
                assert_eq!((row(receipt).status, outcome.partial_text()), (CallStatus::Completed, answer));
                let history = format!("{:?}", outcome.history());
                assert!(!history.contains("may go on"), "{history}");
                assert_eq!(known.stop, Some(RemoteStopState::Acknowledged), "{receipt}");
                assert!(known.word.contains("completed") && known.replied_at.is_some(), "{known:?}");
                let is_hard = grade == StopSupport::Hard;
                assert_eq!((known.ended_at.is_some(), known.claimed_at.is_some()), (is_hard, !is_hard));
                let claim = "stop requested, reported that its work had ended, may still be running";
                assert_eq!(receipt.to_string().contains(claim), !is_hard, "{receipt}");
                match handle.quiet().await {
                    QuietReport::Quiet(last) => assert!(is_hard, "{last}"),
                    QuietReport::NotQuiet(last) => {
                        assert!(!is_hard && last.survivors.iter().any(|it| it.contains("remote work")));
                        assert!(last.to_string().contains(claim), "{last}");
                    }
                }
            }
        }
    }
}

/// S3.5, S10.45: what comes of an answer when its call has ended is neither shown nor kept, nor counted as that, also while the
/// peer still has time to answer the stop: it is late.
#[tokio::test]
async fn what_comes_when_the_call_has_ended_is_not_counted_as_kept() {
    const BRIEFLY: Duration = Duration::from_millis(100);
    const FOREVER: Duration = Duration::from_secs(3600);
    for wire in WIRES {
        let server = server(A2aManners::honest(wire).on_cancel(OnCancel::Deaf));
        let agent = Agent::remote(peer(&server).stop_within(FOREVER).listen(FOREVER));
        let limits = Limits::default().with_cleanup_timeout(BRIEFLY);
        let handle = agent.limits(limits).build().run("do it").detach();
        super::world::heard(&handle, "half").await;
        server.came(1).await;
        handle.stop(StopRequest::now().with_cleanup_cap(BRIEFLY));
        let outcome = handle.done().in_time("its call ends without it").await;
        assert_eq!(outcome.partial_text(), "half", "{wire:?}");
        server.let_on();
        let (QuietReport::Quiet(last) | QuietReport::NotQuiet(last)) = handle.quiet().await;
        let known = remote(&last);
        assert_eq!((known.said.as_str(), known.said_bytes), ("half", 4), "{wire:?}: {last}");
        let late = last.late.join(" ");
        assert!(late.contains("said 5 bytes more") && late.contains("with 9 bytes"), "{wire:?}: {late}");
        let mut events = handle.events();
        let mut shown = String::new();
        while let Some(event) = events.next().in_time("its events").await {
            if let EventKind::Text(text) = &event.kind {
                shown.push_str(text);
            }
        }
        assert_eq!(shown, "half", "{wire:?}");
    }
}

/// S10.45: what a peer had said of its answer when it was stopped is shown as it comes, and kept in the outcome, the history
/// and the receipt.
#[tokio::test]
async fn what_it_had_said_when_it_was_stopped_is_kept() {
    for (wire, on_cancel) in
        [(A2aWire::V1, OnCancel::Ends), (A2aWire::V03, OnCancel::Says), (A2aWire::V02, OnCancel::Refuses)]
    {
        let server = server(A2aManners::honest(wire).on_cancel(on_cancel));
        let handle = Agent::remote(peer(&server)).build().run("do it").detach();
        let mut events = handle.events();
        while let Some(event) = events.next().await {
            if matches!(&event.kind, EventKind::Text(text) if &**text == "half") {
                break;
            }
        }
        handle.stop(StopRequest::now());
        let outcome = handle.done().await;
        assert!(matches!(outcome, Outcome::Stopped(_)), "{outcome:?}");
        assert_eq!(outcome.partial_text(), "half", "{wire:?}");
        assert!(format!("{:?}", outcome.history()).contains("half"), "{:?}", outcome.history());
        let known = remote(outcome.receipt());
        assert_eq!((known.said.as_str(), known.said_bytes), ("half", 4));
        assert!(
            outcome.receipt().to_string().contains("partial answer kept, 4 bytes"),
            "{}",
            outcome.receipt()
        );
        drop(Invariants::of(&handle).check().await.unwrap());
    }
}

/// S10.3, S7.3: this process ends before the work has a name, by which it could be asked for: whoever takes it up says that it may
/// go on, and is not quiet.
#[tokio::test]
async fn work_without_a_name_that_outlives_the_process_is_not_quiet() {
    let server = server(A2aManners::honest(A2aWire::V1).streams(Streams::NamedLate));
    let log: Arc<dyn Log> = Arc::new(MemoryLog::default());
    let agent = Agent::remote(peer(&server)).build();
    let of_process = agent.clone();
    let process = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async move {
            let handle = of_process.run_recorded(log, History::new(), "do it").detach();
            let mut events = handle.events();
            while let Some(event) = events.next().await {
                if matches!(&event.kind, EventKind::Fact(fact) if matches!(&**fact, Fact::CallStarted { .. }))
                {
                    break;
                }
            }
            handle
        })
        // Its runtime goes with it.
    });
    let before = tokio::task::spawn_blocking(|| process.join().unwrap()).await.unwrap().done().await;
    let handle = agent.resume(&before).detach();
    let outcome = handle.done().await;
    let receipt = outcome.receipt();
    assert_eq!(row(receipt).status, CallStatus::LeftRunning, "{receipt}");
    assert!(receipt.to_string().contains("connection lost, may still be running"), "{receipt}");
    assert!(matches!(handle.quiet().await, QuietReport::NotQuiet(_)), "{receipt}");
}

/// S10.42, S10.3: what the answer to a cancel has of the work's answer is kept, where neither its stream nor a look tells it: at the
/// end of the task and before it.
#[tokio::test]
async fn what_the_answer_to_a_cancel_shows_is_kept() {
    const BEGUN: usize = 3;
    let plan = ["half", " more"].map(|text| WorkStep::Say(text.into()));
    let [half, more] = plan;
    let plan = [half, WorkStep::Wait, more, WorkStep::Wait];
    for (on_cancel, status, answer) in [
        (OnCancel::Completes, CallStatus::Completed, "half more done"),
        (OnCancel::Nods, CallStatus::LeftRunning, "half more"),
    ] {
        let manners = A2aManners::honest(A2aWire::V1).plan(plan.clone()).looks(Looks::Silent);
        let server = server(manners.streams(Streams::HushAfter(BEGUN)).on_cancel(on_cancel));
        let handle = at_work(&server, peer(&server)).await;
        server.let_on();
        server.came(2).await;
        handle.stop(StopRequest::now());
        let outcome = handle.done().await;
        let receipt = outcome.receipt();
        assert_eq!((row(receipt).status, outcome.partial_text()), (status, answer), "{receipt}");
    }
}

/// S10.3, S10.64: a refusal under a grace is shown when it comes; its work has the grace to come to its own end, which is kept, and
/// the caller waits no longer than something can come.
#[tokio::test]
async fn a_refusal_under_a_grace_is_shown_when_it_comes() {
    const LONG: Grace = Grace::from_secs(600);
    for on_cancel in [OnCancel::Refuses, OnCancel::RefusesAndSays] {
        let server = server(A2aManners::honest(A2aWire::V1).on_cancel(on_cancel));
        let handle = at_work(&server, peer(&server)).await;
        let mut events = handle.events();
        handle.stop(StopRequest::graceful(LONG));
        loop {
            let event = events.next().in_time("it is shown").await.expect("it is shown before the end");
            if matches!(&event.kind, EventKind::Notice { text, .. } if text.contains("refused to stop (Canc"))
            {
                break;
            }
        }
        if on_cancel == OnCancel::Refuses {
            assert!(!handle.is_done(), "its work may come to its own end");
            server.let_on();
        }
        let outcome = handle.done().in_time("nothing more can come").await;
        let receipt = outcome.receipt();
        let status =
            if on_cancel == OnCancel::Refuses { CallStatus::Completed } else { CallStatus::LeftRunning };
        assert_eq!(row(receipt).status, status, "{receipt}");
        assert_eq!(remote(receipt).stop, Some(RemoteStopState::Refused), "{receipt}");
        let is_over = matches!(handle.quiet().await, QuietReport::Quiet(_));
        assert_eq!(is_over, on_cancel == OnCancel::Refuses, "{receipt}");
    }
}

/// S10.42, S10.45: the answer to a cancel has pieces that are still on their way on the stream: each is kept once and shown
/// once.
#[tokio::test]
async fn an_answer_to_a_cancel_that_overtakes_its_stream_doubles_nothing() {
    const LONG: Duration = Duration::from_secs(30);
    let says = |text: &str| WorkStep::Say(text.into());
    for wire in WIRES {
        for sent in 3..=4 {
            let plan = [says("half "), WorkStep::Wait, says("one "), says("two "), WorkStep::Wait];
            let manners = A2aManners::honest(wire).plan(plan).on_cancel(OnCancel::SaysTooLate);
            let server = server(manners.streams(Streams::LagAfter(sent)));
            let handle =
                Agent::remote(peer(&server).stop_within(LONG).listen(LONG)).build().run("count").detach();
            server.came(1).await;
            server.let_on();
            server.came(2).await;
            super::world::heard(&handle, if sent == 3 { "half " } else { "one " }).await;
            handle.stop(StopRequest::now());
            super::world::heard(&handle, "two ").await;
            server.name();
            let outcome = handle.done().in_time("its end").await;
            assert_eq!(outcome.partial_text(), "half one two  done", "{wire:?} {sent}");
        }
    }
}
