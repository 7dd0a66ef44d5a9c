//! What helps a person type: the menus, the search in earlier inputs, the files that go with a message, and commands of their own.
//!
//! **Invariants**
//! - No key of this answers a question or sends a message; Tab completes, and never sends.
//! - What is typed is changed by a key alone, and each change can be undone.

use std::{collections::VecDeque, path::PathBuf};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::{
    completion::{self, Completion},
    input::{Draft, Way},
    mention,
    own::{self, Own},
    queue::PushKind,
    search::Search,
    state::{Action, Mode, State, Tone},
};

/// What is to be done. Exhaustive: the driver does each.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum TypingAction {
    /// Find files for this.
    Find(String),
    /// See whether this, which was pasted, is the path of a file that can be attached.
    LookAt(String),
    /// Hand the session a message with these files.
    Send { text: String, how: PushKind, files: Vec<PathBuf> },
    /// Open this in the external editor.
    Edit(Draft),
    /// Run a command of the person's own.
    Run(String),
    /// Stop it; again: at once.
    StopOwn,
}

/// What it came to. Exhaustive: the screen shows each.
#[derive(Clone, Debug)]
pub(crate) enum TypingNews {
    /// What other chats have kept, the oldest first.
    Earlier(Vec<String>),
    /// The files for this query.
    Found(completion::FoundFiles),
    /// More files are known than when they were last looked for.
    MoreFiles,
    /// What was pasted is a file that can be attached.
    Attachable(completion::Offer),
    /// It was not sent, and why.
    Unsent {
        text: String,
        why: String,
    },
    /// What the external editor left; or why it changed nothing.
    Edited(Draft, Result<String, String>),
    Own(own::OwnNews),
}

/// What is shown around the input, and what goes with the next message.
#[derive(Debug, Default)]
pub(crate) struct Typing {
    pub(super) search: Option<Search>,
    pub(super) completion: Completion,
    pub(super) own: Own,
    /// What was sent with something folded in it, by all of its text.
    sent: VecDeque<(String, Draft)>,
    /// What was entered since the driver last asked, for the file of inputs.
    entered: Vec<String>,
}

/// How many messages are shown folded.
const FOLDED: usize = 64;

impl Typing {
    /// What was entered since this was last asked.
    pub(crate) fn take_entered(&mut self) -> Vec<String> {
        std::mem::take(&mut self.entered)
    }

    /// What was sent from here, as it was typed; else the text.
    pub(super) fn draft_of(&self, text: &str) -> Draft {
        let sent = self.sent.iter().rev().find(|(whole, _)| whole == text);
        sent.map_or_else(|| Draft::from(text.to_owned()), |(_, draft)| draft.clone())
    }

    fn sends(&mut self, draft: &Draft) {
        if draft.has_folds() {
            self.sent.push_back((draft.whole(), draft.clone()));
            let over = self.sent.len().saturating_sub(FOLDED);
            self.sent.drain(..over);
        }
    }
}

impl State {
    /// The columns that the input has.
    pub(super) fn input_width(&self) -> usize {
        const LEAD: usize = 2;
        self.columns.saturating_sub(LEAD + 1).max(1)
    }

    /// Whether a menu or the search took the key.
    pub(super) fn typing_key(&mut self, key: KeyEvent) -> bool {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Up => self.choose_row(Way::Back) || self.move_up(),
            KeyCode::Down => self.choose_row(Way::Forth) || self.move_down(),
            KeyCode::Char('p') if control => self.choose_row(Way::Back) || self.move_up(),
            KeyCode::Char('n') if control => self.choose_row(Way::Forth) || self.move_down(),
            KeyCode::Tab => {
                self.take_row();
                true
            }
            KeyCode::Enter if key.modifiers.is_empty() => self.take_chosen_row(),
            KeyCode::Char('r') if control => {
                self.begin_search();
                true
            }
            KeyCode::Char('g') if control => {
                self.actions.push(Action::Typing(TypingAction::Edit(self.input.draft())));
                true
            }
            _ => false,
        }
    }

    /// The same while an answer is written: the reason of a denial, a result, other arguments, or a plan.
    pub(super) fn typing_key_of_answer(&mut self, key: KeyEvent) -> bool {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Up => self.input.vertical(Way::Back, self.input_width()),
            KeyCode::Down => self.input.vertical(Way::Forth, self.input_width()),
            KeyCode::Char('g') if control => self.typing_key(key),
            _ => false,
        }
    }

    /// In a message of several rows the cursor moves; from its first row on, earlier inputs are recalled.
    fn move_up(&mut self) -> bool {
        if !self.input.is_empty() && self.input.vertical(Way::Back, self.input_width()) {
            return true;
        }
        match self.items.editable().pop().filter(|_| self.input.is_empty()) {
            Some(last) => self.actions.push(Action::Withdraw(vec![last])),
            None => self.input.recall(Way::Back),
        }
        true
    }

    fn move_down(&mut self) -> bool {
        if !self.input.vertical(Way::Forth, self.input_width()) {
            self.input.recall(Way::Forth);
        }
        true
    }

    /// What was typed is entered: a message with what goes with it, or a command of the person's own.
    pub(super) fn enter(&mut self, mut draft: Draft, how: PushKind) {
        let files = mention::mentioned(draft.text());
        for ran in self.typing.own.take_ran() {
            let (content, label) = ran.for_model();
            draft.append(&content, label);
        }
        self.typing.sends(&draft);
        let text = draft.whole();
        self.actions.push(match files.is_empty() {
            true => Action::Push { text, how },
            false => Action::Typing(TypingAction::Send { text, how, files }),
        });
    }

    pub(super) fn keep_entered(&mut self, draft: &Draft) {
        self.typing.entered.push(draft.whole());
    }

    /// Esc, where no turn is to be stopped: whether something of this was closed or stopped.
    pub(super) fn escape_typing(&mut self) -> bool {
        self.stop_own() || self.accept_found() || self.close_menu()
    }

    /// What an action came to.
    pub(crate) fn typing_news(&mut self, news: TypingNews, now: std::time::Instant) -> Vec<Action> {
        match news {
            TypingNews::Earlier(texts) => self.input.remember_before(texts),
            TypingNews::Found(found) => self.take_found(found),
            TypingNews::MoreFiles => self.find_again(),
            TypingNews::Attachable(offer) => self.typing.completion.offer = Some(offer),
            TypingNews::Unsent { text, why } => {
                self.tell(Tone::Bad, &why);
                self.back(&text);
            }
            TypingNews::Edited(before, Ok(whole)) => {
                self.pressed = Some(now);
                self.input.edited(&before, &whole);
            }
            TypingNews::Edited(_, Err(why)) => {
                self.pressed = Some(now);
                self.tell(Tone::Bad, &why);
            }
            TypingNews::Own(news) => self.own_news(news, now),
        }
        std::mem::take(&mut self.actions)
    }

    /// The last row of the pane while a menu or the search is open.
    pub(super) fn typing_hint(&self) -> Option<String> {
        if let Some(search) = &self.typing.search {
            return Some(search.hint());
        }
        if self.leaving.is_some() || self.mode != Mode::Typing {
            return None;
        }
        let Some(menu) = self.menu() else {
            let is_own = self.typing.own.is_running() && self.work.is_none() && self.questions.is_empty();
            return is_own.then(|| "Enter sends · Esc stops your command".to_owned());
        };
        let esc = if self.is_running() { "Esc stops the turn" } else { "Esc closes this" };
        Some(format!("{} · {esc}", menu.hint()))
    }
}
