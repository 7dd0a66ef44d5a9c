//! All twelve ways to swallow a stop: the run still stops (S2.14).
//!
//! pydantic/pydantic-ai#6460: a step that absorbs its cancellation lets a cancelled run succeed;
//! kolega-ai/kolega-code PR#637: a second Ctrl-C was needed; kirodotdev/KiroCrew#12607: the run moves on in a
//! hidden task.

use std::{future::pending, io, panic::AssertUnwindSafe, sync::Arc};

use futures_util::FutureExt as _;
use safepoint::{
    StopRequest, ToolContext, ToolResult,
    receipt::{CallStatus, Ending},
    stop::Failure,
    tool::{self, OnStop},
};
use safepoint_testkit::script::Reply;
use serde_json::json;

use super::world::{Ledger, WIRES, builder, close, continues, server, started};

/// Runs a tool that waits and then swallows its stop in its own way, cooperating so that it has the time to.
async fn stops_all_the_same<F, Fut>(swallow: F)
where
    F: Fn(ToolContext) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = ToolResult<String>> + Send + 'static,
{
    for contract in [OnStop::Drop, OnStop::Cooperate(None)] {
        let server = server([Reply::call("swallow", json!({})), Reply::text("ok")]).await;
        let swallow = swallow.clone();
        let tool = tool::from_fn("swallow", "swallows", move |cx, (): ()| swallow(cx))
            .with(|spec| spec.on_stop(contract));
        let agent = builder(&server, WIRES[0]).tool(tool).build();
        let handle = agent.run("go").detach();
        started(&handle, 1).await;
        handle.stop(StopRequest::now().with_cleanup_cap(std::time::Duration::from_millis(50)));
        let (outcome, receipt) = close(&server, &handle, &Ledger::default()).await;
        assert_eq!((outcome.ending(), server.requests().len()), (Ending::Stopped, 1), "no zombie round");
        assert!(matches!(receipt.calls[0].status, CallStatus::Stopped | CallStatus::Completed), "{receipt}");
        continues(&agent, &outcome).await;
    }
}

async fn wait(cx: &ToolContext) -> Result<(), safepoint::Stop> {
    cx.run(pending::<()>()).await
}

/// S2.14: `?` into a foreign error: it does not fit, so it is turned into one by hand.
#[tokio::test]
async fn a_question_mark_into_a_foreign_error() {
    stops_all_the_same(|cx| async move {
        let foreign: Result<(), io::Error> =
            wait(&cx).await.map_err(|stop| io::Error::other(format!("{stop:?}")));
        foreign?;
        Ok(String::new())
    })
    .await;
}

/// S2.14: `.ok()`.
#[tokio::test]
async fn ok_throws_it_away() {
    stops_all_the_same(|cx| async move { Ok(format!("{:?}", wait(&cx).await.ok())) }).await;
}

/// S2.14: `unwrap_or_default`.
#[tokio::test]
async fn unwrap_or_default_puts_a_value_in_its_place() {
    stops_all_the_same(|cx| async move { Ok(cx.run(pending::<String>()).await.unwrap_or_default()) }).await;
}

/// S2.14: `if let Ok`.
#[tokio::test]
async fn if_let_ok_looks_away() {
    stops_all_the_same(|cx| async move {
        let mut said = "nothing".to_owned();
        if let Ok(()) = wait(&cx).await {
            said.clear();
        }
        Ok(said)
    })
    .await;
}

/// S2.14: `Err(_) =>`.
#[tokio::test]
async fn a_catch_all_arm() {
    stops_all_the_same(|cx| async move {
        match wait(&cx).await {
            Ok(()) => Ok("done".to_owned()),
            Err(_) => Ok("never mind".to_owned()),
        }
    })
    .await;
}

/// S2.14: `map_err` into a failure of the tool's own.
#[tokio::test]
async fn map_err_calls_it_a_failure() {
    stops_all_the_same(|cx| async move {
        wait(&cx).await.map_err(|_stop| Failure::new("cancelled"))?;
        Ok(String::new())
    })
    .await;
}

/// S2.14: an error type of the tool's own.
#[tokio::test]
async fn an_own_error_disguises_it() {
    #[derive(Debug, thiserror::Error)]
    #[error("the network is down")]
    struct Disguise;
    stops_all_the_same(|cx| async move {
        wait(&cx).await.map_err(|_stop| Disguise)?;
        Ok(String::new())
    })
    .await;
}

/// S2.14: `Ok` after it.
#[tokio::test]
async fn ok_after_it() {
    stops_all_the_same(|cx| async move {
        let stop = wait(&cx).await.expect_err("it is pending");
        Ok(format!("I saw {:?} and went on", stop.reason()))
    })
    .await;
}

/// S2.14: a loop.
#[tokio::test]
async fn a_loop_that_tries_again() {
    stops_all_the_same(|cx| async move {
        while wait(&cx).await.is_err() {
            tokio::task::yield_now().await;
        }
        Ok(String::new())
    })
    .await;
}

/// S2.14: `catch_unwind`.
#[tokio::test]
async fn catch_unwind_catches_nothing() {
    stops_all_the_same(|cx| async move {
        let caught = AssertUnwindSafe(async {
            wait(&cx).await.expect("it is pending");
        })
        .catch_unwind()
        .await;
        Ok(format!("caught {}", caught.is_err()))
    })
    .await;
}

/// S2.14: hidden in an `Arc`.
#[tokio::test]
async fn hidden_in_an_arc() {
    stops_all_the_same(|cx| async move {
        let hidden = Arc::new(wait(&cx).await);
        Ok(format!("kept {}", Arc::strong_count(&hidden)))
    })
    .await;
}

/// S2.14: dropped.
#[tokio::test]
async fn dropped() {
    stops_all_the_same(|cx| async move {
        drop(wait(&cx).await);
        pending::<()>().await;
        Ok(String::new())
    })
    .await;
}
