//! What a model says, changed as it arrives.

/// Changes one message's text as it streams.
///
/// Pieces have no meaning: a word, or a number that must not be seen, may stand in two of them. A filter that has to see
/// more than a piece keeps what it is given until it knows, and gives it back later. What it still keeps when the message
/// is cut is dropped: it was never shown.
///
/// ```
/// use safepoint::hook::TextFilter;
/// struct Whole(String);
/// impl TextFilter for Whole {
///     fn push(&mut self, piece: &str) -> String {
///         self.0.push_str(piece);
///         String::new()
///     }
///     fn flush(&mut self) -> String {
///         std::mem::take(&mut self.0).replace("4111 1111 1111 1111", "[card]")
///     }
/// }
/// ```
pub trait TextFilter: Send + 'static {
    /// Takes the next piece, and returns what is shown and recorded now.
    fn push(&mut self, piece: &str) -> String;

    /// Returns what is still kept: a call, the message's end, or text of the other kind follows. More text may come
    /// after it.
    fn flush(&mut self) -> String {
        String::new()
    }
}

/// Which text of a model is filtered. Exhaustive: a message has these two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TextKind {
    /// The text for people.
    Answer,
    /// The reasoning. A provider's seal of reasoning that was changed is dropped with it, so that reasoning is not sent
    /// back.
    Reasoning,
}

/// Filters whole lines.
pub(super) struct Lines<F> {
    pub(super) line: String,
    pub(super) change: F,
}

impl<F: Fn(&str) -> String + Send + 'static> TextFilter for Lines<F> {
    fn push(&mut self, piece: &str) -> String {
        let mut out = String::new();
        for part in piece.split_inclusive('\n') {
            self.line.push_str(part);
            if self.line.ends_with('\n') {
                self.line.pop();
                out.push_str(&(self.change)(&self.line));
                out.push('\n');
                self.line.clear();
            }
        }
        out
    }

    fn flush(&mut self) -> String {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() { line } else { (self.change)(&line) }
    }
}
