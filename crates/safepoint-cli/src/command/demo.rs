//! `safepoint demo`: a tour of a few seconds, offline, over a real loopback socket; its last scene kills a process.

use std::{process::ExitCode, sync::Arc, time::Duration};

use safepoint::{
    Agent, AgentBuilder, Outcome, Reason, RunHandle, SafePoints, StopRequest,
    approval::ApprovalMode,
    event::{EventKind, Events, Fact},
    ids::CallId,
    raw::{StreamEvent, lasting},
    secs, tool,
};
use safepoint_models::openai;
use safepoint_testkit::{
    script::{Reply, Script},
    server::ModelServer,
};
use serde_json::json;

mod killed;
mod talking;

use crate::output::{Unwritten, say};

/// Walks through the scenes; each prints its receipt and shows that the conversation continues.
pub(crate) async fn demo() -> anyhow::Result<ExitCode> {
    say(
        "Safepoint in eight scenes, a few seconds each. The model is a script behind a real socket; the rest is real.\n",
    )?;
    at_a_safe_point().await?;
    now_mid_stream().await?;
    a_process_tree().await?;
    one_call_alone().await?;
    a_swallowing_tool().await?;
    talking::a_steer().await?;
    talking::a_preempt().await?;
    killed::kill_and_resume().await?;
    say("Every conversation continued with a history that a strict server accepts.")?;
    say("Next: safepoint   (a conversation: type while the agent works, Esc stops)")?;
    say("      safepoint run \"hello\"   (Ctrl-C once: graceful; twice: now)")?;
    Ok(ExitCode::SUCCESS)
}

fn scene(number: u8, title: &str, what: &str) -> Result<(), Unwritten> {
    say(format_args!("── {number}. {title} ──────────────────────────────────────"))?;
    say(what)
}

async fn server(replies: Vec<Reply>) -> anyhow::Result<ModelServer> {
    Ok(ModelServer::start(Script::of(replies)).await?)
}

fn builder(server: &ModelServer) -> AgentBuilder {
    Agent::builder(openai::model("scripted").base_url(server.url())).approvals(ApprovalMode::Auto)
}

/// Waits for an event of a run, or of a session.
async fn until<T: StreamEvent>(mut events: Events<T>, mut is_it: impl FnMut(&T) -> bool) {
    while let Some(event) = events.next().await {
        if is_it(&event.kind) {
            return;
        }
    }
}

fn started(kind: &EventKind) -> Option<CallId> {
    let EventKind::Fact(fact) = kind else { return None };
    let Fact::CallStarted { call_id, .. } = &**fact else { return None };
    Some(call_id.clone())
}

/// Prints the final receipt, then sends the next message on the same history.
async fn close(agent: &Agent, handle: &RunHandle) -> anyhow::Result<()> {
    let outcome = handle.done().await;
    let quiet = handle.quiet().await;
    say(format_args!("\n{}\n", indented(&quiet.receipt().to_string())))?;
    let next = agent.run_on(outcome.history().clone(), "And now?").await;
    match next {
        Outcome::Done(answer) => say(format_args!("  next message accepted: {answer}\n"))?,
        other => {
            let (ending, account) = (other.ending().as_str(), indented(&other.receipt().to_string()));
            say(format_args!("  next message: {ending}\n{account}\n"))?;
        }
    }
    Ok(())
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  │ {line}")).collect::<Vec<_>>().join("\n")
}

async fn at_a_safe_point() -> anyhow::Result<()> {
    scene(
        1,
        "A stop at a safe point",
        "Two calls in a row. A graceful stop comes during the first call: it completes, and the second never starts.",
    )?;
    let server = server(vec![
        Reply::default().and_call("book", json!({})).and_call("book", json!({})),
        Reply::text("I booked once; the second was never begun."),
    ])
    .await?;
    // A call is announced before its body runs; the stop must come while the body runs.
    let begun = Arc::new(tokio::sync::Notify::new());
    let inside = Arc::clone(&begun);
    let book = tool::from_fn("book", "Books a table", move |_cx, (): ()| {
        let inside = Arc::clone(&inside);
        async move {
            inside.notify_one();
            tokio::time::sleep(Duration::from_millis(300)).await;
            Ok("booked")
        }
    });
    let agent = builder(&server).tool(book).build();
    let handle = agent.run("Book two tables.").detach();
    begun.notified().await;
    handle.stop(StopRequest::graceful(secs(5)).with_reason(Reason::user("changed my mind")));
    close(&agent, &handle).await
}

async fn now_mid_stream() -> anyhow::Result<()> {
    scene(
        2,
        "Now, while the model streams",
        "The connection closes at once. The text you saw is kept, and usage is never zero.",
    )?;
    let story = "Once upon a time there was a stop button that no one could trust, and the people who pressed it waited and waited.";
    let server = server(vec![
        Reply::text(story).paced(6, Duration::from_millis(60)),
        Reply::text("I was interrupted after a few words."),
    ])
    .await?;
    let agent = builder(&server).build();
    let handle = agent.run("Tell me a story.").detach();
    let mut seen = String::new();
    until(handle.events(), |kind| {
        if let EventKind::Text(text) = kind {
            seen.push_str(text);
        }
        seen.len() > 30
    })
    .await;
    say(format_args!("  model: {seen}▌"))?;
    let asked = std::time::Instant::now();
    handle.stop(StopRequest::now().with_reason(Reason::user("enough")));
    let _outcome = handle.done().await;
    let stopped = asked.elapsed();
    let closed = server.request(0).await.peer_closed().await;
    let (stopped, closed) = (lasting(stopped), lasting(closed.into_std() - asked));
    say(format_args!("  stopped after {stopped}; the server saw the socket close after {closed}"))?;
    close(&agent, &handle).await
}

async fn a_process_tree() -> anyhow::Result<()> {
    scene(
        3,
        "A shell command with grandchildren",
        "The command starts a detached grandchild that ignores SIGINT and SIGTERM. No process survives.",
    )?;
    let command = "trap '' INT TERM; setsid sh -c \"trap '' INT TERM; sleep 300\" & sleep 300";
    let server = server(vec![
        Reply::call("shell", json!({ "command": command })),
        Reply::text("The command was stopped."),
    ])
    .await?;
    let tools = safepoint_tools::toolbox(std::env::temp_dir())?.select("shell")?;
    let agent = builder(&server).tools(tools).build();
    let handle = agent.run("Run it.").detach();
    until(handle.events(), |kind| started(kind).is_some()).await;
    // Long enough for the shell to have begun its grandchild: a demonstration, not a test.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let request = StopRequest::now().with_cleanup_cap(Duration::from_millis(800));
    handle.stop(request.with_reason(Reason::user("ctrl-c, twice")));
    close(&agent, &handle).await
}

async fn one_call_alone() -> anyhow::Result<()> {
    scene(
        4,
        "One call stopped alone",
        "The slow one of two searches is stopped. The run continues, and the model learns about it.",
    )?;
    let calls = Reply::default()
        .and_call("look", json!({"in": "the attic"}))
        .and_call("look", json!({"in": "the cellar"}));
    let server = server(vec![
        calls,
        Reply::text("The cellar it is; the attic I gave up."),
        Reply::text("Nothing else."),
    ])
    .await?;
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Look {
        r#in: String,
    }
    let look = tool::from_fn("look", "Looks for the key", |cx, look: Look| async move {
        if look.r#in == "the attic" {
            cx.run(std::future::pending::<()>()).await?;
        }
        Ok(format!("the key is in {}", look.r#in))
    })
    .with(|spec| spec.effect(tool::EffectClass::ReadOnly));
    let agent = builder(&server).tool(look).build();
    let handle = agent.run("Where is the key?").detach();
    let mut calls = Vec::new();
    until(handle.events(), |kind| {
        calls.extend(started(kind));
        calls.len() == 2
    })
    .await;
    if let Some(attic) = calls.first() {
        let is_requested = handle.stop_call(attic, StopRequest::now()).is_some();
        let stop = if is_requested { "stop requested" } else { "already ended" };
        say(format_args!("  call {attic} alone: {stop}"))?;
    }
    close(&agent, &handle).await
}

async fn a_swallowing_tool() -> anyhow::Result<()> {
    scene(
        5,
        "A tool that swallows its stop",
        "The tool ignores every stop. The run settles without it, and no further round starts.",
    )?;
    let server = server(vec![Reply::call("stubborn", json!({})), Reply::text("It never answered.")]).await?;
    let begun = Arc::new(tokio::sync::Notify::new());
    let inside = Arc::clone(&begun);
    let stubborn = tool::from_fn("stubborn", "Never gives up", move |cx, (): ()| {
        let inside = Arc::clone(&inside);
        async move {
            inside.notify_one();
            while cx.run(std::future::pending::<()>()).await.is_err() {
                tokio::task::yield_now().await;
            }
            Ok("")
        }
    });
    let agent = builder(&server).tool(stubborn).build();
    let handle = agent.run("Try it.").detach();
    begun.notified().await;
    let request = StopRequest::at_within(SafePoints::AFTER_STARTED_CALLS, safepoint::Grace::from_millis(200));
    handle.stop(request.with_reason(Reason::user("time is up")));
    close(&agent, &handle).await
}
