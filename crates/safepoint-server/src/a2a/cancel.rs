//! A cancel: one stop of the item, answered once its turn has settled.

use std::time::Duration;

use safepoint::{Grace, Reason, SafePoints, StopRequest, session::QueueAfterStop, stop::Actor};
use tokio::time::Instant;

use super::{
    refusal,
    task::{TaskState, TaskView},
};
use crate::{
    access::AccessScope,
    caller::{Caller, KeptItem, stops::StopWait},
    load::Load,
    problem::{Answered, Problem},
    routes::table::Refuses,
};

/// How long the work may take to its next safe point; then it is stopped at once. Clients wait for a cancel.
const GRACE: Duration = Duration::from_secs(1);
/// How long a cancel is waited for; then the task is as it is, and works on its stop.
const WITHIN: Duration = Duration::from_secs(20);

/// Cancels the task of this name. A task that was canceled before is the same task.
///
/// # Errors
/// `no_such_task`, `not_cancelable` for one that is over, and the store's.
///
/// # Cancel safety
/// The stop may be under way.
pub(super) async fn cancel(by: &Caller, agent: &str, named: &str) -> Answered<TaskView> {
    by.needs(AccessScope::Stop, Refuses::Never)?;
    let task = KeptItem::find(by, agent, named).await?;
    let item = task.item(by).await?;
    if TaskState::of(&item).is_terminal() && item.is_over() {
        return over(by, &task).await;
    }
    Load::count(&by.load.stops);
    match by.stop_item(&task.kept, task.number, request(by.who.name()), QueueAfterStop::Continues).await {
        Ok(stopped) => {
            let wait = (StopWait::Quiet, Instant::now() + WITHIN);
            drop(by.item_stopped(&task.kept, task.number, stopped, wait).await?);
            TaskView::of(by, &task).await
        }
        Err(problem) if problem.code() == "too_late" => over(by, &task).await,
        Err(problem) => Err(problem),
    }
}

fn request(who: &str) -> StopRequest {
    let grace = Grace::try_from(GRACE).expect("1 s is a grace");
    let reason = Reason::user("canceled over A2A").with_actor(Actor::Remote(who.into()));
    StopRequest::at_within(SafePoints::ANY, grace).with_reason(reason)
}

async fn over(by: &Caller, task: &KeptItem) -> Answered<TaskView> {
    let view = TaskView::of(by, task).await?;
    if view.state == TaskState::Canceled {
        return Ok(view);
    }
    let problem: Problem = refusal::not_cancelable(format!("the task is over: {}", view.state.as_str()));
    Err(problem)
}
