//! The texts by which a screen is read: which ones, and where on it they count.

/// What a program shows on its screen, and when. What is not named is not looked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScreenTexts {
    /// What it shows when it takes input; without it, it takes input when its screen has come to rest.
    pub ready: Option<String>,
    /// What it shows below a message only once it takes input again; without it, the same as `ready`.
    pub free: Option<String>,
    /// What it shows below a message only while it works.
    pub busy: Option<String>,
    /// Words, or rows of words, of which it shows one when it was stopped; none: `stopped`, `cancelled`, `canceled`, `interrupted`,
    /// `aborted`.
    pub stopped: Vec<String>,
    /// What it shows when it asks whether a command may run.
    pub asks: Option<String>,
    /// The keys that answer such a question with yes, where the question itself is not the moment.
    pub allow: Option<String>,
}

/// What says that it was stopped, where its texts name nothing.
const STOPPED: [&str; 5] = ["stopped", "cancelled", "canceled", "interrupted", "aborted"];

impl ScreenTexts {
    /// Whether it is known how it shows that it takes input again.
    pub(crate) fn say_when_free(&self) -> bool {
        self.free().is_some() || self.busy.is_some()
    }

    /// Whether a screen shows that it takes input again since this message.
    pub(super) fn show_free(&self, screen: &str, message: &str) -> bool {
        let text = below(screen, message);
        let is_busy = self.busy.as_ref().is_some_and(|busy| text.contains(busy));
        self.say_when_free() && !is_busy && self.free().is_none_or(|free| text.contains(free))
    }

    fn free(&self) -> Option<&str> {
        self.free.as_deref().or(self.ready.as_deref())
    }

    /// Whether a text says that it was stopped.
    pub(super) fn say_stopped(&self, text: &str) -> bool {
        let words = words(text);
        let has = |wanted: &str| {
            let wanted = self::words(wanted);
            !wanted.is_empty() && words.windows(wanted.len()).any(|found| found == wanted)
        };
        if self.stopped.is_empty() {
            STOPPED.into_iter().any(has)
        } else {
            self.stopped.iter().any(|wanted| has(wanted))
        }
    }
}

/// The words of a text, without their case.
fn words(text: &str) -> Vec<String> {
    let words = text.split(|letter: char| !letter.is_alphanumeric());
    words.filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
}

/// What stands below the last row that shows a message; all, if none does.
pub(super) fn below<'a>(screen: &'a str, message: &str) -> &'a str {
    let Some(found) = screen.rfind(message) else { return screen };
    screen[found..].split_once('\n').map_or("", |(_, below)| below)
}

/// The rows that were not there before.
pub(super) fn new_rows(before: &str, now: &str) -> String {
    let mut before: Vec<&str> = before.lines().collect();
    let mut is_new = |row: &&str| match before.iter().position(|old| old == row) {
        Some(place) => {
            before.swap_remove(place);
            false
        }
        None => true,
    };
    now.lines().filter(|row| is_new(row)).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S15.15: a word that only holds one, and what stood there before, say nothing of a stop.
    #[test]
    fn a_stop_is_said_by_a_whole_word() {
        let texts = ScreenTexts::default();
        assert!(texts.say_stopped("■ Stopped by you") && texts.say_stopped("(CANCELLED)"));
        assert!(
            !texts.say_stopped("unstopped") && !texts.say_stopped("Esc to cancel") && !texts.say_stopped("")
        );
        let own = ScreenTexts { stopped: vec!["you ended it".into()], ..texts };
        assert!(
            own.say_stopped("● You ended it.") && !own.say_stopped("stopped") && !own.say_stopped("ended")
        );
    }

    /// S15.14: a prompt that stands above the message is the one at which it was typed.
    #[test]
    fn what_stands_above_the_message_is_older() {
        assert_eq!(below("> go\nworks\n> ", "go"), "works\n> ");
        assert_eq!(below("> go\nsaid: go", "go"), "");
        assert_eq!(below("> ", "go"), "> ");
    }

    /// S15.14: a prompt that is always there says nothing while what is there only for work is there, too.
    #[test]
    fn a_screen_that_is_busy_is_not_free() {
        let texts = ScreenTexts {
            ready: Some("> ".into()),
            busy: Some("esc to cancel".into()),
            ..ScreenTexts::default()
        };
        assert!(!texts.show_free("> go\n(esc to cancel)\n> ", "go") && texts.show_free("> go\n> ", "go"));
        assert!(!texts.show_free("> go\n", "go") && !ScreenTexts::default().show_free("> ", "go"));
    }

    #[test]
    fn a_row_that_moved_is_no_new_one() {
        assert_eq!(new_rows("a\nb\n> ", "b\nb\nc\n> "), "b\nc");
        assert_eq!(new_rows("", "a"), "a");
    }
}
