//! A model whose words and errors are cleaned as they arrive, so that a recording around it holds no secret either.

use futures_core::future::BoxFuture;
use futures_util::{StreamExt as _, stream};

use super::Secrets;
use crate::{
    contract::model::{Conversation, Delta, DeltaStream, Finish, Model, ModelError, ModelSpec, Parameters},
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

    fn accepts(&self, spec: &ModelSpec) -> Result<(), ModelError> {
        self.inner.accepts(spec).map_err(|error| error.in_words(|words| self.secrets.clean_text(words)))
    }

    fn open(&self, spec: ModelSpec) -> Box<dyn Conversation> {
        Box::new(CleanTalk { inner: self.inner.open(spec), secrets: self.secrets.clone() })
    }

    fn check(&self, parameters: &Parameters) -> Result<(), ModelError> {
        self.inner.check(parameters).map_err(|error| error.in_words(|words| self.secrets.clean_text(words)))
    }
}

struct CleanTalk {
    inner: Box<dyn Conversation>,
    secrets: Secrets,
}

impl Conversation for CleanTalk {
    fn stream(&mut self, history: &History) -> DeltaStream {
        let mut arriving =
            Arriving { secrets: self.secrets.clone(), held: String::new(), is_reasoning: false };
        let said = self.inner.stream(history).map(Some).chain(stream::iter([None]));
        Box::pin(said.flat_map(move |said| stream::iter(arriving.take(said))))
    }

    fn release(&mut self) -> Option<BoxFuture<'static, ()>> {
        self.inner.release()
    }

    fn never_blocks(&self) -> bool {
        self.inner.never_blocks()
    }
}

type Said = Result<Delta, ModelError>;

/// Text that arrives in pieces: a piece that may be the beginning of a secret waits for the next one.
struct Arriving {
    secrets: Secrets,
    held: String,
    /// Whether what is held is reasoning, and not text.
    is_reasoning: bool,
}

impl Arriving {
    fn take(&mut self, said: Option<Said>) -> Vec<Said> {
        match said {
            None => self.release_held().into_iter().collect(),
            Some(Ok(Delta::Text(text))) => self.more(false, text),
            Some(Ok(Delta::Reasoning(text))) => self.more(true, text),
            // A secret in JSON may be escaped and in pieces: arguments are shown when they are complete, and cleaned.
            Some(Ok(Delta::CallArguments { .. })) => Vec::new(),
            Some(Ok(call @ Delta::CallReady(_))) => {
                let call = self.delta(call);
                let shown = match &call {
                    Delta::CallReady(ToolCall { id, name, args }) => Some(Delta::CallArguments {
                        id: id.clone(),
                        name: name.as_str().into(),
                        text: args.clone(),
                    }),
                    _ => None,
                };
                self.release_held().into_iter().chain(shown.map(Ok)).chain([Ok(call)]).collect()
            }
            Some(other) => {
                let cleaned = match other {
                    Ok(delta) => Ok(self.delta(delta)),
                    Err(error) => Err(error.in_words(|words| self.secrets.clean_text(words))),
                };
                self.release_held().into_iter().chain([cleaned]).collect()
            }
        }
    }

    fn more(&mut self, is_reasoning: bool, text: String) -> Vec<Said> {
        let mut out = Vec::new();
        if is_reasoning != self.is_reasoning {
            out.extend(self.release_held());
            self.is_reasoning = is_reasoning;
        }
        let before = std::mem::take(&mut self.held);
        let mut text = self.secrets.clean_text(if before.is_empty() { text } else { before + &text });
        self.held = text.split_off(text.len() - self.secrets.begun(&text));
        out.extend(self.said(text));
        out
    }

    fn release_held(&mut self) -> Option<Said> {
        let held = std::mem::take(&mut self.held);
        self.said(held)
    }

    fn said(&self, text: String) -> Option<Said> {
        let delta = if self.is_reasoning { Delta::Reasoning } else { Delta::Text };
        (!text.is_empty()).then(|| Ok(delta(text)))
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
            Delta::Provider(block) => {
                secrets.clean_value(&mut block.raw);
                block.texts_mut().into_iter().for_each(|text| {
                    secrets.clean_in(text);
                });
            }
            Delta::CallReady(ToolCall { id, name, args }) => {
                *id = CallId::from(secrets.clean(id.as_str()).as_ref());
                secrets.clean_in(name);
                secrets.clean_json(args);
            }
            // It is left out before, and made of the cleaned call.
            Delta::CallArguments { text, .. } => text.clear(),
            Delta::Waiting { what } => *what = secrets.clean(&**what).as_ref().into(),
            Delta::Ended(Finish::Natural | Finish::Length | Finish::Filtered)
            | Delta::Sent
            | Delta::Opened
            | Delta::Usage(_) => {}
        }
        delta
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S8.10: arguments that arrive in pieces are shown when they are complete, and hold no secret.
    #[test]
    fn a_secret_in_arguments_that_arrive_in_pieces_is_not_shown() {
        let secrets = Secrets::of([("KEY".to_owned(), "hun\"ter22".to_owned())]);
        let mut arriving = Arriving { secrets, held: String::new(), is_reasoning: false };
        let (id, name) = (|| CallId::from("c0"), || "pay".to_owned());
        for text in ["{\"key\":\"hun\\\"", "ter22\"}"] {
            let piece = Delta::CallArguments { id: id(), name: "pay".into(), text: text.into() };
            assert!(arriving.take(Some(Ok(piece))).is_empty());
        }
        let args = "{\"key\":\"hun\\\"ter22\"}".to_owned();
        let call = Delta::CallReady(ToolCall { id: id(), name: name(), args });
        let shown: Vec<Delta> = arriving.take(Some(Ok(call))).into_iter().map(Result::unwrap).collect();
        let [Delta::CallArguments { text, .. }, Delta::CallReady(ToolCall { args, .. })] = &shown[..] else {
            panic!("{shown:?}")
        };
        assert_eq!(text, args);
        assert!(!text.contains("ter22"), "{text}");
    }

    /// S8.10: a secret in pieces is replaced like one in one piece, and nothing else is held back or lost.
    #[test]
    fn a_secret_that_arrives_in_pieces_is_replaced() {
        let secrets = Secrets::of([("KEY".to_owned(), "hunter22".to_owned())]);
        let mut arriving = Arriving { secrets, held: String::new(), is_reasoning: false };
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
