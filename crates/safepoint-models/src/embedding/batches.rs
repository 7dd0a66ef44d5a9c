//! Which texts go into one request, and which go into none.

use std::ops::Range;

use safepoint::model::{ModelError, ModelErrorKind};

/// What one text and one request may hold, and how many requests run at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BatchLimits {
    /// Texts of one request.
    pub(crate) texts: usize,
    /// Bytes of one text.
    pub(crate) text_bytes: usize,
    /// Bytes of the texts of one request; a text that is larger goes alone.
    pub(crate) request_bytes: usize,
    /// Requests at once.
    pub(crate) parallel: usize,
}

/// How many requests run at once unless it is set.
pub(crate) const PARALLEL: usize = 4;

/// The requests, each as the range of its texts.
///
/// # Errors
/// If no request can be made of these texts.
pub(super) fn plan(texts: &[String], limits: &BatchLimits) -> Result<Vec<Range<usize>>, ModelError> {
    if limits.texts == 0 || limits.parallel == 0 {
        return Err(refused("the texts of a request and the requests at once are limited to 0")
            .with_hint("set each limit to at least 1"));
    }
    if texts.is_empty() {
        return Err(refused("there is no text to embed").with_hint("give at least one text"));
    }
    let mut requests = Vec::new();
    let (mut first, mut bytes) = (0, 0_usize);
    for (index, text) in texts.iter().enumerate() {
        check(index, texts.len(), text, limits)?;
        let is_full =
            index - first == limits.texts || bytes.saturating_add(text.len()) > limits.request_bytes;
        if is_full && index > first {
            requests.push(first..index);
            (first, bytes) = (index, 0);
        }
        bytes = bytes.saturating_add(text.len());
    }
    requests.push(first..texts.len());
    Ok(requests)
}

fn check(index: usize, all: usize, text: &str, limits: &BatchLimits) -> Result<(), ModelError> {
    let number = index + 1;
    if text.is_empty() {
        return Err(
            refused(format!("text {number} of {all} is empty")).with_hint("leave it out: it has no vector")
        );
    }
    if text.len() > limits.text_bytes {
        let what = format!(
            "text {number} of {all} has {} bytes, and a text may have {}",
            text.len(),
            limits.text_bytes
        );
        return Err(ModelError::new(ModelErrorKind::ContextWindow, what).with_hint(
            "split it into smaller texts, or set `max_text_bytes` higher if the model takes more: some providers cut \
             what is too long without a word",
        ));
    }
    Ok(())
}

fn refused(what: impl Into<std::borrow::Cow<'static, str>>) -> ModelError {
    ModelError::new(ModelErrorKind::Refused, what)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMITS: BatchLimits = BatchLimits { texts: 3, text_bytes: 8, request_bytes: 10, parallel: 1 };

    fn planned(sizes: &[usize]) -> Result<Vec<Range<usize>>, ModelError> {
        plan(&sizes.iter().map(|size| "x".repeat(*size)).collect::<Vec<_>>(), &LIMITS)
    }

    /// S12.31: a request holds no more texts and no more bytes than its limits say.
    #[test]
    fn a_request_is_filled_up_to_its_limits() {
        assert_eq!(planned(&[1; 7]).unwrap(), [0..3, 3..6, 6..7]);
        assert_eq!(planned(&[5, 5, 1, 8, 3]).unwrap(), [0..2, 2..4, 4..5]);
    }

    /// S12.31: what cannot be embedded is refused before anything is sent, with what to do about it.
    #[test]
    fn what_cannot_be_embedded_is_refused_with_a_hint() {
        for (sizes, says, hint) in [
            (&[][..], "there is no text", "at least one"),
            (&[1, 0], "text 2 of 2 is empty", "leave it out"),
            (&[1, 1, 9], "text 3 of 3 has 9 bytes, and a text may have 8", "split it"),
        ] {
            let error = planned(sizes).unwrap_err();
            assert!(error.to_string().contains(says), "{error}");
            assert!(error.hint().unwrap().contains(hint), "{error:?}");
        }
        let none = BatchLimits { parallel: 0, ..LIMITS };
        assert!(plan(&["a".to_owned()], &none).unwrap_err().hint().unwrap().contains("at least 1"));
    }

    proptest! {
        /// S12.31: each text is in exactly one request, in order, whatever the sizes.
        #[test]
        fn each_text_is_in_one_request(sizes in proptest::collection::vec(1_usize..=8, 1..60)) {
            let requests = planned(&sizes).unwrap();
            let all: Vec<usize> = requests.iter().cloned().flatten().collect();
            prop_assert_eq!(all, (0..sizes.len()).collect::<Vec<_>>());
            for request in requests {
                prop_assert!(request.len() <= LIMITS.texts);
                prop_assert!(sizes[request].iter().sum::<usize>() <= LIMITS.request_bytes);
            }
        }
    }
}
