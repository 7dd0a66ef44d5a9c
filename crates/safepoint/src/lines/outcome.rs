//! The last line of a turn.

use std::fmt;

use super::{
    body::{ErrorLine, PersistedLine, ReasonLine, ReceiptLine, RunLine, TEXT, TEXT_OR_NULL},
    encoder::EventEncoder,
    line::{EventLine, TextOf},
};
use crate::{
    run::outcome::{LastWords, Outcome, Persisted},
    sync::clock,
    value::receipt::{Ending, Receipt},
};

impl EventEncoder {
    /// The last line of a turn, from its outcome and its receipt: the [outcome's](Outcome::receipt), or the later one of
    /// [`RunHandle::quiet`](crate::RunHandle::quiet), which also says what was still alive.
    ///
    /// The encoder must have seen the turn's events: the line names the reason of a stop by the last of them.
    pub fn outcome<T>(&mut self, outcome: &Outcome<T>, receipt: &Receipt) -> EventLine {
        let recorded = self.turn.reason.take();
        let error = match outcome {
            Outcome::Failed(error) => Some(error),
            Outcome::Done(_) | Outcome::Stopped(_) | Outcome::Suspended(_) => None,
        };
        let message = error.map(ToString::to_string).unwrap_or_default();
        let own = |code, text| Some(ReasonLine::Own { code, actor: "engine", text });
        let reason = match outcome.ending() {
            Ending::Done => own("natural", ""),
            Ending::Failed => own(error.map_or("", |error| error.code()), &message),
            Ending::Stopped | Ending::Suspended => recorded.as_ref().map(ReasonLine::Stop),
        };
        let persisted = match outcome.persisted() {
            // A log in memory does not survive the process, and is not said to.
            Persisted::Yes => PersistedLine::Word(if self.is_stored() { "yes" } else { "no" }),
            Persisted::No(error) => PersistedLine::Error { no: error },
            Persisted::Unknown => PersistedLine::Word("unknown"),
        };
        let error = error.map(|error| ErrorLine {
            code: error.code(),
            message: message.clone(),
            hint: error.hint(),
            kind: error.report().named,
            status: error.report().status,
            retry_after_ms: error.report().retry_after_ms,
        });
        let line = EventLine::of(&RunLine::Outcome {
            status: outcome.ending(),
            reason,
            answer: TEXT_OR_NULL,
            partial_text: TEXT,
            usage: outcome.usage(),
            persisted,
            error,
            receipt: ReceiptLine::of(receipt),
        });
        let line = line.with("partial_text", TextOf(outcome.ended().said.clone(), write).into());
        let line = match outcome {
            Outcome::Done(answer) => line.with("answer", TextOf(answer.said(), write).into()),
            Outcome::Stopped(_) | Outcome::Failed(_) | Outcome::Suspended(_) => line,
        };
        self.number(line, clock::now())
    }
}

fn write(said: &LastWords, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str(said.as_str())
}
