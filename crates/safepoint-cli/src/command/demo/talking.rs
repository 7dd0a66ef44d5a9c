//! The scenes of a session: a steer of the running turn, and a preempt.

use safepoint::{
    RunHandle, Session,
    session::{ChatPlanner, ItemOutcome, Policy, Preempt, PreemptOutcome, Push, SessionEvent, SessionStop},
};
use safepoint_testkit::{script::Reply, server::ModelServer};
use serde_json::json;

use super::{builder, indented, scene, server, started, until};
use crate::{output::say, render::trace::timeline::standing};

/// A conversation with an agent that can sleep.
fn session(server: &ModelServer) -> anyhow::Result<Session<String>> {
    let tools = safepoint_tools::toolbox(std::env::temp_dir())?.select("sleep")?;
    Ok(Session::builder(ChatPlanner::new(builder(server).tools(tools).build())).start())
}

fn is_call(event: &SessionEvent) -> bool {
    matches!(event, SessionEvent::Run { event, .. } if started(&event.kind).is_some())
}

/// Ends the session, and shows the model's last answer.
async fn close(session: &Session<String>) -> anyhow::Result<()> {
    drop(session.stop(SessionStop::at_turn_end()));
    let exit = session.done().await;
    Ok(say(format_args!("  model: {}\n", exit.history().last_text().unwrap_or_default()))?)
}

/// How an item ended, in words.
fn ended(outcome: ItemOutcome) -> String {
    match outcome {
        ItemOutcome::Completed(turn) => format!("completed in {turn}"),
        ItemOutcome::Preempted(turn) => format!("preempted with {turn}"),
        other => standing(Some(other)).to_owned(),
    }
}

/// The run of the session's first turn.
pub(crate) async fn first_run(session: &Session<String>) -> Option<RunHandle> {
    let mut first = None;
    until(session.events(), |event| {
        if let SessionEvent::TurnStarted { run, .. } = event {
            first = Some(run.clone());
        }
        first.is_some()
    })
    .await;
    first
}

pub(crate) async fn a_steer() -> anyhow::Result<()> {
    scene(
        6,
        "A steer",
        "The agent is looking something up; you have a better idea. The model reads your message next, without a stop.",
    )?;
    let server = server(vec![
        Reply::call("sleep", json!({ "seconds": 0.5 })),
        Reply::text("Then I look in the kitchen."),
    ])
    .await?;
    let session = session(&server)?;
    let first = session.push("Where is my key?".to_owned())?;
    until(session.events(), is_call).await;
    let steer = session.push(Push::new("Try the kitchen.".to_owned()).policy(Policy::steer()))?;
    say("  you, while it works: Try the kitchen.")?;
    match steer.delivered().await {
        Some(at) => say(format_args!("  delivered in {}, before request {} to the model", at.turn, at.round)),
        None => say("  not delivered"),
    }?;
    let (first, steer) = (ended(first.outcome().await), ended(steer.outcome().await));
    say(format_args!("  the first message: {first}; the steer: {steer}"))?;
    close(&session).await
}

pub(crate) async fn a_preempt() -> anyhow::Result<()> {
    scene(
        7,
        "A preempt",
        "You want something else. The running turn stops, and the next turn answers the newer message.",
    )?;
    let server = server(vec![
        Reply::call("sleep", json!({ "seconds": 300 })),
        Reply::text("Dinner is booked; the report I left."),
    ])
    .await?;
    let session = session(&server)?;
    let old = session.push("Write the long report.".to_owned())?;
    until(session.events(), is_call).await;
    let new = session.push(Push::new("Book dinner instead.".to_owned()).policy(Preempt::now()))?;
    say("  you, while it works: Book dinner instead.")?;
    let stopped = match new.preempted().await {
        PreemptOutcome::StoppedTurn(turn) => format!("stopped {turn}"),
        _ => "stopped no turn".to_owned(),
    };
    say(format_args!("  the preempt: {stopped}; the old message: {}", ended(old.outcome().await)))?;
    if let Some(run) = first_run(&session).await {
        say(format_args!("\n{}\n", indented(&run.quiet().await.receipt().to_string())))?;
    }
    say(format_args!("  the newer message: {}", ended(new.outcome().await)))?;
    close(&session).await
}
