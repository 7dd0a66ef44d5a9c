//! Agents that cannot be used, or end in the middle: what was done is not claimed, and what was not is said.

use std::time::Duration;

use safepoint::receipt::{CallStatus, SideEffect};
use safepoint_remote::acp::Acp;
use safepoint_testkit::acp::{AcpManners, AgentStart, Door};

use super::support::{Ended, Place, run};

/// It was never asked to do anything, so nothing was done.
fn untouched(ended: &Ended) -> String {
    assert_eq!((ended.call().status, ended.call().effect), (CallStatus::Unreachable, SideEffect::None));
    ended.failure()
}

/// S4.1, S10.3: an agent that was never asked anything is unreachable, and did nothing.
#[tokio::test]
async fn an_agent_that_does_not_start_did_nothing() {
    let none = Acp::program("coder", "/no/such/agent");
    assert!(untouched(&run(none, "work").end().await).contains("could not be started"));
    let place = Place::new();
    let dies = place.agent(AcpManners { start: AgentStart::Die, ..AcpManners::default() });
    let told = untouched(&run(dies, "work").end().await);
    assert!(told.contains("exit 7") && told.contains("I will not start"), "{told}");
    let newer = place.agent(AcpManners { start: AgentStart::Newer, ..AcpManners::default() });
    assert!(untouched(&run(newer, "work").end().await).contains("version 2 of the protocol"));
    let mute = Acp::shell("coder", "echo hello; exec cat >/dev/null");
    assert!(untouched(&run(mute, "work").end().await).contains("closed its output before it was asked"));
    let line = Acp::shell("coder", "echo hello; exec sleep 1000").start_within(Duration::from_millis(200));
    assert!(untouched(&run(line, "work").end().await).contains("not ready within 200ms"));
}

/// S10.3: the same of one that hangs in the handshake, when its time is over.
#[tokio::test]
async fn an_agent_that_hangs_at_its_start_is_given_up() {
    let place = Place::new();
    let hangs = place.agent(AcpManners { start: AgentStart::Hang, ..AcpManners::default() });
    let told = untouched(&run(hangs.start_within(Duration::from_millis(300)), "work").end().await);
    assert!(told.contains("not ready within 300ms"), "{told}");
}

/// S3.8, S10.3: an agent that dies in the middle of its work may have done some of it, and its last words are told.
#[tokio::test]
async fn an_agent_that_dies_in_the_middle_may_have_done_something() {
    let place = Place::new();
    let ended = run(place.honest(), "die").end().await;
    assert_eq!((ended.call().status, ended.call().effect), (CallStatus::Failed, SideEffect::Unknown));
    let told = ended.failure();
    assert!(told.contains("exit 3") && told.contains("in the middle of its work"), "{told}");
    assert!(told.contains("the disk is on fire"), "{told}");
    assert!(ended.closed.receipt.quiet_at.is_some(), "its process is gone");
}

/// S10.1: an agent that wants to know who asks is told, or says what it wants.
#[tokio::test]
async fn an_agent_behind_a_door_is_told_who_asks() {
    let place = Place::new();
    let locked = || place.agent(AcpManners { door: Door::Locked, ..AcpManners::default() });
    assert_eq!(run(locked().authenticate("pass"), "say in").end().await.answer(), "in");
    assert!(untouched(&run(locked(), "say in").end().await).contains("wants to know who asks"));
    let told = untouched(&run(locked().authenticate("key"), "say in").end().await);
    assert!(told.contains("it knows: pass"), "{told}");
}
