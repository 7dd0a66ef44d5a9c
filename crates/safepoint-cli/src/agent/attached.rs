//! Files that go with messages of a chat, from when they are sent until a turn takes the message: an item of a session is text.
//!
//! **Invariants**: what goes with a text are the files that were read when it was last sent from here; the text of another process
//! brings none.

use std::{collections::VecDeque, sync::Mutex};

use safepoint::message::{Part, UserMessage};

use crate::sync::lock;

/// How many messages with files are kept, so that one can be sent again.
const MOST: usize = 16;

/// The files of messages, by their text.
#[derive(Debug, Default)]
pub(crate) struct Attached {
    /// Held for one look or change; no other lock is taken under it.
    messages: Mutex<VecDeque<(String, Vec<Part>)>>,
}

impl Attached {
    /// These go with this text from now on.
    pub(crate) fn add(&self, text: String, parts: Vec<Part>) {
        let mut messages = lock(&self.messages);
        messages.retain(|(other, _)| *other != text);
        messages.push_back((text, parts));
        let over = messages.len().saturating_sub(MOST);
        messages.drain(..over);
    }

    /// Adds what goes with a message.
    pub(crate) fn put_into(&self, message: &mut UserMessage) {
        let messages = lock(&self.messages);
        let found = messages.iter().find(|(text, _)| *text == message.text);
        message.parts.extend(found.into_iter().flat_map(|(_, parts)| parts.clone()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sent_with_a_text_goes_with_it_and_with_no_other() {
        let attached = Attached::default();
        let part = || vec![Part::image("image/png", b"a").unwrap()];
        attached.add("what is @a.png?".to_owned(), part());
        for (text, parts) in [("what is @a.png?", 1), ("what is @b.png?", 0)] {
            let mut message = UserMessage::from(text);
            attached.put_into(&mut message);
            assert_eq!(message.parts.len(), parts, "{text}");
        }
        (0..MOST).for_each(|number| attached.add(number.to_string(), part()));
        assert_eq!(lock(&attached.messages).len(), MOST);
    }
}
