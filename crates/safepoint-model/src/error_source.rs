//! What caused a failure, as the error value itself.
//!
//! **Invariants**: a source lives in the process alone. It is never recorded, sent or compared.

use std::{error::Error as StdError, fmt, iter, sync::Arc};

/// The error value behind a failure, with its own sources.
#[derive(Clone, Default)]
pub struct ErrorSource(Option<Arc<dyn StdError + Send + Sync>>);

impl ErrorSource {
    /// The source that this error is.
    #[must_use]
    pub fn of(source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self(Some(Arc::from(source.into())))
    }

    /// The error, if there is one.
    #[must_use]
    pub fn as_error(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.as_deref().map(|source| -> &(dyn StdError + 'static) { source })
    }

    /// The same, unless `change` changes a text of it: then the changed texts alone, so that nothing leads to the
    /// others.
    #[must_use]
    pub fn in_words(self, change: &impl Fn(String) -> String) -> Self {
        let Some(outermost) = self.as_error() else { return self };
        let chain = || iter::successors(Some(outermost), |&cause| cause.source());
        let stays = |text: String| change(text.clone()) == text;
        if chain().all(|cause| stays(cause.to_string()) && stays(format!("{cause:?}"))) {
            return self;
        }
        let mut texts: Vec<String> = chain().map(|cause| change(cause.to_string())).collect();
        let innermost = texts.pop().map(|text| CauseText { text, source: None });
        let outermost = texts
            .into_iter()
            .rev()
            .fold(innermost, |source, text| Some(CauseText { text, source: source.map(Box::new) }));
        Self(outermost.map(|text| Arc::new(text) as Arc<_>))
    }
}

/// What caused a failure is no part of what it says.
impl PartialEq for ErrorSource {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for ErrorSource {}

impl fmt::Debug for ErrorSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(source) => source.fmt(f),
            None => f.write_str("None"),
        }
    }
}

/// What an error said, in place of the error.
#[derive(Debug)]
struct CauseText {
    text: String,
    source: Option<Box<Self>>,
}

impl fmt::Display for CauseText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl StdError for CauseText {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|source| -> &(dyn StdError + 'static) { source })
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("could not reach it")]
    struct Outer(#[source] io::Error);

    fn texts(source: &ErrorSource) -> Vec<String> {
        let chain = iter::successors(source.as_error(), |&cause| cause.source());
        chain.map(|cause| format!("{cause} {cause:?}")).collect()
    }

    /// S3.11, S8.10: a chain with a secret in any text of it, also in one that only `{:?}` shows, is its cleaned texts;
    /// another one stays as it is.
    #[test]
    fn a_chain_with_a_secret_is_its_cleaned_texts() {
        let clean = |text: String| text.replace("hunter22", "[secret]");
        let chain = |inner: &str| ErrorSource::of(Outer(io::Error::other(inner.to_owned())));
        let kept = chain("refused").in_words(&clean);
        assert!(kept.as_error().unwrap().is::<Outer>());
        let cleaned = chain("no key hunter22").in_words(&clean);
        let texts = texts(&cleaned);
        assert_eq!(texts.len(), 2, "{texts:?}");
        assert!(texts[0].starts_with("could not reach it"), "{texts:?}");
        assert!(texts[1].starts_with("no key [secret]"), "{texts:?}");
        assert!(!texts.concat().contains("hunter22"), "{texts:?}");
        assert!(!cleaned.as_error().unwrap().is::<Outer>());
    }
}
