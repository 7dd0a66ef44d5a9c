//! What a stop does: the agent is asked first, and then its process and all that it started go.

use std::fs;

use safepoint::{
    Reason, StopRequest,
    receipt::{CallStatus, RemoteStopState, SideEffect},
};
use safepoint_remote::acp::Acp;
use safepoint_testkit::acp::{AcpManners, AgentStart};
use safepoint_testkit::wait;

use super::support::{AMPLE, PATIENCE, Place, THIS_TEST, run};

/// S10.2, S10.3 / T3, aaif-goose/goose#10619; agent-of-empires/agent-of-empires#1039: the cancel is sent, at once and
/// not behind the prompt; the agent's own word confirms it, long before its time is over.
#[tokio::test]
async fn an_honest_agent_confirms_its_end() {
    let place = Place::new();
    let agent = place.honest().stop_within(PATIENCE);
    let mut running = run(agent, "work");
    running.says("working").await;
    let (ended, took) = running.stop().await;
    ended.confirmed("it said `cancelled`");
    assert!(took < PATIENCE / 2, "{took:?}: its word is enough");
    assert_eq!((ended.call().status, ended.call().effect), (CallStatus::Stopped, SideEffect::Unknown));
    assert_eq!(place.received("session/cancel").len(), 1);
    assert!(ended.call().processes[0].signals.is_empty(), "{:?}", ended.call().processes);
}

/// S10.2, S10.3 / T3, aaif-goose/goose#10619: an agent that hears no cancel has its time, and then its process goes: that
/// it said nothing is told, and so is that nothing is left.
#[tokio::test]
async fn a_deaf_agent_is_ended_with_its_process() {
    let place = Place::new();
    let stubborn = place.agent(AcpManners { start: AgentStart::Stubborn, ..AcpManners::default() });
    let mut running = run(stubborn, "deaf");
    running.says("working").await;
    let (ended, _) = running.stop().await;
    ended.confirmed("it said nothing to that; its process was ended by SIGINT");
    assert_eq!(place.received("session/cancel").len(), 1, "it was asked first");
}

/// S10.2, S10.3: the grandchild in a session of its own goes too, and is named.
#[tokio::test]
async fn a_grandchild_in_a_session_of_its_own_goes_too() {
    let place = Place::new();
    let mut running = run(place.honest(), "tree");
    running.says("working").await;
    let (ended, _) = running.stop().await;
    ended.confirmed("SIGKILL");
    assert_eq!(ended.call().status, CallStatus::Killed, "the polite signals were not enough");
}

/// S10.3 / T7, github/copilot-cli#4561: a turn that was to be cancelled and says `end_turn` is not called finished; what
/// it said is told, and its process is what confirms the end.
#[tokio::test]
async fn an_agent_that_says_it_ended_by_itself_is_not_believed() {
    for (word, said) in
        [("sly", "it answered `end_turn`, not `cancelled`; its process ended"), ("fail", "an error")]
    {
        let place = Place::new();
        let mut running = run(place.honest(), word);
        running.says("working").await;
        let (ended, _) = running.stop().await;
        ended.confirmed(said);
        assert_eq!(ended.call().effect, SideEffect::Unknown, "{word}");
    }
}

/// S3.5, S10.2 / T6: what is said between the cancel and its confirmation, and after it, changes nothing.
#[tokio::test]
async fn what_is_said_before_the_word_is_kept_and_after_it_changes_nothing() {
    let place = Place::new();
    let mut running = run(place.honest(), "babble");
    running.says("working").await;
    let (ended, _) = running.stop().await;
    ended.confirmed("it said `cancelled`");
    let told = format!("{:?}", ended.closed.outcome.history());
    assert!(told.contains("working") && told.contains("and and"), "{told}");

    let place = Place::new();
    let mut running = run(place.honest(), "late");
    running.says("working").await;
    let (ended, _) = running.stop().await;
    ended.confirmed("its process");
    let told = format!("{:?}", ended.closed.outcome.history());
    assert!(!told.contains("done after all"), "{told}");
}

/// S10.45: an agent that has not answered a stop yet is shown as it goes on, and what it says is kept.
#[tokio::test]
async fn what_is_said_without_a_word_on_the_stop_is_shown_at_once_and_kept() {
    let place = Place::new();
    let mut running = run(place.honest().stop_within(PATIENCE * 4), "unmoved");
    running.says("working").await;
    running.handle.stop(StopRequest::now());
    running.says("still working").await;
    let again = StopRequest::now().with_cleanup_cap(AMPLE / 2).with_reason(Reason::user("again"));
    let (ended, _) = running.stop_by(again).await;
    ended.confirmed("it said nothing to that");
    let told = format!("{:?}", ended.closed.outcome.history());
    assert!(told.contains("still working"), "{told}");
    assert_eq!(ended.remote().said_bytes, "workingstill working".len() as u64);

    // Also where nothing shortens its time.
    let place = Place::new();
    let mut running = run(place.honest(), "unmoved");
    running.says("working").await;
    let (ended, _) = running.stop().await;
    ended.confirmed("it said nothing to that");
    let told = format!("{:?}", ended.closed.outcome.history());
    assert!(told.contains("still working"), "{told}");
}

/// S10.2: an agent that reads nothing any more cannot hold up a stop.
#[tokio::test]
async fn an_agent_that_reads_nothing_is_ended_all_the_same() {
    let place = Place::new();
    let mut running = run(place.honest(), "wedge");
    running.says("wedged").await;
    let (ended, _) = running.stop().await;
    ended.confirmed("it said nothing to that");
    assert!(place.received("session/cancel").is_empty(), "it did not read that");
}

/// S2.7, S10.2: a second, harder stop does not wait for what the first one would have waited for.
#[tokio::test]
async fn a_harder_stop_shortens_the_time() {
    let place = Place::new();
    let mut running = run(place.honest().stop_within(PATIENCE * 4), "deaf");
    running.says("working").await;
    running.handle.stop(StopRequest::now());
    let again = StopRequest::now().with_cleanup_cap(AMPLE / 2).with_reason(Reason::user("again"));
    let (ended, took) = running.stop_by(again).await;
    ended.confirmed("it said nothing to that");
    assert!(took < PATIENCE, "{took:?}");
}

/// S10.2, S10.44: a stop before the agent is ready ends it; it was never asked to do anything, so nothing was done, no stop
/// was sent to it, and the account says no other.
#[tokio::test]
async fn a_stop_before_the_agent_is_ready_ends_it() {
    let place = Place::new();
    let hanging = place.agent(AcpManners { start: AgentStart::Hang, ..AcpManners::default() });
    let running = run(hanging, "work");
    wait::so("it starts", || !place.received("initialize").is_empty()).await;
    let (ended, _) = running.stop().await;
    assert_eq!((ended.call().status, ended.call().effect), (CallStatus::Stopped, SideEffect::None));
    let (remote, receipt) = (ended.remote(), &ended.closed.receipt);
    assert_eq!(remote.word, "it had not been asked anything");
    assert_eq!((remote.stop, remote.asked_at), (Some(RemoteStopState::Unreachable), None), "{remote:?}");
    assert!(receipt.to_string().contains("stop not delivered, no work is running"), "{receipt}");
    assert!(place.received("session/cancel").is_empty());
    assert!(receipt.quiet_at.is_some() && !receipt.calls[0].processes.is_empty(), "{receipt}");
    assert!(place.received("session/prompt").is_empty());
}

/// S10.2: an agent that outlives the end of its input is ended by signals, also when nobody stopped it.
#[tokio::test]
async fn a_stubborn_agent_is_ended_after_its_work() {
    let place = Place::new();
    let stubborn = place.agent(AcpManners { start: AgentStart::Stubborn, ..AcpManners::default() });
    let ended = run(stubborn, "say done").end().await;
    assert_eq!(ended.answer(), "done");
    // On a busy machine the next step of the ladder may come before it is gone.
    assert_eq!(ended.call().processes[0].signals[0], "SIGINT");
}

/// S10.69: the row of the agent names its program and its script; no other word of its command line is in the account
/// or in what the run says of its failure.
#[tokio::test]
async fn an_account_names_the_program_and_no_argument() {
    let place = Place::new();
    let program = std::env::current_exe().unwrap();
    let script = place.folder.path().join("cli.sh");
    fs::write(&script, format!("exec '{}' {}", program.display(), THIS_TEST.join(" "))).unwrap();
    let line = format!("MY_KEY=sk-otter1 exec env OTHER=sk-otter2 sh '{}' --key sk-otter3", script.display());
    let agent = place.dressed(Acp::shell("coder", line), AcpManners::default());
    let mut running = run(agent, "work");
    running.says("working").await;
    let (ended, _) = running.stop().await;
    let receipt = &ended.closed.receipt;
    let account = receipt.to_string();
    assert!(account.contains(" at acp:sh cli.sh  stop confirmed"), "{account}");
    let json = serde_json::to_string(receipt).unwrap();
    assert!(!account.contains("otter") && !json.contains("otter"), "{account}\n{json}");
    let failure = run(Acp::program("coder", "/no/such/agent").args(["--key", "sk-otter"]), "work")
        .end()
        .await
        .failure();
    assert!(failure.contains("the agent acp:agent failed") && !failure.contains("otter"), "{failure}");
}
