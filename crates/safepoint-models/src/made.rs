//! Settings of a model, and what is made of them once for all of its conversations.
//!
//! **Invariants**: settings change only by [`Settled::change`], which forgets what was made of them.

use std::{
    fmt,
    ops::Deref,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use safepoint::model::{ModelError, ModelSpec, Parameters};

use crate::http::outgoing::Prepared;

/// Settings, and what was made of them.
pub(crate) struct Settled<S> {
    settings: S,
    /// Held to look up or to keep what was made, and not while it is made.
    made: Mutex<Made>,
}

#[derive(Clone, Default)]
struct Made {
    prepared: Option<Arc<Prepared>>,
    /// The beginning of each body of the conversations that begin so.
    prefix: Option<(ModelSpec, Bytes)>,
}

impl<S> Settled<S> {
    pub(crate) fn new(settings: S) -> Self {
        Self { settings, made: Mutex::default() }
    }

    pub(crate) fn change(&mut self) -> &mut S {
        *self.lock() = Made::default();
        &mut self.settings
    }

    /// What all requests have in common. An error is not kept: what it is due to may be gone the next time.
    pub(crate) fn prepared(
        &self,
        prepare: impl FnOnce(&S) -> Result<Prepared, ModelError>,
    ) -> Result<Arc<Prepared>, ModelError> {
        let known = self.lock().prepared.clone();
        if let Some(known) = known {
            return Ok(known);
        }
        let prepared = Arc::new(prepare(&self.settings)?);
        self.lock().prepared = Some(Arc::clone(&prepared));
        Ok(prepared)
    }

    /// What each body of a conversation begins with; that of the latest one is kept.
    pub(crate) fn prefix(&self, spec: &ModelSpec, write: impl FnOnce() -> Vec<u8>) -> Bytes {
        let known = self.lock().prefix.clone().filter(|(known, _)| is_same(known, spec));
        if let Some((_, prefix)) = known {
            return prefix;
        }
        let prefix = Bytes::from(write());
        self.lock().prefix = Some((spec.clone(), prefix.clone()));
        prefix
    }

    fn lock(&self) -> MutexGuard<'_, Made> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether both begin the same body: the tools of one agent are one list.
fn is_same(one: &ModelSpec, other: &ModelSpec) -> bool {
    Arc::ptr_eq(&one.tools, &other.tools)
        && one.system == other.system
        && one.choice == other.choice
        && one.answer == other.answer
        && one.provider_tools == other.provider_tools
        && are_same(one.parameters.as_ref(), other.parameters.as_ref())
}

fn are_same(one: Option<&Arc<Parameters>>, other: Option<&Arc<Parameters>>) -> bool {
    match (one, other) {
        (None, None) => true,
        (Some(one), Some(other)) => Arc::ptr_eq(one, other) || one == other,
        (None, Some(_)) | (Some(_), None) => false,
    }
}

impl<S> Deref for Settled<S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.settings
    }
}

impl<S: fmt::Debug> fmt::Debug for Settled<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.settings.fmt(f)
    }
}

impl<S: Clone> Clone for Settled<S> {
    fn clone(&self) -> Self {
        let made = self.lock().clone();
        Self { settings: self.settings.clone(), made: Mutex::new(made) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What was made of settings is made again after any of them changed, and of a clone's alone.
    #[test]
    fn a_change_forgets_what_was_made() {
        let (mut settled, spec) = (Settled::new(1_u8), ModelSpec::default());
        let prefix = |settled: &Settled<u8>| settled.prefix(&spec, || vec![**settled]);
        assert_eq!(prefix(&settled), &[1][..]);
        let before = settled.clone();
        *settled.change() = 2;
        assert_eq!((prefix(&before), prefix(&settled)), (vec![1].into(), vec![2].into()));
    }

    /// What begins otherwise is written for itself; what begins so again is not written again.
    #[test]
    fn a_prefix_is_of_its_conversation() {
        let settled = Settled::new(());
        let one = ModelSpec { system: Some("one".into()), ..ModelSpec::default() };
        let other = ModelSpec { system: Some("other".into()), tools: one.tools.clone(), ..one.clone() };
        assert_eq!(settled.prefix(&one, || vec![1]), &[1][..]);
        assert_eq!(settled.prefix(&one.clone(), || vec![2]), &[1][..]);
        assert_eq!(settled.prefix(&other, || vec![2]), &[2][..]);
        let tools = ModelSpec { tools: Arc::from([]), ..other };
        assert_eq!(settled.prefix(&tools, || vec![3]), &[3][..]);
        let seeded =
            |seed| ModelSpec { parameters: Some(Arc::new(Parameters::new().seed(seed))), ..tools.clone() };
        assert_eq!(settled.prefix(&seeded(1), || vec![4]), &[4][..]);
        assert_eq!(settled.prefix(&seeded(1), || vec![5]), &[4][..]);
        assert_eq!(settled.prefix(&seeded(2), || vec![5]), &[5][..]);
    }
}
