//! A process's life: it owns the session, drives it until nothing is left to do, and says what came of it.

use std::{collections::HashSet, sync::Arc};

use safepoint::{
    Session,
    approval::Decision,
    raw::store::{ApprovalRow, ApprovalState},
    session::{ChatPlanner, ExitReason, Policy, Push, SessionStop},
    store::{Error, OwnerProcess, Store},
};
use safepoint_stores::SqliteStore;

use super::{
    judge::Line,
    plot::{Agents, CAUSE},
    process::{Job, Task, say, stay, task},
    world::{LOOK, agent, has_begun, session, store},
};

/// Not a test: what the processes of the other tests do.
#[test]
fn work_role() {
    let Some(task) = task() else { return };
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work(task));
}

async fn work(task: Task) {
    let store: Arc<dyn Store> = Arc::new(store(&task));
    let agent = agent(&task);
    loop {
        let builder = Session::builder(ChatPlanner::new(agent.clone()));
        let since = store.open(&session()).await.map_or(0, |row| row.head);
        let (store, owner) = (Arc::clone(&store), OwnerProcess::here());
        let opened = match task.job {
            Job::Work => {
                let go = Push::new("go".to_owned()).id("go");
                let opened = builder.open_with(store, session(), owner, go).await;
                opened.map(|(session, go)| (session, Some(go)))
            }
            Job::Take | Job::ApplyStops => {
                builder.open(store, session(), owner).await.map(|session| (session, None))
            }
        };
        let (session, go) = match opened {
            Ok(opened) => opened,
            Err(Error::Held(_, held)) => return say(format!("held by {}", held.owner.pid)),
            Err(error) => return say(error),
        };
        say("open");
        match task.job {
            Job::Work => drive(&session, go, &task, since).await,
            Job::Take => stay(),
            Job::ApplyStops => stops_handled(&task).await,
        }
        drop(session.stop(SessionStop::at_turn_end()));
        let exit = session.done().await;
        match exit.reason() {
            ExitReason::Failed(error) => {
                return say(format!("failed: {} ({:?})", error.message, exit.persisted()));
            }
            _ if exit.cause() == Some(CAUSE) => say("stopped"),
            _ => return say("all"),
        }
        // A stop from outside ends the session once, not the process that resumes it.
        if task.job == Job::ApplyStops {
            return;
        }
    }
}

/// Until every wish has been seen to.
async fn stops_handled(task: &Task) {
    let eyes = SqliteStore::open(&task.store).unwrap();
    while eyes.stops(&session(), 0).await.unwrap().iter().any(|stop| !stop.seen) {
        tokio::time::sleep(LOOK).await;
    }
}

/// Until nothing is left to do, or the session is not ours any more. `since` is where its journal ended
/// before.
async fn drive(session: &Session<String>, go: Option<Push<String>>, task: &Task, since: u64) {
    let eyes = SqliteStore::open(&task.store).unwrap();
    let id = self::session();
    let (mut steers, mut patience) = (false, PATIENCE);
    // A turn that was cut continues before anything new comes.
    session.resume().await;
    if let Some(Ok(went)) = go.map(|go| session.push(go)) {
        went.recorded().await;
    }
    while !session.is_done() {
        if let Some(again) = answer(session, &eyes.approvals(&id).await.unwrap(), &mut patience).await {
            return say(format!("asked again about {again}, and it was answered before"));
        }
        if !steers && has_begun(&task.ledger) {
            let also = session.push(Push::new("also".to_owned()).id("also").policy(Policy::steer()));
            // A session that is over takes nothing.
            if let Ok(also) = also {
                also.recorded().await;
                steers = true;
            }
        }
        // What others ask need not wait until the owner looks by itself.
        session.check_store();
        let is_resting = session.current_turn().is_none() && !session.resume().await;
        if steers
            && is_resting
            && eyes.inbox(&id).await.unwrap().is_empty()
            // An attached run has ended with its call, also where its end could not be recorded.
            && !(task.plot.agents == Agents::Background && is_busy_behind(&eyes, since).await)
        {
            return;
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// How often a question that was answered before is seen open, before it counts as asked again.
const PATIENCE: usize = 1000;

/// Approves every open question about a call without an earlier answer. Some: a call with an earlier answer
/// that is open again.
async fn answer(session: &Session<String>, rows: &[ApprovalRow], patience: &mut usize) -> Option<String> {
    let is_answered = |row: &&ApprovalRow| matches!(row.state, ApprovalState::Decided { .. });
    let answered: HashSet<&str> =
        rows.iter().filter(is_answered).map(|row| row.asked.call.as_str()).collect();
    for row in rows.iter().filter(|row| row.state == ApprovalState::Open) {
        if answered.contains(row.asked.call.as_str()) {
            *patience -= 1;
            if *patience == 0 {
                return Some(row.asked.call.to_string());
            }
        } else if session.decide(&row.asked.id, Decision::Approve).await.is_err() {
            // It was closed meanwhile.
        }
    }
    None
}

/// Whether a run that began in the background of this process has not ended.
async fn is_busy_behind(eyes: &SqliteStore, since: u64) -> bool {
    let mut open = HashSet::new();
    for Line { path, fact } in super::judge::lines_since(eyes, since).await {
        match fact["fact"].as_str() {
            _ if path.is_empty() => {}
            Some("attempt_opened") => drop(open.insert(path)),
            Some("settled") => drop(open.remove(&path)),
            _ => {}
        }
    }
    !open.is_empty()
}
