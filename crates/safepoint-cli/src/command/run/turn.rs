//! One watched turn of a run: its events, the stops of signals, and the wait until it is quiet.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use safepoint::{
    Outcome, Receipt, RunHandle,
    receipt::{Outside, RemoteReport},
};
use safepoint_tools::process::Processes;
use tokio::time::{Interval, MissedTickBehavior, interval};

use crate::{
    args::run::RunArgs,
    render::turn::View,
    signals::{Answered, Answers, LAST_CAP, Pressed, ReceivedSignal, Signal, Signals, StopLevel},
    sync::lock,
};

/// One turn while it is watched.
pub(crate) struct Turn<'a> {
    pub(crate) handle: RunHandle,
    pub(crate) signals: &'a mut Signals,
    /// Shared with the signal thread, which makes the stop requests. Held for one request, so that of two signals one is
    /// the first. The signal thread takes it under the lock of its deputy. The locks of the run and of the screen are
    /// taken under it; nothing is awaited.
    pub(crate) pressed: Arc<Mutex<Pressed>>,
    pub(crate) view: &'a mut View,
    pub(crate) args: &'a RunArgs,
}

impl Turn<'_> {
    /// Applies a signal that came before the turn began. A session has already requested that stop, and a
    /// repeated request changes nothing; without a session this is the only request.
    pub(crate) fn received_before(&mut self, got: Signal) {
        let mut pressed = lock(&self.pressed);
        if let Some(level) = pressed.ask(got, &self.handle, self.args) {
            self.view.asked(level);
        }
        pressed.first = Some(got);
    }

    /// Stops this turn on the signal thread, as soon as a signal arrives.
    pub(crate) fn answers(&self) -> Answers {
        let (pressed, handle, args) = (Arc::clone(&self.pressed), self.handle.clone(), self.args.clone());
        self.signals.answer(move |got| lock(&pressed).ask(got, &handle, &args))
    }

    /// The stop that a signal requested; a signal from before the deputy requests it now.
    fn asked(&self, received: ReceivedSignal) -> Option<StopLevel> {
        match received.answered {
            Answered::With(asked) => asked,
            Answered::NotYet => {
                let mut pressed = lock(&self.pressed);
                pressed.ask(received.got, &self.handle, self.args)
            }
        }
    }

    /// The stops that signals have requested.
    pub(crate) fn pressed(&self) -> Pressed {
        *lock(&self.pressed)
    }

    /// Shows events until the run has settled; a signal or a lost reader stops it at once.
    pub(crate) async fn follow(&mut self) {
        self.view.screen.printer.calm();
        let mut events = self.handle.events();
        let mut closed = std::pin::pin!(self.view.screen.printer.closed());
        let mut has_reader = true;
        let mut ticks = ticks();
        loop {
            tokio::select! {
                biased;
                // First: a stop is shown before what it causes. Losing this branch loses nothing: the signal stays pending.
                received = self.signals.received() => {
                    if let Some(level) = self.asked(received) {
                        self.view.asked(level);
                    }
                }
                // Losing this one loses nothing: the flag stays set.
                why = &mut closed, if has_reader => {
                    has_reader = false;
                    let mut pressed = lock(&self.pressed);
                    pressed.disconnect(&self.handle, self.args, &why.to_string());
                }
                // Losing this one loses nothing: the reader's place moves only when an event is returned.
                event = events.next() => match event {
                    Some(event) => self.view.event(&event, &self.handle),
                    None => return,
                },
                // Losing this one loses nothing: the next tick is as good.
                _ = ticks.tick() => self.view.live(&self.handle),
            }
        }
    }

    /// Ends and reports the declared background jobs with the last turn: nothing outlives this program.
    pub(crate) fn end_jobs(&self, processes: &Processes, earlier: &[RunHandle]) {
        let alive = earlier.iter().chain([&self.handle]).flat_map(RunHandle::alive);
        for job in alive.filter(|label| is_job(label)) {
            self.view.screen.note(&format!("the {job} ends with this run"));
        }
        processes.end_jobs();
    }

    /// Waits for quiet, and shows what it waits for. Another signal shortens the wait to a moment. It waits
    /// for a background job only if the job was stopped.
    pub(crate) async fn quiet(&mut self, outcome: &Outcome, is_last: bool) -> Arc<Receipt> {
        const PATIENCE: Duration = Duration::from_secs(1);
        let settled = Instant::now();
        let mut ticks = ticks();
        let mut is_noted = false;
        let mut leave = None;
        while let Some(received) = self.signals.received_already() {
            match self.asked(received) {
                // The stop that ended the run was requested a moment before its end was seen.
                Some(level) => self.view.asked(level),
                None => leave = Some(Instant::now() + LAST_CAP),
            }
        }
        loop {
            tokio::select! {
                biased;
                // Losing this branch loses nothing: the signal stays pending.
                received = self.signals.received() => {
                    self.asked(received);
                    self.view.screen.printer.hurry();
                    leave.get_or_insert(Instant::now() + LAST_CAP);
                }
                // Losing this one loses nothing: quiet can be awaited again.
                quiet = self.handle.quiet() => return Arc::clone(quiet.receipt()),
                // Losing this one loses nothing: the next tick is as good.
                _ = ticks.tick() => {}
            }
            let alive = self.handle.alive();
            let are_jobs = !is_last && !alive.is_empty() && alive.iter().all(|label| is_job(label));
            // After its answer, an external agent is no longer watched.
            let has_parted = has_parted(outcome.receipt(), &alive);
            if has_parted
                || are_jobs && settled.elapsed() >= TICK
                || leave.is_some_and(|leave| Instant::now() >= leave)
            {
                let mut receipt = Receipt::clone(outcome.receipt());
                receipt.survivors = alive;
                return Arc::new(receipt);
            }
            self.view.live(&self.handle);
            if !is_noted && settled.elapsed() >= PATIENCE {
                is_noted = true;
                self.view.waits(&alive);
            }
        }
    }
}

/// Whether everything alive is work at remote agents that have answered the stop: further events do not
/// change the receipt. A remote agent whose processes are ours is alive until they exit.
fn has_parted(receipt: &Receipt, alive: &[String]) -> bool {
    let peers = receipt.calls.iter().filter_map(|call| call.remote.as_deref());
    let has_answered = |peer: &&RemoteReport| {
        peer.replied_at.is_some() && peer.may_go_on() && peer.outside == Outside::Unasked
    };
    let answered: Vec<String> = peers.filter(has_answered).map(RemoteReport::label).collect();
    !answered.is_empty() && !alive.is_empty() && alive.iter().all(|label| answered.contains(label))
}

/// Whether this is the shell tool's name for a declared background job.
fn is_job(label: &str) -> bool {
    label.starts_with("background command")
}

const TICK: Duration = Duration::from_millis(200);

fn ticks() -> Interval {
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

/// Waits until nothing of these turns is alive: the last turn also ended the jobs of earlier ones. A signal
/// ends the wait, and the end of this program ends the rest.
pub(crate) async fn gone(turns: &[RunHandle], signals: &mut Signals) {
    const PATIENCE: Duration = Duration::from_secs(7);
    let began = Instant::now();
    let mut ticks = ticks();
    while turns.iter().any(|turn| !turn.alive().is_empty()) && began.elapsed() < PATIENCE {
        tokio::select! {
            biased;
            // First: a signal ends the wait. Nothing is lost: there is no run that it could stop.
            _ = signals.next() => return,
            // Losing this one loses nothing: the next tick is as good.
            _ = ticks.tick() => {}
        }
    }
}
