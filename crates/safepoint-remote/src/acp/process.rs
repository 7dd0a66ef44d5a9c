//! The task of one agent's process: it starts the process, carries messages both ways, and ends it.
//!
//! **Invariants**
//! - A stop waits only for a short look at the agent's connections: not for the agent to read, not for the
//!   engine to take events, not for the end of the prompt.
//! - The process is gone, or its survivors are named, before this task ends.
//! - The end of work that did not end by itself is reported when its process is gone.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use safepoint::{
    ToolContext,
    approval::Decision,
    raw::remote::{RemoteEvent, RemoteStopReply, Term},
    receipt::Outside,
};
use safepoint_tools::{
    lines::{Lines, TextLine},
    process::{CommandReport, CommandSpec, Members, Process, Processes, Service},
};
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, sleep_until, timeout},
};

use crate::conversation_ids::{ConversationIds, Turn};

use super::{
    dialogue::{Act, Answered, Dialogue},
    limits,
    outbox::Outbox,
};

mod ending;
pub(super) mod report;
mod surroundings;

use surroundings::Surroundings;

/// One piece of work, and what it needs.
pub(super) struct Work {
    pub(super) command: CommandSpec,
    pub(super) processes: Processes,
    /// How long the agent may take to be ready.
    pub(super) start: Duration,
    /// How long a stop may take.
    pub(super) stop: Duration,
    pub(super) known: Arc<ConversationIds>,
    /// The local services that the agent calls and that do no work for it.
    pub(super) services: Arc<[Service]>,
    pub(super) conversation: String,
    pub(super) cx: ToolContext,
}

/// An order to the task of the process: an answer or a stop.
pub(super) enum Order {
    Answer(String, Decision),
    /// The caller that waits for the result.
    Stop(oneshot::Sender<RemoteStopReply>),
}

/// The task of one agent's process.
pub(super) struct AgentProcess {
    work: Work,
    dialogue: Dialogue,
    tell: mpsc::Sender<RemoteEvent>,
    orders: mpsc::UnboundedReceiver<Order>,
    /// Events that the engine has not taken yet.
    backlog: VecDeque<RemoteEvent>,
    backlog_bytes: usize,
    began: Instant,
    stop: Option<Stopping>,
    surroundings: Surroundings,
}

/// A requested stop.
struct Stopping {
    term: Term,
    answered: Option<Answered>,
    /// The outside parties that were reported with the agent's answer.
    named: Outside,
}

/// A process and both ends of it.
struct Held {
    process: Process,
    lines: Lines,
    outbox: Outbox,
}

/// The next event.
enum Came {
    Ordered(Option<Order>),
    Gone(CommandReport),
    Read(Option<TextLine>),
    /// Something can continue that could not.
    Moved,
    /// A wait exceeded its time.
    Late,
}

/// Why no more events will come; each case has its own report.
enum Over {
    /// The work ended or never began, and that was reported; or the engine no longer listens.
    Reported,
    /// The agent was asked to end, and has ended, or used its time.
    Stopped,
    /// Its process ended.
    Gone(Box<CommandReport>),
    /// It closed its output.
    Mute,
    /// It was not ready in time.
    Slow,
}

impl AgentProcess {
    pub(super) fn new(
        work: Work,
        dialogue: Dialogue,
        tell: mpsc::Sender<RemoteEvent>,
        orders: mpsc::UnboundedReceiver<Order>,
    ) -> Self {
        let surroundings = Surroundings::new(Arc::clone(&work.services));
        Self {
            surroundings,
            work,
            dialogue,
            tell,
            orders,
            backlog: VecDeque::new(),
            backlog_bytes: 0,
            began: Instant::now(),
            stop: None,
        }
    }

    pub(super) async fn keep(mut self) {
        let Some((turn, mut held)) = self.start().await else { return };
        let over = self.talk(&mut held).await;
        self.part(held, over).await;
        drop(turn);
    }

    /// Starts the process, when the conversation has none.
    async fn start(&mut self) -> Option<(Turn, Held)> {
        let (work, orders) = (&self.work, &mut self.orders);
        let starting = async {
            let (turn, earlier) = work.known.turn(&work.conversation).await;
            (turn, earlier, work.processes.spawn_in(&work.cx, work.command.clone()).await)
        };
        // Orders first: a stop that comes with the start is answered as one before it, and nothing is asked of the agent.
        // An abandoned start is undone: the command is killed, and the run waits for that.
        let (turn, earlier, started) = tokio::select! {
            biased;
            order = orders.recv() => {
                if let Some(Order::Stop(tell)) = order {
                    reply(tell, report::unasked());
                    self.tell_last(report::nothing_done()).await;
                }
                return None;
            }
            started = starting => started,
        };
        let pipes = started.map(|mut process| (process.take_stdin(), process.take_stdout(), process));
        match pipes {
            Ok((Some(stdin), Some(stdout), process)) => {
                let lines = Lines::new(stdout, limits::MESSAGE_BYTES);
                let mut held = Held { process, lines, outbox: Outbox::new(stdin) };
                let acts = self.dialogue.begin(earlier);
                self.act(&mut held, acts);
                Some((turn, held))
            }
            Ok((_, _, mut process)) => {
                let report = process.stop(limits::LADDER).await;
                self.work.cx.report_process((&report).into());
                self.tell_last(report::before_work("could not be started: it has no pipes")).await;
                None
            }
            Err(error) => {
                self.tell_last(report::before_work(&format!("could not be started: {error}"))).await;
                None
            }
        }
    }

    /// Carries messages and orders until no more events will come.
    async fn talk(&mut self, held: &mut Held) -> Over {
        loop {
            if let Some(over) = self.is_over() {
                return over;
            }
            match self.next(held).await {
                Came::Moved => {}
                Came::Ordered(None) => return Over::Reported,
                Came::Ordered(Some(Order::Answer(question, decision))) => {
                    let acts = self.dialogue.decide(&question, &decision);
                    self.act(held, acts);
                }
                // Its end came before, and is reported first.
                Came::Ordered(Some(Order::Stop(tell))) if self.dialogue.is_over() => {
                    reply(tell, RemoteStopReply::acknowledged("its turn was over"));
                }
                Came::Ordered(Some(Order::Stop(tell))) => {
                    let term = Term::begin(self.work.cx.scope(), self.work.stop);
                    self.stop = Some(Stopping { term, answered: None, named: Outside::Unasked });
                    // Before the agent gets the stop, and closes its connections to others.
                    self.look(held.process.members()).await;
                    let has_begun = self.dialogue.has_begun();
                    let acts = self.dialogue.stop();
                    self.act(held, acts);
                    // The agent's answer is an event, behind all that it says before it: none of that waits for it.
                    reply(tell, if has_begun { RemoteStopReply::requested() } else { report::unasked() });
                }
                Came::Read(Some(line)) => {
                    let acts = self.dialogue.handle(&line);
                    self.act(held, acts);
                }
                Came::Read(None) => return self.mute(held).await,
                Came::Gone(report) => {
                    self.read_last_words(held).await;
                    return if self.dialogue.is_over() {
                        Over::Reported
                    } else {
                        Over::Gone(Box::new(report))
                    };
                }
                Came::Late if self.stop.is_some() => return Over::Stopped,
                Came::Late => return Over::Slow,
            }
        }
    }

    fn is_over(&self) -> Option<Over> {
        match &self.stop {
            Some(stopping) if stopping.answered.is_some() => Some(Over::Stopped),
            _ if self.dialogue.is_over() && self.backlog.is_empty() => Some(Over::Reported),
            _ => None,
        }
    }

    /// The next event. The others are not lost: each waits again.
    async fn next(&mut self, held: &mut Held) -> Came {
        // Under a stop the adapter reads the answer, however many updates come before.
        let may_read = self.stop.is_some() || self.has_room();
        let has_room = may_read && held.outbox.waiting() < limits::OUTBOX_BYTES;
        let (deadline, scope) = (self.deadline(), self.work.cx.scope().clone());
        // A later request may leave less time than the one that was seen for the deadline.
        let more = scope.changed(scope.demand());
        let late = async {
            match deadline {
                Some(deadline) => sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        // Orders first, and the process's end before its output: a flood of output hides neither. No branch loses anything: an
        // order, a line and the end of the process are returned by the next call, and a place that is not used is freed.
        tokio::select! {
            biased;
            order = self.orders.recv() => Came::Ordered(order),
            report = held.process.wait() => Came::Gone(report),
            () = late => Came::Late,
            _more = more, if self.stop.is_some() => Came::Moved,
            place = self.tell.reserve(), if !self.backlog.is_empty() => {
                if let (Ok(place), Some(said)) = (place, self.backlog.pop_front()) {
                    self.backlog_bytes = self.backlog_bytes.saturating_sub(said.bytes());
                    place.send(said);
                }
                Came::Moved
            }
            () = held.outbox.write() => Came::Moved,
            line = held.lines.next(), if has_room => Came::Read(line),
        }
    }

    /// The deadline of the present wait.
    fn deadline(&self) -> Option<Instant> {
        match &self.stop {
            Some(stopping) => {
                stopping.term.until_cleaned().map(|until| until - self.stop_time() / limits::GRACE_SHARE)
            }
            None => self.dialogue.is_opening().then(|| self.began + self.work.start),
        }
    }

    /// How long the stop may take, as it is asked now.
    fn stop_time(&self) -> Duration {
        let demand = self.work.cx.scope().demand();
        demand.map_or(self.work.stop, |demand| demand.cleanup_cap.min(self.work.stop))
    }

    /// Looks for outside parties of the agent, if it was asked to do any work.
    async fn look(&mut self, members: Members) {
        if self.dialogue.has_begun() {
            self.surroundings.look(members, self.work.cx.scope()).await;
        }
    }

    fn has_room(&self) -> bool {
        self.backlog.len() < limits::BACKLOG && self.backlog_bytes < limits::BACKLOG_BYTES
    }

    /// Keeps an event until the engine takes it; adjacent text is joined. Under a stop, events beyond the
    /// bound are dropped.
    fn keep_for_engine(&mut self, said: RemoteEvent) {
        let is_work = matches!(
            said,
            RemoteEvent::Text(_)
                | RemoteEvent::Thought(_)
                | RemoteEvent::Progress(_)
                | RemoteEvent::Notice(_)
        );
        if is_work && self.stop.is_some() && !self.has_room() {
            return;
        }
        self.backlog_bytes += said.bytes();
        match (self.backlog.back_mut(), said) {
            (Some(RemoteEvent::Text(last)), RemoteEvent::Text(more)) => last.push_str(&more),
            (_, said) => self.backlog.push_back(said),
        }
    }

    fn act(&mut self, held: &mut Held, acts: Vec<Act>) {
        for act in acts {
            match act {
                Act::Send(message) => held.outbox.push(&message),
                Act::Tell(said) => self.keep_for_engine(said),
                Act::Note(session) => {
                    self.work.known.note(&self.work.conversation, &session);
                    self.surroundings.note_own(&held.process);
                }
                Act::Answered(answered) => self.answered(answered),
            }
        }
    }

    /// An answer that it ends its turn is passed on before its end, as acknowledged. The work has ended when the
    /// processes have. Any other answer waits for the look at the outside parties.
    fn answered(&mut self, answered: Answered) {
        let Some(stopping) = &mut self.stop else { return };
        if let Answered::AsAsked(word) = &answered {
            stopping.named = self.surroundings.named();
            let word = RemoteStopReply::acknowledged(word).outside(stopping.named.clone());
            self.backlog.push_back(RemoteEvent::StopReply(word));
        }
        stopping.answered = Some(answered);
    }

    /// Its output is closed: the process ends soon, or the adapter ends it.
    async fn mute(&mut self, held: &mut Held) -> Over {
        match timeout(limits::LAST_WORDS, held.process.wait()).await {
            Ok(report) => Over::Gone(Box::new(report)),
            Err(_elapsed) => Over::Mute,
        }
    }

    /// Output that the agent wrote before its end still counts: an answer that was written is an answer.
    async fn read_last_words(&mut self, held: &mut Held) {
        let until = Instant::now() + limits::LAST_WORDS;
        // One of its processes may keep the pipe and continue to write: this read is bounded too.
        let most = self.backlog_bytes + limits::BACKLOG_BYTES;
        while self.backlog_bytes < most
            && let Ok(Some(line)) = tokio::time::timeout_at(until, held.lines.next()).await
        {
            let acts = self.dialogue.handle(&line);
            self.act(held, acts);
        }
    }
}

fn reply(tell: oneshot::Sender<RemoteStopReply>, word: RemoteStopReply) {
    if tell.send(word).is_err() {
        // The time for this event is over.
    }
}
