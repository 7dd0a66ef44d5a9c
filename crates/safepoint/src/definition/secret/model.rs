//! A model whose words and errors are cleaned as they arrive, so that a recording around it holds no secret either.

use std::sync::Arc;

use futures_core::future::BoxFuture;
use futures_util::{StreamExt as _, stream};

use super::Secrets;
use crate::{
    contract::model::{Conversation, Delta, DeltaStream, Finish, Model, ModelError, ModelSpec},
    value::{history::History, ids::CallId, message::ToolCall},
};

/// A model that tells no secret.
pub struct Cleaned<M> {
    inner: M,
    secrets: Secrets,
}

impl<M> std::fmt::Debug for Cleaned<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cleaned").field("secrets", &self.secrets).finish_non_exhaustive()
    }
}

impl<M> Cleaned<M> {
    /// Cleans what `model` says.
    #[must_use]
    pub fn new(model: M, secrets: Secrets) -> Self {
        Self { inner: model, secrets }
    }
}

impl<M: Model> Model for Cleaned<M> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn open(&self, spec: ModelSpec) -> Box<dyn Conversation> {
        Box::new(CleanTalk { inner: self.inner.open(spec), secrets: self.secrets.clone() })
    }
}

impl Model for Cleaned<Arc<dyn Model>> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn open(&self, spec: ModelSpec) -> Box<dyn Conversation> {
        Box::new(CleanTalk { inner: self.inner.open(spec), secrets: self.secrets.clone() })
    }
}

struct CleanTalk {
    inner: Box<dyn Conversation>,
    secrets: Secrets,
}

impl Conversation for CleanTalk {
    fn stream(&mut self, history: &History) -> DeltaStream {
        let mut arriving = Arriving { secrets: self.secrets.clone(), held: None };
        let said = self.inner.stream(history).map(Some).chain(stream::iter([None]));
        Box::pin(said.flat_map(move |said| stream::iter(arriving.take(said))))
    }

    fn release(&mut self) -> Option<BoxFuture<'static, ()>> {
        self.inner.release()
    }
}

type Said = Result<Delta, ModelError>;

/// Text that arrives in pieces: a piece that may be the beginning of a secret waits for the next one.
struct Arriving {
    secrets: Secrets,
    held: Option<(Kind, String)>,
}

/// Exhaustive: the two texts of a message.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Reasoning,
}

impl Arriving {
    fn take(&mut self, said: Option<Said>) -> Vec<Said> {
        match said {
            None => self.let_go().into_iter().collect(),
            Some(Ok(Delta::Text(text))) => self.more(Kind::Text, text),
            Some(Ok(Delta::Reasoning(text))) => self.more(Kind::Reasoning, text),
            Some(other) => {
                let cleaned = match other {
                    Ok(delta) => Ok(self.delta(delta)),
                    Err(error) => Err(error.in_words(|words| self.secrets.clean_text(words))),
                };
                self.let_go().into_iter().chain([cleaned]).collect()
            }
        }
    }

    fn more(&mut self, kind: Kind, text: String) -> Vec<Said> {
        let mut out = Vec::new();
        let before = match self.held.take() {
            Some((held, text)) if held == kind => text,
            Some(other) => {
                self.held = Some(other);
                out.extend(self.let_go());
                String::new()
            }
            None => String::new(),
        };
        let mut text = self.secrets.clean_text(if before.is_empty() { text } else { before + &text });
        let held = text.split_off(text.len() - self.secrets.begun(&text));
        if !text.is_empty() {
            out.push(Ok(kind.delta(text)));
        }
        self.held = Some((kind, held)).filter(|(_, held)| !held.is_empty());
        out
    }

    fn let_go(&mut self) -> Option<Said> {
        self.held.take().map(|(kind, text)| Ok(kind.delta(text)))
    }

    /// Each text in it is cleaned: a kind of delta that is added does not compile until that is so of it.
    fn delta(&self, mut delta: Delta) -> Delta {
        let secrets = &self.secrets;
        match &mut delta {
            Delta::Text(text)
            | Delta::Reasoning(text)
            | Delta::CallPreview { name: text }
            | Delta::Retrying { error: text, .. }
            | Delta::FailedOver { error: text, .. }
            | Delta::Reconnecting { error: text, .. }
            | Delta::Ended(Finish::Other(text)) => {
                secrets.clean_in(text);
            }
            Delta::ReasoningSeal(seal) => {
                secrets.clean_value(seal);
            }
            Delta::CallReady(ToolCall { id, name, args }) => {
                *id = CallId::from(secrets.clean(id.as_str()).as_ref());
                secrets.clean_in(name);
                secrets.clean_json(args);
            }
            Delta::Ended(Finish::Natural | Finish::Length | Finish::Filtered)
            | Delta::Sent
            | Delta::Opened
            | Delta::Usage(_) => {}
        }
        delta
    }
}

impl Kind {
    fn delta(self, text: String) -> Delta {
        match self {
            Self::Text => Delta::Text(text),
            Self::Reasoning => Delta::Reasoning(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S8.10: a secret in pieces is replaced like one in one piece, and nothing else is held back or lost.
    #[test]
    fn a_secret_that_arrives_in_pieces_is_replaced() {
        let secrets = Secrets::of([("KEY".to_owned(), "hunter22".to_owned())]);
        let mut arriving = Arriving { secrets, held: None };
        let mut said = String::new();
        for piece in ["the ke", "y is hun", "ter", "22, I thi", "nk; hunt", "s and hu"] {
            for delta in arriving.take(Some(Ok(Delta::Text(piece.into())))) {
                let Ok(Delta::Text(text)) = delta else { panic!("text") };
                said.push_str(&text);
            }
        }
        assert_eq!(said, "the key is [secret KEY], I think; hunts and ");
        let Some(Ok(Delta::Text(rest))) = arriving.take(None).pop() else { panic!("the rest") };
        assert_eq!(rest, "hu");
    }
}
