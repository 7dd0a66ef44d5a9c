//! Where a page of tasks begins: the part of the sessions that it is of, and the last task of the page before.
//!
//! **Invariants**: the pages of a list are of one part after the other; the end of a part stays where it was, whatever has changed since.

use jiff::Timestamp;
use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};
use safepoint::{ids::SessionId, raw::store::PageCursor};

/// What separates the fields of a token, and what an id therefore has not.
const BETWEEN: char = '~';
const ENCODED: &AsciiSet = &CONTROLS.add(b'~').add(b'%');

/// The place of a task among those of a part: when it changed, and its name.
pub(super) type TaskPlace = (Timestamp, String);

/// Where a page begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PageStart {
    pub(super) part: SessionPart,
    /// The last task of the page before; none: the page is the first of its part.
    pub(super) after: Option<TaskPlace>,
}

/// A part of the sessions in the order of their last change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SessionPart {
    /// The last session of the part before.
    pub(super) after: Option<PageCursor>,
    /// Its own last session, once that is known.
    pub(super) to: Option<PageCursor>,
}

impl PageStart {
    /// The token of the page.
    pub(super) fn token(&self) -> String {
        let Self { part, after } = self;
        let cursor = |cursor: &Option<PageCursor>| match cursor {
            Some(PageCursor { updated, id }) => [updated.to_string(), encoded(id.as_str())],
            None => Default::default(),
        };
        let place = match after {
            Some((at, name)) => [at.as_microsecond().to_string(), encoded(name)],
            None => Default::default(),
        };
        [cursor(&part.after), cursor(&part.to), place].concat().join(&BETWEEN.to_string())
    }

    /// Where the page of this token begins. `None`: it is no token.
    pub(super) fn parse(token: &str) -> Option<Self> {
        let fields: Vec<&str> = token.split(BETWEEN).collect();
        let [after, after_id, to, to_id, at, name] = *fields else { return None };
        let place = match at {
            "" => None,
            at => Some((Timestamp::from_microsecond(at.parse().ok()?).ok()?, decoded(name)?)),
        };
        let part = SessionPart { after: cursor(after, after_id)?, to: cursor(to, to_id)? };
        Some(Self { part, after: place })
    }
}

/// The outer `None`: it is no cursor.
#[expect(clippy::option_option, reason = "a field may be empty, or wrong")]
fn cursor(updated: &str, id: &str) -> Option<Option<PageCursor>> {
    if updated.is_empty() {
        return Some(None);
    }
    Some(Some(PageCursor { updated: updated.parse().ok()?, id: SessionId::from(decoded(id)?) }))
}

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, ENCODED).to_string()
}

fn decoded(text: &str) -> Option<String> {
    Some(percent_decode_str(text).decode_utf8().ok()?.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S13.37: a token is read back as what it says, and what is none is none.
    #[test]
    fn a_token_is_read_back() {
        let at = Timestamp::from_microsecond(1_795_795_944_000_001).unwrap();
        let cursor = |id: &str| Some(PageCursor { updated: at, id: SessionId::from(id) });
        for (after, to, place) in [
            (None, None, Some((at, "ses_1.7".to_owned()))),
            (None, cursor("ses_2"), Some((at, "a~b%7E.1".to_owned()))),
            (cursor("my~own%"), None, None),
        ] {
            let start = PageStart { part: SessionPart { after, to }, after: place };
            assert_eq!(PageStart::parse(&start.token()), Some(start));
        }
        for text in ["", "x", "~~~~x~y", "x~y~~~~", "~~~~~~"] {
            assert_eq!(PageStart::parse(text), None, "{text}");
        }
    }
}
