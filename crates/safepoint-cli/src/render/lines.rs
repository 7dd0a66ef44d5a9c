//! The lines of `--json` of a run: those of the engine's encoder, without what was left out for a slow reader.

use jiff::Timestamp;
use safepoint::{
    Outcome, Receipt,
    event::{Event, EventEncoder, EventKind, EventLine},
    ids::{RunId, SessionId},
};
use serde_json::json;

use crate::{output::JsonLine, render::hints};

/// Makes the lines of one session, and counts what it leaves out.
pub(crate) struct Lines {
    encoder: EventEncoder,
    /// Events without a line, because the reader is too slow.
    missed: u64,
}

impl Lines {
    /// Lines of this session, which is stored and in this epoch, or lives in memory.
    pub(crate) fn new(session: &SessionId, epoch: Option<u64>) -> Self {
        let encoder = EventEncoder::new(session);
        let encoder = match epoch {
            Some(epoch) => encoder.in_epoch(epoch),
            None => encoder,
        };
        Self { encoder, missed: 0 }
    }

    pub(crate) fn turn(&mut self, number: u64, run: &RunId) {
        self.encoder.begin_turn(number, run);
    }

    /// The line of one event: most have one, some have none. Arguments have none while they arrive: the call has them all.
    pub(crate) fn event(&mut self, event: &Event) -> Option<JsonLine> {
        if is_of_arguments(&event.kind) {
            return None;
        }
        self.encoder.event(event).map(Into::into)
    }

    /// The line that was made last says more of the one before it, and is no line by itself.
    pub(crate) fn joined(&mut self) {
        self.encoder.joined();
    }

    /// Makes no line of this event, whose text is repeated at its end.
    pub(crate) fn pass_over(&mut self) {
        self.missed += 1;
    }

    /// The line that says how many were passed over, if there were any.
    pub(crate) fn missed(&mut self) -> Option<JsonLine> {
        let count = std::mem::take(&mut self.missed);
        (count > 0).then(|| self.encoder.missed(count).into())
    }

    /// The line of something that came after the turn's end.
    pub(crate) fn late(&mut self, what: &str, at: Timestamp) -> JsonLine {
        self.encoder.late(what, at).into()
    }

    /// The line that says what is alive after the turn's end.
    pub(crate) fn quiet(&mut self, receipt: &Receipt, at: Timestamp) -> JsonLine {
        self.encoder.quiet(receipt, at).into()
    }

    /// The last line of a turn: the hint names flags of this command line.
    pub(crate) fn outcome(&mut self, outcome: &Outcome, receipt: &Receipt) -> JsonLine {
        let mut line: JsonLine = EventLine::into(self.encoder.outcome(outcome, receipt));
        if let Outcome::Failed(error) = outcome
            && let Some(hint) = error.hint()
        {
            line.fields()["error"]["hint"] = json!(hints::here(error.code(), hint));
        }
        line
    }
}

fn is_of_arguments(kind: &EventKind) -> bool {
    match kind {
        EventKind::Child { event, .. } => is_of_arguments(event),
        kind => matches!(kind, EventKind::CallDelta { .. }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S11.4: joined lines, and events without a line, leave no gap in what a reader gets.
    #[test]
    fn what_is_joined_or_passed_over_leaves_no_gap() {
        let mut lines = Lines::new(&SessionId::from("ses_1"), None);
        lines.turn(1, &RunId::from("run_1"));
        let seq = |mut line: JsonLine| line.fields()["seq"].clone();
        let text = |lines: &mut Lines| {
            let event = Event::new(0, Timestamp::now(), EventKind::Text("a".into()));
            seq(lines.event(&event).unwrap())
        };
        assert_eq!(text(&mut lines), 0);
        assert_eq!(text(&mut lines), 1);
        lines.joined();
        assert_eq!(text(&mut lines), 1);
        lines.pass_over();
        lines.pass_over();
        let missed = lines.missed().unwrap().fields().take();
        assert_eq!((&missed["count"], &missed["seq"]), (&json!(2), &json!(2)));
        assert!(lines.missed().is_none());
        assert_eq!(text(&mut lines), 3);
    }

    /// S11.4: the arguments of a call that arrives are lines of an encoder, and none of `--json`.
    #[test]
    fn arguments_that_arrive_are_no_line() {
        let mut lines = Lines::new(&SessionId::from("ses_1"), None);
        lines.turn(1, &RunId::from("run_1"));
        let kind = EventKind::CallDelta { call_id: "call_1".into(), name: "a".into(), arguments: "{".into() };
        assert!(lines.event(&Event::new(0, Timestamp::now(), kind)).is_none());
        let text = Event::new(1, Timestamp::now(), EventKind::Text("a".into()));
        assert_eq!(lines.event(&text).unwrap().fields()["seq"], 0);
    }
}
