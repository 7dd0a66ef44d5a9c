//! A model without a wire: scripts and gates in process, where the clock may be paused and no socket is
//! between the test and the engine.
//!
//! ```
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! use safepoint::{Agent, StopRequest, model::Delta};
//! use safepoint_testkit::{invariants::Invariants, script::Script, scripted::ScriptedModel};
//!
//! let model = ScriptedModel::new(Script::default());
//! let mut gate = model.gate();
//! let handle = Agent::builder(model).build().run("tell").detach();
//! gate.request().await;
//! gate.send(Delta::Text("once upon".into()));
//! handle.stop(StopRequest::now());
//! gate.dropped().await; // the engine let go of the exchange
//! Invariants::of(&handle).check().await.unwrap();
//! # });
//! ```

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use futures_util::{StreamExt as _, stream};
use safepoint::{
    History, Model,
    history::Message,
    model::{Conversation, Delta, DeltaStream, ModelError, ModelSpec, Parameters},
};
use tokio::sync::{mpsc, oneshot};

use crate::{
    script::{Asked, Chosen, Director, Script},
    sync::lock,
};

mod deltas;

/// One step of a reply; the last one's silence lasts until the engine lets go.
type DeltaStep = Result<Delta, ModelError>;

/// A model that says what a [`Script`] says, or what a gate lets it say. Clones are the same model.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use safepoint::Agent;
/// use safepoint_testkit::{script::{Reply, Script}, scripted::ScriptedModel};
/// let model = ScriptedModel::new(Script::of([Reply::text("Lisbon.")]));
/// let outcome = Agent::builder(model.clone()).build().run("The capital of Portugal?").await;
/// assert_eq!(outcome.answer(), Some("Lisbon."));
/// assert_eq!(model.requests().len(), 1); // what it was asked
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct ScriptedModel {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    director: Director,
    /// Held to note one request and to take its gate, which are one step: gates are used in the order of
    /// requests. Nothing is sent or awaited under it.
    state: Mutex<ScriptState>,
}

#[derive(Debug, Default)]
struct ScriptState {
    asked: Vec<History>,
    gates: VecDeque<QueuedGate>,
}

/// The model's end of a gate.
#[derive(Debug)]
struct QueuedGate {
    asked: oneshot::Sender<History>,
    steps: mpsc::UnboundedReceiver<DeltaStep>,
}

/// Drives one model call. Dropping it ends the stream, which the engine takes for a broken one.
#[derive(Debug)]
pub struct ModelGate {
    asked: Option<oneshot::Receiver<History>>,
    steps: mpsc::UnboundedSender<DeltaStep>,
}

impl ScriptedModel {
    /// A model that plays this script.
    #[must_use]
    pub fn new(script: Script) -> Self {
        Self { shared: Arc::new(Shared { director: Director::new(script), state: Mutex::default() }) }
    }

    /// The next call is answered step by step through the gate; several queue up.
    pub fn gate(&self) -> ModelGate {
        let (sender, steps) = mpsc::unbounded_channel();
        let (asks, asked) = oneshot::channel();
        lock(&self.shared.state).gates.push_back(QueuedGate { asked: asks, steps });
        ModelGate { asked: Some(asked), steps: sender }
    }

    /// The history of each call so far.
    #[must_use]
    pub fn requests(&self) -> Vec<History> {
        lock(&self.shared.state).asked.clone()
    }
}

impl ModelGate {
    /// Waits for the call, and gives its history; nothing but the first time.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn request(&mut self) -> Option<History> {
        let history = self.asked.as_mut()?.await.ok();
        self.asked = None;
        history
    }

    /// Sends one delta.
    pub fn send(&self, delta: Delta) -> &Self {
        self.step(Ok(delta))
    }

    /// Fails the call.
    pub fn fail(&self, error: ModelError) {
        self.step(Err(error));
    }

    /// Waits until the engine has let go of the stream, because it ended or was cut.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn dropped(&self) {
        self.steps.closed().await;
    }

    fn step(&self, step: DeltaStep) -> &Self {
        if self.steps.send(step).is_err() {
            // The engine let go first; `dropped` says so.
        }
        self
    }
}

impl Model for ScriptedModel {
    fn name(&self) -> &str {
        "scripted"
    }

    /// It says what its script says, whatever it is offered.
    fn accepts(&self, _spec: &ModelSpec) -> Result<(), ModelError> {
        Ok(())
    }

    fn open(&self, spec: ModelSpec) -> Box<dyn Conversation> {
        Box::new(ScriptedConversation { shared: Arc::clone(&self.shared), spec })
    }

    /// It takes all, and its script says what it answers.
    fn check(&self, _: &Parameters) -> Result<(), ModelError> {
        Ok(())
    }
}

/// One conversation.
struct ScriptedConversation {
    shared: Arc<Shared>,
    spec: ModelSpec,
}

impl Conversation for ScriptedConversation {
    fn stream(&mut self, history: &History) -> DeltaStream {
        let (shared, history) = (Arc::clone(&self.shared), history.clone());
        let asked = asked(&self.spec, &history);
        // Lazy: nothing is asked before the first poll.
        let begun = async move { shared.answer(history, &asked) };
        stream::once(begun).flatten().boxed()
    }
}

impl Shared {
    fn answer(&self, history: History, asked: &Asked) -> DeltaStream {
        let mut state = lock(&self.state);
        state.asked.push(history.clone());
        let gate = state.gates.pop_front();
        drop(state);
        if let Some(QueuedGate { asked, steps }) = gate {
            if asked.send(history).is_err() {
                // No test waits for the request; the gate may still be driven.
            }
            let begun = stream::iter([Ok(Delta::Sent), Ok(Delta::Opened)]);
            // A stream ends after its end or an error, whatever the gate still sends.
            let steps = stream::unfold(Some(steps), |open| async {
                let mut steps = open?;
                let step = steps.recv().await?;
                let over = matches!(step, Ok(Delta::Ended(_)) | Err(_));
                Some((step, (!over).then_some(steps)))
            });
            return begun.chain(steps).boxed();
        }
        match self.director.choose(asked) {
            Chosen::Scripted(_, reply) => deltas::stream(reply),
            Chosen::Improvised(reply) => deltas::stream(&reply),
        }
    }
}

/// What a script looks at.
fn asked(spec: &ModelSpec, history: &History) -> Asked {
    let mut asked =
        Asked { tools: spec.tools.iter().map(|tool| tool.name.clone()).collect(), ..Asked::default() };
    for entry in history.entries().iter() {
        match &**entry {
            Message::User(message) => {
                asked.user.clone_from(&message.text);
                asked.results.clear();
            }
            Message::Assistant(_) => {}
            Message::Results { results } => {
                asked.results.extend(results.iter().map(|result| String::clone(&result.text)));
            }
        }
    }
    asked
}
