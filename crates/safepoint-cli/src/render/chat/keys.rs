//! What a key does, by the running turn, the open approval and the typed text.

use std::time::{Duration, Instant};

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use safepoint::approval::{AllowScope, ApprovalKind, Decision};

use super::{
    commands,
    input::Way,
    queue::PushKind,
    state::{Action, Leave, Mode, State, Tone},
};
use crate::signals::StopLevel;

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
        if key.kind == KeyEventKind::Release {
            return Vec::new();
        }
        let may_answer = self.may_answer(now);
        self.pressed = Some(now);
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        if control && key.code == KeyCode::Char('c') {
            return self.ctrl_c(now);
        }
        if control && key.code == KeyCode::Char('z') {
            return vec![Action::Suspend];
        }
        (self.ctrl_c, self.warned) = (None, None);
        match key.code {
            KeyCode::Esc => self.escape(),
            KeyCode::Char('d') if control && self.input.is_empty() => self.quit(Leave::Tidily),
            _ if self.leaving.is_some() => Vec::new(),
            _ if matches!(self.mode, Mode::Denying | Mode::Telling) => self.written(key),
            KeyCode::Char(letter) if self.mode == Mode::Allowing && !control => self.allow(letter),
            // A word that is being typed answers nothing, and no other letter is swallowed.
            KeyCode::Char(letter) if may_answer && !control && self.answers(letter) => self.answer(letter),
            _ => self.typed(key),
        }
    }

    /// Text was pasted; it answers nothing.
    pub(crate) fn paste(&mut self, text: &str, now: Instant) {
        self.pressed = Some(now);
        (self.ctrl_c, self.warned) = (None, None);
        if self.leaving.is_none() {
            self.input.insert(text);
        }
    }

    /// Whether the next key answers the approval: it was readable, and the person is not typing.
    pub(crate) fn may_answer(&self, now: Instant) -> bool {
        // Before the next one is put, the last answer must have been taken.
        let Some(asked) = self.questions.front().filter(|_| self.deciding.is_none()) else { return false };
        let since = self.pressed.map_or(asked.since, |pressed| pressed.max(asked.since));
        self.mode == Mode::Typing && self.input.is_empty() && now.saturating_duration_since(since) >= CALM
    }

    fn typed(&mut self, key: KeyEvent) -> Vec<Action> {
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        match key.code {
            KeyCode::Enter if alt => self.send(PushKind::Queue),
            KeyCode::Enter => self.send(PushKind::Steer),
            KeyCode::Tab => match commands::complete(self.input.text()) {
                Some(whole) => {
                    self.input.set(whole);
                    Vec::new()
                }
                None => self.send(PushKind::Queue),
            },
            KeyCode::Up if self.input.is_unedited() => self.up(),
            KeyCode::Down => {
                self.input.recall(Way::Forth);
                Vec::new()
            }
            _ => {
                self.input.key(key);
                Vec::new()
            }
        }
    }

    /// The last queued message comes back into the input; else an earlier one is recalled.
    fn up(&mut self) -> Vec<Action> {
        if self.input.is_empty()
            && let Some(last) = self.items.editable().pop()
        {
            return vec![Action::Withdraw(vec![last])];
        }
        self.input.recall(Way::Back);
        Vec::new()
    }

    fn send(&mut self, how: PushKind) -> Vec<Action> {
        if self.input.text().trim().is_empty() {
            return Vec::new();
        }
        let text = self.input.take();
        if let Some(command) = text.strip_prefix('/') {
            return self.command(command.trim());
        }
        let is_running = self.is_running() && self.pending_stop().is_none();
        self.said_on();
        vec![Action::Push { text, how: if is_running { how } else { PushKind::Queue } }]
    }

    /// Whether this letter answers the question at hand.
    fn answers(&self, letter: char) -> bool {
        let question =
            self.questions.front().map_or(ApprovalKind::BeforeCall, |asked| asked.question.question);
        match question {
            ApprovalKind::BeforeCall | ApprovalKind::DuringCall => {
                "ynma".contains(letter.to_ascii_lowercase())
            }
            ApprovalKind::AfterUnknownEnd => "rdg".contains(letter.to_ascii_lowercase()),
        }
    }

    fn answer(&mut self, letter: char) -> Vec<Action> {
        match letter.to_ascii_lowercase() {
            'y' | 'r' => self.decide(Decision::Approve),
            'n' | 'g' => self.decide(Decision::Deny { message: String::new() }),
            'm' => self.write(Mode::Denying),
            'd' => self.write(Mode::Telling),
            'a' => {
                self.mode = Mode::Allowing;
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    /// How far the yes reaches; any other letter changes nothing.
    fn allow(&mut self, letter: char) -> Vec<Action> {
        let covers = match letter.to_ascii_lowercase() {
            'e' => AllowScope::Call,
            't' => AllowScope::Tool,
            _ => return Vec::new(),
        };
        self.end_answer();
        self.decide(Decision::ApproveAlways { covers })
    }

    fn write(&mut self, mode: Mode) -> Vec<Action> {
        self.draft = self.input.text().to_owned();
        self.input.clear();
        self.mode = mode;
        Vec::new()
    }

    fn written(&mut self, key: KeyEvent) -> Vec<Action> {
        if key.code != KeyCode::Enter {
            self.input.key(key);
            return Vec::new();
        }
        let text = self.input.text().trim().to_owned();
        let is_result = self.mode == Mode::Telling;
        if is_result && text.is_empty() {
            return Vec::new();
        }
        self.end_answer();
        if is_result {
            return self.decide(Decision::Respond { result: text });
        }
        let message = if text.is_empty() { String::new() } else { format!("[denied by the user: {text}]") };
        self.decide(Decision::Deny { message })
    }

    /// The input is the message to the agent again.
    pub(crate) fn end_answer(&mut self) {
        match std::mem::take(&mut self.mode) {
            Mode::Denying | Mode::Telling => {
                let draft = std::mem::take(&mut self.draft);
                self.input.set(draft);
            }
            Mode::Typing | Mode::Allowing => {}
        }
    }

    fn decide(&mut self, decision: Decision) -> Vec<Action> {
        let Some(asked) = self.questions.pop_front() else { return Vec::new() };
        self.deciding = Some(asked.question.id.clone());
        vec![Action::Decide(asked.question.id, decision)]
    }

    fn escape(&mut self) -> Vec<Action> {
        if self.mode != Mode::Typing {
            self.end_answer();
            return Vec::new();
        }
        // A turn that only waits for an answer is at a safe point: its approval is withdrawn.
        let only_waits = self.work.is_none() && !self.questions.is_empty();
        if !only_waits {
            return self.stop();
        }
        std::iter::once(Action::Stop(StopLevel::Now)).chain(self.hand_back()).collect()
    }

    /// Stops the turn at the next safe point; if that was asked already, now.
    pub(crate) fn stop(&mut self) -> Vec<Action> {
        let level = match self.pending_stop() {
            _ if !self.is_running() => return Vec::new(),
            None => StopLevel::AtSafePoint,
            Some(_) => StopLevel::Now,
        };
        std::iter::once(Action::Stop(level)).chain(self.hand_back()).collect()
    }

    fn ctrl_c(&mut self, now: Instant) -> Vec<Action> {
        let before = self.ctrl_c.replace(now);
        let is_twice = before.is_some_and(|before| now.saturating_duration_since(before) < TWICE);
        if is_twice || before.is_some() && self.pending_stop().is_some() || self.leaving.is_some() {
            return self.quit(Leave::AtOnce);
        }
        let works = self.stop();
        if !works.is_empty() {
            return works;
        }
        if !self.input.is_empty() {
            self.end_answer();
            self.input.clear();
            return Vec::new();
        }
        let just_ended = self.settled_at.is_some_and(|at| now.saturating_duration_since(at) < JUST_ENDED);
        if just_ended {
            return Vec::new();
        }
        match self.warned.replace(now) {
            Some(warned) if now.saturating_duration_since(warned) < AGAIN => self.quit(Leave::Tidily),
            Some(_) | None => {
                self.tell_what_ends();
                Vec::new()
            }
        }
    }

    /// One key that was meant for something else ends no conversation.
    fn tell_what_ends(&mut self) {
        let session = &self.about.session;
        let what = match self.about.is_kept {
            true => format!("Ctrl-C again ends this chat, stored as {session}; so does Ctrl-D"),
            false => "Ctrl-C again ends this chat, which is not stored; so does Ctrl-D".to_owned(),
        };
        self.tell(Tone::Aside, &what);
    }

    pub(crate) fn quit(&mut self, leave: Leave) -> Vec<Action> {
        if self.leaving == Some(Leave::AtOnce) || self.leaving == Some(leave) {
            return Vec::new();
        }
        self.leaving = Some(leave);
        vec![Action::Quit(leave)]
    }
}
