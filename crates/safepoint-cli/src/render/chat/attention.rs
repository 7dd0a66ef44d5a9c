//! Calls for the person while the terminal is not in front, and its title.
//!
//! **Invariants**: nothing is sent to a terminal that said nothing about being in front or not, but a title; a text of a model, a
//! tool or a file is sent only as plain text of a bounded length.

use safepoint::receipt::Ending;
use serde::Deserialize;

use super::state::State;
use crate::{
    output::Drawn,
    render::text::{cut, one_line},
};

/// The most letters of a call.
const LONGEST: usize = 100;
/// The most letters of a title: tabs are narrow.
const TITLE: usize = 60;

/// How a chat calls for its person while its terminal is not in front. Exhaustive: the five.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Notify {
    /// The bell, and the notification that this terminal is known to show.
    #[default]
    Auto,
    /// The bell alone.
    Bell,
    /// The bell, and `OSC 9`, as iTerm2, WezTerm, Ghostty and kitty show it.
    Osc9,
    /// The bell, and `OSC 777`, as urxvt, foot and VTE show it.
    Osc777,
    /// Nothing; nor is the terminal asked whether it is in front, or given a title.
    Off,
}

/// What is known of the terminal, and what waits to be sent to it.
#[derive(Debug, Default)]
pub(crate) struct Attention {
    marks: Marks,
    /// Whether it is not in front, by its own word.
    is_behind: bool,
    call: Option<String>,
    title: String,
    /// What is to be in front of the title.
    name: String,
}

/// What this terminal is sent. Exhaustive: nothing, or the bell and titles, with one of two notifications or without.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Marks {
    #[default]
    Nothing,
    Bell,
    Osc9,
    Osc777,
}

/// What the chat does, for the title.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    Waits,
    Works,
    Asks,
}

impl Attention {
    /// For the terminal of this environment: `get` reads a variable.
    pub(crate) fn of(get: impl Fn(&str) -> Option<String>, notify: Notify, name: &str) -> Self {
        let marks = match notify {
            Notify::Off => Marks::Nothing,
            Notify::Auto => known(|name| get(name).filter(|value| !value.is_empty())),
            Notify::Bell => Marks::Bell,
            Notify::Osc9 => Marks::Osc9,
            Notify::Osc777 => Marks::Osc777,
        };
        Self { marks, name: one_line(name), ..Self::default() }
    }

    /// What begins it: it will say when it comes to the front or leaves it, and its title is kept for later.
    pub(crate) fn enter(&self) -> &'static str {
        if self.marks == Marks::Nothing { "" } else { "\x1b[?1004h\x1b[22;2t" }
    }

    /// What ends it.
    pub(crate) fn leave(&self) -> &'static str {
        if self.marks == Marks::Nothing { "" } else { "\x1b[?1004l\x1b[23;2t" }
    }

    /// The terminal came to the front, or left it.
    pub(crate) fn is_in_front(&mut self, is_in_front: bool) {
        self.is_behind = !is_in_front;
        if is_in_front {
            self.call = None;
        }
    }

    /// Calls for the person, if the terminal is known not to be in front.
    pub(crate) fn call(&mut self, text: &str) {
        if self.is_behind && self.marks != Marks::Nothing {
            self.call = Some(cut(&one_line(text), LONGEST));
        }
    }

    /// A turn has ended; one that waits for a decision has called already.
    pub(crate) fn ended(&mut self, ending: Ending) {
        match ending {
            Ending::Done => self.call("it is done"),
            Ending::Stopped => self.call("it is stopped"),
            Ending::Failed => self.call("it failed"),
            Ending::Suspended => {}
        }
    }

    /// What the terminal is to be sent now, if anything.
    fn take(&mut self, doing: Doing) -> Option<Drawn> {
        if self.marks == Marks::Nothing {
            return None;
        }
        let mut drawn = Drawn::default();
        let title = self.title(doing);
        if title != self.title {
            drawn.mark("\x1b]2;");
            drawn.words(&title);
            drawn.mark("\x1b\\");
            self.title = title;
        }
        if let Some(call) = self.call.take() {
            match self.marks {
                Marks::Osc9 => {
                    drawn.mark("\x1b]9;");
                    drawn.words(&format!("safepoint: {call}"));
                    drawn.mark("\x1b\\");
                }
                Marks::Osc777 => {
                    drawn.mark("\x1b]777;notify;safepoint;");
                    drawn.words(&call);
                    drawn.mark("\x1b\\");
                }
                Marks::Nothing | Marks::Bell => {}
            }
            drawn.mark('\x07');
        }
        (drawn != Drawn::default()).then_some(drawn)
    }

    /// Whatever stands in the title is not this chat's any more.
    pub(crate) fn forget(&mut self) {
        self.title.clear();
    }

    fn title(&self, doing: Doing) -> String {
        let mark = match doing {
            Doing::Waits => "",
            Doing::Works => "● ",
            Doing::Asks => "? ",
        };
        let name = if self.name.is_empty() { String::new() } else { format!(" · {}", self.name) };
        cut(&format!("{mark}safepoint{name}"), TITLE)
    }
}

/// What a terminal of this environment is known to understand.
fn known(get: impl Fn(&str) -> Option<String>) -> Marks {
    let (term, program) = (get("TERM").unwrap_or_default(), get("TERM_PROGRAM").unwrap_or_default());
    let begins = |names: &[&str]| names.iter().any(|name| term.starts_with(name));
    match () {
        // The console of Linux has neither, and shows a part of what it does not know.
        () if term.is_empty() || begins(&["dumb", "linux"]) => Marks::Nothing,
        // A multiplexer passes on the bell alone.
        () if get("TMUX").is_some() || get("STY").is_some() || begins(&["tmux", "screen"]) => Marks::Bell,
        () if matches!(&*program, "iTerm.app" | "WezTerm" | "ghostty")
            || get("KITTY_WINDOW_ID").is_some()
            || term.contains("kitty")
            || term.contains("ghostty") =>
        {
            Marks::Osc9
        }
        () if get("VTE_VERSION").is_some() || begins(&["foot", "rxvt"]) => Marks::Osc777,
        () => Marks::Bell,
    }
}

impl State {
    /// What the terminal is to be sent beside its rows.
    pub(crate) fn take_call(&mut self) -> Option<Drawn> {
        let doing = match () {
            () if !self.questions.is_empty() => Doing::Asks,
            () if self.is_running() => Doing::Works,
            () => Doing::Waits,
        };
        self.attention.take(doing).into_iter().chain(self.take_copy()).reduce(Drawn::then)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(variables: &[(&str, &str)], notify: Notify) -> Attention {
        let get = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        Attention::of(get, notify, "otter")
    }

    fn sent(attention: &mut Attention, doing: Doing) -> String {
        attention.take(doing).map_or(String::new(), |drawn| drawn.to_string())
    }

    /// S12.58: each terminal is sent what it is known to understand.
    #[test]
    fn a_terminal_is_sent_what_it_understands() {
        for (variables, expected) in [
            (&[("TERM", "xterm-256color")][..], "\x07"),
            (
                &[("TERM", "xterm-256color"), ("TERM_PROGRAM", "WezTerm")],
                "\x1b]9;safepoint: it is done\x1b\\\x07",
            ),
            (&[("TERM", "xterm-kitty")], "\x1b]9;safepoint: it is done\x1b\\\x07"),
            (&[("TERM", "foot")], "\x1b]777;notify;safepoint;it is done\x1b\\\x07"),
            (&[("TERM", "xterm-kitty"), ("TMUX", "x")], "\x07"),
            (&[("TERM", "linux")], ""),
            (&[], ""),
        ] {
            let mut attention = at(variables, Notify::Auto);
            sent(&mut attention, Doing::Works);
            attention.is_in_front(false);
            attention.call("it is done");
            assert_eq!(sent(&mut attention, Doing::Works), expected, "{variables:?}");
            assert_eq!(sent(&mut attention, Doing::Works), "", "once");
        }
    }

    /// S12.58: a terminal in front is not called, nor is one that says nothing.
    #[test]
    fn only_a_terminal_that_said_so_is_called() {
        let mut attention = at(&[("TERM", "foot")], Notify::Auto);
        sent(&mut attention, Doing::Waits);
        attention.call("x");
        assert_eq!(sent(&mut attention, Doing::Waits), "");
        attention.is_in_front(false);
        attention.call("x");
        attention.is_in_front(true);
        assert_eq!(sent(&mut attention, Doing::Waits), "", "the person is there");
        let mut off = at(&[("TERM", "foot")], Notify::Off);
        off.is_in_front(false);
        off.call("x");
        assert_eq!((sent(&mut off, Doing::Asks), off.enter(), off.leave()), (String::new(), "", ""));
    }

    /// S12.58: no control character of a foreign text reaches the terminal, and a long text is cut.
    #[test]
    fn a_foreign_text_is_shown_and_not_obeyed() {
        let mut attention = at(&[("TERM", "foot")], Notify::Osc9);
        sent(&mut attention, Doing::Waits);
        attention.is_in_front(false);
        attention.call(&format!("may it \x1b]0;evil\x07\nrun {}", "x".repeat(500)));
        let sent = sent(&mut attention, Doing::Waits);
        assert_eq!(sent.matches('\x1b').count(), 2, "{sent:?}");
        assert!(sent.chars().count() < 140 && !sent.contains('\n'), "{sent:?}");
    }

    #[test]
    fn the_title_says_what_is_done_and_changes_only_then() {
        let mut attention = at(&[("TERM", "xterm")], Notify::Auto);
        assert_eq!(sent(&mut attention, Doing::Waits), "\x1b]2;safepoint · otter\x1b\\");
        assert_eq!(sent(&mut attention, Doing::Waits), "");
        assert_eq!(sent(&mut attention, Doing::Works), "\x1b]2;● safepoint · otter\x1b\\");
        assert_eq!(sent(&mut attention, Doing::Asks), "\x1b]2;? safepoint · otter\x1b\\");
    }
}
