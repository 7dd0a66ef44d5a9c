//! Makes lines of events: numbers them, stamps them, and knows what a line says of events before it.

use std::{collections::HashMap, future::ready, mem, sync::Arc};

use futures_core::Stream;
use futures_util::{StreamExt as _, stream};
use jiff::Timestamp;
use serde_json::json;

use super::{
    body::{RunLine, SessionLine, TEXT},
    facts::{call_ended, plain},
    line::{EventLine, LineText, TextOf},
};
use crate::{
    run::RunHandle,
    sync::clock,
    value::{
        event::{Event, EventKind, Events, Fact, StreamEvent},
        ids::{Path, RunId, SessionId},
        limits::millis,
        receipt::{ReasonReport, Receipt},
    },
};

/// The version of the lines: their field `v`.
const VERSION: u32 = 1;

/// Makes lines of JSON of events: the lines that `safepoint run --json` prints, as `docs/schema/event.json` describes them.
///
/// Each line names its session, its run and its turn, and is numbered without a gap from 0 (`seq`). One encoder makes the
/// lines of one reader: a line may depend on events before it, so the encoder gets every event, in order.
///
/// # Examples
/// ```no_run
/// # use safepoint::{Agent, event::EventEncoder};
/// # async fn print(agent: Agent) {
/// let run = agent.run("What changed last week?").start();
/// let (mut encoder, mut events) = (EventEncoder::of_run(&run.handle()), run.handle().events());
/// while let Some(event) = events.next().await {
///     if let Some(line) = encoder.event(&event) {
///         println!("{line}");
///     }
/// }
/// let outcome = run.await;
/// println!("{}", encoder.outcome(&outcome, outcome.receipt()));
/// # }
/// ```
#[derive(Debug)]
pub struct EventEncoder {
    session: SessionId,
    epoch: Option<u64>,
    seq: u64,
    pub(super) turn: TurnState,
    /// The turns of a session that may show more, apart from `turn`.
    pub(super) turns: HashMap<u64, TurnState>,
}

/// What the lines of one turn say.
#[derive(Debug, Default)]
pub(super) struct TurnState {
    pub(super) number: Option<u64>,
    pub(super) run: Option<RunId>,
    pub(super) round: u32,
    pub(super) reason: Option<ReasonReport>,
    pub(super) rounds: HashMap<Path, u32>,
}

impl TurnState {
    pub(super) fn of(number: u64, run: &RunId) -> Self {
        Self { run: Some(run.clone()), ..Self::numbered(number) }
    }

    /// A turn whose run is not known yet.
    pub(super) fn numbered(number: u64) -> Self {
        Self { number: Some(number), ..Self::default() }
    }
}

impl EventEncoder {
    /// Makes lines of this session, which lives in memory: nothing of it survives the process, and its outcomes say so.
    #[must_use]
    pub fn new(session: &SessionId) -> Self {
        let (turn, turns) = (TurnState::default(), HashMap::new());
        Self { session: session.clone(), epoch: None, seq: 0, turn, turns }
    }

    /// Makes lines of a run that belongs to no session: it is the first turn of a session that has the run's id.
    #[must_use]
    pub fn of_run(run: &RunHandle) -> Self {
        let mut encoder = Self::new(&SessionId::from(run.id().as_str()));
        encoder.begin_turn(1, run.id());
        encoder
    }

    /// The session is stored, and this is the number of its owner: the lines of the next owner count from 0 again.
    #[must_use]
    pub fn in_epoch(mut self, epoch: u64) -> Self {
        self.epoch = Some(epoch);
        self
    }

    pub(super) fn begin_epoch(&mut self, epoch: u64) {
        self.epoch = Some(epoch);
    }

    /// The events that follow are of this turn of the session (from 1), whose run this is. The encoder learns it by itself
    /// from the [events of a session](Self::session_event).
    pub fn begin_turn(&mut self, number: u64, run: &RunId) {
        self.turn = TurnState::of(number, run);
    }

    /// The line of one event. Most events have one; a few only complete what others say, and have none.
    ///
    /// An event of a turn that was not [begun](Self::begin_turn) has none either.
    pub fn event(&mut self, event: &Event) -> Option<EventLine> {
        self.turn.number?;
        self.of_kind(&event.kind).map(|line| self.number(line, event.at).of_event(event))
    }

    /// The lines of a run for a reader that has seen the event with the [id](EventLine::id) `last`; all of them where it is
    /// empty. They end where the run settles: the outcome is not one of them. It is [`catch_up`](Self::catch_up) and then
    /// [`event`](Self::event) for each event; dropping the stream does nothing to the run.
    ///
    /// # Examples
    /// ```no_run
    /// # use safepoint::{RunHandle, event::EventEncoder};
    /// use futures_util::StreamExt as _;
    ///
    /// # async fn send(run: RunHandle, last_event_id: &str) {
    /// let mut lines = EventEncoder::lines_of_run(&run, last_event_id);
    /// while let Some(line) = lines.next().await {
    ///     print!("id: {}\ndata: {line}\n\n", line.id());
    /// }
    /// # }
    /// ```
    pub fn lines_of_run(run: &RunHandle, last: &str) -> impl Stream<Item = EventLine> + Send + Unpin + use<> {
        let (mut encoder, mut events) = (Self::of_run(run), run.events());
        let first = encoder.catch_up(&mut events, last);
        stream::iter(first).chain(events.filter_map(move |event| ready(encoder.event(&event))))
    }

    /// For a reader that comes back: continues behind the event that it saw last, by the [id](Event::id) of that one, so that
    /// the lines that follow are those of a reader that was there all the time. Then `events` is read on; if deltas have been
    /// dropped since, the next event is [`Lagged`](EventKind::Lagged).
    ///
    /// Returns the line `stream_restarted`, to be sent first, where `last` is the id of another stream, such as that of a
    /// server before its restart: what the reader has shown is no part of this one, and `events` begins where it is. An empty
    /// `last` is a reader that has seen nothing.
    ///
    /// # Examples
    /// ```no_run
    /// # use safepoint::{RunHandle, event::{EventEncoder, EventLine}};
    /// /// The lines after the event `last`, which the reader has seen.
    /// async fn lines_after(last: &str, run: &RunHandle) -> Vec<EventLine> {
    ///     let (mut encoder, mut events) = (EventEncoder::of_run(run), run.events());
    ///     let mut lines = Vec::from_iter(encoder.catch_up(&mut events, last));
    ///     while let Some(event) = events.next().await {
    ///         lines.extend(encoder.event(&event));
    ///     }
    ///     lines
    /// }
    /// ```
    pub fn catch_up(&mut self, events: &mut Events, last: &str) -> Option<EventLine> {
        let Some(next) = events.behind(last) else { return self.restarted(last) };
        catch_up(events, next, |event| drop(self.event(event)));
        None
    }

    /// The line for a reader that was on another stream.
    pub(super) fn restarted(&mut self, last: &str) -> Option<EventLine> {
        let line = EventLine::of(&SessionLine::StreamRestarted {});
        (!last.is_empty()).then(|| self.number(line, clock::now()))
    }

    /// The line after this one replaces it: it says all of it, and more. For a front end that joins neighbouring lines
    /// while they wait for a slow reader.
    pub fn joined(&mut self) {
        self.seq = self.seq.saturating_sub(1);
    }

    /// The line that says how many lines were left out: the encoder did not get their events, because the reader is too
    /// slow.
    pub fn missed(&mut self, count: u64) -> EventLine {
        self.number(EventLine::of(&SessionLine::Missed { count }), clock::now())
    }

    /// The line of something that arrived after the outcome was fixed, from the receipt.
    pub fn late(&mut self, what: &str, at: Timestamp) -> EventLine {
        self.number(EventLine::of(&RunLine::Late { what }), at)
    }

    /// The line that says that nothing is alive any more, or what is.
    pub fn quiet(&mut self, receipt: &Receipt, at: Timestamp) -> EventLine {
        let (quiet, survivors) = (receipt.quiet_at, &*receipt.survivors);
        self.number(EventLine::of(&RunLine::Quiet { quiet, survivors }), at)
    }

    /// Whether the session is stored.
    pub(super) fn is_stored(&self) -> bool {
        self.epoch.is_some()
    }

    /// Gives the line what every line has.
    pub(super) fn number(&mut self, mut line: EventLine, at: Timestamp) -> EventLine {
        let run = self.turn.run.as_ref().map(RunId::as_str);
        for (name, value) in [
            ("v", json!(VERSION)),
            ("session", json!(self.session)),
            ("run", json!(run)),
            ("epoch", json!(self.epoch.unwrap_or_default())),
            ("seq", json!(self.seq)),
            ("at", json!(at.to_string())),
            ("turn", json!(self.turn.number)),
        ] {
            line.set(name, value);
        }
        self.seq += 1;
        line
    }

    pub(super) fn of_kind(&mut self, kind: &EventKind) -> Option<EventLine> {
        let round = self.turn.round;
        let line = match kind {
            EventKind::Child { path, event } => return self.of_child(path, event),
            EventKind::Fact(fact) => return self.of_fact(fact),
            EventKind::Text(text) => {
                let text = LineText::Fragment(Arc::clone(text));
                return Some(EventLine::of(&RunLine::TextDelta { round, text: TEXT }).with("text", text));
            }
            EventKind::Reasoning(text) => {
                let text = LineText::Fragment(Arc::clone(text));
                return Some(
                    EventLine::of(&RunLine::ReasoningDelta { round, text: TEXT }).with("text", text),
                );
            }
            EventKind::CallDelta { call_id, name, arguments } => {
                let text = LineText::Fragment(Arc::clone(arguments));
                let line = RunLine::CallDelta { round, call_id, name, arguments: TEXT };
                return Some(EventLine::of(&line).with("arguments", text));
            }
            EventKind::Progress { call_id, text } => {
                let text = LineText::Fragment(text.as_str().into());
                return Some(
                    EventLine::of(&RunLine::CallProgress { call_id, text: TEXT }).with("text", text),
                );
            }
            EventKind::Provider(block) => RunLine::Provider { round, wire: &block.wire, part: &block.part },
            EventKind::Retrying { failed, after, error } => {
                RunLine::ModelRetrying { round, failed: *failed, after_ms: millis(*after), error }
            }
            EventKind::Waiting { what } => RunLine::ModelWaiting { round, what },
            EventKind::FailedOver { from, to, error } => RunLine::ModelFailedOver { round, from, to, error },
            EventKind::Notice { call_id, text } => RunLine::CallNotice { call_id, text },
            EventKind::Ruled { call_id, ruled } => {
                let (name, what, permission, by) = (&*ruled.tool, &*ruled.what, ruled.permission, ruled.by);
                RunLine::ApprovalRuled { call_id, name, what, permission, by }
            }
            EventKind::Lagged { count } => {
                return Some(EventLine::of(&SessionLine::Missed { count: *count }));
            }
            EventKind::Late(what) => RunLine::Late { what },
            EventKind::Quiet(receipt) => {
                RunLine::Quiet { quiet: receipt.quiet_at, survivors: &receipt.survivors }
            }
            EventKind::CallBegun(_) | EventKind::Usage(_) => return None,
        };
        Some(EventLine::of(&line))
    }

    /// A child run's line is like the root's, with the path and the rounds of the child.
    fn of_child(&mut self, path: &Path, event: &EventKind) -> Option<EventLine> {
        let root = mem::replace(&mut self.turn.round, self.turn.rounds.get(path).copied().unwrap_or(0));
        let reason = self.turn.reason.clone();
        let line = self.of_kind(event);
        self.turn.reason = reason;
        self.turn.rounds.insert(path.clone(), mem::replace(&mut self.turn.round, root));
        let mut line = line?;
        line.set("path", json!(path));
        Some(line)
    }

    fn of_fact(&mut self, fact: &Arc<Fact>) -> Option<EventLine> {
        let line = match &**fact {
            Fact::TimeTaken { .. } => return None,
            Fact::ModelStarted { round } => {
                self.turn.round = *round;
                RunLine::ModelStarted { round: *round }
            }
            Fact::ModelEnded { whole, report, message } => {
                let (round, name, state, usage) = (report.round, &*report.model, report.state, &report.usage);
                let line =
                    RunLine::ModelEnded { round, name, status: whole.into(), state, usage, text: TEXT };
                let text = TextOf(Arc::clone(message), |message, f| {
                    message.texts().try_for_each(|text| f.write_str(text))
                });
                return Some(EventLine::of(&line).with("text", text.into()));
            }
            Fact::CallEnded { report, extent, .. } => return Some(call_ended(fact, report, extent)),
            Fact::Settled { receipt, .. } => {
                self.turn.reason = receipt.stop.as_ref().map(|stop| stop.reason.clone());
                RunLine::Settled { status: receipt.ending }
            }
            fact => return Some(EventLine::of(&plain(fact)?)),
        };
        Some(EventLine::of(&line))
    }
}

/// Reads up to the event `seq`. A gap before `seq` is passed over too; of a gap that reaches beyond it, the next event reports
/// the rest.
pub(super) fn catch_up<K: StreamEvent>(events: &mut Events<K>, seq: u64, mut each: impl FnMut(&Event<K>)) {
    while events.position() < seq
        && let Some(event) = events.now()
    {
        each(&event);
    }
    events.rewind_to(seq);
}
