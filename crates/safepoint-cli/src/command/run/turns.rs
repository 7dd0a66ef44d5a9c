//! The turns of a run: its prompts one after the other, and for each the wait until its turn begins.
//!
//! **Invariants**: signals are handled at every moment; prompts that got no turn are reported.

use std::{collections::VecDeque, process::ExitCode, sync::Arc};

use safepoint::{
    Grace, Outcome, Reason, Receipt, RunHandle, StopRequest,
    ids::SessionId,
    message::{Part, UserMessage},
    receipt::Ending,
    session::SessionStop,
};
use safepoint_tools::process::Processes;

use super::turn::Turn;
use crate::{
    args::run::{OnDisconnect, RunArgs},
    control::{Begins, Turns},
    exit::{self, code},
    render::{screen::Screen, turn::View},
    session::{
        conversation::{Conversation, EarlyStop},
        stored::{self, NextTurn},
    },
    signals::{Signal, Signals},
};

/// How a turn begins. Exhaustive: with a new prompt, or where the last one was.
pub(crate) enum Begin {
    Prompt(String),
    Again,
}

/// A run while it lasts.
pub(crate) struct TurnQueue<'a> {
    pub(crate) args: &'a RunArgs,
    pub(crate) signals: &'a mut Signals,
    pub(crate) conversation: Conversation,
    pub(crate) view: View,
    pub(crate) screen: &'a Arc<Screen>,
    pub(crate) turns: Arc<Turns>,
    pub(crate) processes: &'a Processes,
    /// What goes with the first prompt.
    pub(crate) attached: Vec<Part>,
    /// The prompts that are left.
    pub(crate) begins: VecDeque<Begin>,
    /// Turns that have ended and left a job behind.
    pub(crate) earlier: Vec<RunHandle>,
    /// The last turn's exit code.
    pub(crate) code: ExitCode,
    /// How the last turn ended; none if there was none.
    pub(crate) ending: Option<Ending>,
}

/// What follows. Exhaustive: the next prompt, another turn for this one, or the end.
enum AfterTurn {
    Next,
    More,
    Leave,
}

impl TurnQueue<'_> {
    /// Runs until every prompt is done, or no turn may come any more.
    pub(crate) async fn go(&mut self) -> anyhow::Result<()> {
        while let Some(begin) = self.begins.pop_front() {
            match begin {
                Begin::Prompt(text) => {
                    let parts = std::mem::take(&mut self.attached);
                    self.conversation.say(UserMessage { text, parts })?;
                }
                Begin::Again => self.conversation.resume(),
            }
            loop {
                match self.one().await? {
                    AfterTurn::Next => break,
                    AfterTurn::More => {}
                    AfterTurn::Leave => {
                        self.unsaid();
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }

    /// Waits for one turn and follows it.
    async fn one(&mut self) -> anyhow::Result<AfterTurn> {
        self.signals.turn_begins();
        let (next, early) = self.wait().await?;
        let (turn, is_own) = match next {
            Some(NextTurn::Own(turn)) => (turn, true),
            Some(NextTurn::Other(turn)) => {
                self.screen.note("safepoint: another turn of this session comes first");
                (turn, false)
            }
            Some(none) if early.is_none() => return Ok(self.none(&none).await),
            Some(_) | None => {
                self.screen.note("safepoint: stopped before the turn began");
                self.code = exit::with(early.map_or(code::STOPPED, Signal::exit_code));
                return Ok(AfterTurn::Leave);
            }
        };
        let is_last = is_own && self.begins.is_empty() && !self.conversation.continues().await;
        Ok(self.turn(turn, early, (is_own, is_last)).await)
    }

    /// Waits for the next turn, and for signals. The first signal withdraws the prompt and ends the session;
    /// a second one ends the wait without a turn.
    async fn wait(&mut self) -> anyhow::Result<(Option<NextTurn>, Option<Signal>)> {
        let stop_now = self.conversation.early_stop();
        let mut next = std::pin::pin!(self.conversation.next());
        let mut early = None;
        loop {
            tokio::select! {
                biased;
                // First: a turn that is ready together with a signal is given back as stopped. Losing this branch loses
                // nothing: the signal stays pending.
                got = self.signals.next() => match early {
                    _ if got == Signal::Hangup && self.args.on_disconnect == OnDisconnect::Detach => {}
                    Some(_) => {
                        stop_now.iter().for_each(EarlyStop::end_now);
                        return Ok((None, early));
                    }
                    None => {
                        early = Some(got);
                        stop_now.iter().for_each(|session| session.leave(stop(got, self.args)));
                    }
                },
                // Losing this one loses nothing: the next call waits for the same turn.
                next = &mut next => return Ok((Some(next?), early)),
            }
        }
    }

    /// Follows a turn until it is quiet.
    async fn turn(
        &mut self,
        turn: stored::Turn,
        early: Option<Signal>,
        (is_own, is_last_turn): (bool, bool),
    ) -> AfterTurn {
        self.view.begin(turn.number, turn.run.id());
        let handle = turn.run;
        self.begin(&handle);
        let (signals, view, args) = (&mut *self.signals, &mut self.view, self.args);
        let mut turn = Turn { handle, signals, pressed: Arc::default(), view, args };
        if let Some(got) = early {
            turn.received_before(got);
        }
        let answers = turn.answers();
        turn.follow().await;
        let outcome = turn.handle.done().await;
        let is_over = || self.turns.is_ending() || self.conversation.is_over();
        let leaves = early.is_some() || !may_continue(&outcome, is_own, self.begins.len());
        let is_last = leaves || turn.pressed().count > 1 || is_over() || is_last_turn;
        if is_last {
            turn.end_jobs(self.processes, &self.earlier);
        }
        let receipt = turn.quiet(&outcome, is_last).await;
        drop(answers);
        let (pressed, handle) = (turn.pressed(), turn.handle);
        if receipt.quiet_at.is_none() && !is_last {
            self.earlier.push(handle);
        }
        self.view.end(&outcome, &receipt);
        if let (Some(id), Outcome::Suspended(waiting)) = (self.id(), &outcome) {
            self.screen.note(&format!("safepoint: {}", undecided(id, waiting.approvals().len())));
        }
        if let (Some(id), Some(raised)) = (self.id(), raised(&receipt)) {
            let how = format!("`safepoint resume {id} {raised}` resumes it under a higher limit");
            self.screen.note(&format!("safepoint: {how}"));
        }
        self.conversation.after(&outcome);
        self.code = exit::of_run(&outcome);
        self.ending = Some(outcome.ending());
        if pressed.count > 1 {
            // No person is present for messages that other processes may have pushed.
            self.conversation.early_stop().iter().for_each(EarlyStop::end_now);
        }
        let is_over = self.turns.is_ending() || self.conversation.is_over();
        if leaves || pressed.count > 1 || is_over {
            if !is_own {
                self.waits();
            }
            return AfterTurn::Leave;
        }
        if is_own && (is_last_turn || !self.begins.is_empty()) { AfterTurn::Next } else { AfterTurn::More }
    }

    /// Makes the turn reachable for other terminals. A stop of the session that came before, where no turn was running,
    /// stops this one at once.
    fn begin(&self, handle: &RunHandle) {
        if self.turns.begin(handle) == Begins::TooLate {
            let request = StopRequest::now().with_cleanup_cap(self.args.agent.cleanup_cap);
            handle.stop(request.with_reason(Reason::user("the session was stopped before this turn")));
        }
    }

    /// No turn comes: shows why, and what to do.
    async fn none(&mut self, next: &NextTurn) -> AfterTurn {
        let Some(id) = self.id() else { return AfterTurn::Leave };
        let (number, said) = match next {
            NextTurn::Undecided(open) => (code::SUSPENDED, undecided(id, *open)),
            NextTurn::Stopped(cause) => {
                let cause = cause.as_ref().map_or(String::new(), |cause| format!(" ({cause})"));
                let said = format!("session {id} was stopped{cause}; `safepoint resume {id}` resumes it");
                (code::STOPPED, said)
            }
            NextTurn::TakenBack => {
                (code::STOPPED, "the prompt was withdrawn before its turn began".to_owned())
            }
            NextTurn::Nothing | NextTurn::Own(_) | NextTurn::Other(_) => return self.nothing_left().await,
        };
        self.screen.note(&format!("safepoint: {said}"));
        self.code = exit::with(number);
        if !matches!(next, NextTurn::TakenBack) {
            self.waits();
        }
        AfterTurn::Leave
    }

    async fn nothing_left(&mut self) -> AfterTurn {
        if let Some(stored) = self.conversation.stored() {
            let id = &stored.id;
            if stored.never_began().await {
                // Without this note, the caller could take the silence for a completed turn.
                self.screen.note(&format!(
                    "safepoint: session {id} has no turn and no queued message; a message sent while its program ended was \
                     not stored. Send it again: `safepoint run PROMPT --session {id}`"
                ));
                if self.begins.is_empty() {
                    self.code = exit::with(code::NONE_SUCH);
                }
                return AfterTurn::Next;
            }
            let but = match stored.undeliverable().await.len() {
                0 => "",
                _ => ", except undelivered messages",
            };
            self.screen.note(&format!("safepoint: session {id} has nothing to resume{but}"));
        }
        AfterTurn::Next
    }

    fn id(&self) -> Option<&SessionId> {
        self.conversation.stored().map(|stored| &stored.id)
    }

    /// Shows where the prompt waits: it has no turn yet.
    fn waits(&self) {
        if let Some((id, number)) =
            self.conversation.stored().and_then(|stored| Some((&stored.id, stored.number()?)))
        {
            self.screen.note(&format!(
                "safepoint: queued as item-{number}; `safepoint resume {id}` runs it, \
                 `safepoint withdraw {id} item-{number}` removes it"
            ));
        }
    }

    /// Reports the prompts that were not pushed.
    fn unsaid(&self) {
        match self.begins.len() {
            0 => {}
            1 => self.screen.note("safepoint: the other prompt was not sent"),
            left => self.screen.note(&format!("safepoint: {left} other prompts were not sent")),
        }
    }
}

/// The option that raises the limit of a stopped turn, if the command line has one.
fn raised(receipt: &Receipt) -> Option<&'static str> {
    match receipt.stop.as_ref()?.reason.code.as_str() {
        "max_rounds" => Some("--max-rounds N"),
        "wall_time" => Some("--timeout DUR"),
        _ => None,
    }
}

/// The note about the decisions that a person has to make.
fn undecided(id: &SessionId, open: usize) -> String {
    let decisions = if open == 1 { "a decision".to_owned() } else { format!("{open} decisions") };
    format!(
        "{id} waits for {decisions}: `safepoint approvals {id}` lists them; then approve, deny or respond, and resume"
    )
}

/// The stop of a first signal before the turn has begun; it also applies to a turn that has begun meanwhile.
fn stop(got: Signal, args: &RunArgs) -> SessionStop {
    let stop = match (got, Grace::try_from(args.agent.grace)) {
        (Signal::Hangup, _) | (_, Err(_)) => SessionStop::now(),
        (_, Ok(grace)) => SessionStop::graceful_within(grace),
    };
    stop.cleanup_cap(args.agent.cleanup_cap).with_reason(got.reason())
}

/// Whether another turn may follow this outcome, with `left` prompts still to come. A new prompt follows a
/// stopped turn; items that waited behind it keep waiting.
fn may_continue(outcome: &Outcome, is_own: bool, left: usize) -> bool {
    match outcome.ending() {
        Ending::Done | Ending::Failed => true,
        Ending::Suspended => false,
        Ending::Stopped => is_own && left > 0,
    }
}
