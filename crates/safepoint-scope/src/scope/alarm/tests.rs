//! The alarm against a clock that moves while it looks, and what it costs while nothing happens.

use std::{
    cell::Cell,
    future::poll_fn,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    task::{Context, Waker},
    time::Duration,
};

use tokio::time::{Instant, advance, timeout};

use super::Alarm;
use crate::{
    request::{
        Grace, StopRequest,
        demand::{Demand, Mode, Reach},
        points::SafePoints,
    },
    scope::{
        Link,
        node::{Node, WakeOrder},
    },
};

/// S1.7: a deadline that comes just after the alarm has looked is not lost.
#[tokio::test]
async fn a_deadline_that_comes_after_the_look_is_seen() {
    let node = Node::root();
    node.core.ask(StopRequest::at_within(SafePoints::ANY, Grace::from_millis(5)), Instant::now);
    let deadline = node.core.demand().and_then(|demand| demand.deadline).expect("it has a grace");
    let mut alarm = Box::pin(Alarm::new(&node, WakeOrder::Ending));
    let looks = AtomicU32::new(0);
    // In a separate task: the time-out's wake must not be what makes it look again.
    let noticed = tokio::spawn(poll_fn(move |cx| {
        alarm.as_mut().poll(cx, |node| {
            assert!(looks.fetch_add(1, Ordering::Relaxed) < 100, "it goes round");
            let seen = node.demand().filter(|demand: &Demand| demand.mode == Mode::Now);
            while Instant::now() < deadline {
                std::hint::spin_loop();
            }
            seen
        })
    }));
    let noticed = timeout(Duration::from_secs(5), noticed).await.expect("the deadline was noticed");
    assert_eq!(noticed.expect("no panic").deadline, None);
}

fn look(node: &Arc<Node>) -> Option<Demand> {
    node.demand().filter(|demand| demand.mode == Mode::Now)
}

/// S9.6: who was woken by what it waited for waits nowhere any more: in a wide tree all wait on the root's notification.
#[test]
fn what_has_been_woken_waits_nowhere_any_more() {
    let node = Node::root();
    let mut cx = Context::from_waker(Waker::noop());
    let mut alarm = pin!(Alarm::new(&node, WakeOrder::Ending));
    assert!(alarm.as_mut().poll(&mut cx, look).is_pending());
    node.core.ask(StopRequest::now(), Instant::now);
    node.run.wake();
    assert!(alarm.as_mut().poll(&mut cx, look).is_ready());
    // A notification for one goes to a waiter. Without a waiter it is kept for the next one.
    let waiters = node.run.waiters(WakeOrder::Ending);
    waiters.notify_one();
    assert!(pin!(waiters.notified()).poll(&mut cx).is_ready());
}

/// S2.14: without a request, a waiter looks at nothing but the words on its path.
#[test]
fn a_silent_path_is_not_looked_into() {
    let outer = Node::root();
    let node = outer.child_run(Link::Attached).child();
    let looks = Cell::new(0);
    let mut cx = Context::from_waker(Waker::noop());
    let mut alarm = pin!(Alarm::new(&node, WakeOrder::Ending));
    let mut polled = || {
        let poll = alarm.as_mut().poll(&mut cx, |node| {
            looks.set(looks.get() + 1);
            look(node)
        });
        (poll.is_ready(), looks.get())
    };
    assert!(node.is_silent());
    assert_eq!(polled(), (false, 0));
    outer.core.ask(StopRequest::at(SafePoints::ANY), Instant::now);
    assert!(!node.is_silent());
    assert_eq!(polled(), (false, 2));
}

/// S1.7: a deadline that has come is awaited no more: what it changed is seen already.
#[tokio::test(start_paused = true)]
async fn a_deadline_that_has_come_is_not_awaited() {
    let node = Node::root();
    assert_eq!(node.next_deadline(), None);
    node.core.ask(StopRequest::at_within(SafePoints::ANY, Grace::from_millis(5)), Instant::now);
    let deadline = Instant::now() + Duration::from_millis(5);
    assert_eq!((node.next_deadline(), look(&node)), (Some(deadline), None));
    advance(Duration::from_millis(5)).await;
    assert_eq!((node.next_deadline(), look(&node).is_some()), (None, true));
}

/// S1.2, S1.7: a deadline that changes nothing for a nested run is not awaited there.
#[tokio::test(start_paused = true)]
async fn a_deadline_that_does_not_reach_is_not_awaited() {
    let within = || StopRequest::at_within(SafePoints::ANY, Grace::from_millis(5));
    for (link, request, reaches) in [
        (Link::Attached, within(), true),
        (Link::Attached, within().with_reach(Reach::Tree), true),
        (Link::Background, within(), false),
        (Link::Background, within().with_reach(Reach::Tree), true),
    ] {
        let outer = Node::root();
        outer.core.ask(request.clone(), Instant::now);
        assert_eq!(outer.child_run(link).next_deadline().is_some(), reaches, "{link:?} {request:?}");
    }
}

/// S1.7: a waiter looks twice, and then sleeps until the deadline: it does not go round.
#[tokio::test(start_paused = true)]
async fn a_waiter_sleeps_until_the_deadline() {
    let node = Node::root();
    node.core.ask(StopRequest::at_within(SafePoints::ANY, Grace::from_millis(5)), Instant::now);
    let (mut alarm, looks, began) =
        (pin!(Alarm::new(&node, WakeOrder::Ending)), Cell::new(0), Instant::now());
    let noticed = poll_fn(|cx| {
        alarm.as_mut().poll(cx, |node| {
            looks.set(looks.get() + 1);
            assert!(looks.get() <= 4, "it goes round");
            look(node)
        })
    });
    assert!(timeout(Duration::from_secs(1), noticed).await.is_ok());
    assert_eq!((began.elapsed(), looks.get()), (Duration::from_millis(5), 3));
}
