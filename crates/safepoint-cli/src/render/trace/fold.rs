//! Folds what was recorded into steps.
//!
//! **Invariants**: every record becomes a step or the end of one; one that cannot be read becomes a step that says so.

use std::collections::HashMap;

use jiff::Timestamp;
use safepoint::{
    Usage,
    ids::{Path, SessionId, TurnId},
    raw::{JournalFact, JournalStep, StoredStop, read_journal, store::StopRow},
    receipt::ReasonReport,
    session::ItemOutcome,
    store::{Error, SessionRow, Store},
};
use serde_json::{Value, json};

use super::{
    holder,
    timeline::{Kind, Lane, Step, Timeline, Tone, Turn, state_of},
};
use crate::render::text::said;

/// Reads a session's whole journal.
///
/// # Errors
/// The store's; a damaged record is a step of the timeline.
pub(crate) async fn read(store: &dyn Store, session: &SessionId) -> Result<Timeline, Error> {
    let row = store.open(session).await?;
    let mut builder = TimelineBuilder::default();
    read_journal(store, session, |past| builder.take(past)).await?;
    // A stop that was requested through the store alone is in no record until a turn has ended by it. Of a stop that is
    // stored for a turn and for its session, the session's is shown.
    store.stops(session, 0).await?.iter().rev().for_each(|stop| builder.asked_of_the_store(stop));
    Ok(Timeline { holders: holder::all(store, session).await?, ..builder.story(row) })
}

/// What has been read so far.
#[derive(Default)]
pub(crate) struct TimelineBuilder {
    turns: Vec<Turn>,
    runs: Vec<Lane>,
    lanes: HashMap<(TurnId, Path), usize>,
    pub(crate) steps: Vec<Step>,
    /// Steps that have no end yet.
    open: HashMap<Open, usize>,
    /// When the last record was written.
    last: Option<Timestamp>,
}

/// Where and when something was recorded.
pub(crate) struct Moment {
    pub(crate) turn: TurnId,
    pub(crate) path: Path,
    pub(crate) position: u64,
    pub(crate) at: Option<Timestamp>,
}

/// Two stops that say the same within this are one that was asked.
pub(super) const SAME_ASK: jiff::SignedDuration = jiff::SignedDuration::from_secs(1);

/// What an end belongs to. Exhaustive: what lasts.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) enum Open {
    Attempt(Path),
    Model(Path),
    Summary(Path),
    Call(Path, String),
    Approval(String),
}

impl TimelineBuilder {
    pub(crate) fn take(&mut self, past: JournalStep) {
        let JournalStep { position, at, what } = past;
        let at = at.or(self.last);
        self.last = at;
        match what {
            Err(damage) => {
                let turn = self.turns.last().map(|turn| turn.id);
                let step = self.mark(Kind::Damaged, turn, position, at);
                (step.title, step.said, step.tone) =
                    ("unreadable record".into(), damage.to_string(), Tone::Bad);
            }
            Ok(JournalFact::Begun { from, turn, .. }) => {
                self.mark(Kind::Other, None, position, at).title = format!("continues {from} after {turn}");
            }
            Ok(JournalFact::Planned { turn, .. }) => self.begin(turn, at),
            Ok(JournalFact::Fact { turn, path, fact, grown }) => {
                self.begin(turn, at);
                if let Some(asked) = grown.iter().rev().find_map(|entry| said(entry))
                    && let Some(turn) = self.turn(turn)
                    && turn.asked.is_empty()
                {
                    asked.clone_into(&mut turn.asked);
                }
                self.fact(Moment { turn, path, position, at }, &fact);
            }
            Ok(JournalFact::Ended { turn, fate }) => self.ended(turn, fate, position, at),
            Ok(JournalFact::Forgotten { turn }) => {
                self.ended(turn, ItemOutcome::RolledBack(turn), position, at);
            }
            Ok(JournalFact::GivenUp { turn }) => {
                self.mark(Kind::Other, None, position, at).title =
                    format!("{turn} is abandoned and cannot be resumed");
            }
            Ok(JournalFact::Quiet { turn, survivors }) => self.quiet(turn, &survivors, position, at),
            // What it says was said before.
            Ok(JournalFact::BegunMore { .. } | JournalFact::Checkpoint) => {}
            Ok(other) => {
                self.mark(Kind::Other, None, position, at).title = format!("{other:?}");
            }
        }
    }

    /// A stop that was written to the store; shown if no run recorded it.
    pub(crate) fn asked_of_the_store(&mut self, stop: &StopRow) {
        let (of, reason) = match StoredStop::from_bytes(&stop.bytes) {
            Ok(StoredStop::Session(asked)) => ("the session", asked.reason().map(ReasonReport::from)),
            Ok(StoredStop::Turn(_, request)) => ("the turn", request.reason().map(ReasonReport::from)),
            Ok(StoredStop::Item(_, request, _)) => ("an item", request.reason().map(ReasonReport::from)),
            Ok(_) | Err(_) => ("what cannot be read", None),
        };
        let reported = json!(reason);
        // A stop of a turn and its session is stored as two, a moment apart.
        let is_same = |shown: &Value| ["code", "actor", "text"].iter().all(|key| shown[key] == reported[key]);
        let is_close = |from: Timestamp| from.duration_since(stop.at).abs() < SAME_ASK;
        let is_shown = |step: &Step| match (&reason, step.fields.get("reason")) {
            (Some(_), Some(shown)) => *shown == reported || is_same(shown) && step.from.is_some_and(is_close),
            (Some(_), None) => false,
            (None, _) => stop.seen && step.from.is_some_and(|from| from >= stop.at),
        };
        if self.steps.iter().any(|step| step.kind == Kind::StopAsked && is_shown(step)) {
            return;
        }
        let before = self.turns.iter().rfind(|turn| turn.from.is_none_or(|from| from <= stop.at));
        let turn = before.or(self.turns.first()).map(|turn| turn.id);
        let earlier = self.steps.iter().filter(|step| step.from.is_some_and(|from| from <= stop.at));
        let position = earlier.map(|step| step.position).max().unwrap_or_default();
        let step = self.mark(Kind::StopAsked, turn, position, Some(stop.at));
        let by = reason.as_ref().map(|reason| format!("; {}", why(reason))).unwrap_or_default();
        let said = format!("of {of}, through the store{by}");
        (step.title, step.said, step.tone) = ("stop requested".into(), said, Tone::Stopped);
        step.fields.insert("reason".into(), reported);
        step.fields.insert("seen".into(), json!(stop.seen));
    }

    /// The story, once everything was taken.
    pub(crate) fn story(mut self, row: SessionRow) -> Timeline {
        for step in &mut self.steps {
            if step.kind.is_span() && step.to.is_none() && step.said.is_empty() {
                step.tone = Tone::Open;
                "no recorded end".clone_into(&mut step.said);
            }
        }
        // The end of a model call reports its retries, which began before it.
        self.steps.sort_by_key(|step| (step.turn, step.from));
        let state = state_of(&row).to_owned();
        let mut story = Timeline {
            row,
            state,
            turns: self.turns,
            runs: self.runs,
            steps: self.steps,
            holders: Vec::new(),
        };
        if story.runs.is_empty() {
            story.runs.push(Lane::default());
        }
        story
    }

    fn begin(&mut self, id: TurnId, at: Option<Timestamp>) {
        if self.turn(id).is_none() {
            let (asked, usage) = (String::new(), Usage::default());
            self.turns.push(Turn { id, asked, fate: None, from: at, to: at, usage, rounds: 0 });
        }
        if let Some(turn) = self.turn(id) {
            turn.to = at.max(turn.to);
        }
    }

    /// Only the last ones are still written to.
    pub(crate) fn turn(&mut self, id: TurnId) -> Option<&mut Turn> {
        self.turns.iter_mut().rev().find(|turn| turn.id == id)
    }

    fn ended(&mut self, turn: TurnId, fate: ItemOutcome, position: u64, at: Option<Timestamp>) {
        self.begin(turn, at);
        if let Some(turn) = self.turn(turn) {
            turn.fate = Some(fate);
        }
        let step = self.mark(Kind::TurnEnded, Some(turn), position, at);
        step.title = turn.to_string();
        step.said = super::timeline::standing(Some(fate)).to_owned();
        step.tone = match fate {
            ItemOutcome::Completed(_) => Tone::Good,
            ItemOutcome::Failed(_) => Tone::Bad,
            ItemOutcome::Interrupted(_) | ItemOutcome::Preempted(_) | ItemOutcome::RolledBack(_) => {
                Tone::Stopped
            }
            _ => Tone::Plain,
        };
        step.fields.insert("fate".into(), json!(fate));
    }

    fn quiet(&mut self, turn: TurnId, survivors: &[String], position: u64, at: Option<Timestamp>) {
        let step = self.mark(Kind::Quiet, Some(turn), position, at);
        (step.title, step.said, step.tone) = match survivors {
            [] => ("quiet".into(), "nothing is running".into(), Tone::Good),
            alive => ("not quiet".into(), format!("still running: {}", alive.join(", ")), Tone::Bad),
        };
        step.fields.insert("survivors".into(), json!(survivors));
    }

    /// Adds a step without more; its place in the tree is the root's.
    pub(crate) fn mark(
        &mut self,
        kind: Kind,
        turn: Option<TurnId>,
        position: u64,
        from: Option<Timestamp>,
    ) -> &mut Step {
        let at = self.steps.len();
        self.steps.push(Step { position, turn, kind, from, ..Step::default() });
        &mut self.steps[at]
    }

    /// The same, in its run's place.
    pub(crate) fn step(&mut self, kind: Kind, moment: &Moment) -> &mut Step {
        let run = self.lane(moment.turn, &moment.path, None);
        let step = self.mark(kind, Some(moment.turn), moment.position, moment.at);
        step.run = run;
        step
    }

    /// Adds a step whose end will be found under `open`.
    pub(crate) fn begin_step(&mut self, open: Open, kind: Kind, moment: &Moment) -> &mut Step {
        self.open.insert(open, self.steps.len());
        self.step(kind, moment)
    }

    /// The place of the step that was begun as this, and is over now.
    pub(crate) fn end_step(&mut self, open: &Open) -> Option<usize> {
        self.open.remove(open)
    }

    /// Whether something was begun as this.
    pub(crate) fn is_open(&self, open: &Open) -> bool {
        self.open.contains_key(open)
    }

    /// What a new attempt finds open was cut by the end of a process.
    pub(crate) fn forget_open(&mut self, path: &Path) {
        self.open.retain(|open, _| match open {
            Open::Attempt(of) | Open::Model(of) | Open::Summary(of) | Open::Call(of, _) => of != path,
            Open::Approval(_) => true,
        });
    }

    /// The place of a run, made if need be under the name of its agent.
    pub(crate) fn lane(&mut self, turn: TurnId, path: &Path, name: Option<&str>) -> usize {
        if self.runs.is_empty() {
            self.runs.push(Lane::default());
        }
        if path.is_root() {
            return 0;
        }
        if let Some(lane) = self.lanes.get(&(turn, path.clone())) {
            return *lane;
        }
        let name = name.unwrap_or("child");
        let same = self.lanes.iter().filter(|((of, _), lane)| {
            let known = &self.runs[**lane].name;
            *of == turn
                && (known == name || known.strip_prefix(name).is_some_and(|rest| rest.starts_with('#')))
        });
        let name = match same.count() {
            0 => name.to_owned(),
            others => format!("{name}#{}", others + 1),
        };
        let path_words = path.calls().iter().map(|call| call.as_str().to_owned()).collect();
        self.runs.push(Lane { name, path: path_words });
        self.lanes.insert((turn, path.clone()), self.runs.len() - 1);
        self.runs.len() - 1
    }
}

/// Who asked for a stop, and why.
pub(super) fn why(ReasonReport { code, actor, text, .. }: &ReasonReport) -> String {
    let text = if text.is_empty() { String::new() } else { format!(": {text}") };
    format!("{code} ({actor}){text}")
}
