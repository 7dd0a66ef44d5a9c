//! What holds in every state of a session, and that from each of them it can end.

use super::{
    Input, ItemId, SessionPhase, Strength, TurnEnd,
    world::{ItemPlace, World, WorldStep},
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
                ItemPlace::Waiting => (1, 0),
                ItemPlace::InTurn(_) => (0, 1),
                ItemPlace::Coming | ItemPlace::Steering(_) | ItemPlace::Left(_) | ItemPlace::AtRest => (0, 0),
            };
            assert_eq!((waits, works), expected, "{item} is {place:?}, after {input:?}: {:?}", self.machine);
        }
        let suspended = self.machine.left().filter(|_| self.machine.is_suspended());
        let steered = |place: &&ItemPlace| matches!(place, ItemPlace::Steering(turn) if self.run.or(suspended) != Some(*turn));
        assert_eq!(self.places.iter().find(steered), None, "a steer whose turn is over is forgotten");
        match self.machine.phase() {
            SessionPhase::Running(running) => assert_eq!(self.run, Some(running.turn)),
            SessionPhase::Planning { asked_before: None, .. } => assert!(self.is_gathering()),
            SessionPhase::Planning { asked_before: Some(_), .. } => assert!(self.plan.is_some()),
            SessionPhase::Idle => {
                assert!(self.stopped.is_none(), "idle, although it was stopped: {:?}", self.machine)
            }
            SessionPhase::Over => {
                assert!(self.run.is_none() && self.ended);
                assert!(!self.machine.is_about_to_resume(), "a caller waits for a turn to be resumed");
                assert!(
                    self.preempts.iter().all(|asked| asked.answered.is_some() || self.is_back(asked.item))
                );
            }
            SessionPhase::Ending { .. } => {}
        }
    }

    /// Whether it never became a preempt: it named another turn.
    fn is_back(&self, item: ItemId) -> bool {
        self.place(item) == ItemPlace::AtRest
    }

    /// From here a stop leads to the end, with every item settled or in a turn that is reported.
    pub(super) fn can_end(&self) {
        let mut world = self.clone();
        for _ in 0..16 {
            if world.ended {
                break;
            }
            let step = match (world.run, world.winding) {
                _ if !world.stop_is_asked() => WorldStep::Stop(Strength::Now),
                _ if world.stopped < Some(Strength::Now) => WorldStep::Deliver,
                (Some(turn), _) => WorldStep::Happen(Input::Settled(turn, TurnEnd::Stopped)),
                (None, Some((turn, false, _))) => WorldStep::Happen(Input::Quiet(turn)),
                (None, Some((turn, true, false))) => WorldStep::Happen(Input::Read(turn)),
                _ => WorldStep::Happen(Input::Tick),
            };
            world.take(&step);
        }
        assert!(world.ended, "no end from {:?}", self.machine);
        let rests = |place: &ItemPlace| matches!(place, ItemPlace::AtRest | ItemPlace::Left(_));
        assert!(world.places.iter().all(rests), "{:?}", world.places);
    }
}
