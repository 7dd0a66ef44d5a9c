//! How a chat is ended: by its person, by the terminal's going away, or by a signal.
//!
//! **Invariants**: the signal thread makes the stop request of a signal, once; the loop only records it.

use std::time::{Duration, Instant};

use safepoint::{
    Reason, SessionHandle,
    session::{ExitReason, SessionStop},
};
use safepoint_tools::process::Processes;

use super::{
    driver::{After, Driver},
    later::Later,
    lent::Lent,
};
use crate::{
    exit::{self, code},
    render::chat::state::{Leave, Tone},
    signals::{Answered, Answers, LAST_CAP, ReceivedSignal, Signal, Signals, StopLevel},
};

fn at_once() -> SessionStop {
    // What is left after that, the guard ends with this program.
    within(LAST_CAP.mul_f64(0.75))
}

fn within(cap: Duration) -> SessionStop {
    SessionStop::now().cleanup_cap(cap).with_reason(Reason::user("at the terminal"))
}

impl Driver {
    /// Stops the session on the signal thread, also while the screen is being drawn (S12.5).
    pub(crate) fn answers(
        signals: &Signals,
        session: &SessionHandle<String>,
        processes: &Processes,
        lent: &Lent,
    ) -> Answers {
        let (session, processes) = (session.clone(), processes.clone());
        let lent = lent.clone();
        signals.answer(move |got| {
            // A Ctrl-C is for the program that has the terminal.
            if got == Signal::Interrupt && lent.takes_interrupt() {
                return None;
            }
            processes.end_jobs();
            drop(session.stop(at_once()));
            Some(StopLevel::Now)
        })
    }

    /// The person goes: what they said and no turn has is not sent. What others have pushed waits on.
    pub(crate) fn leave(&mut self, leave: Leave) {
        let code = if leave == Leave::AtOnce { 130 } else { 0 };
        let own = self.host.waiting_here();
        // The session's end must not be there before the withdrawal. A user who leaves at once does not wait
        // for a store: what could not be withdrawn is shown as waiting.
        if leave == Leave::AtOnce && self.host.session.current_turn().is_some() {
            self.quit(leave, code);
            self.take_back(own, |_note| Later::Left);
        } else {
            self.take_back(own, |_note| Later::Left);
            self.quit(leave, code);
        }
    }

    /// Ends the session; at once means within a second, whatever is alive.
    pub(crate) fn quit(&mut self, leave: Leave, code: u8) {
        self.processes.end_jobs();
        self.stop_own();
        drop(self.host.session.stop(match leave {
            Leave::Tidily => within(self.times.cleanup_cap),
            Leave::AtOnce => at_once(),
        }));
        self.quits(leave, code, Instant::now());
    }

    /// It was asked to end, at this moment.
    fn quits(&mut self, leave: Leave, code: u8, asked: Instant) {
        self.state.leaving = Some(leave);
        self.code = self.code.max(code);
        if leave == Leave::AtOnce {
            self.go.get_or_insert(asked + LAST_CAP);
        }
    }

    /// Records the stop request of a signal before its consequences are shown.
    pub(crate) fn take_signals(&mut self, signals: &mut Signals) {
        while let Some(received) = signals.received_already() {
            self.signalled(received);
        }
    }

    pub(crate) fn signalled(&mut self, received: ReceivedSignal) {
        let number = match received.got {
            Signal::Interrupt | Signal::Terminate => received.got.exit_code(),
            Signal::Hangup => code::HUNG_UP,
        };
        match received.answered {
            Answered::With(None) => {}
            Answered::With(Some(_)) => self.quits(Leave::AtOnce, number, received.at),
            Answered::NotYet if received.got == Signal::Interrupt && self.desk.lent.takes_interrupt() => {}
            Answered::NotYet => self.quit(Leave::AtOnce, number),
        }
    }

    /// What is left to say goes up, the pane goes away.
    pub(super) async fn end(mut self) -> anyhow::Result<After> {
        self.desk.lent.end();
        self.end_own().await;
        self.state.end_text();
        let mut typed = self.state.input.take();
        if let Some(next) = self.next.as_mut().filter(|next| next.typed.is_empty()) {
            // What was begun while this one was left is there in the next one.
            next.typed = std::mem::take(&mut typed);
        }
        let back = self.state.handed.take();
        for text in back.into_iter().chain([typed]).filter(|text| !text.trim().is_empty()) {
            self.state.tell(Tone::Aside, &format!("not sent: {text}"));
        }
        if let Some(exit) = self.host.session.is_done().then(|| self.host.session.done())
            && let ExitReason::Failed(error) = exit.await.reason()
        {
            self.state.tell(Tone::Bad, &format!("the session failed: {}", error.message));
            self.code = self.code.max(1);
        } else if self.state.leaving.is_none() {
            self.code = code::STOPPED;
        }
        if let Some(farewell) = self.state.farewell().filter(|_| self.next.is_none()) {
            self.state.tell(Tone::Aside, &farewell);
        }
        let last = self.last_frame();
        self.terminal.leave(last);
        Ok(match self.next {
            Some(next) => After::Next(Box::new(next)),
            None => After::Over(exit::with(self.code)),
        })
    }
}
