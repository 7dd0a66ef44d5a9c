//! The alarm against a clock that moves while it looks.

use std::{future::poll_fn, time::Duration};

use tokio::time::{Instant, timeout};

use super::Alarm;
use crate::{
    demand::{Demand, Mode},
    node::Node,
    points::SafePoints,
    request::{Grace, StopRequest},
};

/// S1.7: a deadline that comes just after the alarm has looked is not lost.
#[tokio::test]
async fn a_deadline_that_comes_after_the_look_is_heard() {
    let node = Node::root();
    node.core.ask(StopRequest::at_within(SafePoints::ANY, Grace::from_millis(5)), Instant::now);
    let deadline = node.core.demand().and_then(|demand| demand.deadline).expect("it has a grace");
    let mut alarm = Alarm::new(&node);
    // In a task of its own: the time-out's wake must not be what makes it look again.
    let heard = tokio::spawn(poll_fn(move |cx| {
        alarm.poll(cx, |node| {
            let seen = node.demand().filter(|demand: &Demand| demand.mode == Mode::Now);
            while Instant::now() < deadline {
                std::hint::spin_loop();
            }
            seen
        })
    }));
    let heard = timeout(Duration::from_secs(5), heard).await.expect("the deadline was heard");
    assert_eq!(heard.expect("no panic").deadline, None);
}
