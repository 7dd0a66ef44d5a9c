//! Parts of a driver that an idle session has nothing in: a pointer until one is first changed.

use std::{
    ops::{Deref, DerefMut},
    sync::LazyLock,
};

use super::{OpenApprovals, Recorder, SessionEnd, StoredStops};

/// A part that is made when it is first changed; until then it reads as empty.
#[derive(Default)]
pub(super) struct Rare<T>(Option<Box<T>>);

/// What may be there rarely.
pub(super) trait MayBeEmpty: Default + 'static {
    /// One with nothing in it.
    fn empty() -> &'static Self;
}

impl<T: MayBeEmpty> Deref for Rare<T> {
    type Target = T;
    fn deref(&self) -> &T {
        self.0.as_deref().unwrap_or_else(|| T::empty())
    }
}

impl<T: MayBeEmpty> DerefMut for Rare<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.get_or_insert_default()
    }
}

impl MayBeEmpty for OpenApprovals {
    fn empty() -> &'static Self {
        static EMPTY: LazyLock<OpenApprovals> = LazyLock::new(OpenApprovals::default);
        &EMPTY
    }
}

impl MayBeEmpty for Recorder {
    fn empty() -> &'static Self {
        static EMPTY: LazyLock<Recorder> = LazyLock::new(Recorder::default);
        &EMPTY
    }
}

impl MayBeEmpty for SessionEnd {
    fn empty() -> &'static Self {
        static EMPTY: LazyLock<SessionEnd> = LazyLock::new(SessionEnd::default);
        &EMPTY
    }
}

impl MayBeEmpty for StoredStops {
    fn empty() -> &'static Self {
        static EMPTY: LazyLock<StoredStops> = LazyLock::new(StoredStops::default);
        &EMPTY
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is only read takes no room.
    #[test]
    fn a_part_is_made_when_it_is_first_changed() {
        let mut end = Rare::<SessionEnd>::default();
        assert!(end.exit.is_none() && end.0.is_none());
        end.cause = Some("why".into());
        assert_eq!(end.cause.as_deref(), Some("why"));
    }
}
