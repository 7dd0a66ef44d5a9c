//! Sub-agents as a tree, the output of running commands, and what stops one call alone.

use std::{sync::Arc, time::Duration};

use crossterm::event::{KeyCode, KeyModifiers};
use safepoint::{
    event::{EventKind, Fact},
    ids::{CallId, Path},
    receipt::CallKind,
};

use super::{Action, World, started};
use crate::signals::StopLevel;

impl World {
    fn below(&mut self, path: &Path, fact: Fact) {
        let event = Arc::new(EventKind::Fact(Arc::new(fact)));
        assert_eq!(self.run(EventKind::Child { path: path.clone(), event }), []);
    }

    fn prints(&mut self, call: &str, text: &str) {
        self.run(EventKind::Progress { call_id: CallId::from(call), text: text.to_owned() });
    }

    fn alt(&mut self, key: char) -> Vec<Action> {
        self.press(KeyCode::Char(key), KeyModifiers::ALT)
    }
}

fn agent(name: &str, task: &str) -> Fact {
    let mut fact = started(name, task);
    if let Fact::CallStarted { work, .. } = &mut fact {
        *work = CallKind::Child;
    }
    fact
}

fn ended(call: &str) -> Fact {
    let report = serde_json::json!({
        "call_id": call, "name": call, "round": 1, "status": "completed", "effect": "none",
        "started_at": null, "ended_at": null, "reason": null, "stopped_by": null, "processes": [], "cleanups": [],
    });
    let fact = serde_json::json!({
        "fact": "call_ended", "report": report, "result": {"call_id": call, "name": call, "text": "x", "verdict": "good"}, "extent": "all",
    });
    serde_json::from_value(fact).unwrap()
}

/// S12.59: sub-agents are a tree below the call that began them: what their models and calls do, at any depth.
#[test]
fn sub_agents_are_a_tree() {
    let mut world = World::running();
    world.fact(agent("researcher", "find it"));
    let path = Path::default().of(&CallId::from("researcher"));
    world.below(&path, Fact::ModelStarted { round: 1 });
    world.below(&path, agent("reader", "read it"));
    let deeper = path.of(&CallId::from("reader"));
    world.below(&deeper, started("grep", "needle"));
    world.wait(Duration::from_secs(2));
    world.shows("● researcher  2 s  [Alt-2] find it");
    world.shows("  └ the model  2 s");
    world.shows("  └ reader  2 s  [Alt-3] read it");
    world.shows("    └ grep  2 s  [Alt-4] needle");
}

/// S12.59, S2.10: the key of a number stops that call alone: a command at once, a sub-agent at a safe point and then at once; it is typed
/// into nothing and stops no other.
#[test]
fn the_key_of_a_number_stops_that_call_alone() {
    let mut world = World::running();
    world.hides("Alt-1");
    world.fact(agent("researcher", "find it"));
    let stop_of =
        |call: &str, level| Action::StopCall { run: Path::default(), call: CallId::from(call), level };
    let stop = |level| stop_of("researcher", level);
    assert_eq!(world.alt('1'), [stop_of("shell", StopLevel::Now)]);
    assert_eq!(world.alt('2'), [stop(StopLevel::AtSafePoint)]);
    world.shows("stopping researcher alone; the turn continues");
    assert_eq!(world.say("/stop 2"), [stop(StopLevel::Now)]);
    assert_eq!(world.alt('7'), []);
    world.shows("nothing that runs has the number 7");
    assert!(world.state.input.is_empty() && world.state.pending_stop().is_none());
}

/// S12.59: a number that was given goes to no later call at once, so that a late key stops nothing else.
#[test]
fn a_number_is_not_given_again_at_once() {
    let mut world = World::running();
    world.fact(agent("researcher", "find it"));
    world.fact(ended("researcher"));
    world.hides("● researcher");
    world.fact(agent("writer", "write it"));
    assert_eq!(world.alt('2'), []);
    world.shows("● writer  0 s  [Alt-3]");
}

/// S12.59: the last lines of a running command are shown, more of them after Ctrl-O, and no control character is obeyed.
#[test]
fn the_output_of_a_running_command_is_live_and_folds() {
    let mut world = World::running();
    for line in 1..=9 {
        world.prints("shell", &format!("line {line}\n"));
    }
    world.shows("│ line 9");
    world.shows("│ line 7");
    world.hides("│ line 6");
    assert_eq!(world.control('o'), []);
    world.shows("│ line 1");
    assert_eq!(world.control('o'), []);
    world.hides("│ line 6");
    world.prints("shell", "10 %\r20 %\r30 %");
    world.shows("│ 30 %");
    world.hides("10 %");
    world.prints("shell", "\n\u{1b}]0;evil\u{7}\u{1b}[2Jdone");
    assert!(!world.screen().contains('\u{1b}'));
}

/// S12.59: where nothing runs, Ctrl-O shows all of an output of which the beginning was shown.
#[test]
fn a_folded_output_is_shown_in_the_pager() {
    let mut world = World::running();
    let all: String = (1..=30).map(|line| format!("line {line}\n")).collect();
    world.state.output(&all, &safepoint::raw::OutputExtent::All);
    world.shows("25 more lines: Ctrl-O shows all");
    assert_eq!(world.control('o'), [Action::Page(all)]);
}

/// S12.66: what a call is about continues beside its mark, and not below it.
#[test]
fn a_long_call_continues_beside_its_mark() {
    let mut world = World::running();
    world.fact(agent("researcher", &"find all callers ".repeat(8)));
    let above: Vec<String> = world.state.take_above().iter().map(ToString::to_string).collect();
    let at = above.iter().position(|row| row.starts_with("▸ researcher")).unwrap();
    assert!(above[at + 1].starts_with("  ") && above[at + 1].contains("callers"), "{above:?}");
}
