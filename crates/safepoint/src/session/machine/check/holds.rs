//! What holds in every state of a session, and that from each of them it can end.

use super::{
    End, Input, ItemId, Phase, Strength,
    world::{Place, Step, World},
};

impl World {
    /// What holds in every state.
    pub(super) fn check(&self, input: &Input) {
        let waiting: Vec<ItemId> = self.machine.waiting().iter().copied().collect();
        for (n, place) in self.places.iter().enumerate() {
            let item = ItemId::new(n as u64);
            let waits = waiting.iter().filter(|waiting| **waiting == item).count();
            let works = self.machine.items().iter().filter(|at_work| **at_work == item).count();
            let expected = match place {
                Place::Waiting => (1, 0),
                Place::InTurn(_) => (0, 1),
                Place::Coming | Place::Steering(_) | Place::Left(_) | Place::AtRest => (0, 0),
            };
            assert_eq!((waits, works), expected, "{item} is {place:?}, after {input:?}: {:?}", self.machine);
        }
        let suspended = self.machine.left().filter(|_| self.machine.is_suspended());
        let steered =
            |place: &&Place| matches!(place, Place::Steering(turn) if self.run.or(suspended) != Some(*turn));
        assert_eq!(self.places.iter().find(steered), None, "a steer whose turn is over is forgotten");
        match self.machine.phase() {
            Phase::Running(running) => assert_eq!(self.run, Some(running.turn)),
            Phase::Planning { asked_before: None, .. } => assert!(self.is_gathering()),
            Phase::Planning { asked_before: Some(_), .. } => assert!(self.plan.is_some()),
            Phase::Idle => {
                assert!(self.stopped.is_none(), "idle, although it was stopped: {:?}", self.machine)
            }
            Phase::Over => {
                assert!(self.run.is_none() && self.ended);
                assert!(!self.machine.takes_up(), "a caller waits for a turn to be resumed");
                assert!(
                    self.preempts.iter().all(|asked| asked.answered.is_some() || self.is_back(asked.item))
                );
            }
            Phase::Ending { .. } => {}
        }
    }

    /// Whether it never became a preempt: it named another turn.
    fn is_back(&self, item: ItemId) -> bool {
        self.place(item) == Place::AtRest
    }

    /// From here a stop leads to the end, with every item settled or in a turn that is reported.
    pub(super) fn can_end(&self) {
        let mut world = self.clone();
        for _ in 0..16 {
            if world.ended {
                break;
            }
            let step = match (world.run, world.winding) {
                _ if !world.stop_is_asked() => Step::Stop(Strength::Now),
                _ if world.stopped < Some(Strength::Now) => Step::Deliver,
                (Some(turn), _) => Step::Happen(Input::Settled { turn, end: End::Stopped }),
                (None, Some((turn, false, _))) => Step::Happen(Input::Quiet(turn)),
                (None, Some((turn, true, false))) => Step::Happen(Input::Read(turn)),
                _ => Step::Happen(Input::Tick),
            };
            world.take(&step);
        }
        assert!(world.ended, "no end from {:?}", self.machine);
        let rests = |place: &Place| matches!(place, Place::AtRest | Place::Left(_));
        assert!(world.places.iter().all(rests), "{:?}", world.places);
    }
}
