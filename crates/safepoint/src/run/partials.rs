//! A typed answer while it arrives, as far as it is certain.
//!
//! **Invariants**: what is given is read from what the run showed of one message, and there of its text or of one call; a message
//! that was not shown whole is given again only from the next one on.

use std::{
    fmt, future,
    marker::PhantomData,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use futures_core::Stream;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{
    definition::answer::AnswerSchema,
    value::{
        event::{EventKind, Events, Fact},
        ids::CallId,
        message::{AssistantMessage, ToolCall},
        partial_json::PartialJson,
    },
};

/// A typed answer while the model writes it: each [`next`](Partials::next) is what of it is certain by then, with more in it
/// than before. From [`Run::partials`](crate::Run::partials).
///
/// `P` is a type whose fields may be missing, such as `Option` under `#[serde(default)]`, or [`serde_json::Value`]; what does
/// not read as a `P` yet is left out. A text may still grow; a number, a word and a list's entry before the last are whole.
/// It is only for show: the answer is that of the outcome, which the engine checks. After a correction it begins anew. If a
/// message has several answers, the first is given, and the next one once it is known that the first is not taken.
///
/// ```no_run
/// # use safepoint::Agent;
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct City { name: String, people: u64 }
/// #[derive(Debug, Default, serde::Deserialize)]
/// #[serde(default)]
/// struct Draft { name: Option<String>, people: Option<u64> }
///
/// # async fn ask(agent: Agent) {
/// let run = agent.run_typed::<City>("Which is the largest city of Europe?").start();
/// let mut partials = run.partials::<Draft>();
/// while let Some(draft) = partials.next().await {
///     println!("{draft:?}");
/// }
/// println!("{:?}", run.await.into_value().map(|city| city.name));
/// # }
/// ```
pub struct Partials<P> {
    events: Events,
    form: Option<Arc<AnswerSchema>>,
    text: PartialJson,
    calls: AnswerCalls,
    /// Whether something of this message was missed.
    has_gap: bool,
    given: Option<Value>,
    of: PhantomData<fn() -> P>,
}

impl<P: DeserializeOwned> Partials<P> {
    pub(super) fn new(events: Events, form: Option<Arc<AnswerSchema>>) -> Self {
        let (text, calls) = Default::default();
        Self { events, form, text, calls, has_gap: false, given: None, of: PhantomData }
    }

    /// What is certain now, once it is more than was given before; none when the run has settled. A reader that is slower than
    /// the model gets the newest and not each step.
    ///
    /// # Cancel safety
    /// Nothing is lost: what had arrived is kept, and given by the next call.
    pub async fn next(&mut self) -> Option<P> {
        future::poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }

    /// What is certain, if it is not what was given last and reads as a `P`.
    fn newest(&mut self) -> Option<P> {
        if self.has_gap {
            return None;
        }
        let value = self.calls.value().or_else(|| self.text.value())?;
        let value = self.form.as_ref().map_or(Some(value.clone()), |form| form.bare(value))?;
        if self.given.as_ref() == Some(&value) {
            return None;
        }
        let partial = P::deserialize(&value).ok()?;
        self.given = Some(value);
        Some(partial)
    }

    fn take(&mut self, kind: EventKind) {
        match kind {
            EventKind::Text(text) => self.text.push(&text),
            EventKind::CallDelta { call_id, name, arguments } => {
                if let Some(form) = self.form.as_ref().filter(|form| form.name() == &*name) {
                    self.calls.push(form, &call_id, &arguments);
                }
            }
            EventKind::Lagged { .. } => self.has_gap = true,
            EventKind::Fact(fact) => match &*fact {
                Fact::ModelStarted { .. } => {
                    (self.text, self.calls) = Default::default();
                    self.has_gap = false;
                    self.given = None;
                }
                // Behind the last piece: a number alone has no other end, and a whole message has no gap.
                Fact::ModelEnded { message, .. } => {
                    self.text = PartialJson::of(&message.text());
                    self.calls =
                        self.form.as_ref().map(|form| AnswerCalls::of(form, message)).unwrap_or_default();
                    self.has_gap = false;
                }
                _ => {}
            },
            _ => {}
        }
    }
}

/// The calls of one message that answer, in the order in which they began: each has its own arguments.
#[derive(Default)]
struct AnswerCalls(Vec<AnswerCall>);

struct AnswerCall {
    id: CallId,
    args: PartialJson,
    /// Whether it is there, and not taken.
    is_refused: bool,
}

impl AnswerCalls {
    /// Those of a whole message.
    fn of(form: &AnswerSchema, message: &AssistantMessage) -> Self {
        let answers = message.calls().filter(|call| call.name == form.name());
        let read = |call: &ToolCall| AnswerCall {
            id: call.id.clone(),
            args: PartialJson::of(&call.args),
            is_refused: !form.takes(&call.args),
        };
        Self(answers.take(Self::MOST).map(read).collect())
    }

    /// More are not looked at while they arrive: a flood of them would take many times its size (S12.4).
    const MOST: usize = 64;

    /// Adds a piece to its call. Calls without an id come one after the other: one begins where the one before it is whole.
    fn push(&mut self, form: &AnswerSchema, id: &CallId, piece: &str) {
        let has_id = !id.as_str().is_empty();
        let is_it = |call: &AnswerCall| call.id == *id && (has_id || call.args.whole().is_none());
        let place = self.0.iter().position(is_it).or_else(|| {
            let begins = self.0.len() < Self::MOST && !piece.trim().is_empty();
            begins.then(|| {
                self.0.push(AnswerCall { id: id.clone(), args: PartialJson::default(), is_refused: false });
                self.0.len() - 1
            })
        });
        let Some(call) = place.and_then(|place| self.0.get_mut(place)) else { return };
        let was_whole = call.args.whole().is_some();
        call.args.push(piece);
        if let Some(whole) = call.args.whole().filter(|_| !was_whole) {
            call.is_refused = !form.takes(whole);
        }
    }

    /// What is certain of the one that is the answer as far as is known: the engine takes the first that fits. Where none does, the
    /// first is shown.
    fn value(&self) -> Option<Value> {
        let answer = self.0.iter().find(|call| !call.is_refused).or(self.0.first());
        answer.and_then(|call| call.args.value())
    }
}

/// The same as [`Partials::next`].
impl<P: DeserializeOwned> Stream for Partials<P> {
    type Item = P;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<P>> {
        loop {
            let Some(event) = ready!(Pin::new(&mut self.events).poll_next(cx)) else {
                return Poll::Ready(None);
            };
            self.take(event.kind);
            while let Some(event) = self.events.now() {
                self.take(event.kind);
            }
            if let Some(partial) = self.newest() {
                return Poll::Ready(Some(partial));
            }
        }
    }
}

impl<P> fmt::Debug for Partials<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Partials").field("events", &self.events).finish_non_exhaustive()
    }
}
