//! Lines that break: taken up again by the task's name, and a message is never sent twice.

use safepoint::{
    Agent, Outcome,
    receipt::{CallStatus, QuietReport, RemoteStopState, SideEffect, StopSupport},
};
use safepoint_testkit::{
    a2a::{A2aManners, A2aSeen, A2aWire, Streams, Tells},
    invariants::Invariants,
    wait,
};

use super::world::{bounds, peer, remote, row, server, stopped};

/// S10.1, S10.42 / T10: a stream that was cut is taken up again, before 1.0 the task is looked at instead; nothing is sent twice,
/// and nothing is told twice.
#[tokio::test]
async fn a_cut_stream_is_taken_up_again() {
    for (wire, method) in
        [(A2aWire::V1, "SubscribeToTask"), (A2aWire::V03, "GetTask"), (A2aWire::V02, "GetTask")]
    {
        let server = server(A2aManners::honest(wire).streams(Streams::CutAfter(2)));
        let handle = Agent::remote(peer(&server)).build().run("do it").detach();
        server.cut(1).await;
        wait::so("its work is heard of again", || server.asked(method) > 0).await;
        server.let_on();
        let closed = Invariants::of(&handle).check().await.unwrap();
        assert_eq!(closed.outcome.answer(), Some("half done"));
        assert_eq!((server.asked("SendStreamingMessage"), server.begun()), (1, 1));
        assert_eq!(server.asked("SubscribeToTask"), usize::from(wire == A2aWire::V1));
    }
}

/// S10.1: where it cannot be taken up again, the task is looked at until it has ended.
#[tokio::test]
async fn a_stream_that_cannot_be_taken_up_again_is_looked_at() {
    for wire in [A2aWire::V1, A2aWire::V03] {
        let server = server(A2aManners::honest(wire).streams(Streams::CutForGood(2)));
        let handle = Agent::remote(peer(&server)).build().run("do it").detach();
        server.cut(1).await;
        server.let_on();
        let closed = Invariants::of(&handle).check().await.unwrap();
        assert_eq!(closed.outcome.answer(), Some("half done"));
        assert_eq!((server.asked("SendStreamingMessage"), server.begun()), (1, 1));
        assert!(server.asked("GetTask") >= 1);
    }
}

/// S10.3, S3.6 / T10: a line that is gone for good leaves work of which nobody knows anything: it is not begun again,
/// and nothing is called quiet.
#[tokio::test]
async fn a_line_that_is_gone_for_good_is_lost() {
    let server = server(A2aManners::honest(A2aWire::V1).streams(Streams::CutAndGone));
    let handle = Agent::remote(peer(&server)).build().run("do it").detach();
    let outcome = handle.done().await;
    let Outcome::Failed(error) = &outcome else { panic!("{outcome:?}") };
    assert!(error.to_string().contains("it is unknown what became of the work"), "{error}");
    assert_eq!(
        (row(outcome.receipt()).status, row(outcome.receipt()).effect),
        (CallStatus::Failed, SideEffect::Unknown)
    );
    assert!(matches!(handle.quiet().await, QuietReport::NotQuiet(_)));
    assert_eq!((server.begun(), server.running()), (1, 1));
    let tries = usize::try_from(bounds().tries).unwrap();
    assert_eq!((server.asked("GetTask"), server.asked("SubscribeToTask")), (tries, 0));
}

/// S10.3: a task whose stream was cut is stopped like any other.
#[tokio::test]
async fn a_task_whose_stream_was_cut_can_be_stopped() {
    let server = server(A2aManners::honest(A2aWire::V1).streams(Streams::CutAfter(2)));
    let (handle, receipt) = stopped(&server, peer(&server).grade(StopSupport::Hard)).await;
    assert_eq!(remote(&receipt).stop, Some(RemoteStopState::Confirmed));
    assert_eq!(server.running(), 0);
    assert!(Invariants::of(&handle).check().await.unwrap().receipt.quiet_at.is_some());
}

/// S4.1, S3.8: where nobody is, nothing was done, and the call says so.
#[tokio::test]
async fn nobody_there_is_unreachable() {
    let server = server(A2aManners::honest(A2aWire::V1));
    let peer = peer(&server);
    drop(server);
    let handle = Agent::remote(peer).build().run("do it").detach();
    let closed = Invariants::of(&handle).check().await.unwrap();
    let (status, effect) = (row(&closed.receipt).status, row(&closed.receipt).effect);
    assert_eq!((status, effect), (CallStatus::Unreachable, SideEffect::None));
    assert!(closed.receipt.quiet_at.is_some());
}

/// S3.8, S3.6, S10.3: a gateway that answers the first message with an error of its own says nothing of the work, which
/// had begun: it is not told as ended.
#[tokio::test]
async fn an_error_on_the_first_message_is_no_end_of_the_work() {
    for (status, tells) in [(502, Tells::Task), (504, Tells::Looks), (500, Tells::Task)] {
        let server = server(A2aManners::honest(A2aWire::V1).tells(tells).streams(Streams::Status(status)));
        let handle = Agent::remote(peer(&server)).build().run("do it").detach();
        let outcome = handle.done().await;
        let Outcome::Failed(error) = &outcome else { panic!("{outcome:?}") };
        let who = format!("the agent a2a:{} failed: the message may have arrived", server.url());
        assert!(error.to_string().contains(&who), "{error}");
        let row = row(outcome.receipt());
        assert_eq!((row.status, row.effect), (CallStatus::Failed, SideEffect::Unknown));
        assert!(row.remote.as_ref().unwrap().ended_at.is_none());
        let QuietReport::NotQuiet(last) = handle.quiet().await else { panic!("the work goes on") };
        assert_eq!(last.survivors, [format!("remote work at a2a:{}", server.url())]);
        assert_eq!((server.begun(), server.running()), (1, 1));
    }
}

/// S3.8: who refuses the message has begun nothing.
#[tokio::test]
async fn a_message_that_is_refused_did_nothing() {
    for status in [401, 404, 429] {
        let server = server(A2aManners::honest(A2aWire::V1).streams(Streams::Status(status)));
        let handle = Agent::remote(peer(&server)).build().run("do it").detach();
        let closed = Invariants::of(&handle).check().await.unwrap();
        let row = row(&closed.receipt);
        assert_eq!((row.status, row.effect), (CallStatus::Failed, SideEffect::None), "{}", closed.receipt);
        assert!(closed.receipt.quiet_at.is_some());
        assert_eq!(server.begun(), 0);
    }
}

/// S10.1, S10.3: a peer that is busy when its task is looked at is looked at again, and the work is not given up; each
/// look is made by the task's name.
#[tokio::test]
async fn a_busy_peer_is_looked_at_again() {
    const BUSY: usize = 4;
    for tells in [Tells::Looks, Tells::Task] {
        let manners = A2aManners::honest(A2aWire::V1).tells(tells).busy(BUSY).streams(Streams::CutForGood(2));
        let server = server(manners);
        let handle = Agent::remote(peer(&server)).build().run("do it").detach();
        wait::so("it is looked at again", || server.asked("GetTask") > BUSY).await;
        server.let_on();
        let closed = Invariants::of(&handle).check().await.unwrap();
        assert_eq!(closed.outcome.answer(), Some("half done"), "{tells:?}");
        for seen in server.seen() {
            if let A2aSeen::Asked(method, params) = seen
                && method == "GetTask"
            {
                assert_eq!(params["id"], "task-1", "{tells:?}");
            }
        }
    }
}

/// S10.1: a stream that ends again and again, behind a word that the work goes on, is no peer that is gone.
#[tokio::test]
async fn a_peer_whose_streams_are_short_is_not_lost() {
    for wire in [A2aWire::V1, A2aWire::V03] {
        let server = server(A2aManners::honest(wire).streams(Streams::CutEach));
        let handle = Agent::remote(peer(&server)).build().run("do it").detach();
        let often = usize::try_from(bounds().tries).unwrap() + 2;
        server.cut(1).await;
        server.came(1).await;
        wait::so("it is looked at again", || server.asked("GetTask") >= often).await;
        server.let_on();
        let closed = Invariants::of(&handle).check().await.unwrap();
        assert_eq!(closed.outcome.answer(), Some("half done"));
        assert_eq!(server.begun(), 1);
    }
}
