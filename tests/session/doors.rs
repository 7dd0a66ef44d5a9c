//! What the user gave the session panics at every moment that it is called, polled or dropped.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use futures_util::future::BoxFuture;
use safepoint::{
    Agent, Session,
    event::Events,
    ids::TurnId,
    message::UserMessage,
    session::{
        ChatPlanner, ExitReason, ItemOutcome, Plan, PlanContext, Planner, Reader, SessionStop, TurnPlan,
    },
    stop::Failure,
};

use super::desk::{Desk, accounted, turn};

/// Longer than any wait of these sessions; the clock is a controlled one.
const NEVER: Duration = Duration::from_secs(3600);

/// At which moment a piece of work panics.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum When {
    Called,
    Polled,
    Dropped,
}

/// A future that panics at the given moment, or returns its value.
struct Trap<T>(Option<T>, When);

impl<T: Unpin> Future for Trap<T> {
    type Output = T;
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<T> {
        assert!(self.1 != When::Polled, "it panics as it is polled");
        self.0.take().map_or(Poll::Pending, Poll::Ready)
    }
}

impl<T> Drop for Trap<T> {
    fn drop(&mut self) {
        assert!(self.1 != When::Dropped || std::thread::panicking(), "it panics as it is dropped");
    }
}

/// Chat, but for a panic in one of its methods.
struct Breaks {
    chat: ChatPlanner,
    agent: Agent,
    place: &'static str,
    when: When,
}

impl Planner<String> for Breaks {
    fn plan(&self, situation: PlanContext<String>) -> BoxFuture<'_, Result<Plan, Failure>> {
        match (self.place, self.when) {
            ("plan", When::Called) => panic!("it panics as it is called"),
            ("plan", when) => {
                let take = situation.waiting.iter().map(|waiting| waiting.id).collect();
                let agent = self.agent.clone();
                let plan = TurnPlan { agent, input: vec!["a".into()], take, drop: Vec::new() };
                Box::pin(Trap(Some(Ok(Plan::Turn(plan))), when))
            }
            _ => self.chat.plan(situation),
        }
    }
    fn steer(&self, item: &String) -> UserMessage {
        self.chat.steer(item)
    }
    fn is_blank(&self, item: &String) -> bool {
        assert!(self.place != "is_blank", "it panics as it is called");
        self.chat.is_blank(item)
    }
}

/// S2.16, S6.9: a planner that panics at any moment of its plan, or as it is asked whether an item says
/// anything, ends the session with an account; every item is in one place.
#[tokio::test(start_paused = true)]
async fn a_planner_that_panics_at_any_moment_ends_the_session() {
    let moments = [When::Called, When::Polled, When::Dropped].map(|when| ("plan", when));
    for (place, when) in moments.into_iter().chain([("is_blank", When::Called)]) {
        let desk = Desk::new([]);
        let planner = Breaks { chat: ChatPlanner::new(desk.agent()), agent: desk.agent(), place, when };
        let session = Session::builder(planner).start();
        let item = session.push("a".to_owned()).unwrap();
        let exit = tokio::time::timeout(NEVER, accounted(&session, &[item])).await.expect("it ends");
        let names_the_panic = matches!(exit.reason(), ExitReason::Failed(error) if error.message.contains("it panics as it is"));
        assert!(names_the_panic && exit.unhandled().len() == 1, "{place} {when:?}: {exit:?}");
    }
}

/// A reader that panics at the given moment, and reads nothing.
struct Looks(When);

impl Reader for Looks {
    fn read(&self, _: TurnId, _: Events) -> BoxFuture<'_, Result<(), Failure>> {
        assert!(self.0 != When::Called, "it panics as it is called");
        Box::pin(Trap(None, self.0))
    }
}

/// S2.16, S6.9: a reader that panics as it reads ends the session; one that panics as it is dropped, its time
/// being over, delays nothing.
#[tokio::test(start_paused = true)]
async fn a_reader_that_panics_at_any_moment_delays_nothing() {
    for when in [When::Called, When::Polled, When::Dropped] {
        let session = Desk::new([]).chat().reader(Looks(when)).start();
        let items = [session.push("a".to_owned()).unwrap(), session.push("b".to_owned()).unwrap()];
        if when == When::Dropped {
            let second = tokio::time::timeout(NEVER, items[1].outcome()).await.expect("the next turn begins");
            assert_eq!(second, ItemOutcome::Completed(turn(2)));
            session.stop(SessionStop::now());
        }
        let exit = tokio::time::timeout(NEVER, accounted(&session, &items)).await.expect("it ends");
        let failed = matches!(exit.reason(), ExitReason::Failed(error) if error.message.contains("it panics as it is"));
        assert_eq!(failed, when != When::Dropped, "{when:?}: {exit:?}");
    }
}
