//! `/init` and `/review`: turns whose message the program writes, and what is said of them.
//!
//! **Invariants**: each is a message as any other, which its person sees in a few words; a review has tools that read only, whatever
//! the mode is.

use super::{
    input::Draft,
    queue::PushKind,
    state::{Action, State, Tone},
};

/// What begins the message of a review. It says what it is to a model too, which sees it in later turns.
const REVIEW: &str = "[review, with tools that read only]";
const REVIEWING: &str = "Review what follows as a careful colleague would. Report each fault that you can show: what goes wrong, for which \
     input, in which file and line. Read the code around a change before you judge it. Put the gravest first, and say in one \
     line what you have not looked at. Do not praise, and do not list what is a matter of taste. If you find nothing, say so.";
const INIT: &str = "Write a file AGENTS.md at the root of this project, for agents that work here. Read first: the README, the \
     manifests, the settings of the tests and the build, and some of the code. Then write what an agent needs and cannot see at \
     once: how to build, how to run all tests and one of them, how to check the style; how the code is laid out; which rules \
     hold here that others do not have. At most 60 lines, no general advice, and only what you have seen. If there is an AGENTS.md \
     already, read it and correct it instead of writing another one.";

/// What a review is about. Exhaustive: what git says is changed, or what the person named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReviewOf {
    /// In a few words.
    pub(crate) what: String,
    /// What git says of it; empty if it is no change that git knows.
    pub(crate) changes: String,
}

/// Whether this message asks for a review.
pub(crate) fn is_review(message: &str) -> bool {
    message.starts_with(REVIEW)
}

impl ReviewOf {
    fn message(&self) -> String {
        let Self { what, changes } = self;
        let changes = if changes.is_empty() { String::new() } else { format!("\n\n{}", changes.trim_end()) };
        format!("{REVIEW}\n\n{REVIEWING}\n\nTo review: {what}.{changes}")
    }
}

impl State {
    /// `/init`: the agent writes an AGENTS.md; what is typed behind it goes with it.
    pub(super) fn ask_init(&mut self, more: &str) {
        let more = if more.is_empty() { String::new() } else { format!("\n\n{more}") };
        self.ask_in_few_words(&format!("{INIT}{more}"), "[write an AGENTS.md for this project]");
    }

    /// `/review` and `/review WHAT`.
    pub(super) fn ask_review(&mut self, what: &str) {
        if self.is_busy("/review") {
            return;
        }
        self.actions.push(Action::Review(what.to_owned()));
    }

    /// What there is to review is known.
    pub(crate) fn review(&mut self, of: &ReviewOf) {
        if !self.is_busy("/review") {
            self.ask_in_few_words(
                &of.message(),
                &format!("[review of {}, with tools that read only]", of.what),
            );
        }
    }

    fn is_busy(&mut self, command: &str) -> bool {
        let is_busy = self.work.is_some() || !self.questions.is_empty();
        if is_busy {
            let said = format!("a turn is running or waits for an answer: {command} when it has ended");
            self.tell(Tone::Aside, &said);
        }
        is_busy
    }

    /// Sends a text of the program's; these words stand for it on the screen.
    fn ask_in_few_words(&mut self, text: &str, shown: &str) {
        let mut draft = Draft::default();
        draft.append(text, shown.to_owned());
        let steers = self.is_running() && self.pending_stop().is_none();
        self.handed.has_newer |= self.handed.is_asked;
        self.enter(draft, if steers { PushKind::Steer } else { PushKind::Queue });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S12.61
    #[test]
    fn the_message_of_a_review_says_what_it_is_and_no_other_does() {
        let of = |changes: &str| ReviewOf { what: "the parser".into(), changes: changes.into() };
        assert!(is_review(&of("").message()) && is_review(&of("+ a").message()));
        assert!(of("+ a\n").message().ends_with("To review: the parser.\n\n+ a"));
        for other in ["review", "please [review, with tools that read only]", INIT] {
            assert!(!is_review(other), "{other}");
        }
    }
}
