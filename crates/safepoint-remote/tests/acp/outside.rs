//! What an agent works with that is not ours, as a daemon that it hands its work to: its end is not the end of the work, and
//! nobody is told that it is.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket},
    process::Command,
    sync::Arc,
};

use safepoint::{
    Agent, History, StopRequest,
    approval::ApprovalMode,
    log::{Log, MemoryLog},
    receipt::{CallStatus, Outside, QuietReport, RemoteStopState},
};
use safepoint_testkit::acp::{AcpManners, AgentStart, Hub};

use super::support::{Ended, PATIENCE, Place, Running, run};

const THIS_TEST: &str = "acp::support::this_program_is_an_agent_when_it_is_asked_to_be";

/// A hub that lives already, outside of what we start.
fn hub(place: &Place) -> Hub {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", THIS_TEST, "--nocapture"]);
    Hub::start(command, place.folder.path())
}

async fn handed(place: &Place, hub: String) -> Running {
    let agent = place.agent(AcpManners { hub: Some(hub), ..AcpManners::default() });
    let mut running = run(agent, "hand");
    running.says("working").await;
    running
}

fn named(ended: &Ended, hub: &Hub) {
    let (remote, receipt) = (ended.remote(), &ended.closed.receipt);
    assert_eq!(
        remote.stop,
        Some(RemoteStopState::Acknowledged),
        "{remote:?}: no end is confirmed that may not be so"
    );
    let [name] = remote.outside.names() else { panic!("{remote:?}") };
    assert!(name.ends_with(&format!("(pid {})", hub.pid())), "{name}");
    assert_eq!(ended.call().status, CallStatus::LeftRunning);
    assert_eq!(receipt.quiet_at, None, "{receipt}");
    assert!(receipt.survivors.iter().any(|survivor| survivor.starts_with(name.as_str())), "{receipt}");
    assert!(
        receipt
            .to_string()
            .contains(&format!("worked with {name}, which is outside this run and may still be running")),
        "{receipt}"
    );
}

/// S10.60 / T3, cline/cline hub: work that was handed to a daemon goes on there, so the run is not quiet, and names it, over
/// either kind of socket.
#[tokio::test]
async fn work_that_was_handed_to_a_daemon_is_not_quiet() {
    for by_path in [true, false] {
        let place = Place::new();
        let hub = hub(&place);
        let running = handed(&place, if by_path { hub.path() } else { hub.address() }).await;
        let (ended, _) = running.stop().await;
        hub.continues();
        named(&ended, &hub);
    }
}

/// S10.60: the same over UDP of either kind, by a socket that is connected to the daemon's.
#[tokio::test]
async fn work_that_was_handed_on_by_datagrams_is_not_quiet() {
    let has_six = UdpSocket::bind("[::1]:0").is_ok();
    let kinds = [IpAddr::from(Ipv4Addr::LOCALHOST), IpAddr::from(Ipv6Addr::LOCALHOST)];
    for ip in kinds.into_iter().filter(|ip| ip.is_ipv4() || has_six) {
        let place = Place::new();
        let hub = hub(&place);
        let running = handed(&place, hub.datagrams(ip)).await;
        let (ended, _) = running.stop().await;
        hub.continues();
        named(&ended, &hub);
    }
}

/// S10.45, S10.60, S10.62: where the end cannot be confirmed whoever stops the agent is told at its word, with whom it works, and
/// that its own processes are being ended; the run is over when they are.
#[tokio::test]
async fn at_the_word_of_an_agent_that_works_with_others_its_caller_is_told() {
    let place = Place::new();
    let hub = hub(&place);
    let manners = AcpManners { start: AgentStart::Stubborn, hub: Some(hub.path()), ..AcpManners::default() };
    let mut running = run(place.agent(manners).stop_within(PATIENCE), "clan");
    running.says("working").await;
    running.handle.stop(StopRequest::now());
    let outcome = tokio::time::timeout(PATIENCE, running.handle.done()).await.unwrap();
    // It hears no polite signal, so that it lives for seconds from now on.
    assert!(!place.alive().is_empty(), "its grandchild had ended");
    let receipt = outcome.receipt();
    let remote = receipt.calls[0].remote.as_ref().unwrap();
    assert_eq!(
        (remote.stop, receipt.calls[0].status),
        (Some(RemoteStopState::Acknowledged), CallStatus::LeftRunning)
    );
    let told =
        format!("stop acknowledged, its own processes are ending; worked with {}", remote.outside.names()[0]);
    assert!(receipt.to_string().contains(&told), "{receipt}");
    let ended = running.end().await;
    assert_eq!(place.alive(), [0; 0]);
    named(&ended, &hub);
    assert!(
        ended.remote().word.contains("its process was ended by SIGINT, SIGTERM, SIGKILL"),
        "{:?}",
        ended.remote()
    );
    hub.continues();
}

/// S10.60: a daemon that has ended meanwhile goes on with nothing.
#[tokio::test]
async fn a_daemon_that_is_gone_is_not_named() {
    let place = Place::new();
    let hub = hub(&place);
    let running = handed(&place, hub.path()).await;
    drop(hub);
    let (ended, _) = running.stop().await;
    ended.confirmed("it said `cancelled`");
    assert_eq!(ended.remote().outside, Outside::None);
}

/// S10.61: a service that its user knows to do no work of its own, such as a server of models, is not named; nor is this
/// process, which serves what its own agents call.
#[tokio::test]
async fn a_service_that_is_only_called_is_not_named() {
    for by_path in [true, false] {
        let place = Place::new();
        let hub = hub(&place);
        let at = if by_path { hub.path() } else { hub.address() };
        let agent = place.agent(AcpManners { hub: Some(at.clone()), ..AcpManners::default() });
        let mut running = run(agent.calls(at.parse().unwrap()), "hand");
        running.says("working").await;
        let (ended, _) = running.stop().await;
        ended.confirmed("it said `cancelled`");
        assert_eq!(ended.remote().outside, Outside::None);
    }
    let place = Place::new();
    let own = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = own.local_addr().unwrap().to_string();
    let answers = std::thread::spawn(move || {
        let (mut caller, _) = own.accept().unwrap();
        std::io::Write::write_all(&mut caller, b"taken\n").unwrap();
        caller
    });
    let running = handed(&place, at).await;
    let (ended, _) = running.stop().await;
    drop(answers.join().unwrap());
    ended.confirmed("it said `cancelled`");
    assert_eq!(ended.remote().outside, Outside::None, "this very process is ours");
}

/// S10.60, S7.3: this process ends while the agent works, and nobody sees whom that worked with. Whoever takes the work up says no
/// more than that the agent's own processes have ended.
#[tokio::test]
async fn of_work_that_nobody_saw_end_no_more_is_said_than_that() {
    let place = Place::new();
    let hub = hub(&place);
    let handing = place.agent(AcpManners { hub: Some(hub.path()), ..AcpManners::default() });
    let agent = Agent::remote(handing).approvals(ApprovalMode::Auto).build();
    let log: Arc<dyn Log> = Arc::new(MemoryLog::default());
    let of_process = agent.clone();
    let process = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async move {
            let mut running = Running::of(of_process.run_recorded(log, History::new(), "hand").detach());
            running.says("working").await;
            running.handle
        })
        // Its runtime goes with it.
    });
    let before = tokio::task::spawn_blocking(|| process.join().unwrap()).await.unwrap().done().await;
    let handle = agent.resume(&before).detach();
    let QuietReport::Quiet(receipt) = handle.quiet().await else { panic!("nobody is known to go on") };
    hub.continues();
    let remote = receipt.calls[0].remote.as_ref().unwrap();
    assert_eq!((remote.stop, &remote.outside), (None, &Outside::Unseen), "{receipt}");
    let told = receipt.to_string();
    assert!(told.contains("  its own processes ended\n"), "{told}");
    assert!(told.contains("other processes could not be checked"), "{told}");
}
