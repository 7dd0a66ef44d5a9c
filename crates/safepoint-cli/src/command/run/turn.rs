//! One turn of a run while it is watched: its events, what signals ask of it, and the wait until it is quiet.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use safepoint::{
    Outcome, RunHandle,
    receipt::{Outside, Receipt, RemoteReport},
};
use safepoint_tools::process::Processes;
use tokio::time::{Interval, MissedTickBehavior, interval};

use crate::{
    args::RunArgs,
    render::turn::View,
    signals::{Answered, Answers, Got, Heard, LAST_CAP, Pressed, Signals, Strength},
};

/// One turn while it is watched.
pub(crate) struct Turn<'a> {
    pub(crate) handle: RunHandle,
    pub(crate) signals: &'a mut Signals,
    /// Shared with the thread that hears signals, which asks what they ask.
    pub(crate) pressed: Arc<Mutex<Pressed>>,
    pub(crate) view: &'a mut View,
    pub(crate) args: &'a RunArgs,
}

impl Turn<'_> {
    /// A signal that came before there was a turn is for this one. A session that heard it has asked it already, and
    /// to ask again changes nothing; where there is no session, nobody else has.
    pub(crate) fn heard_before(&mut self, got: Got) {
        let mut pressed = self.pressed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(strength) = pressed.ask(got, &self.handle, self.args) {
            self.view.asked(strength);
        }
        pressed.first = Some(got);
    }

    /// From now on a signal is asked of this turn as it is heard.
    pub(crate) fn answers(&self) -> Answers {
        let (pressed, handle, args) = (Arc::clone(&self.pressed), self.handle.clone(), self.args.clone());
        self.signals.answer(move |got| {
            pressed.lock().unwrap_or_else(PoisonError::into_inner).ask(got, &handle, &args)
        })
    }

    /// What a signal asked; one that came before there was a deputy asks it now.
    fn asked(&self, heard: Heard) -> Option<Strength> {
        match heard.answered {
            Answered::With(asked) => asked,
            Answered::NotYet => {
                let mut pressed = self.pressed.lock().unwrap_or_else(PoisonError::into_inner);
                pressed.ask(heard.got, &self.handle, self.args)
            }
        }
    }

    /// What was asked of it because of signals.
    pub(crate) fn pressed(&self) -> Pressed {
        *self.pressed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows events until the run has settled; signals and a lost reader are acted on at once.
    pub(crate) async fn follow(&mut self) {
        self.view.begins();
        let mut events = self.handle.events();
        let mut closed = std::pin::pin!(self.view.closed());
        let mut reader = Reader::There;
        let mut ticks = ticks();
        loop {
            tokio::select! {
                biased;
                // Losing this branch loses nothing: the signal stays pending.
                heard = self.signals.heard() => {
                    if let Some(strength) = self.asked(heard) {
                        self.view.asked(strength);
                    }
                }
                // Losing this one loses nothing: the flag stays set.
                why = &mut closed, if reader == Reader::There => {
                    reader = Reader::Gone;
                    let mut pressed = self.pressed.lock().unwrap_or_else(PoisonError::into_inner);
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

    /// Nothing outlives this program: a declared background job ends with the last turn, and that is said.
    pub(crate) fn end_jobs(&self, processes: &Processes, earlier: &[RunHandle]) {
        let alive = earlier.iter().chain([&self.handle]).flat_map(RunHandle::alive);
        for job in alive.filter(|label| is_job(label)) {
            self.view.note(&format!("the {job} ends with this run"));
        }
        processes.end_jobs();
    }

    /// Waits for quiet, and says what for. After another signal it waits only a moment longer; a background job is
    /// waited for only where it was told to end.
    pub(crate) async fn quiet(&mut self, outcome: &Outcome, is_last: bool) -> Arc<Receipt> {
        const PATIENCE: Duration = Duration::from_secs(1);
        let settled = Instant::now();
        let mut ticks = ticks();
        let mut told = Told::No;
        let mut leave = None;
        while let Some(heard) = self.signals.heard_already() {
            match self.asked(heard) {
                // What ended the run was asked a moment before its end was seen.
                Some(strength) => self.view.asked(strength),
                None => leave = Some(Instant::now() + LAST_CAP),
            }
        }
        loop {
            tokio::select! {
                biased;
                // Losing this branch loses nothing: the signal stays pending.
                heard = self.signals.heard() => {
                    self.asked(heard);
                    self.view.hurry();
                    leave.get_or_insert(Instant::now() + LAST_CAP);
                }
                // Losing this one loses nothing: quiet can be awaited again.
                quiet = self.handle.quiet() => return Arc::clone(quiet.receipt()),
                // Losing this one loses nothing: the next tick is as good.
                _ = ticks.tick() => {}
            }
            let alive = self.handle.alive();
            let are_jobs = !is_last && !alive.is_empty() && alive.iter().all(|label| is_job(label));
            // What somebody else's agent does after it has answered is its own affair.
            let has_parted = has_parted(outcome.receipt(), &alive);
            if has_parted
                || are_jobs && settled.elapsed() >= TICK
                || leave.is_some_and(|leave| Instant::now() >= leave)
            {
                return Arc::new(Receipt { survivors: alive, ..Receipt::clone(outcome.receipt()) });
            }
            self.view.live(&self.handle);
            if told == Told::No && settled.elapsed() >= PATIENCE {
                told = Told::Yes;
                self.view.waits(&alive);
            }
        }
    }
}

/// Whether it was said what a turn that has ended waits for. Exhaustive: not yet, or it was.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Told {
    No,
    Yes,
}

/// Whether all that is alive is work at peers elsewhere that have answered the stop: nothing that is heard of it changes the
/// account. Of a peer whose processes are ours their end does.
fn has_parted(receipt: &Receipt, alive: &[String]) -> bool {
    let peers = receipt.calls.iter().filter_map(|call| call.remote.as_deref());
    let has_answered = |peer: &&RemoteReport| {
        peer.heard_at.is_some() && peer.may_go_on() && peer.outside == Outside::Unasked
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

/// Whether stdout is still read. Exhaustive: it is or it is not.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reader {
    There,
    Gone,
}

/// Waits until nothing of these turns is alive: the jobs of an earlier one were told to end with the last. A signal ends
/// the wait, and the end of this program ends the rest.
pub(crate) async fn gone(turns: &[RunHandle], signals: &mut Signals) {
    const PATIENCE: Duration = Duration::from_secs(7);
    let began = Instant::now();
    let mut ticks = ticks();
    while turns.iter().any(|turn| !turn.alive().is_empty()) && began.elapsed() < PATIENCE {
        tokio::select! {
            biased;
            // Nothing is lost: there is no run that it could stop.
            _ = signals.next() => return,
            _ = ticks.tick() => {}
        }
    }
}
