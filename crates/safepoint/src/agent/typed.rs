//! Typed answers: the model answers by calling a tool whose arguments are the answer, which works on every
//! wire. An answer that does not match goes back to the model, which may correct it a limited number of
//! times.

use std::{error::Error as StdError, fmt, future::Future, marker::PhantomData, sync::Arc};

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::{
    agent::Agent,
    definition::{
        Definition,
        answer::{self, AnswerSchema},
    },
    run::{
        Run,
        outcome::Outcome,
        state::{RunState, RunStateError},
    },
    value::{
        approval::Decision,
        history::History,
        ids::{ApprovalId, RunId},
        message::UserMessage,
    },
};

pub use crate::definition::answer::REPAIRS;

/// An agent whose runs answer with a `T`: the same model, instructions, tools and limits, and one more tool, with which
/// the model answers.
///
/// The model must call a tool in each of its messages, where its wire lets it be made to; an answer in plain text is
/// taken too if it is JSON that fits. An answer that does not match goes back to the model, which may correct it
/// [some times](TypedAgent::repairs); each is a round like any other, under the same limits and stops. After that the
/// run fails with the code `answer`.
///
/// ```no_run
/// # use safepoint::{Agent, Outcome};
/// #[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
/// struct City { name: String, people: u64 }
///
/// # async fn ask(agent: Agent) {
/// match agent.run_typed::<City>("Which is the largest city of Europe?").await {
///     Outcome::Done(answer) => println!("{}: {}", answer.value().name, answer.value().people),
///     other => println!("{:?}", other.ending()),
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

    /// A run on one input that answers with a `T`. Nothing happens before it is awaited or [started](Run::start).
    pub fn run_typed<T: JsonSchema + DeserializeOwned + 'static>(
        &self,
        input: impl Into<UserMessage>,
    ) -> Run<T> {
        self.typed::<T>().run(input)
    }
}

impl<T: JsonSchema + DeserializeOwned + 'static> TypedAgent<T> {
    fn new(def: &Definition, form: AnswerSchema) -> Self {
        let form = Arc::new(form);
        Self { agent: Agent { def: Arc::new(def.answering(Arc::clone(&form))) }, form, of: PhantomData }
    }

    /// Sets how often the model may correct an answer that does not match, in each attempt. Default:
    /// [`REPAIRS`].
    #[must_use]
    pub fn repairs(self, most: u32) -> Self {
        Self::new(&self.agent.def, self.form.with_repairs(most))
    }

    /// A run on one input. Nothing happens before it is awaited or [started](Run::start).
    pub fn run(&self, input: impl Into<UserMessage>) -> Run<T> {
        self.of_run(self.agent.run(input))
    }

    /// A run on one input that continues a conversation.
    pub fn run_on(&self, history: History, input: impl Into<UserMessage>) -> Run<T> {
        self.of_run(self.agent.run_on(history, input))
    }

    /// Resumes a run where it ended, as [`Agent::resume`] does.
    pub fn resume<U>(&self, outcome: &Outcome<U>) -> Run<T> {
        self.of_run(self.agent.resume(outcome))
    }

    /// The same, with decisions for the approvals that a suspended run waits for.
    pub fn resume_with<U>(&self, outcome: &Outcome<U>, decisions: Vec<(ApprovalId, Decision)>) -> Run<T> {
        self.of_run(self.agent.resume_with(outcome, decisions))
    }

    /// Resumes a run that was saved as a value, as [`Agent::resume_state`] does.
    ///
    /// # Errors
    /// As of [`Agent::resume_state`].
    ///
    /// # Cancel safety
    /// As of [`Agent::resume_state`].
    pub async fn resume_state<F, Fut>(&self, state: RunState, claim: F) -> Result<Run<T>, RunStateError>
    where
        F: FnOnce(RunId, String) -> Fut,
        Fut: Future<Output = Result<bool, Box<dyn StdError + Send + Sync>>> + Send,
    {
        Ok(self.of_run(self.agent.resume_state(state, claim).await?))
    }

    /// The agent behind it, to hand on as a child: its runs answer with the JSON of a `T`.
    #[must_use]
    pub fn agent(&self) -> &Agent {
        &self.agent
    }

    fn of_run(&self, run: Run) -> Run<T> {
        let form = Arc::clone(&self.form);
        // The engine has read it once: only a type that reads the same JSON differently the second time fails here.
        run.decoded(move |outcome| outcome.read(answer::CODE, |text| form.read::<T>(text)))
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
