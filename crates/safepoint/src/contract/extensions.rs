//! Values of the program, by their types: what it gives to a run, and its tools take.
//!
//! **Invariants**: a value is never recorded, and never copied; a run below another one has all that the one above has.

use std::{
    any::{Any, TypeId, type_name},
    collections::HashMap,
    fmt,
    sync::Arc,
};

use safepoint_scope::Failure;

use crate::sync::callback::Foreign;

type Values = HashMap<TypeId, Foreign<dyn Any + Send + Sync>>;

/// Values by their types, one of each. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Extensions(Option<Arc<Values>>);

impl Extensions {
    /// Adds a value, in place of an earlier one of the same type.
    pub(crate) fn insert<T: Send + Sync + 'static>(&mut self, value: T) {
        let value: Arc<dyn Any + Send + Sync> = Arc::new(value);
        Arc::make_mut(self.0.get_or_insert_default()).insert(TypeId::of::<T>(), Foreign::new(value));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    fn get<T: 'static>(&self) -> Option<&T> {
        let value = self.0.as_ref()?.get(&TypeId::of::<T>())?;
        // Neither looks at the value itself, so there is no code of the program to panic.
        value.call(|value| value.downcast_ref::<T>()).ok().flatten()
    }

    /// These, and of `below` those whose types are not among them.
    fn over(&self, below: &Self) -> Self {
        match (&self.0, &below.0) {
            (None, _) => below.clone(),
            (_, None) => self.clone(),
            (Some(above), Some(below)) => {
                let mut all = Values::clone(below);
                all.extend(above.iter().map(|(of, value)| (*of, value.clone())));
                Self(Some(Arc::new(all)))
            }
        }
    }
}

impl fmt::Debug for Extensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Extensions({})", self.0.as_ref().map_or(0, |values| values.len()))
    }
}

/// The context of a run: what the run was given, and what agents have for all of their runs.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunValues {
    /// Given to the run at the root of the tree: it wins everywhere below.
    pub(crate) given: Extensions,
    /// The agent's own, over those of the agents above.
    pub(crate) of_agents: Extensions,
}

impl RunValues {
    /// The same for a run below, of an agent that has these values.
    pub(crate) fn below(&self, own: &Extensions) -> Self {
        Self { given: self.given.clone(), of_agents: own.over(&self.of_agents) }
    }

    /// The value of this type; `None` if there is none.
    pub(crate) fn find<T: 'static>(&self) -> Option<&T> {
        self.given.get().or_else(|| self.of_agents.get())
    }

    /// # Errors
    /// There is none: which type it is, and how to give one.
    pub(crate) fn get<T: 'static>(&self) -> Result<&T, Failure> {
        self.find().ok_or_else(|| {
            let hint = "the program must give one: `agent.run(..).with(value)` for this run, or \
                        `Agent::builder(..).with(value)` for all runs of the agent";
            let what = format!("the run's context has no `{}`", type_name::<T>());
            Failure::new(what).with_hint(hint).without_effect()
        })
    }
}
