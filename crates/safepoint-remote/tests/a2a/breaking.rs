//! Lines that break: taken up again by the task's name, and a message is never sent twice.

use safepoint::{
    Agent, Outcome,
    receipt::{CallStatus, Effect, Grade, Quiet, RemoteStop},
};
use safepoint_testkit::{
    a2a::{Manners, Streams, Wire},
    closing::Closing,
};

use super::world::{bounds, peer, remote, row, server, stopped};

/// S10.1 / T10: a stream that was cut is taken up again; nothing is sent twice, and nothing is told twice.
#[tokio::test]
async fn a_cut_stream_is_taken_up_again() {
    for wire in [Wire::V1, Wire::V03] {
        let server = server(Manners::honest(wire).streams(Streams::CutAfter(2)));
        let handle = Agent::over(peer(&server)).build().run("do it").detach();
        server.cut(1).await;
        server.let_on();
        let closed = Closing::of(&handle).check().await.unwrap();
        assert_eq!(closed.outcome.answer(), Some("half done"));
        assert_eq!((server.asked("SendStreamingMessage"), server.begun()), (1, 1));
        assert_eq!(server.asked("SubscribeToTask"), 1);
    }
}

/// S10.1: where it cannot be taken up again, the task is looked at until it has ended.
#[tokio::test]
async fn a_stream_that_cannot_be_taken_up_again_is_looked_at() {
    for wire in [Wire::V1, Wire::V03] {
        let server = server(Manners::honest(wire).streams(Streams::CutForGood(2)));
        let handle = Agent::over(peer(&server)).build().run("do it").detach();
        server.cut(1).await;
        server.let_on();
        let closed = Closing::of(&handle).check().await.unwrap();
        assert_eq!(closed.outcome.answer(), Some("half done"));
        assert_eq!((server.asked("SendStreamingMessage"), server.begun()), (1, 1));
        assert!(server.asked("GetTask") >= 1);
    }
}

/// S10.3, S3.6 / T10: a line that is gone for good leaves work of which nobody knows anything: it is not begun again,
/// and nothing is called quiet.
#[tokio::test]
async fn a_line_that_is_gone_for_good_is_lost() {
    let server = server(Manners::honest(Wire::V1).streams(Streams::CutAndGone));
    let handle = Agent::over(peer(&server)).build().run("do it").detach();
    let outcome = handle.done().await;
    let Outcome::Failed(error) = &outcome else { panic!("{outcome:?}") };
    assert!(error.to_string().contains("nobody knows what became of the work"), "{error}");
    assert_eq!(
        (row(outcome.receipt()).status, row(outcome.receipt()).effect),
        (CallStatus::Failed, Effect::Unknown)
    );
    assert!(matches!(handle.quiet().await, Quiet::NotQuiet(_)));
    assert_eq!((server.begun(), server.at_work()), (1, 1));
    let tries = usize::try_from(bounds().tries).unwrap();
    assert_eq!(server.asked("SubscribeToTask"), tries);
}

/// S10.3: a task whose stream was cut is stopped like any other.
#[tokio::test]
async fn a_task_whose_stream_was_cut_can_be_stopped() {
    let server = server(Manners::honest(Wire::V1).streams(Streams::CutAfter(2)));
    let (handle, receipt) = stopped(&server, peer(&server).grade(Grade::Hard)).await;
    assert_eq!(remote(&receipt).stop, Some(RemoteStop::Confirmed));
    assert_eq!(server.at_work(), 0);
    assert!(Closing::of(&handle).check().await.unwrap().receipt.quiet_at.is_some());
}

/// S4.1, S3.8: where nobody is, nothing was done, and the call says so.
#[tokio::test]
async fn nobody_there_is_unreachable() {
    let server = server(Manners::honest(Wire::V1));
    let peer = peer(&server);
    drop(server);
    let handle = Agent::over(peer).build().run("do it").detach();
    let closed = Closing::of(&handle).check().await.unwrap();
    let (status, effect) = (row(&closed.receipt).status, row(&closed.receipt).effect);
    assert_eq!((status, effect), (CallStatus::Unreachable, Effect::None));
    assert!(closed.receipt.quiet_at.is_some());
}
