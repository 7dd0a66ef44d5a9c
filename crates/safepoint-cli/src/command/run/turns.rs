//! The course of a run: what it was started with, one after the other, and for each the wait until its turn begins.
//!
//! **Invariants**: a signal is heard at every moment; what was said and has no turn in the end is told.

use std::{collections::VecDeque, process::ExitCode, sync::Arc};

use safepoint::{
    Grace, Outcome, RunHandle, SessionStop,
    ids::SessionId,
    message::Part,
    receipt::{Ending, Receipt},
};
use safepoint_tools::process::Processes;

use super::turn::Turn;
use crate::{
    args::{OnDisconnect, RunArgs},
    control::Turns,
    exit,
    render::{screen::Screen, turn::View},
    session::{
        attachments,
        conversation::{self, Conversation, Ends, Hand, Next},
    },
    signals::{Got, Pressed, Signals},
};

/// How a turn begins. Exhaustive: with something new, or where the last one was.
pub(crate) enum Begin {
    Prompt(String),
    Again,
}

/// A run while it lasts.
pub(crate) struct Course<'a> {
    pub(crate) args: &'a RunArgs,
    pub(crate) signals: &'a mut Signals,
    pub(crate) conversation: Conversation,
    pub(crate) view: View,
    pub(crate) screen: &'a Arc<Screen>,
    pub(crate) turns: Arc<Turns>,
    pub(crate) processes: &'a Processes,
    pub(crate) attached: Vec<Part>,
    /// What is still to be begun.
    pub(crate) begins: VecDeque<Begin>,
    /// Turns that have ended and left a job behind.
    pub(crate) earlier: Vec<RunHandle>,
    /// The last turn's.
    pub(crate) code: ExitCode,
    /// How the last turn ended; none if there was none.
    pub(crate) ending: Option<Ending>,
}

/// What follows. Exhaustive: the next thing that it was started with, another turn for this one, or the end.
enum Then {
    Next,
    More,
    Leave,
}

/// Whose turn it is. Exhaustive: the one that was asked for, or one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whose {
    Own,
    Other,
}

const NONE_SUCH: u8 = 3;
const STOPPED: u8 = 10;
const SUSPENDED: u8 = 11;

impl Course<'_> {
    /// Until all of it is done, or no turn may come any more.
    pub(crate) async fn go(&mut self) -> anyhow::Result<()> {
        while let Some(begin) = self.begins.pop_front() {
            match begin {
                Begin::Prompt(text) => self.conversation.say(attachments::to(text, &mut self.attached))?,
                Begin::Again => self.conversation.take_up(),
            }
            loop {
                match self.one().await? {
                    Then::Next => break,
                    Then::More => {}
                    Then::Leave => {
                        self.unsaid();
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }

    /// Waits for one turn and follows it.
    async fn one(&mut self) -> anyhow::Result<Then> {
        self.signals.turn_begins();
        let (next, early) = self.wait().await?;
        let (turn, whose) = match next {
            Some(Next::Own(turn)) => (turn, Whose::Own),
            Some(Next::Other(turn)) => {
                self.screen.note("safepoint: another turn of this session comes first");
                (turn, Whose::Other)
            }
            Some(none) if early.is_none() => return Ok(self.none(&none).await),
            Some(_) | None => {
                self.screen.note("safepoint: stopped before the turn began");
                self.code = exit::with(early.map_or(STOPPED, Got::exit_code));
                return Ok(Then::Leave);
            }
        };
        let ends = match whose {
            Whose::Own if self.begins.is_empty() => self.conversation.end_with_it().await,
            Whose::Own | Whose::Other => Ends::Later,
        };
        Ok(self.turn(turn, early, (whose, ends)).await)
    }

    /// Waits for what comes next, and for signals. The first takes back what was said and ends the session; none came
    /// in time if there was a second.
    async fn wait(&mut self) -> anyhow::Result<(Option<Next>, Option<Got>)> {
        let hand = self.conversation.hand();
        let mut next = std::pin::pin!(self.conversation.next());
        let mut early = None;
        loop {
            tokio::select! {
                biased;
                // Losing this branch loses nothing: the signal stays pending.
                got = self.signals.next() => match early {
                    _ if got == Got::Hangup && self.args.on_disconnect == OnDisconnect::Detach => {}
                    Some(_) => {
                        hand.iter().for_each(Hand::end_now);
                        return Ok((None, early));
                    }
                    None => {
                        early = Some(got);
                        hand.iter().for_each(|hand| hand.leave(stop(got, self.args)));
                    }
                },
                // Losing this one loses nothing: what is waited for is waited for again.
                next = &mut next => return Ok((Some(next?), early)),
            }
        }
    }

    /// Follows a turn until it is quiet.
    async fn turn(
        &mut self,
        turn: conversation::Turn,
        early: Option<Got>,
        (whose, ends): (Whose, Ends),
    ) -> Then {
        self.view.begin(turn.number, turn.run.id());
        let handle = turn.run;
        self.turns.begin(&handle);
        let (signals, view, args) = (&mut *self.signals, &mut self.view, self.args);
        let mut turn = Turn { handle, signals, pressed: Arc::default(), view, args };
        if let Some(got) = early {
            turn.heard_before(got);
        }
        let answers = turn.answers();
        turn.follow().await;
        let outcome = turn.handle.done().await;
        let is_over = || self.turns.is_ending() || self.conversation.is_over();
        let leaves = early.is_some() || !may_go_on(&outcome, whose, self.begins.len());
        let is_last = leaves || turn.pressed().count > 1 || is_over() || ends == Ends::WithThisTurn;
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
        if let (Some(id), Outcome::Suspended(waiting)) = (self.conversation.id(), &outcome) {
            self.screen.note(&format!("safepoint: {}", undecided(id, waiting.approvals().len())));
        }
        if let (Some(id), Some(raised)) = (self.conversation.id(), raised(&receipt)) {
            self.screen
                .note(&format!("safepoint: safepoint resume {id} {raised} goes on under a higher limit"));
        }
        self.conversation.after(&outcome);
        self.code = exit_code(&outcome, pressed);
        self.ending = Some(outcome.ending());
        if pressed.count > 1 {
            // Nobody is here to see what somebody else may have pushed meanwhile.
            self.conversation.hand().iter().for_each(Hand::end_now);
        }
        let is_over = self.turns.is_ending() || self.conversation.is_over();
        match whose {
            Whose::Other if leaves || pressed.count > 1 || is_over => {
                self.waits();
                Then::Leave
            }
            Whose::Own if leaves || pressed.count > 1 || is_over => Then::Leave,
            Whose::Own if ends == Ends::WithThisTurn || !self.begins.is_empty() => Then::Next,
            Whose::Own | Whose::Other => Then::More,
        }
    }

    /// No turn comes: says why, and what to do.
    async fn none(&mut self, next: &Next) -> Then {
        let Some(id) = self.conversation.id() else { return Then::Leave };
        let (code, then, said) = match next {
            Next::Undecided(open) => (SUSPENDED, Then::Leave, undecided(id, *open)),
            Next::Stopped(cause) => {
                let cause = cause.as_ref().map_or(String::new(), |cause| format!(" ({cause})"));
                let said = format!(
                    "a stop was asked of {id}{cause}, and has been seen to now; safepoint resume {id} goes on"
                );
                (STOPPED, Then::Leave, said)
            }
            Next::TakenBack => {
                (STOPPED, Then::Leave, "the prompt was taken back before its turn began".to_owned())
            }
            Next::Nothing | Next::Own(_) | Next::Other(_) => return self.nothing_left().await,
        };
        self.screen.note(&format!("safepoint: {said}"));
        self.code = exit::with(code);
        if !matches!(next, Next::TakenBack) {
            self.waits();
        }
        then
    }

    async fn nothing_left(&mut self) -> Then {
        if let Some(id) = self.conversation.id() {
            if self.conversation.never_began().await {
                // Whoever asked for something in it is not to take its silence for an end.
                self.screen.note(&format!(
                    "safepoint: no turn of {id} has begun, and nothing waits in it: what was said as its program ended was \
                     not kept. Say it again: safepoint run PROMPT --session {id}"
                ));
                if self.begins.is_empty() {
                    self.code = exit::with(NONE_SUCH);
                }
                return Then::Next;
            }
            let but = match self.conversation.undeliverable().await.len() {
                0 => "",
                _ => ", but for what is not delivered",
            };
            self.screen.note(&format!("safepoint: nothing of {id} is left to take up{but}"));
        }
        Then::Next
    }

    /// Says where what was said is now: it has no turn yet.
    fn waits(&self) {
        if let (Some(id), Some(number)) = (self.conversation.id(), self.conversation.number()) {
            self.screen.note(&format!(
                "safepoint: the prompt waits as item-{number}: safepoint resume {id} comes to it, \
                 safepoint withdraw {id} item-{number} takes it back"
            ));
        }
    }

    /// Says what was never said.
    fn unsaid(&self) {
        match self.begins.len() {
            0 => {}
            1 => self.screen.note("safepoint: the other prompt was not said"),
            left => self.screen.note(&format!("safepoint: {left} other prompts were not said")),
        }
    }
}

/// What raises the limit that ended a turn, where the command line sets it.
fn raised(receipt: &Receipt) -> Option<&'static str> {
    match receipt.stop.as_ref()?.reason.code.as_str() {
        "max_rounds" => Some("--max-rounds N"),
        "wall_time" => Some("--timeout DUR"),
        _ => None,
    }
}

/// What a person is to do.
fn undecided(id: &SessionId, open: usize) -> String {
    let decisions = if open == 1 { "a decision".to_owned() } else { format!("{open} decisions") };
    format!(
        "{id} waits for {decisions}: safepoint approvals {id} shows what, then approve, deny or respond, and resume"
    )
}

/// What a first signal asks of a session whose turn has not begun; if it has begun meanwhile, that is asked of it.
fn stop(got: Got, args: &RunArgs) -> SessionStop {
    let stop = match (got, Grace::try_from(args.agent.grace)) {
        (Got::Hangup, _) | (_, Err(_)) => SessionStop::now(),
        (_, Ok(grace)) => SessionStop::graceful_within(grace),
    };
    stop.cleanup_cap(args.agent.cleanup_cap).with_reason(got.reason())
}

/// Whether another turn may follow one that ended like this, with `left` things still to be said. What is new follows a
/// turn that was stopped; what waited behind it waits on.
fn may_go_on(outcome: &Outcome, whose: Whose, left: usize) -> bool {
    match outcome.ending() {
        Ending::Done | Ending::Failed => true,
        Ending::Suspended => false,
        Ending::Stopped => whose == Whose::Own && left > 0,
    }
}

fn exit_code(outcome: &Outcome, pressed: Pressed) -> ExitCode {
    exit::with(match (outcome.ending(), pressed.first) {
        (Ending::Done, _) => 0,
        (Ending::Failed, _) => 1,
        (Ending::Suspended, _) => SUSPENDED,
        (Ending::Stopped, Some(got)) => got.exit_code(),
        (Ending::Stopped, None) => STOPPED,
    })
}
