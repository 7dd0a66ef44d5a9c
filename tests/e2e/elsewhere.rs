//! Where a key goes: to the server that was named, and nowhere else; and what of an address is shown.

use safepoint::{Agent, AgentBuilder, Outcome};
use safepoint_models::{anthropic, gemini, openai, responses};
use safepoint_testkit::{
    script::{Reply, ReplyFault},
    server::ServedWire,
};

use super::world::{Ledger, WIRES, close, server};

const KEY: &str = "sk-of-the-first-server";

fn with_key(base: &str, wire: ServedWire) -> AgentBuilder {
    match wire {
        ServedWire::OpenAi => Agent::builder(openai::model("m").base_url(base).api_key(KEY.into())),
        ServedWire::Anthropic => Agent::builder(anthropic::model("m").base_url(base).api_key(KEY.into())),
        ServedWire::Responses => Agent::builder(responses::model("m").base_url(base).api_key(KEY.into())),
        ServedWire::Gemini => Agent::builder(gemini::model("m").base_url(base).api_key(KEY.into())),
    }
}

fn failed(outcome: &Outcome) -> String {
    let Outcome::Failed(error) = outcome else { panic!("{outcome:?}") };
    error.to_string()
}

/// S3.8: a server that sends us on gets no further: neither the key nor the conversation is taken to another
/// one, on any wire, and the error names where it pointed.
#[tokio::test]
async fn no_redirect_takes_the_key_elsewhere() {
    for wire in WIRES {
        for status in [301, 302, 303, 307, 308] {
            let second = server([Reply::text("thanks for the key")]).await;
            let location = format!("{}/evil?token=SECRET", second.url());
            let headers = vec![("location".to_owned(), location)];
            let first = server([Reply::default().fault(ReplyFault::Status {
                status,
                body: "moved".into(),
                headers,
            })])
            .await;
            let handle = with_key(&first.url(), wire).build().run("hi").detach();
            let (outcome, _) = close(&first, &handle, &Ledger::default()).await;
            assert!(second.requests().is_empty(), "{wire:?} {status}");
            assert_eq!(first.requests().len(), 1, "{wire:?} {status}: it is not asked again");
            let words = failed(&outcome);
            assert!(words.contains(&status.to_string()) && words.contains("/evil"), "{words}");
            assert!(!words.contains("SECRET"), "{words}");
        }
    }
}

/// S3.8: what may be a secret in a base URL is in no error, and a query of it goes behind the wire's own
/// path.
#[tokio::test]
async fn a_base_url_is_shown_without_its_secrets() {
    for wire in WIRES {
        let refusing = server([Reply::default().fault(ReplyFault::Status {
            status: 404,
            body: String::new(),
            headers: Vec::new(),
        })])
        .await;
        let base = refusing.url().replace("http://", "http://bob:SECRET@") + "?key=SECRET";
        let handle = with_key(&base, wire).build().run("hi").detach();
        let (outcome, _) = close(&refusing, &handle, &Ledger::default()).await;
        let Outcome::Failed(error) = &outcome else { panic!("{outcome:?}") };
        let shown = format!("{error} {error:?}");
        assert!(shown.contains("404") && !shown.contains("SECRET") && !shown.contains("bob"), "{shown}");
        let asked = refusing.requests().remove(0);
        assert!(asked.path.contains("?key=SECRET"), "{wire:?}: {}", asked.path);
        assert!(!asked.path.contains("SECRET/"), "{wire:?}: {}", asked.path);

        let nowhere = "http://bob:SECRET@127.0.0.1:1/v1?key=SECRET";
        let broken = with_key("http//bob:SECRET@h", wire).build().run("hi").await;
        let mut events = String::new();
        let handle = with_key(nowhere, wire).build().run("hi").detach();
        let mut feed = handle.events();
        while let Some(event) = feed.next().await {
            events.push_str(&format!("{event:?}"));
            if events.contains("Retrying") {
                handle.stop(safepoint::StopRequest::now());
            }
        }
        assert!(events.contains("127.0.0.1:1"), "{events}");
        let shown = format!("{} {events}", failed(&broken));
        assert!(!shown.contains("SECRET") && !shown.contains("bob"), "{shown}");
    }
}
