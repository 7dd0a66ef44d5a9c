//! What the session's events change on the screen.

use std::{sync::Arc, time::Instant};

use safepoint::{
    History, Receipt,
    approval::ApprovalRequest,
    event::{Completion, Event, EventKind, Fact, Resolution},
    ids::{ApprovalId, ItemId},
    raw::lasting,
    session::{ItemOutcome, PreemptOutcome, SessionEvent},
};

use super::{
    fact,
    queue::Pushed,
    short,
    state::{Action, Asked, State, Tone},
};
use crate::render::{
    activity::Activity,
    approval, hints, provider,
    text::{at_running, said},
};

/// An event of the session. Exhaustive: an item with its text, a turn on items, or any other event.
#[derive(Clone, Debug)]
pub(crate) enum ChatEvent {
    Accepted { id: ItemId, item: Pushed },
    Started(Vec<ItemId>),
    Event(Event<SessionEvent>),
}

impl State {
    pub(crate) fn hear(&mut self, chat_event: ChatEvent, now: Instant) -> Vec<Action> {
        match chat_event {
            ChatEvent::Accepted { id, item } => {
                self.kept.is_begun = true;
                self.items.accepted(id, item, self.is_running());
            }
            ChatEvent::Started(items) => self.begin(&items),
            ChatEvent::Event(event) => self.session_event(event, now),
        }
        std::mem::take(&mut self.actions)
    }

    fn session_event(&mut self, event: Event<SessionEvent>, now: Instant) {
        match event.kind {
            SessionEvent::Run { turn, event } => {
                self.works(turn, &event.kind, now);
                self.run_event(&event, now);
                self.stop_requested(&event.kind);
                self.who_answered();
            }
            SessionEvent::Background { turn, event } => {
                self.works(turn, &event.kind, now);
                self.child_event(&event.kind, now);
                self.who_answered();
            }
            SessionEvent::BackgroundLost(lost) => self.tell(Tone::Bad, &approval::lost(&lost)),
            SessionEvent::Requeued(item) => self.items.requeue(item),
            SessionEvent::ItemSettled { item, fate } => self.fate(item, fate),
            SessionEvent::Preempted { item, preempted } => {
                self.items.answered(item);
                if let PreemptOutcome::StoppedTurn(turn) = preempted {
                    self.instead.insert(item, turn);
                }
            }
            SessionEvent::TurnEnded { turn, fate, receipt } => {
                self.last_turn = Some(turn);
                self.meter.ended(turn, &receipt, now);
                self.attention.ended(receipt.ending);
                self.ended(fate, receipt, now);
            }
            SessionEvent::TurnQuiet { survivors, .. } => self.quiet(&survivors, event.at),
            SessionEvent::StopRequested { cause, once_idle_for } => {
                let cause = cause.map_or(String::new(), |cause| format!(": {cause}"));
                let when = once_idle_for
                    .map_or(String::new(), |idle| format!(" once it is idle for {}", lasting(idle)));
                let said = format!("the session was asked to stop{when}{cause}");
                if self.leaving.is_none() && self.stop_said.as_ref() != Some(&said) {
                    self.tell(Tone::Aside, &said);
                    self.stop_said = Some(said);
                }
            }
            SessionEvent::Missed(count) => {
                let said = format!("({count} pieces of text are not shown: the terminal was slow)");
                self.tell(Tone::Aside, &said);
            }
            _ => {}
        }
    }

    fn begin(&mut self, items: &[ItemId]) {
        // Another turn may have come between.
        let is_instead =
            items.iter().any(|id| self.instead.remove(id).is_some_and(|of| self.last_turn == Some(of)));
        let taken: Vec<Pushed> =
            items.iter().filter_map(|id| self.items.take(*id)).filter(|item| !item.text.is_empty()).collect();
        let is_new = !taken.is_empty();
        for item in taken {
            if self.begins_compaction(&item.text) {
                continue;
            }
            let label = if is_instead { "instead of the turn before" } else { "" };
            self.said(&item.text, label);
            self.last_message = Some(item.text);
        }
        if is_new {
            self.trace.clear();
        } else {
            self.is_unsaid = true;
        }
        self.live.begin();
        self.thoughts.begin();
        self.work = Some(Activity::default());
        self.withdraw_plan();
        (self.ctrl_c, self.warned, self.kept.is_open) = (None, None, false);
    }

    fn run_event(&mut self, event: &Event, now: Instant) {
        if let Some(work) = &mut self.work {
            work.on(&event.kind, now);
        }
        self.think(&event.kind, now);
        match &event.kind {
            EventKind::Text(text) => self.text(text),
            EventKind::Retrying { failed, after, error } => {
                let said = format!("try {failed} failed ({error}); again in {}", lasting(*after));
                self.tell(Tone::Aside, &said);
            }
            EventKind::Waiting { what } => self.tell(Tone::Aside, &format!("waiting for {what}")),
            EventKind::Provider(block) => self.provider(block),
            EventKind::Lagged { count } => {
                self.tell(Tone::Aside, &format!("({count} pieces of text are not shown)"));
            }
            EventKind::Progress { call_id, text } => self.edits.progress(call_id, text),
            EventKind::Notice { text, .. } => self.tell(Tone::Aside, text),
            EventKind::Ruled { ruled, .. } => self.tell(Tone::Aside, &ruled.to_string()),
            EventKind::Child { .. } => self.child_event(&event.kind, now),
            EventKind::Fact(fact) => {
                self.trace.push((event.at, fact::line(fact)));
                self.fact(fact, now);
            }
            _ => {}
        }
    }

    /// Shows only the approvals of a run below the turn's own: its call is listed, and its text is not the
    /// answer. A child in the background may ask after its turn, too.
    fn child_event(&mut self, kind: &EventKind, now: Instant) {
        if let EventKind::Child { event, .. } = kind
            && let EventKind::Fact(fact) = &**event
            && let Fact::ApprovalRequested(_) | Fact::ApprovalResolved { .. } = **fact
        {
            self.fact(fact, now);
        }
    }

    fn fact(&mut self, fact: &Fact, now: Instant) {
        if self.modes.see(fact) {
            return;
        }
        self.shortened(fact);
        if self.todo_fact(fact) {
            return;
        }
        match fact {
            Fact::ModelEnded { whole, message, .. } => {
                self.answered(&message.text());
                self.end_text();
                if let Some(sources) = provider::sources(message.citations(), Some(self.columns)) {
                    self.tell(Tone::Aside, &sources);
                }
                match whole {
                    // Where nothing came, there is no place of a cut.
                    Completion::Stopped if message.text().is_empty() => {}
                    Completion::Stopped => self.tell(Tone::Aside, "(cut here)"),
                    Completion::Steered => self.tell(Tone::Aside, "(cut here by your message)"),
                    Completion::Complete | Completion::Failed(_) => {}
                }
            }
            Fact::SteerTaken { round, steers } => {
                for steer in steers.iter().filter(|steer| !steer.is_notice()) {
                    if let Some(id) = steer.item() {
                        self.items.take(id);
                    }
                    self.said(&steer.message.text, &format!("steered, in request {round}"));
                }
            }
            Fact::CallStarted { .. } | Fact::CallEnded { .. } => self.call(fact),
            Fact::AttemptOpened { attempt, history, .. } if self.is_unsaid => {
                self.is_unsaid = false;
                let asked = history.as_ref().filter(|_| *attempt == 1).and_then(last_said);
                if let Some(text) = asked {
                    self.said(&text, "from elsewhere");
                }
            }
            Fact::ApprovalRequested(question) => self.ask(question.clone(), now),
            Fact::ApprovalResolved { id, answer, .. } => self.closed(id, answer, now),
            Fact::StopEscalated => self.tell(Tone::Aside, "Grace period ended: stopping now"),
            Fact::Settled { error: Some(error), .. } => {
                self.end_text();
                self.tell(Tone::Bad, &format!("failed: {}", hints::in_words(&error.message)));
                if let Some(hint) = &error.hint {
                    self.tell(Tone::Aside, &format!("  hint: {}", hints::here(&error.code, hint)));
                }
            }
            _ => {}
        }
    }

    /// A question that is open.
    pub(crate) fn ask(&mut self, question: ApprovalRequest, now: Instant) {
        if self.questions.iter().any(|asked| asked.question.id == question.id) {
            return;
        }
        self.end_text();
        self.attention.call(&format!("it asks about {}", question.tool));
        self.questions.push_back(Asked { question, since: now });
        if self.questions.len() == 1 {
            self.put_question(now);
        }
    }

    /// Shows the whole of the approval that is answered next: one at a time, so that it is clear which.
    pub(super) fn put_question(&mut self, now: Instant) {
        let Some(asked) = self.questions.front_mut() else { return };
        asked.since = now;
        let question = asked.question.clone();
        self.put = short::named(&question);
        self.put_edit(&question);
    }

    /// The run that asked these is over.
    pub(crate) fn gone(&mut self, gone: &[ApprovalId], now: Instant) {
        let was_put = self.deciding.take_if(|deciding| gone.contains(deciding)).is_some()
            || self.questions.front().is_some_and(|asked| gone.contains(&asked.question.id));
        self.questions.retain(|asked| !gone.contains(&asked.question.id));
        if was_put {
            self.end_answer();
            self.edits.forget();
            self.put_question(now);
        }
    }

    fn closed(&mut self, id: &ApprovalId, answer: &Resolution, now: Instant) {
        let was_put = match self.questions.front() {
            Some(asked) if asked.question.id == *id => {
                self.end_answer();
                self.edits.forget();
                self.questions.pop_front();
                self.elsewhere = matches!(answer, Resolution::Decided(_)).then(|| id.clone());
                true
            }
            // Its answer was given here, and it is not in the list any more.
            _ => self.deciding.take_if(|deciding| deciding == id).is_some(),
        };
        self.questions.retain(|asked| asked.question.id != *id);
        if was_put {
            self.tell(Tone::Aside, &format!("  {}: {}", self.put, short::answered(answer)));
            self.put_question(now);
        }
    }

    /// Another process answered an approval that was shown here.
    fn who_answered(&mut self) {
        let asked = self.elsewhere.take().filter(|_| self.about.is_kept);
        self.actions.extend(asked.map(Action::WhoAnswered));
    }

    fn ended(&mut self, fate: ItemOutcome, receipt: Arc<Receipt>, now: Instant) {
        self.end_text();
        self.settled_at = Some(now);
        if let Some(work) = &mut self.work {
            work.settle("", now);
        }
        if receipt.stop.is_some() {
            self.gap();
            self.tell_columns(&short::few_lines(&receipt));
        }
        self.last = Some(receipt);
        if let ItemOutcome::Failed(_) = fate {
            self.tell(Tone::Aside, "  /resume resumes it, /retry sends it again");
        }
        // A queue that would never run goes back to the sender.
        if let ItemOutcome::Interrupted(_) = fate {
            self.hand_back();
        }
        self.end_hand_back();
        self.end_plan(&fate, now);
        self.end_compaction();
        // Some may belong to background runs.
        let asked = self.questions.iter().map(|asked| &asked.question.id);
        let asked: Vec<_> = asked.chain(&self.deciding).cloned().collect();
        self.actions.extend((!asked.is_empty()).then_some(Action::LookAt(asked)));
    }

    fn quiet(&mut self, survivors: &[String], at: jiff::Timestamp) {
        let was_stopped = self.last.as_ref().is_some_and(|receipt| receipt.stop.is_some());
        let end = self.last.as_mut().map(|receipt| {
            let receipt = Arc::make_mut(receipt);
            receipt.quiet_at = survivors.is_empty().then_some(at);
            receipt.survivors = survivors.to_vec();
            at_running(&receipt.to_string()).1.to_owned()
        });
        match end {
            Some(end) if was_stopped => match survivors {
                [] => self.tell_columns(&end),
                _ => self.tell(Tone::Bad, &end),
            },
            _ if survivors.is_empty() => {}
            _ => self.tell(Tone::Bad, &format!("warning: still running: {}", survivors.join(", "))),
        }
        self.work = None;
    }
}

/// What a person said last.
fn last_said(history: &History) -> Option<String> {
    history.entries().iter().rev().find_map(|entry| said(entry)).map(str::to_owned)
}
