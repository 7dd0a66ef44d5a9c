//! Which of several requests ended a run, and how: derived from what was requested when, under every
//! interleaving.

use std::{
    sync::{Arc, Barrier},
    time::Duration,
};

use safepoint::{
    Grace, Reason, SafePoints, StopRequest,
    event::{EventKind, Fact},
    receipt::{Ending, Escalation},
};

use crate::world::{agent, ask, call_started, does, say, until};

/// How often they race.
const ROUNDS: usize = 60;
const ASKERS: usize = 32;

/// S1.7, S1.4: 32 ask at once, one of them for `Now`: it ended the run, by request and for its reason, and no grace was over.
#[tokio::test(flavor = "multi_thread")]
async fn of_many_at_once_the_one_that_is_now_took_effect() {
    for round in 0..ROUNDS {
        let handle = agent([]).build().run("go").detach();
        until(&handle, |kind| matches!(kind, EventKind::Text(_))).await;
        let start = Arc::new(Barrier::new(ASKERS));
        let askers: Vec<_> = (0..ASKERS)
            .map(|asker| {
                let (handle, start) = (handle.clone(), Arc::clone(&start));
                std::thread::spawn(move || {
                    let request = match asker {
                        0 => StopRequest::now().with_reason(Reason::user("now")),
                        _ => StopRequest::graceful(Grace::from_secs(3600)).with_reason(Reason::user("later")),
                    };
                    start.wait();
                    handle.stop(request);
                })
            })
            .collect();
        askers.into_iter().for_each(|asker| asker.join().unwrap());
        let outcome = handle.done().await;
        let stop = outcome.receipt().stop.as_ref().unwrap();
        let must = if stop.asked == "now" { Escalation::No } else { Escalation::ByRequest };
        assert_eq!(
            (stop.escalated, stop.fired.as_deref(), &*stop.reason.text),
            (must, Some("now"), "now"),
            "round {round}"
        );
        let mut events = handle.events();
        while let Some(event) = events.next().await {
            let escalated = matches!(&event.kind, EventKind::Fact(fact) if **fact == Fact::StopEscalated);
            assert!(!escalated, "round {round}: no grace was over");
        }
    }
}

/// What is asked while a call runs that ends after four seconds: what it is, and when it ends the run, if it does.
#[derive(Clone, Copy, Debug)]
enum Asks {
    Now,
    AtTheCallsEnd,
    /// A point that is not reached any more.
    AfterTheModel,
    /// The same, and its grace is over after two seconds.
    InTwoSeconds,
    /// The grace is longer than the call.
    AtTheCallsEndOrLate,
}

const ALL: [Asks; 5] =
    [Asks::Now, Asks::AtTheCallsEnd, Asks::AfterTheModel, Asks::InTwoSeconds, Asks::AtTheCallsEndOrLate];

const CALL: u64 = 4;

impl Asks {
    fn request(self, text: &'static str) -> StopRequest {
        let request = match self {
            Self::Now => StopRequest::now(),
            Self::AtTheCallsEnd => StopRequest::at(SafePoints::AFTER_ALL_CALLS),
            Self::AfterTheModel => StopRequest::at(SafePoints::AFTER_MODEL),
            Self::InTwoSeconds => StopRequest::at_within(SafePoints::AFTER_MODEL, Grace::from_secs(2)),
            Self::AtTheCallsEndOrLate => {
                StopRequest::at_within(SafePoints::AFTER_ALL_CALLS, Grace::from_secs(60))
            }
        };
        request.with_reason(Reason::user(text))
    }

    fn is_now(self) -> bool {
        matches!(self, Self::Now)
    }

    /// When it ends the run, if it is asked at this second and alone; and how, had something gentler been asked before.
    fn ends_at(self, asked: u64) -> Option<(u64, Escalation)> {
        match self {
            Self::Now => Some((asked, Escalation::ByRequest)),
            Self::InTwoSeconds => Some((asked + 2, Escalation::ByDeadline)),
            Self::AtTheCallsEnd | Self::AtTheCallsEndOrLate => Some((CALL, Escalation::No)),
            Self::AfterTheModel => None,
        }
    }
}

/// S1.7, S1.4, S2.4: of each two requests the receipt names the one that ended the run, when it did, and how.
#[tokio::test(start_paused = true)]
async fn of_two_requests_the_one_that_took_effect_is_named() {
    for first in ALL {
        for second in ALL {
            let tool = does("work", |_| async {
                tokio::time::sleep(Duration::from_secs(CALL)).await;
                Ok("r".into())
            });
            let handle = agent([ask(&["work"]), say("end")]).tool(tool).build().run("go").detach();
            call_started(&handle).await;
            let began = tokio::time::Instant::now();
            handle.stop(first.request("first"));
            tokio::time::sleep(Duration::from_secs(1)).await;
            handle.stop(second.request("second"));
            let outcome = handle.done().await;
            let ends = [(first, "first", 0), (second, "second", 1)]
                .into_iter()
                .filter_map(|(asks, text, at)| asks.ends_at(at).map(|(end, how)| (end, how, text)))
                .min_by_key(|(end, ..)| *end);
            let stop = outcome.receipt().stop.as_ref().unwrap();
            let seen = (outcome.ending(), stop.escalated, &*stop.reason.text, began.elapsed().as_secs());
            // Had the first ended it before, the run is over as the second comes.
            let must = match ends {
                None => (Ending::Done, Escalation::No, "first", CALL),
                Some((end, _, text)) if first.is_now() => (Ending::Stopped, Escalation::No, text, end.max(1)),
                Some((end, how, text)) => (Ending::Stopped, how, text, end),
            };
            assert_eq!(seen, must, "{first:?}, {second:?}");
        }
    }
}
