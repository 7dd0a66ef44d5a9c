//! What a key does, by the running turn, the open approval and the typed text.

use std::time::{Duration, Instant};

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use safepoint::approval::{AllowScope, ApprovalKind, Decision};

use super::{
    mention::pasted_path,
    queue::PushKind,
    state::{Action, Leave, Mode, State, Tone},
    typing::TypingAction,
};
use crate::{
    render::activity::{Call, CallState},
    signals::StopLevel,
};

/// How long no key must have been pressed before one answers a question.
pub(crate) const CALM: Duration = Duration::from_millis(600);
/// Within so long two Ctrl-C are one wish.
const TWICE: Duration = Duration::from_secs(1);
/// For so long after a Ctrl-C of an idle chat has said what another would do, another means it.
const AGAIN: Duration = Duration::from_secs(5);
/// For so long after a turn has ended a Ctrl-C was meant for it.
const JUST_ENDED: Duration = Duration::from_secs(1);

impl State {
    /// A key was pressed.
    pub(crate) fn key(&mut self, key: KeyEvent, now: Instant) -> Vec<Action> {
        if key.kind != KeyEventKind::Release {
            self.press(key, now);
            self.look_at_word();
        }
        std::mem::take(&mut self.actions)
    }

    fn press(&mut self, key: KeyEvent, now: Instant) {
        let (may_answer, may_choose) = (self.may_answer(now), self.may_choose(now));
        let may_decide = self.may_decide_plan(now);
        let before = self.pressed.replace(now);
        if self.kept_key(key, before, now) {
            (self.ctrl_c, self.warned, self.escaped) = (None, None, None);
            return;
        }
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        if control && key.code == KeyCode::Char('c') {
            return self.ctrl_c(now);
        }
        if control && key.code == KeyCode::Char('z') {
            return self.actions.push(Action::Suspend);
        }
        (self.ctrl_c, self.warned) = (None, None);
        if key.code != KeyCode::Esc {
            self.escaped = None;
        }
        match key.code {
            KeyCode::Esc => self.escape(now),
            _ if self.is_searching() && self.leaving.is_none() => self.search_key(key),
            KeyCode::Char('d') if control && self.input.is_empty() => self.quit(Leave::Tidily),
            _ if self.leaving.is_some() => {}
            KeyCode::BackTab => {
                self.next_mode();
                self.pressed = before;
            }
            KeyCode::Char('o') if control => self.fold_key(),
            KeyCode::Char('t') if control => self.page_thoughts(),
            KeyCode::Char('b') if control && self.has_command() => self.move_to_background(),
            KeyCode::Char(number @ '1'..='9') if key.modifiers.contains(KeyModifiers::ALT) => {
                self.stop_numbered(number as u8 - b'0');
            }
            _ if matches!(self.mode, Mode::Denying | Mode::Telling) => self.written(key),
            _ if self.mode == Mode::Changing => self.changing_key(key),
            _ if self.mode == Mode::EditingPlan => self.edit_plan(key),
            KeyCode::Char(letter) if may_decide && !control => self.decide_plan(letter),
            KeyCode::Char(letter) if self.mode == Mode::Allowing && !control => self.allow(letter),
            KeyCode::Char(letter) if may_answer && !control && self.decides_hunk(letter) => {
                self.hunk_key(letter, now);
                self.answered_by_key(before, now);
            }
            KeyCode::Char(letter) if may_choose && !control => self.choose(letter),
            // A word that is being typed answers nothing, and no other letter is swallowed.
            KeyCode::Char(letter) if may_answer && !control && self.answers(letter) => {
                self.answer(letter);
                self.answered_by_key(before, now);
            }
            KeyCode::Char(letter) if !control && self.is_hasty(letter) => self.hold_letter(letter, before),
            KeyCode::Char('?') if self.input.is_empty() && self.mode == Mode::Typing => {
                self.gap();
                self.tell_keys();
            }
            _ => {
                self.end_haste(key.code);
                self.typed(key);
            }
        }
    }

    /// Text was pasted; it answers nothing.
    pub(crate) fn paste(&mut self, text: &str, now: Instant) -> Vec<Action> {
        self.pressed = Some(now);
        (self.ctrl_c, self.warned) = (None, None);
        if self.leaving.is_none() && self.kept.paste(text) {
            return Vec::new();
        }
        match (self.leaving.is_none(), self.is_searching()) {
            (true, false) => self.input.paste(text),
            (true, true) => self.search_paste(text),
            (false, _) => return Vec::new(),
        }
        self.look_at_word();
        let path = pasted_path(text).filter(|_| !self.is_searching());
        self.actions.extend(path.map(|_| Action::Typing(TypingAction::LookAt(text.trim().to_owned()))));
        std::mem::take(&mut self.actions)
    }

    /// Whether the next key answers the approval: it was readable, and the person is not typing.
    pub(crate) fn may_answer(&self, now: Instant) -> bool {
        // Before the next one is put, the last answer must have been taken.
        let Some(asked) = self.questions.front().filter(|_| self.deciding.is_none()) else { return false };
        let is_shown = self.edits.is_shown() && matches!(self.mode, Mode::Typing | Mode::Hunks);
        let since = self.pressed.map_or(asked.since, |pressed| pressed.max(asked.since));
        is_shown
            && !self.is_searching()
            && self.input.is_empty()
            && now.saturating_duration_since(since) >= CALM
    }

    pub(super) fn typed(&mut self, key: KeyEvent) {
        if self.typing_key(key) {
            return;
        }
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        match key.code {
            KeyCode::Enter if alt => self.send(PushKind::Queue),
            KeyCode::Enter => self.send(PushKind::Steer),
            _ => {
                self.input.key(key);
            }
        }
    }

    /// Sends what stands in the input, as Enter does.
    pub(crate) fn send_typed(&mut self) {
        self.send(PushKind::Steer);
    }

    fn send(&mut self, how: PushKind) {
        if self.input.text().trim().is_empty() {
            return;
        }
        let draft = self.input.take_draft();
        self.keep_entered(&draft);
        let text = draft.whole();
        if let Some(command) = text.strip_prefix('/') {
            return self.command(command.trim());
        }
        if let Some(command) = text.strip_prefix('!') {
            return self.own_command(&draft, command.trim());
        }
        let is_running = self.is_running() && self.pending_stop().is_none();
        // After a stop, it goes before the messages that the stop returned.
        self.handed.has_newer |= self.handed.is_asked;
        self.enter(draft, if is_running { how } else { PushKind::Queue });
    }

    /// Whether this letter answers the question at hand; one of any kind, while none is.
    pub(super) fn answers(&self, letter: char) -> bool {
        let letters = match self.questions.front().map(|asked| asked.question.question) {
            Some(ApprovalKind::AfterUnknownEnd) => "rdg",
            Some(_) => "ynma",
            None => "ynmardg",
        };
        let letter = letter.to_ascii_lowercase();
        self.mode == Mode::Typing && (letters.contains(letter) || self.answers_edit(letter))
    }

    fn answer(&mut self, letter: char) {
        match letter.to_ascii_lowercase() {
            'y' => self.decide(self.yes()),
            'r' => self.decide(Decision::Approve),
            'n' | 'g' => self.decide(Decision::Deny { message: String::new() }),
            'm' => self.write(Mode::Denying),
            'd' => self.write(Mode::Telling),
            'a' => self.mode = Mode::Allowing,
            letter => self.edit_key(letter),
        }
    }

    /// How far the yes reaches; any other letter changes nothing.
    fn allow(&mut self, letter: char) {
        let covers = match letter.to_ascii_lowercase() {
            'e' => AllowScope::Call,
            't' => AllowScope::Tool,
            _ => return,
        };
        self.end_answer();
        self.decide(Decision::ApproveAlways { covers });
    }

    pub(super) fn write(&mut self, mode: Mode) {
        self.draft = self.input.draft();
        self.input.clear();
        self.mode = mode;
    }

    /// A key that changes what is written in answer to a question.
    pub(super) fn edit_text(&mut self, key: KeyEvent) {
        if !self.typing_key_of_answer(key) {
            self.input.key(key);
        }
    }

    fn written(&mut self, key: KeyEvent) {
        if key.code != KeyCode::Enter {
            return self.edit_text(key);
        }
        let text = self.input.draft().whole().trim().to_owned();
        let is_result = self.mode == Mode::Telling;
        if is_result && text.is_empty() {
            return;
        }
        self.end_answer();
        if is_result {
            return self.decide(Decision::Respond { result: text });
        }
        let message = if text.is_empty() { String::new() } else { format!("[denied by the user: {text}]") };
        self.decide(Decision::Deny { message });
    }

    /// The input is the message to the agent again.
    pub(crate) fn end_answer(&mut self) {
        match std::mem::take(&mut self.mode) {
            Mode::Denying | Mode::Telling | Mode::Changing => {
                let draft = std::mem::take(&mut self.draft);
                self.input.restore(&draft);
            }
            Mode::EditingPlan => self.end_plan_edit(),
            Mode::Typing | Mode::Allowing | Mode::Rewinding | Mode::Hunks | Mode::Planning => {}
        }
    }

    pub(super) fn decide(&mut self, decision: Decision) {
        let Some(asked) = self.questions.pop_front() else { return };
        self.edits.forget();
        self.deciding = Some(asked.question.id.clone());
        self.actions.push(Action::Decide(asked.question.id, decision));
    }

    fn escape(&mut self, now: Instant) {
        if self.mode != Mode::Typing {
            return self.end_answer();
        }
        // Letters that were meant for a question are no reason to stop. What they were is there with Up.
        if !self.questions.is_empty() && !self.input.is_empty() && !self.is_searching() {
            return drop(self.input.take());
        }
        let is_stopped = self.stop_turn(self.level_of_a_key());
        if !self.escape_typing() && !is_stopped {
            self.escape_idle(now);
        }
    }

    /// What a key that stops asks for: a tool that runs has its grace, and an answer of the model alone is cut at once.
    fn level_of_a_key(&self) -> StopLevel {
        let runs = |call: &Call| call.state == CallState::Runs;
        match self.work.as_ref().is_some_and(|work| work.calls.iter().any(runs)) {
            true => StopLevel::AtSafePoint,
            false => StopLevel::Now,
        }
    }

    /// Stops the turn at this level; if a stop was asked already, now. Returns whether one is running, or waits for an answer.
    pub(crate) fn stop_turn(&mut self, level: StopLevel) -> bool {
        // A turn that only waits for an answer is at a safe point: its approval is withdrawn.
        if self.work.is_none() && !self.questions.is_empty() {
            self.stop(StopLevel::Now);
            return true;
        }
        let is_running = self.is_running();
        if is_running {
            self.stop(if self.pending_stop().is_none() { level } else { StopLevel::Now });
        }
        is_running
    }

    fn stop(&mut self, level: StopLevel) {
        self.actions.push(Action::Stop(level));
        self.hand_back();
    }

    fn ctrl_c(&mut self, now: Instant) {
        let before = self.ctrl_c.replace(now);
        let is_twice = before.is_some_and(|before| now.saturating_duration_since(before) < TWICE);
        if is_twice || before.is_some() && self.pending_stop().is_some() || self.leaving.is_some() {
            return self.quit(Leave::AtOnce);
        }
        let is_stopped = self.stop_turn(self.level_of_a_key());
        if self.stop_own() || is_stopped {
            return;
        }
        if self.is_searching() {
            self.ctrl_c = None;
            return self.leave_search();
        }
        // What this key was for is done: another one is the first of two that leave.
        if !self.input.is_empty() {
            self.ctrl_c = None;
            self.end_answer();
            return self.input.clear();
        }
        let just_ended = self.settled_at.is_some_and(|at| now.saturating_duration_since(at) < JUST_ENDED);
        if just_ended {
            return;
        }
        match self.warned.replace(now) {
            Some(warned) if now.saturating_duration_since(warned) < AGAIN => self.quit(Leave::Tidily),
            Some(_) | None => self.tell_what_ends(),
        }
    }

    /// One key that was meant for something else ends no conversation.
    fn tell_what_ends(&mut self) {
        let session = &self.about.session;
        let what = match self.about.is_kept {
            _ if !self.kept.is_begun => "Ctrl-C again ends this chat; so does Ctrl-D".to_owned(),
            true => format!("Ctrl-C again ends this chat, stored as {session}; so does Ctrl-D"),
            false => "Ctrl-C again ends this chat, which is not stored; so does Ctrl-D".to_owned(),
        };
        self.tell(Tone::Aside, &what);
    }

    pub(crate) fn quit(&mut self, leave: Leave) {
        if self.leaving != Some(Leave::AtOnce) && self.leaving != Some(leave) {
            self.leaving = Some(leave);
            self.actions.push(Action::Quit(leave));
        }
    }
}
