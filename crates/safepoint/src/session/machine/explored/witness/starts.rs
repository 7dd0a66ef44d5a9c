//! What a witness notes where turns begin, and where they must not.

use super::{ItemId, Promise, StartFrom, StopWhy, Witness};

impl Witness {
    /// Nothing that waits begins a turn before what was left is all there.
    pub(in super::super) fn holds_all(&mut self) {
        self.barrier = Some(ItemId::new(u64::MAX));
    }

    /// A stop that is in the mail overtakes whatever was promised.
    pub(in super::super) fn held_back(&mut self) {
        self.promise = Promise::Nothing;
    }

    pub(super) fn starts(&mut self, from: StartFrom) {
        assert!(!self.broken, "a turn after something broke");
        self.is_protected =
            self.streak >= self.rules.max_preempted && !matches!(from, StartFrom::Withdrawal(_));
        match (self.promise, from) {
            // A preempt whose time has come may overtake it.
            (Promise::Decision, StartFrom::Decision | StartFrom::Withdrawal(StopWhy::Preempt { .. })) => {
                self.promise = Promise::Nothing
            }
            (Promise::Nothing, _) => {}
            (promise, from) => panic!("{promise:?} was promised, and there comes {from:?}"),
        }
        self.session_asked = false;
        let is_stop = matches!(from, StartFrom::Withdrawal(StopWhy::Asked));
        self.stopped_at = self.stopped_at.filter(|_| is_stop);
        self.barrier = None;
        self.withdrawn = false;
    }
}
