//! What a stop does to a peer's work, and what the receipt says of it: never more than the peer confirmed.

use std::time::Duration;

use safepoint::{
    Agent, Outcome, StopRequest,
    raw::remote::LAST_LOOK,
    receipt::{CallStatus, QuietReport, RemoteStopState, SideEffect, StopSupport},
};
use safepoint_testkit::{
    a2a::{A2aManners, A2aWire, Card, Looks, OnCancel, Tells},
    invariants::Invariants,
    wait::{self, InTime as _},
};

use super::world::{at_work, heard, peer, remote, row, server, stopped};

const WIRES: [A2aWire; 2] = [A2aWire::V1, A2aWire::V03];
/// Longer than a test waits for anything.
const FOREVER: Duration = Duration::from_secs(3600);

/// S10.3, S3.6: of a peer that is declared to end its work before it says so, and does, `canceled` is confirmed.
#[tokio::test]
async fn an_honest_peer_that_is_declared_so_confirms() {
    for wire in WIRES {
        let server = server(A2aManners::honest(wire));
        let (handle, receipt) = stopped(&server, peer(&server).grade(StopSupport::Hard)).await;
        assert_eq!((row(&receipt).status, row(&receipt).effect), (CallStatus::Stopped, SideEffect::Unknown));
        assert_eq!(
            (remote(&receipt).stop, remote(&receipt).word.as_str()),
            (Some(RemoteStopState::Confirmed), "canceled")
        );
        assert_eq!(remote(&receipt).task.as_deref(), Some("task-1"));
        assert_eq!(server.deeds(), ["began", "said half", "torn down"]);
        let closed = Invariants::of(&handle).check().await.unwrap();
        assert!(closed.receipt.quiet_at.is_some());
        assert_eq!(server.asked("CancelTask"), 1);
    }
}

/// S10.3 / T3, T11, aprin-labs/archimedes#1667; microsoft/agent-framework#7511: the same word from a peer whose work goes
/// on, as Spring AI's executor gives it: by default it is acknowledged, the work is named, and nothing is called quiet.
#[tokio::test]
async fn a_peer_that_only_says_so_is_not_believed() {
    for manners in [A2aManners::honest(A2aWire::V1).on_cancel(OnCancel::Says), A2aManners::like_spring_ai()] {
        let server = server(manners);
        let (handle, receipt) = stopped(&server, peer(&server)).await;
        assert_eq!(row(&receipt).status, CallStatus::LeftRunning);
        assert_eq!(
            (remote(&receipt).stop, remote(&receipt).word.as_str()),
            (Some(RemoteStopState::Acknowledged), "canceled")
        );
        let QuietReport::NotQuiet(last) = handle.quiet().await else {
            panic!("work that goes on was called quiet")
        };
        assert_eq!(last.survivors, [format!("remote work task-1 at a2a:{}", server.url())]);
        assert_eq!(server.running(), 1, "it does go on");
        server.let_on();
        server.idle().await;
        assert_eq!(server.deeds(), ["began", "said half", "unheard  done", "ended"]);
    }
}

/// S10.3 / T7: nobody has written what a stop does, as in Embabel's server: it is refused, with what the server answered.
#[tokio::test]
async fn a_stop_that_nobody_has_written_is_refused() {
    let server = server(A2aManners::like_embabel());
    let (handle, receipt) = stopped(&server, peer(&server)).await;
    assert_eq!(
        (row(&receipt).status, remote(&receipt).stop),
        (CallStatus::LeftRunning, Some(RemoteStopState::Refused))
    );
    assert!(remote(&receipt).word.contains("500"), "{}", remote(&receipt).word);
    assert!(matches!(handle.quiet().await, QuietReport::NotQuiet(_)));
    assert_eq!(server.running(), 1);
}

/// S10.3: a peer that refuses, as Koog's does by default, is told in its words, and its task as it stands.
#[tokio::test]
async fn a_refusal_is_told_in_the_peers_words() {
    let server = server(A2aManners::like_koog());
    let (handle, receipt) = stopped(&server, peer(&server)).await;
    assert_eq!(
        (row(&receipt).status, remote(&receipt).stop),
        (CallStatus::LeftRunning, Some(RemoteStopState::Refused))
    );
    assert_eq!(remote(&receipt).word, "Cancellation is not supported (-32002); its task was working");
    assert!(matches!(handle.quiet().await, QuietReport::NotQuiet(_)));
    assert_eq!(server.running(), 1);
}

/// S10.3 / T3, google/adk-python#4127: an executor whose cancel raises `NotImplementedError` marks its task as failed: an
/// error is a refusal, also where the work has ended, and whatever the task is called.
#[tokio::test]
async fn an_error_is_a_refusal_whatever_the_task_is_called() {
    for wire in WIRES {
        let server = server(A2aManners::honest(wire).on_cancel(OnCancel::EndsWithAnError));
        let (handle, receipt) = stopped(&server, peer(&server)).await;
        assert_eq!(remote(&receipt).stop, Some(RemoteStopState::Refused));
        assert_eq!(remote(&receipt).word, "cancellation is not supported (-32603); its task was failed");
        assert!(
            matches!(handle.quiet().await, QuietReport::NotQuiet(_)),
            "nobody has said that the work ended"
        );
    }
}

/// S10.3, S3.5 / T3, T6, a2aproject/a2a-js#132: a task that was called off and is completed after all: its end is late,
/// told, and changes nothing; then the run is quiet, because now the work has ended.
#[tokio::test]
async fn a_task_that_is_completed_after_it_was_called_off_is_told_as_late() {
    const PATIENCE: Duration = Duration::from_secs(30);
    for wire in WIRES {
        let server = server(A2aManners::honest(wire).on_cancel(OnCancel::SaysAndCompletes));
        let (handle, receipt) = stopped(&server, peer(&server).listen(PATIENCE)).await;
        assert_eq!(
            (row(&receipt).status, remote(&receipt).stop),
            (CallStatus::LeftRunning, Some(RemoteStopState::Acknowledged))
        );
        server.let_on();
        let QuietReport::Quiet(last) = handle.quiet().await else { panic!("it has ended") };
        assert_eq!(row(&last).status, CallStatus::LeftRunning, "as it was settled");
        assert!(last.late.iter().any(|late| late.contains("was finished by a2a:")), "{:?}", last.late);
        let closed = Invariants::of(&handle).check().await.unwrap();
        assert!(closed.outcome.answer().is_none());
    }
}

/// S10.3 / T3, T7, Molecule-AI/molecule-core#173; aegra/aegra#528: an answer that says that the work goes on is no end,
/// whatever the peer is declared to be.
#[tokio::test]
async fn a_nod_is_acknowledged() {
    // It is waited for to the end of its time: it might yet say that the work has ended.
    const ITS_TIME: Duration = Duration::from_secs(2);
    let server = server(A2aManners::honest(A2aWire::V1).on_cancel(OnCancel::Nods));
    let (handle, receipt) =
        stopped(&server, peer(&server).grade(StopSupport::Hard).stop_within(ITS_TIME)).await;
    assert_eq!(
        (remote(&receipt).stop, remote(&receipt).word.as_str()),
        (Some(RemoteStopState::Acknowledged), "working")
    );
    assert_eq!(row(&receipt).status, CallStatus::LeftRunning);
    assert!(matches!(handle.quiet().await, QuietReport::NotQuiet(_)));
}

/// S10.3 / T7, mastra-ai/mastra#21522: a peer that never answers delays the run by its deadline and no more, and is told
/// as asked and not heard.
#[tokio::test]
async fn a_deaf_peer_is_requested_and_no_more() {
    const BRIEFLY: Duration = Duration::from_millis(50);
    for grade in [StopSupport::Hard, StopSupport::CallerSide] {
        let server = server(A2aManners::honest(A2aWire::V1).on_cancel(OnCancel::Deaf));
        let (handle, receipt) = stopped(&server, peer(&server).grade(grade).stop_within(BRIEFLY)).await;
        assert_eq!(
            (row(&receipt).status, remote(&receipt).stop),
            (CallStatus::LeftRunning, Some(RemoteStopState::Requested))
        );
        assert_eq!(remote(&receipt).within_ms, Some(50));
        assert!(matches!(handle.quiet().await, QuietReport::NotQuiet(_)));
    }
}

/// S10.2, S10.3: a peer that hangs up when it has read the cancel may have heard: it was asked, once, and no answer came; no
/// answer is waited for that cannot come.
#[tokio::test]
async fn who_hangs_up_on_being_told_was_told_once() {
    for (wire, on_cancel) in [(A2aWire::V1, OnCancel::HangsUp), (A2aWire::V03, OnCancel::AnswersAnother)] {
        let server = server(A2aManners::honest(wire).on_cancel(on_cancel));
        let handle = at_work(&server, peer(&server).stop_within(FOREVER).listen(FOREVER)).await;
        handle.stop(StopRequest::now());
        let outcome = handle.done().in_time("it is not waited for").await;
        let receipt = outcome.receipt();
        let known = remote(receipt);
        assert_eq!((known.stop, known.replied_at), (Some(RemoteStopState::Requested), None), "{receipt}");
        assert!(known.asked_at.is_some() && known.word.starts_with("sent once: "), "{receipt}");
        assert!(receipt.to_string().contains("stop requested, no answer"), "{receipt}");
        assert_eq!((server.asked("CancelTask"), row(receipt).status), (1, CallStatus::LeftRunning));
    }
}

/// S10.3: a refusal counts when it is said: its words and its time are kept where the look at the task is never answered, which
/// delays the caller by no more than its own bound.
#[tokio::test]
async fn a_refusal_counts_when_it_is_said() {
    for wire in WIRES {
        let server = server(A2aManners::honest(wire).on_cancel(OnCancel::Refuses).looks(Looks::Silent));
        let handle = at_work(&server, peer(&server).stop_within(FOREVER)).await;
        handle.stop(StopRequest::now());
        let outcome = handle.done().in_time("its word is there").await;
        let receipt = outcome.receipt();
        let known = remote(receipt);
        assert_eq!(known.stop, Some(RemoteStopState::Refused), "{receipt}");
        assert_eq!(known.word, "Cancellation is not supported (-32002)");
        assert_eq!((server.asked("CancelTask"), server.asked("GetTask")), (1, 1));
        let heard = known.replied_at.unwrap();
        let held = receipt.settled_at.as_millisecond() - heard.as_millisecond();
        // By more than what rounding and the machine may take from it.
        assert!(held > i64::try_from(LAST_LOOK.as_millis() / 2).unwrap(), "heard {held} ms before the end");
        assert_eq!(row(receipt).status, CallStatus::LeftRunning);
    }
}

/// S10.3: one that is gone could not be told.
#[tokio::test]
async fn who_is_gone_is_unreachable() {
    let gone = server(A2aManners::honest(A2aWire::V1));
    let handle = at_work(&gone, peer(&gone)).await;
    drop(gone);
    handle.stop(StopRequest::now());
    let outcome = handle.done().await;
    let row = row(outcome.receipt());
    let stop = row.remote.as_ref().unwrap().stop;
    // The stop and the end of the line may race; neither is ever called an end of the work.
    assert!(!matches!(stop, Some(RemoteStopState::Acknowledged | RemoteStopState::Confirmed)), "{stop:?}");
    assert!(matches!(handle.quiet().await, QuietReport::NotQuiet(_)));
}

/// S4.5, S10.3: work that had ended when the stop arrived is kept, also where the peer says that there is nothing to
/// cancel any more.
#[tokio::test]
async fn what_had_ended_when_the_stop_arrived_is_kept() {
    for tells in [Tells::Task, Tells::Looks] {
        let server = server(A2aManners::honest(A2aWire::V1).tells(tells).on_cancel(OnCancel::Refuses));
        let handle = at_work(&server, peer(&server)).await;
        server.let_on();
        server.idle().await;
        handle.stop(StopRequest::now());
        let outcome = handle.done().await;
        assert_eq!(row(outcome.receipt()).status, CallStatus::Completed, "{:?}", outcome.receipt());
        assert!(matches!(handle.quiet().await, QuietReport::Quiet(_)));
    }
}

/// S2.1, S10.3: a run that is stopped before it starts sends nothing, and needs nobody's word for it.
#[tokio::test]
async fn what_was_never_sent_needs_no_word() {
    let server = server(A2aManners::honest(A2aWire::V1));
    let run = Agent::remote(peer(&server)).build().run("do it");
    run.handle().stop(StopRequest::now());
    let handle = run.detach();
    assert!(matches!(handle.quiet().await, QuietReport::Quiet(_)));
    assert_eq!((server.seen().len(), server.begun()), (0, 0));
}

/// S3.8, S3.6, S10.3, S10.44: the same of one that is stopped while it looks for the peer's card: whatever the peer's stops are,
/// nothing was done and nothing is alive; and no model is named where none was asked.
#[tokio::test]
async fn what_waits_for_a_card_did_nothing() {
    let server = server(A2aManners::honest(A2aWire::V1).card(Card::Silent));
    let handle = Agent::remote(peer(&server)).build().run("do it").detach();
    wait::so("its card is asked for", || server.asked("card") > 0).await;
    handle.stop(StopRequest::now());
    let outcome = handle.done().await;
    let receipt = outcome.receipt();
    assert_eq!(
        (row(receipt).status, row(receipt).effect),
        (CallStatus::Stopped, SideEffect::None),
        "{receipt}"
    );
    assert_eq!(remote(receipt).word, "nothing was sent");
    let stop = (remote(receipt).stop, remote(receipt).asked_at);
    assert_eq!(stop, (Some(RemoteStopState::Unreachable), None), "{receipt}");
    assert!(!remote(receipt).may_go_on(), "{receipt}");
    assert!(receipt.model.is_none(), "{receipt}");
    assert!(matches!(handle.quiet().await, QuietReport::Quiet(_)));
}

/// S10.3, S3.6: the same where the task is called canceled after the error, and where the peer is believed when it says
/// that it stopped: it said that it does not.
#[tokio::test]
async fn an_error_is_a_refusal_also_of_a_peer_that_is_believed() {
    for (wire, tells) in
        [(A2aWire::V1, Tells::Task), (A2aWire::V03, Tells::Task), (A2aWire::V1, Tells::Looks)]
    {
        let server = server(A2aManners::honest(wire).tells(tells).on_cancel(OnCancel::RefusesAndSays));
        let (handle, receipt) = stopped(&server, peer(&server).grade(StopSupport::Hard)).await;
        assert_eq!(
            (row(&receipt).status, remote(&receipt).stop),
            (CallStatus::LeftRunning, Some(RemoteStopState::Refused))
        );
        let QuietReport::NotQuiet(last) = handle.quiet().await else { panic!("it goes on: {receipt}") };
        assert_eq!(remote(&last).stop, Some(RemoteStopState::Refused), "{last}");
        assert!(last.late.iter().all(|late| !late.contains("has ended")), "{:?}", last.late);
        assert_eq!(server.running(), 1);
    }
}

/// S10.3: an answer to a cancel counts only where it names the task: one about another task, about none, or of two documents says
/// nothing of ours, and is no answer. Its words are kept.
#[tokio::test]
async fn an_answer_that_does_not_name_the_task_is_no_answer() {
    for (on_cancel, word) in [
        (OnCancel::SaysOfAnother, "sent once: its answer is about another task"),
        (OnCancel::SaysNothingOfIt, "sent once: its answer is no task"),
        (OnCancel::SaysTwice, "sent once: the answer is not of the protocol"),
    ] {
        for grade in [StopSupport::Hard, StopSupport::CallerSide] {
            let server = server(A2aManners::honest(A2aWire::V1).on_cancel(on_cancel));
            let (handle, receipt) = stopped(&server, peer(&server).grade(grade)).await;
            let known = remote(&receipt);
            assert_eq!(row(&receipt).status, CallStatus::LeftRunning, "{receipt}");
            assert_eq!((known.stop, known.replied_at), (Some(RemoteStopState::Requested), None), "{receipt}");
            assert!(known.word.starts_with(word), "{receipt}");
            assert!(matches!(handle.quiet().await, QuietReport::NotQuiet(_)));
            assert_eq!((server.asked("CancelTask"), server.running()), (1, 1));
        }
    }
}

/// S10.41: an answer with the id of another request is no word of the peer about this one.
#[tokio::test]
async fn an_answer_to_another_request_is_no_word() {
    for wire in WIRES {
        for grade in [StopSupport::Hard, StopSupport::CallerSide] {
            let server = server(A2aManners::honest(wire).on_cancel(OnCancel::AnswersAnother));
            let (handle, receipt) = stopped(&server, peer(&server).grade(grade)).await;
            assert_eq!(row(&receipt).status, CallStatus::LeftRunning, "{receipt}");
            assert_eq!(remote(&receipt).stop, Some(RemoteStopState::Requested), "{receipt}");
            assert_eq!(remote(&receipt).word, "sent once: what came answers another request");
            assert_eq!(server.asked("CancelTask"), 1);
            assert!(matches!(handle.quiet().await, QuietReport::NotQuiet(_)));
            assert_eq!(server.running(), 1);
        }
    }
}

/// S10.3: work that was left running is not asked for again by itself: a resume fails, with what the peer calls it.
#[tokio::test]
async fn a_resume_of_work_that_was_left_running_names_it() {
    let server = server(A2aManners::honest(A2aWire::V1).on_cancel(OnCancel::Says));
    let agent = Agent::remote(peer(&server)).build();
    let handle = agent.run("do it").detach();
    heard(&handle, "half").await;
    server.came(1).await;
    handle.stop(StopRequest::now());
    let outcome = agent.resume(&handle.done().await).await;
    let Outcome::Failed(error) = &outcome else { panic!("{outcome:?}") };
    let label = format!("remote work task-1 at a2a:{} may go on", server.url());
    assert!(error.to_string().contains(&label), "{error}");
    assert_eq!(server.begun(), 1, "nothing is begun twice");
}
