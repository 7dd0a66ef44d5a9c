//! Peers that send what nobody should take: bounded, told, and never a hang.

use std::time::Duration;

use safepoint::{
    Agent, Outcome, StopRequest,
    receipt::{CallStatus, QuietReport},
};
use safepoint_remote::a2a::{A2a, Bounds};
use safepoint_testkit::a2a::{A2aManners, A2aWire, Card, Streams};
use safepoint_testkit::wait;

use super::world::{bounds, peer, row, server};

/// S2.8, S4.7: cards that never end, never come, are no JSON, lead elsewhere, or are missing: unreachable, with a reason.
#[tokio::test]
async fn a_card_that_is_none_is_unreachable() {
    const BRIEFLY: Duration = Duration::from_millis(100);
    let cases = [
        (Card::Endless, "larger than"),
        (Card::Silent, "no card within"),
        (Card::Garbage, "no JSON"),
        (Card::Elsewhere, "no place where JSON-RPC is spoken"),
        (Card::Abroad, "elsewhere"),
        (Card::Missing, "404"),
    ];
    for (card, why) in cases {
        let server = server(A2aManners::honest(A2aWire::V1).card(card));
        let time = if card == Card::Silent { BRIEFLY } else { bounds().card_time };
        let peer = A2a::at(server.url()).unwrap().bounds(Bounds { card_time: time, ..bounds() }).unwrap();
        let handle = Agent::remote(peer).build().run("do it").detach();
        let outcome = handle.done().await;
        let Outcome::Failed(error) = &outcome else { panic!("{outcome:?}") };
        assert!(error.to_string().contains(why), "{card:?}: {error}");
        assert_eq!(row(outcome.receipt()).status, CallStatus::Unreachable, "{card:?}");
        assert!(matches!(handle.quiet().await, QuietReport::Quiet(_)), "{card:?}");
        assert_eq!(server.begun(), 0, "{card:?}");
    }
}

/// S4.7: streams of garbage, of one enormous event, of a web page, of bytes that are no text: the message may have
/// arrived, so nothing is said to have been undone, and nothing is sent again.
#[tokio::test]
async fn a_stream_that_is_none_is_lost() {
    const ENORMOUS: usize = 50 << 20;
    for streams in [Streams::Garbage, Streams::Huge(ENORMOUS), Streams::Binary, Streams::Page] {
        let server = server(A2aManners::honest(A2aWire::V1).streams(streams));
        let peer = A2a::at(server.url()).unwrap();
        let peer = peer.bounds(Bounds { answer_bytes: 1 << 20, ..bounds() }).unwrap();
        let handle = Agent::remote(peer).build().run("do it").detach();
        let outcome = handle.done().await;
        assert!(matches!(outcome, Outcome::Failed(_)), "{streams:?}: {outcome:?}");
        assert_eq!(row(outcome.receipt()).status, CallStatus::Failed, "{streams:?}");
        assert_eq!(server.asked("SendStreamingMessage"), 1, "{streams:?}");
    }
}

/// S2.8: a stream on which nothing comes ends with the stop, at once; the peer never named its work, so it could not be
/// told, and nothing is called quiet.
#[tokio::test]
async fn a_silent_stream_ends_with_the_stop() {
    const BRIEFLY: Duration = Duration::from_millis(50);
    let server = server(A2aManners::honest(A2aWire::V1).streams(Streams::Silent));
    let handle = Agent::remote(peer(&server).stop_within(BRIEFLY)).build().run("do it").detach();
    wait::so("it is asked", || server.asked("SendStreamingMessage") > 0).await;
    handle.stop(StopRequest::now());
    let outcome = handle.done().await;
    assert_eq!(row(outcome.receipt()).status, CallStatus::LeftRunning);
    assert!(matches!(handle.quiet().await, QuietReport::NotQuiet(_)));
    wait::so("it gives up", || server.gave_up()).await;
}
