//! Makes lines of events: numbers them, stamps them, and knows what a line says of events before it.

use std::{
    collections::HashMap,
    mem,
    sync::Arc,
};

use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    body::{
        AnswerLine, ClosedBy, EscalatedBy, MessageStatus, ModeName, RunLine, SessionLine, Shortened, SteerLine,
        TEXT,
    },
    line::{EventLine, LineText, TextOf},
};
use crate::{
    run::RunHandle,
    value::{
        event::{
            Completion, Event, EventKind, Events, Fact, OutputExtent, RecordedSteer, Resolution, StreamEvent,
        },
        history::Omission,
        ids::{Path, RunId, SessionId},
        limits::millis,
        receipt::{CallReport, ReasonReport, Receipt, RequestReport},
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
        Self { number: Some(number), run: Some(run.clone()), ..Self::default() }
    }
}

impl EventEncoder {
    /// Makes lines of this session, which lives in memory: nothing of it survives the process, and its outcomes say so.
    #[must_use]
    pub fn new(session: &SessionId) -> Self {
        let (turn, turns) = (TurnState::default(), HashMap::new());
        Self { session: session.clone(), epoch: None, seq: 0, turn, turns }
    }

    /// Makes lines of a run that belongs to no session: it is the first turn of a session of its own, which has the run's id.
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
        self.of_kind(&event.kind).map(|body| self.number(body, event.at))
    }

    /// Reads `events` up to the event of this number, without its line, so that the lines after it are those of a reader
    /// that was there from the beginning: for a reader that comes back and has seen the events before `seq`. Then
    /// `events` is read on; if deltas have been dropped since, the next event is
    /// [`Lagged`](EventKind::Lagged).
    ///
    /// # Examples
    /// ```no_run
    /// # use safepoint::{RunHandle, event::{EventEncoder, EventLine}};
    /// /// The lines after the event `last`, which the reader has seen.
    /// async fn lines_after(last: u64, run: &RunHandle) -> Vec<EventLine> {
    ///     let (mut encoder, mut events) = (EventEncoder::of_run(run), run.events());
    ///     encoder.catch_up(&mut events, last + 1);
    ///     let mut lines = Vec::new();
    ///     while let Some(event) = events.next().await {
    ///         lines.extend(encoder.event(&event));
    ///     }
    ///     lines
    /// }
    /// ```
    pub fn catch_up(&mut self, events: &mut Events, seq: u64) {
        catch_up(events, seq, |event| drop(self.event(event)));
    }

    /// The line after this one replaces it: it says all of it, and more. For a front end that joins neighbouring lines
    /// while they wait for a slow reader.
    pub fn joined(&mut self) {
        self.seq = self.seq.saturating_sub(1);
    }

    /// The line that says that so many lines were left out, whose events the encoder did not get because their reader is
    /// too slow.
    pub fn missed(&mut self, count: u64) -> EventLine {
        let body = session_body(&SessionLine::Missed { count });
        self.number(body, Timestamp::now())
    }

    /// The line of something that arrived after the outcome was fixed, from the receipt.
    pub fn late(&mut self, what: &str, at: Timestamp) -> EventLine {
        self.number(body(&RunLine::Late { what }), at)
    }

    /// The line that says that nothing is alive any more, or what is.
    pub fn quiet(&mut self, receipt: &Receipt, at: Timestamp) -> EventLine {
        let (quiet, survivors) = (receipt.quiet_at, &*receipt.survivors);
        self.number(body(&RunLine::Quiet { quiet, survivors }), at)
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
                return Some(body(&RunLine::TextDelta { round, text: TEXT }).with("text", text));
            }
            EventKind::Reasoning(text) => {
                let text = LineText::Fragment(Arc::clone(text));
                return Some(body(&RunLine::ReasoningDelta { round, text: TEXT }).with("text", text));
            }
            EventKind::CallDelta { call_id, name, arguments } => {
                let text = LineText::Fragment(Arc::clone(arguments));
                let line = RunLine::CallDelta { round, call_id, name, arguments: TEXT };
                return Some(body(&line).with("arguments", text));
            }
            EventKind::Progress { call_id, text } => {
                let text = LineText::Fragment(text.as_str().into());
                return Some(body(&RunLine::CallProgress { call_id, text: TEXT }).with("text", text));
            }
            EventKind::Retrying { failed, after, error } => {
                RunLine::ModelRetrying { round, failed: *failed, after_ms: millis(*after), error }
            }
            EventKind::FailedOver { from, to, error } => RunLine::ModelFailedOver { round, from, to, error },
            EventKind::Notice { call_id, text } => RunLine::CallNotice { call_id, text },
            EventKind::Ruled { call_id, ruled } => {
                let (name, what, permission, by) = (&*ruled.tool, &*ruled.what, ruled.permission, ruled.by);
                RunLine::ApprovalRuled { call_id, name, what, permission, by }
            }
            EventKind::Lagged { count } => return Some(session_body(&SessionLine::Missed { count: *count })),
            EventKind::Late(what) => RunLine::Late { what },
            EventKind::Quiet(receipt) => {
                RunLine::Quiet { quiet: receipt.quiet_at, survivors: &receipt.survivors }
            }
            EventKind::CallBegun(_) | EventKind::Usage(_) => return None,
        };
        Some(body(&line))
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
                let line = RunLine::ModelEnded { round, name, status: whole.into(), state, usage, text: TEXT };
                let text = TextOf(Arc::clone(message), |message, f| {
                    message.texts().try_for_each(|text| f.write_str(text))
                });
                return Some(body(&line).with("text", text.into()));
            }
            Fact::CallEnded { report, extent, .. } => return Some(call_ended(fact, report, extent)),
            Fact::Settled { receipt, .. } => {
                self.turn.reason = receipt.stop.as_ref().map(|stop| stop.reason.clone());
                RunLine::Settled { status: receipt.ending }
            }
            fact => return Some(body(&plain(fact)?)),
        };
        Some(body(&line))
    }
}

/// The line of a fact that says all of it, and depends on none before it.
fn plain(fact: &Fact) -> Option<RunLine<'_>> {
    Some(match fact {
        Fact::AttemptOpened { attempt, .. } => RunLine::RunStarted { attempt: *attempt },
        Fact::HistoryRepaired { repairs } => RunLine::HistoryRepaired { repairs },
        Fact::SteerTaken { round, steers } => {
            RunLine::SteerDelivered { round: *round, steers: steers.iter().map(steer_line).collect() }
        }
        Fact::HistoryShortened(shortened) => RunLine::HistoryShortened(shortened.into()),
        Fact::SummaryStarted { round } => RunLine::SummaryStarted { round: *round },
        Fact::SummaryEnded { whole, report, shortened } => RunLine::SummaryEnded {
            round: report.round,
            name: &report.model,
            status: whole.into(),
            state: report.state,
            usage: &report.usage,
            shortened: shortened.as_ref().map(Into::into),
        },
        Fact::CallStarted { call_id, name, round, args, effect, .. } => {
            RunLine::CallStarted { call_id, name, round: *round, args, effect: *effect }
        }
        Fact::RemoteTaskNamed { call_id, task } => RunLine::CallNamed { call_id, task },
        Fact::ChildSuspended { call_id, child, .. } => {
            RunLine::CallSuspended { call_id, child: &child.path }
        }
        Fact::ApprovalRequested(request) => RunLine::ApprovalAsked {
            approval_id: &request.id,
            call_id: &request.call_id,
            name: &request.tool,
            args: &request.args,
            digest: &request.digest,
            expires_at: request.expires_at,
        },
        Fact::ApprovalResolved { id, call_id, answer } => {
            RunLine::ApprovalDecided { approval_id: id, call_id, answer: answer.into() }
        }
        Fact::StopRequested(request) => stop_requested(request),
        Fact::StopEscalated => RunLine::StopEscalated { by: EscalatedBy::Deadline },
        Fact::StopObserved { at } => RunLine::StopObserved { observed_at: *at },
        Fact::TimeTaken { .. }
        | Fact::ModelStarted { .. }
        | Fact::ModelEnded { .. }
        | Fact::CallEnded { .. }
        | Fact::Settled { .. } => return None,
    })
}

fn steer_line(steer: &RecordedSteer) -> SteerLine<'_> {
    SteerLine { id: steer.id.as_str(), text: &steer.message.text, notice: steer.is_notice() }
}

fn stop_requested(request: &RequestReport) -> RunLine<'_> {
    const NOW: &str = "now";
    let is_now = request.mode == NOW;
    RunLine::StopRequested {
        mode: if is_now { ModeName::Now } else { ModeName::At },
        points: if is_now { Vec::new() } else { request.mode.split(',').collect() },
        scope: &request.reach,
        within_ms: request.within_ms,
        reason: &request.reason,
        asked: &request.asked,
    }
}

fn call_ended(fact: &Arc<Fact>, report: &CallReport, extent: &OutputExtent) -> EventLine {
    let (truncated, file) = match extent {
        OutputExtent::All => (false, None),
        OutputExtent::Truncated { file, .. } => (true, file.as_deref()),
    };
    let line = RunLine::CallEnded {
        call_id: &report.call_id,
        name: &report.name,
        round: report.round,
        status: report.status,
        effect: report.effect,
        output: TEXT,
        truncated,
        file,
        started_at: report.started_at,
        ended_at: report.ended_at,
    };
    let output = TextOf(Arc::clone(fact), |fact, f| match &**fact {
        Fact::CallEnded { result, .. } => f.write_str(&result.text),
        _ => Ok(()),
    });
    body(&line).with("output", output.into())
}

/// Reads up to the event `seq`. What was missed of that is passed over too: a part that lies behind `seq` is told of by the
/// next event.
pub(super) fn catch_up<K: StreamEvent>(events: &mut Events<K>, seq: u64, mut each: impl FnMut(&Event<K>)) {
    while events.position() < seq
        && let Some(event) = events.now()
    {
        each(&event);
    }
    events.rewind_to(seq);
}

pub(super) fn body(line: &RunLine<'_>) -> EventLine {
    written(line)
}

pub(super) fn session_body(line: &SessionLine<'_>) -> EventLine {
    written(line)
}

fn written(line: &impl Serialize) -> EventLine {
    EventLine::new(serde_json::to_value(line).unwrap_or(Value::Null))
}

impl From<&Completion> for MessageStatus {
    fn from(whole: &Completion) -> Self {
        match whole {
            Completion::Complete => Self::Completed,
            Completion::Stopped => Self::Stopped,
            Completion::Steered => Self::Steered,
            Completion::Failed(_) => Self::Failed,
        }
    }
}

impl From<&Omission> for Shortened {
    fn from(shortened: &Omission) -> Self {
        let omitted = &shortened.omitted;
        Self {
            by: omitted.by,
            entries: omitted.entries,
            rounds: omitted.rounds,
            text: omitted.text().to_owned(),
            tokens_before: shortened.tokens_before,
            tokens_after: shortened.tokens_after,
        }
    }
}

impl<'a> From<&'a Resolution> for AnswerLine<'a> {
    fn from(answer: &'a Resolution) -> Self {
        match answer {
            Resolution::Decided(decision) => Self::Decided(decision),
            Resolution::Expired => Self::Closed { decision: ClosedBy::Expired },
            Resolution::Withdrawn => Self::Closed { decision: ClosedBy::Cancelled },
        }
    }
}
