//! The end of a process: politely if there is time, and then by force.

use std::{collections::VecDeque, future::pending, pin::pin, time::Duration};

use futures_util::future::{Either, join, select};
use safepoint::{
    raw::remote::{RemoteEvent, RemoteStopReply},
    receipt,
};
use safepoint_tools::process::{CommandReport, Waited, names};
use tokio::{
    sync::mpsc,
    time::{Instant, timeout},
};

use super::{AgentProcess, Held, Order, Over, reply, report};
use crate::acp::{dialogue::Answered, limits};

impl AgentProcess {
    pub(super) async fn part(mut self, mut held: Held, over: Over) {
        let mut background = self.surroundings.background(&held.process);
        let was_working = self.stop.as_ref().is_some_and(|stop| stop.answered != Some(Answered::Unasked));
        if was_working {
            self.pass_on().await;
            self.surroundings.look(held.process.members(), self.work.cx.scope()).await;
            self.surroundings.finish(self.time_to_look()).await;
        }
        let (report, over) = match over {
            Over::Gone(report) => ((*report).clone(), Over::Gone(report)),
            over => {
                self.name_outsiders();
                (self.end(&mut held).await, over)
            }
        };
        background.retain(|member| !report.survivors.contains(member));
        let mut row = receipt::ProcessReport::from(&report);
        row.ended_with = names(&background);
        self.work.cx.report_process(row);
        let outside = if was_working { self.surroundings.outside() } else { receipt::Outside::Unasked };
        let words = held.process.output().last_words();
        if let Some(stopping) = &mut self.stop {
            if stopping.answered == Some(Answered::Unasked) && report.survivors.is_empty() {
                return self.tell_last(report::nothing_done()).await;
            }
            let word = report::of_stop(stopping.answered.as_ref(), &report, outside);
            // Its time may be over: this event then arrives if the engine still listens.
            self.tell_last(RemoteEvent::Parted(word)).await;
            return;
        }
        let has_begun = self.dialogue.has_begun();
        let said = match over {
            Over::Reported | Over::Stopped => None,
            Over::Gone(report) => Some(report::ended(&report, has_begun, &words)),
            Over::Mute => Some(report::mute(has_begun, &words)),
            Over::Slow => Some(report::slow(self.work.start, &words)),
        };
        match said {
            Some(said) => self.tell_last(said).await,
            None => self.tell_rest().await,
        }
    }

    /// Where outside parties may continue the work, the end of the processes is not its end. The caller of
    /// the stop gets the agent's answer now, with their names.
    fn name_outsiders(&mut self) {
        let Some(stopping) = &mut self.stop else { return };
        let Some(Answered::AsAsked(word) | Answered::Otherwise(word)) = &stopping.answered else { return };
        let named = self.surroundings.named();
        if named.names().is_empty() || named == stopping.named {
            return;
        }
        let word = RemoteStopReply::acknowledged(word).outside(named.clone());
        stopping.named = named;
        self.backlog.push_back(RemoteEvent::StopReply(word));
    }

    /// Passes on what the agent said, and its word on the stop, before the looks at its surroundings.
    async fn pass_on(&mut self) {
        let passing = pass(&self.tell, &mut self.backlog);
        if timeout(limits::LOOK, passing).await.is_err() {
            // The rest is passed on while the agent is ended.
        }
    }

    /// Reports the end, after the events before it.
    pub(super) async fn tell_last(&mut self, said: RemoteEvent) {
        self.backlog.push_back(said);
        self.tell_rest().await;
    }

    /// Reports the remaining events while the engine listens; a stop that arrives meanwhile gets the reply to
    /// listen on.
    async fn tell_rest(&mut self) {
        while let Some(said) = self.backlog.pop_front() {
            // Orders first: the engine may wait for the answer to a stop before it takes another event.
            tokio::select! {
                biased;
                order = self.orders.recv() => match order {
                    Some(order) => {
                        if let Order::Stop(tell) = order {
                            reply(tell, RemoteStopReply::acknowledged("its process is gone"));
                        }
                        self.backlog.push_front(said);
                    }
                    None => return,
                },
                // Dropped only with an order, and then what it carried is of no use.
                sent = self.tell.reserve() => match sent {
                    Ok(place) => place.send(said),
                    Err(_closed) => return,
                },
            }
        }
    }

    /// Ends the process: the end of its input, time to go by itself, and the ladder.
    async fn end(&mut self, held: &mut Held) -> CommandReport {
        let Held { process, lines, outbox } = held;
        if timeout(Duration::ZERO, outbox.write()).await.is_err() {
            // The agent does not read; it had the chance.
        }
        outbox.close();
        let (exit, ladder) = self.times();
        let scope = self.work.cx.scope().clone();
        let is_stopped = self.stop.is_some();
        let ending = async {
            if is_stopped && let Ok(report) = timeout(exit, process.wait()).await {
                return report;
            }
            let limit = if is_stopped { Duration::ZERO } else { exit };
            match process.wait_in(&scope, Some(limit), ladder).await {
                Waited::Ended(report) | Waited::TimedOut(report) => report,
                // The engine stops the call itself.
                Waited::Stopped(report, _stop) => report,
            }
        };
        // An agent that still writes must not block on a full pipe, and the engine still gets the events
        // meanwhile.
        let (tell, backlog) = (&self.tell, &mut self.backlog);
        let passing = async {
            let reading = async { while lines.next().await.is_some() {} };
            // Events that the engine does not take stay here.
            let telling = async {
                if is_stopped {
                    pass(tell, backlog).await;
                }
            };
            join(reading, telling).await;
            pending::<()>().await;
        };
        // The end of the process first. What is not passed on by then is still in the pipe and in the
        // backlog, and is read after this.
        match select(pin!(ending), pin!(passing)).await {
            Either::Left((report, _)) => report,
            Either::Right(((), ending)) => ending.await,
        }
    }

    /// How long the looks at connections may take while the agent is kept alive.
    fn time_to_look(&self) -> Duration {
        let until = self.stop.as_ref().and_then(|stopping| stopping.term.until_cleaned());
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        left.map_or(limits::LOOKS, |left| limits::LOOKS.min(left / 2))
    }

    /// How long the agent may take to end by itself, and how long the ladder after that.
    fn times(&self) -> (Duration, Duration) {
        let Some(stopping) = &self.stop else { return (limits::EXIT, limits::LADDER) };
        let time = self.stop_time();
        let left = stopping.term.until_cleaned().map_or(time, |until| {
            until.saturating_duration_since(Instant::now()).saturating_sub(time / limits::ACCOUNT_SHARE)
        });
        // An agent that answered knows that it is to end; one that did not has used its time.
        let exit = stopping.answered.as_ref().map_or(Duration::ZERO, |_| to_exit(time, left));
        (exit, (left - exit).min(time))
    }
}

/// Passes on events for as long as the engine takes them.
///
/// # Cancel safety
/// What was not passed on stays.
async fn pass(tell: &mpsc::Sender<RemoteEvent>, backlog: &mut VecDeque<RemoteEvent>) {
    while !backlog.is_empty()
        && let Ok(place) = tell.reserve().await
        && let Some(said) = backlog.pop_front()
    {
        place.send(said);
    }
}

/// How long an agent that has answered may take to end by itself, of a stop of this time of which this is left.
fn to_exit(time: Duration, left: Duration) -> Duration {
    limits::EXIT.min(time / limits::EXIT_SHARE).min(left / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S10.62: of the usual time of a stop an agent that has answered gets a tenth of a second to end by itself; it gets more of
    /// a longer one, and of one that is nearly over no more than half of what is left.
    #[test]
    fn an_agent_that_has_answered_has_little_time_to_end_by_itself() {
        let ms = Duration::from_millis;
        for (time, left, exit) in
            [(limits::STOP, ms(1800), 100), (ms(60_000), ms(60_000), 500), (limits::STOP, ms(60), 30)]
        {
            assert_eq!(to_exit(time, left), ms(exit), "{time:?}, {left:?}");
        }
    }
}
