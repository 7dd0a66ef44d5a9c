//! A message, and what comes of it, on both wires.

use safepoint::{
    Agent, Outcome,
    event::{EventKind, Fact},
    raw::remote::Remote as _,
    receipt::{CallStatus, SideEffect},
};
use safepoint_remote::a2a::A2a;
use safepoint_testkit::{
    a2a::{A2aManners, A2aSeen, A2aServer, A2aWire, Contexts, Tells, WorkStep},
    invariants::Invariants,
};

use super::world::{heard, peer, row, server};

fn says(text: &str) -> WorkStep {
    WorkStep::Say(text.into())
}

/// S10.1: an answer comes together from its parts, however the peer tells of it, on either wire.
#[tokio::test]
async fn an_answer_is_the_same_however_it_is_told() {
    for wire in [A2aWire::V1, A2aWire::V03] {
        for tells in [Tells::Task, Tells::Status, Tells::Message, Tells::Looks] {
            let plan = [says("one, "), says("two, "), says("three")];
            let server = server(A2aManners::honest(wire).plan(plan).tells(tells));
            let handle = Agent::remote(peer(&server)).build().run("count").detach();
            let closed = Invariants::of(&handle).check().await.unwrap();
            assert_eq!(closed.outcome.answer(), Some("one, two, three"), "{wire:?} {tells:?}");
            let sent = server.asked("SendStreamingMessage") + server.asked("SendMessage");
            assert_eq!(sent, 1, "{wire:?} {tells:?}");
        }
    }
}

/// S10.1, S12.4: an answer that is larger than an output that a model is shown is whole, is shown once, and leaves nothing behind.
#[tokio::test]
async fn a_large_answer_is_whole_and_is_shown_once() {
    const BYTES: usize = 100_000;
    for wire in [A2aWire::V1, A2aWire::V03] {
        let plan = [says(&"x".repeat(BYTES / 2)), says(&"y".repeat(BYTES / 2))];
        let server = server(A2aManners::honest(wire).plan(plan));
        let handle = Agent::remote(peer(&server)).build().run("tell").detach();
        let closed = Invariants::of(&handle).check().await.unwrap();
        let answer = closed.outcome.answer().unwrap();
        assert!(answer.len() == BYTES && answer.ends_with("yy"), "{wire:?}: {} bytes", answer.len());
        let mut events = handle.events();
        let (mut shown, mut is_named) = (0, false);
        while let Some(event) = events.next().await {
            match &event.kind {
                EventKind::Text(text) => {
                    assert!(is_named, "its name is recorded before anything of it is shown");
                    shown += text.len();
                }
                EventKind::Fact(fact) => is_named |= matches!(&**fact, Fact::RemoteTaskNamed { .. }),
                _ => {}
            }
        }
        assert_eq!(shown, BYTES, "{wire:?}");
    }
}

/// S10.1: what a peer says in passing is shown, and is no part of its answer.
#[tokio::test]
async fn what_is_said_in_passing_is_no_answer() {
    let server =
        server(A2aManners::honest(A2aWire::V1).plan([WorkStep::Note("looking".into()), says("found")]));
    let handle = Agent::remote(peer(&server)).build().run("look").detach();
    heard(&handle, "looking").await;
    assert_eq!(handle.done().await.answer(), Some("found"));
}

/// S2.13: a task that fails is a failure, in the peer's words.
#[tokio::test]
async fn a_task_that_fails_is_a_failure() {
    for wire in [A2aWire::V1, A2aWire::V03] {
        let server =
            server(A2aManners::honest(wire).plan([says("a"), WorkStep::Fail("no such file".into())]));
        let handle = Agent::remote(peer(&server)).build().run("read it").detach();
        let closed = Invariants::of(&handle).check().await.unwrap();
        let Outcome::Failed(error) = &closed.outcome else { panic!("{:?}", closed.outcome) };
        assert!(error.to_string().contains("no such file"), "{error}");
        assert_eq!(
            (row(&closed.receipt).status, row(&closed.receipt).effect),
            (CallStatus::Failed, SideEffect::Unknown)
        );
    }
}

/// S10.1: the name and what it does are the card's, as every provider takes them.
#[tokio::test]
async fn the_card_says_who_it_is() {
    let server = server(A2aManners::honest(A2aWire::V1));
    let peer = A2a::at(server.url()).unwrap().discover().await.unwrap();
    assert_eq!(
        (peer.spec().name.as_str(), peer.spec().description.as_str()),
        ("fake", "does what its test says")
    );
    assert_eq!(peer.named("The Müller agent!").spec().name, "The_M_ller_agent_");
    assert!(A2a::at("ftp://a").is_err() && A2a::at("a b").is_err());
}

/// What the messages to a server called their conversations.
fn contexts(server: &A2aServer) -> Vec<String> {
    let of_message = |seen: &A2aSeen| match seen {
        A2aSeen::Asked(method, params) if method == "SendStreamingMessage" => {
            Some(params["message"]["contextId"].as_str().unwrap().to_owned())
        }
        _ => None,
    };
    server.seen().iter().filter_map(of_message).collect()
}

/// S10.1: a peer that has names of its own for conversations is told those, also by the next process.
#[tokio::test]
async fn a_conversation_is_called_what_the_peer_calls_it() {
    let server = server(A2aManners::honest(A2aWire::V1).plan([says("yes")]).contexts(Contexts::Own));
    let folder = tempfile::tempdir().unwrap();
    let fresh = || Agent::remote(peer(&server).remember_in(folder.path())).build();
    let agent = fresh();
    let first = agent.run("one").await;
    let second = agent.run_on(first.history().clone(), "two").await;
    drop(fresh().run_on(second.history().clone(), "three").await);
    assert_eq!(contexts(&server)[1..], ["context-1", "context-1"]);
}

/// S10.1: the messages of a conversation carry its name; those of two do not.
#[tokio::test]
async fn a_conversation_is_named() {
    let server = server(A2aManners::honest(A2aWire::V1).plan([says("yes")]));
    let agent = Agent::remote(peer(&server)).build();
    let first = agent.run("one").await;
    drop(agent.run_on(first.history().clone(), "two").await);
    drop(agent.run("three").await);
    let contexts = contexts(&server);
    assert_eq!(contexts.len(), 3);
    assert_eq!(contexts[0], contexts[1]);
    assert_ne!(contexts[0], contexts[2]);
}

/// S10.1: a token goes with every request, and is shown nowhere.
#[tokio::test]
async fn a_token_is_sent_and_not_shown() {
    let server = server(A2aManners::honest(A2aWire::V1));
    let peer = peer(&server).bearer(&"s3cret".to_owned().into()).unwrap();
    assert!(!format!("{peer:?}").contains("s3cret"));
    assert!(peer.clone().bearer(&"a\nb".to_owned().into()).is_err());
    drop(peer.discover().await.unwrap());
    assert_eq!(server.bearers(), ["Bearer s3cret"]);
}
