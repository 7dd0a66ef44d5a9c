//! Answers of a type: the model answers by calling a tool whose arguments are the answer, so that it works on every
//! wire; what does not fit is told to it, and it may mend it some times.

use std::{
    fmt,
    future::Future,
    marker::PhantomData,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::{
    agent::Agent,
    definition::{
        Definition,
        answer::{self, AnswerSchema},
    },
    run::{
        Run, RunHandle,
        outcome::{Answer, Outcome, RunError, Stopped, Suspended},
    },
    value::{approval::Decision, history::History, ids::ApprovalId, message::UserMessage},
};

pub use crate::definition::answer::REPAIRS;

/// An agent whose runs answer with a `T`: the same model, instructions, tools and limits, and one more tool, with which
/// the model answers.
///
/// The model must call a tool in each of its messages, where its wire lets it be made to; an answer in plain text is
/// taken too if it is JSON that fits. What does not fit is told to the model, which may mend it
/// [some times](TypedAgent::repairs); each is a round like any other, under the same limits and stops. After that the
/// run fails with the code `answer`.
///
/// ```no_run
/// # use safepoint::{Agent, Typed};
/// #[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
/// struct City { name: String, people: u64 }
///
/// # async fn ask(agent: Agent) {
/// match agent.run_typed::<City>("Which is the largest city of Europe?").await {
///     Typed::Done(city, _) => println!("{}: {}", city.name, city.people),
///     other => println!("{:?}", other.outcome().ending()),
/// }
/// # }
/// ```
pub struct TypedAgent<T> {
    agent: Agent,
    form: Arc<AnswerSchema>,
    of: PhantomData<fn() -> T>,
}

impl Agent {
    /// This agent with answers of the type `T`.
    #[must_use]
    pub fn typed<T: JsonSchema + DeserializeOwned + 'static>(&self) -> TypedAgent<T> {
        let form = AnswerSchema::of::<T>(|name| self.def.tools.get(name).is_some());
        TypedAgent::new(&self.def, form)
    }

    /// A run on one input that answers with a `T`. Nothing happens before it is awaited or [started](TypedRun::start).
    pub fn run_typed<T: JsonSchema + DeserializeOwned + 'static>(
        &self,
        input: impl Into<UserMessage>,
    ) -> TypedRun<T> {
        self.typed::<T>().run(input)
    }
}

impl<T: JsonSchema + DeserializeOwned + 'static> TypedAgent<T> {
    fn new(def: &Definition, form: AnswerSchema) -> Self {
        let form = Arc::new(form);
        Self { agent: Agent { def: Arc::new(def.answering(Arc::clone(&form))) }, form, of: PhantomData }
    }

    /// Sets how often the model may mend an answer that does not fit, in each attempt. Default: [`REPAIRS`].
    #[must_use]
    pub fn repairs(self, most: u32) -> Self {
        Self::new(&self.agent.def, self.form.with_repairs(most))
    }

    /// A run on one input. Nothing happens before it is awaited or [started](TypedRun::start).
    pub fn run(&self, input: impl Into<UserMessage>) -> TypedRun<T> {
        self.of_run(self.agent.run(input))
    }

    /// A run on one input that goes on from a conversation.
    pub fn run_on(&self, history: History, input: impl Into<UserMessage>) -> TypedRun<T> {
        self.of_run(self.agent.run_on(history, input))
    }

    /// Takes a run up again where it ended, as [`Agent::resume`] does.
    pub fn resume(&self, outcome: &Outcome) -> TypedRun<T> {
        self.of_run(self.agent.resume(outcome))
    }

    /// The same, with decisions for the approvals that a suspended run waits for.
    pub fn resume_with(&self, outcome: &Outcome, decisions: Vec<(ApprovalId, Decision)>) -> TypedRun<T> {
        self.of_run(self.agent.resume_with(outcome, decisions))
    }

    /// The agent behind it, to hand on as a child: its runs answer with the JSON of a `T`.
    #[must_use]
    pub fn agent(&self) -> &Agent {
        &self.agent
    }

    fn of_run(&self, run: Run) -> TypedRun<T> {
        TypedRun { run, form: Arc::clone(&self.form), of: PhantomData }
    }
}

impl<T> Clone for TypedAgent<T> {
    fn clone(&self) -> Self {
        Self { agent: self.agent.clone(), form: Arc::clone(&self.form), of: PhantomData }
    }
}

impl<T> fmt::Debug for TypedAgent<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TypedAgent").field("agent", &self.agent).finish_non_exhaustive()
    }
}

/// A [`Run`] that answers with a `T`: await it. Dropping it stops it, as a run.
#[must_use = "a run does nothing before it is awaited or started, and stops when dropped"]
pub struct TypedRun<T> {
    run: Run,
    form: Arc<AnswerSchema>,
    of: PhantomData<fn() -> T>,
}

impl<T> TypedRun<T> {
    /// Starts it without waiting for it.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn start(self) -> Self {
        Self { run: self.run.start(), ..self }
    }

    /// What can stop it, look at it and wait for it.
    #[must_use]
    pub fn handle(&self) -> RunHandle {
        self.run.handle()
    }
}

impl<T: DeserializeOwned> Future for TypedRun<T> {
    type Output = Typed<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Typed<T>> {
        let outcome = std::task::ready!(Pin::new(&mut self.run).poll(cx));
        Poll::Ready(Typed::of(outcome, &self.form))
    }
}

impl<T> fmt::Debug for TypedRun<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TypedRun").field("run", &self.run).finish_non_exhaustive()
    }
}

/// How a run that answers with a `T` ended. Exhaustive on purpose: the four ways of an [`Outcome`].
#[derive(Clone, Debug)]
#[must_use = "an outcome says whether the work was done"]
pub enum Typed<T> {
    /// The model answered, and the answer fits; with it the answer as it was written, which holds the rest.
    Done(T, Answer),
    /// A stop ended the run. Of its calls the receipt speaks.
    Stopped(Stopped),
    /// The run itself failed; with the code `answer` if the model gave no answer that fits.
    Failed(RunError),
    /// Nothing runs; the run waits for decisions.
    Suspended(Suspended),
}

impl<T: DeserializeOwned> Typed<T> {
    fn of(outcome: Outcome, form: &AnswerSchema) -> Self {
        match outcome {
            Outcome::Done(answer) => match form.read::<T>(answer.text()) {
                Ok(value) => Self::Done(value, answer),
                // A type that reads the same JSON differently the second time.
                Err(misfit) => Self::Failed(RunError {
                    code: answer::CODE.into(),
                    message: misfit,
                    hint: None,
                    ended: answer.ended,
                }),
            },
            Outcome::Stopped(stopped) => Self::Stopped(stopped),
            Outcome::Failed(error) => Self::Failed(error),
            Outcome::Suspended(waiting) => Self::Suspended(waiting),
        }
    }
}

impl<T> Typed<T> {
    /// The outcome without its type: receipt, history, usage.
    pub fn outcome(&self) -> Outcome {
        match self {
            Self::Done(_, answer) => Outcome::Done(answer.clone()),
            Self::Stopped(stopped) => Outcome::Stopped(stopped.clone()),
            Self::Failed(error) => Outcome::Failed(error.clone()),
            Self::Suspended(waiting) => Outcome::Suspended(waiting.clone()),
        }
    }

    /// The value, if it is done.
    pub fn value(self) -> Option<T> {
        match self {
            Self::Done(value, _) => Some(value),
            Self::Stopped(_) | Self::Failed(_) | Self::Suspended(_) => None,
        }
    }
}
