//! What a failed run says of its kind, over the wires: the status, the wait that the server asked for, and the cause.

use std::{error::Error as _, io, iter, time::Duration};

use safepoint::{
    Agent, Outcome,
    outcome::{ErrorKind, RunError},
};
use safepoint_models::{Patience, Retry, anthropic, openai};
use safepoint_testkit::{
    script::{Reply, ReplyFault},
    server::ServedWire,
};

use super::world::{WIRES, builder, server};

fn of(outcome: &Outcome) -> &RunError {
    let Outcome::Failed(error) = outcome else { panic!("{outcome:?}") };
    error
}

fn once() -> Patience {
    Patience { retry: Retry::never(), ..Patience::default() }
}

fn answers(status: u16, headers: &[(&str, &str)]) -> Reply {
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Reply::default().fault(ReplyFault::Status { status, body: String::new(), headers })
}

/// S3.11: a status is of the same kind on every wire, and the failure keeps it and the wait that came with it.
#[tokio::test]
async fn a_status_is_a_kind_on_every_wire() {
    for wire in WIRES {
        for (status, kind) in [
            (400, ErrorKind::InvalidRequest),
            (401, ErrorKind::Authentication),
            (403, ErrorKind::Authentication),
            (404, ErrorKind::NotFound),
            (422, ErrorKind::InvalidRequest),
        ] {
            let server = server([answers(status, &[])]).await;
            let outcome = builder(&server, wire).build().run("hi").await;
            let failed = of(&outcome);
            assert_eq!((failed.kind(), failed.status()), (kind, Some(status)), "{wire:?}: {failed}");
            assert_eq!((failed.retry_after(), failed.code()), (None, "provider"));
        }
    }
    for (status, kind) in [
        (408, ErrorKind::Timeout),
        (429, ErrorKind::RateLimit),
        (500, ErrorKind::Provider),
        (503, ErrorKind::Overloaded),
        (504, ErrorKind::Timeout),
        (529, ErrorKind::Overloaded),
    ] {
        let server = server([answers(status, &[("retry-after", "7")])]).await;
        let model = openai::model("m").base_url(server.url()).patience(once());
        let outcome = Agent::builder(model).build().run("hi").await;
        let failed = of(&outcome);
        assert_eq!((failed.kind(), failed.status()), (kind, Some(status)), "{failed}");
        assert_eq!(failed.retry_after(), Some(Duration::from_secs(7)));
        assert!(failed.kind().is_transient(), "{kind}");
    }
}

/// S3.11: the error of the transport is there as a value, down to that of the system.
#[tokio::test]
async fn a_transport_is_a_cause() {
    let model = openai::model("m").base_url("http://127.0.0.1:1/v1").patience(once());
    let outcome = Agent::builder(model).build().run("hi").await;
    let failed = of(&outcome);
    assert_eq!((failed.kind(), failed.status()), (ErrorKind::Unreachable, None));
    let refused = iter::successors(failed.source(), |&cause| cause.source())
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|cause| cause.kind() == io::ErrorKind::ConnectionRefused);
    assert!(refused, "{failed:?}");

    let fault = ReplyFault::ResetAfter(2);
    let server = server([Reply::text("hello there").paced(3, Duration::ZERO).fault(fault)]).await;
    let outcome = builder(&server, ServedWire::OpenAi).build().run("hi").await;
    assert_eq!(of(&outcome).kind(), ErrorKind::Broken);
    assert!(of(&outcome).source().is_some());
}

/// S3.11: an error of the provider inside its stream has a kind by the provider's name for it.
#[tokio::test]
async fn an_error_in_a_stream_has_a_kind() {
    for (name, kind) in [
        ("overloaded_error", ErrorKind::Overloaded),
        ("rate_limit_error", ErrorKind::RateLimit),
        ("api_error", ErrorKind::Provider),
    ] {
        let event = format!(
            "event: error\ndata: {{\"type\":\"error\",\"error\":{{\"type\":\"{name}\",\"message\":\"Busy\"}}}}\n\n"
        );
        let server = server([Reply::default().fault(ReplyFault::Raw(event.into_bytes()))]).await;
        let model = anthropic::model("m").base_url(server.url()).patience(once());
        let outcome = Agent::builder(model).build().run("hi").await;
        assert_eq!((of(&outcome).kind(), of(&outcome).status()), (kind, None), "{}", of(&outcome));
    }
}
