//! The right to perform one effect: made by a passed gate, spent by value.

use std::marker::PhantomData;

use crate::scope::Scope;

/// A kind of effect, and what must be shown to have been announced before it.
///
/// The announcement of a program without a log is `()`; an engine asks for proof that the fact is recorded.
pub trait Effect: 'static {
    /// What [`Scope::pass`] must be shown.
    type Announcement: ?Sized;
}

/// The right to perform one effect `E`. It owns its scope, and only [`Scope::pass`] makes one.
#[must_use = "a permit is spent by the effect that it allows"]
pub struct Permit<E: Effect> {
    scope: Scope,
    effect: PhantomData<fn() -> E>,
}

impl<E: Effect> Permit<E> {
    pub(crate) fn new(scope: Scope) -> Self {
        Self { scope, effect: PhantomData }
    }

    /// The scope that it was passed in.
    #[must_use]
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// Spends it.
    #[must_use]
    pub fn into_scope(self) -> Scope {
        self.scope
    }
}

impl<E: Effect> std::fmt::Debug for Permit<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Permit<{}>", std::any::type_name::<E>())
    }
}
