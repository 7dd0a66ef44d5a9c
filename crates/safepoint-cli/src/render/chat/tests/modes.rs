//! Modes and plans: what Shift-Tab changes, and which keys decide about a plan.

use std::{sync::Arc, time::Duration};

use crossterm::event::{KeyCode, KeyModifiers};
use safepoint::{
    event::{EventKind, Fact},
    ids::CallId,
    raw::OutputExtent,
    receipt::CallReport,
    session::ItemOutcome,
};
use serde_json::json;

use super::{World, push, turn};
use crate::{
    args::mode::WorkMode,
    render::chat::{
        custom::{CustomCommand, CustomCommands},
        keys::CALM,
        modes::{Modes, PRESENT_PLAN},
        queue::PushKind,
        state::Action,
    },
};

const PLAN: &str = "# Plan\n\n1. read the parser\n2. correct it";

impl World {
    fn shift_tab(&mut self) -> Vec<Action> {
        self.press(KeyCode::BackTab, KeyModifiers::SHIFT)
    }

    /// A turn that presents a plan, up to its end.
    fn planned(fate: fn(safepoint::ids::TurnId) -> ItemOutcome) -> Self {
        let mut world = Self::running();
        world.state.modes = Modes::new(WorkMode::Plan, WorkMode::Ask);
        let number = 7;
        let args = Arc::new(json!({ "plan": PLAN }));
        let Fact::CallStarted { round, effect, key, work, at, .. } = super::started(PRESENT_PLAN, "") else {
            panic!("it is a call that began")
        };
        let (call_id, name) = (CallId::from("plan"), PRESENT_PLAN.to_owned());
        world.fact(Fact::CallStarted { call_id, name, round, args, effect, key, work, at });
        let report = json!({"call_id": "plan", "name": PRESENT_PLAN, "round": 1, "status": "completed", "effect": "none",
            "processes": [], "cleanups": [], "started_at": null, "ended_at": null, "reason": null, "stopped_by": null});
        let report: CallReport = serde_json::from_value(report).unwrap();
        let result = json!({"call_id": "plan", "name": PRESENT_PLAN, "text": "shown", "verdict": "good"});
        let result = serde_json::from_value(result).unwrap();
        world.fact(Fact::CallEnded { report: report.into(), result, extent: OutputExtent::All });
        world.ended(fate(turn(number)));
        world.state.work = None;
        world
    }

    fn decides(&mut self, letter: char) -> Vec<Action> {
        self.wait(CALM);
        self.tap(KeyCode::Char(letter))
    }
}

fn mode(mode: WorkMode) -> Vec<Action> {
    vec![Action::Mode(mode)]
}

/// The plan is what is shown, not the tool with which it came.
#[test]
fn a_presented_plan_is_shown_without_its_call() {
    let mut world = World::planned(ItemOutcome::Completed);
    world.shows("read the parser");
    world.hides(PRESENT_PLAN);
    world.hides("shown");
}

/// S8.23: a change of mode answers no question and touches no typed text.
#[test]
fn shift_tab_goes_through_the_modes_and_answers_nothing() {
    let mut world = World::running();
    world.shows("ask · ");
    world.question();
    world.wait(CALM);
    assert_eq!(world.shift_tab(), mode(WorkMode::Edits));
    world.shows("edits · ");
    assert_eq!(world.shift_tab(), mode(WorkMode::Plan));
    assert_eq!(world.state.questions.len(), 1, "the question is open as before");
    assert_eq!(world.tap(KeyCode::Char('x')), []);
    assert_eq!(world.shift_tab(), mode(WorkMode::Ask));
    assert_eq!(world.state.input.text(), "x");
}

/// S8.23: it is no answer while a denial is written, either.
#[test]
fn a_change_of_mode_leaves_what_is_being_written() {
    let mut world = World::running();
    world.question();
    world.decides('m');
    world.type_in("not there");
    assert_eq!(world.shift_tab(), mode(WorkMode::Edits));
    assert_eq!(world.state.input.text(), "not there");
    assert!(matches!(world.tap(KeyCode::Enter)[..], [Action::Decide(..)]));
}

#[test]
fn what_approve_decides_is_left_and_taken_back_through_plan_alone() {
    let mut world = World::new();
    world.state.modes = Modes::new(WorkMode::Auto, WorkMode::Auto);
    assert_eq!(world.shift_tab(), mode(WorkMode::Plan));
    assert_eq!(world.shift_tab(), mode(WorkMode::Auto));
    assert_eq!(world.say("/mode edits"), []);
    world.shows("there are auto, plan");
    let mut world = World::new();
    world.state.modes = Modes::fixed(WorkMode::Ask);
    assert_eq!(world.shift_tab(), []);
    world.shows("has its own modes");
}

#[test]
fn a_mode_may_be_named() {
    let mut world = World::new();
    assert_eq!(world.say("/mode plan"), mode(WorkMode::Plan));
    assert_eq!(world.say("/mode"), []);
    world.shows("the mode is plan: only tools that read");
    assert_eq!(world.say("/mode auto"), []);
    world.shows("auto is no mode of this chat; there are ask, edits, plan");
}

/// S12.61: yes carries the plan out in the mode that asks, `a` in the one that allows edits.
#[test]
fn a_plan_is_carried_out_after_a_yes() {
    for (letter, then) in [('y', WorkMode::Ask), ('a', WorkMode::Edits)] {
        let mut world = World::planned(ItemOutcome::Completed);
        world.shows("1. read the parser");
        world.shows("Carry out this plan?");
        assert_eq!(world.tap(KeyCode::Char(letter)), [], "it could not be read yet");
        world.tap(KeyCode::Backspace);
        let text = "The plan is approved. Carry it out.";
        let expected = [mode(then), push(text, PushKind::Queue)].concat();
        assert_eq!(world.decides(letter), expected);
        assert_eq!(world.decides(letter), [], "once");
    }
}

/// S12.61: the plan as it was edited is what is carried out, and what was typed is not lost on the way.
#[test]
fn a_plan_is_edited_before_it_is_carried_out() {
    let mut world = World::planned(ItemOutcome::Completed);
    assert_eq!(world.decides('e'), []);
    assert_eq!(world.state.input.text(), PLAN);
    world.type_in(", twice");
    assert_eq!(world.tap(KeyCode::Esc), []);
    assert_eq!(world.state.input.text(), "");
    world.decides('e');
    let edited = format!("{PLAN}, twice");
    assert_eq!(world.state.input.text(), edited);
    let text = format!("I changed the plan. Carry out this one:\n\n{edited}");
    assert_eq!(world.tap(KeyCode::Enter), [mode(WorkMode::Ask), push(&text, PushKind::Queue)].concat());
}

#[test]
fn a_plan_is_refused_left_or_talked_about() {
    let mut world = World::planned(ItemOutcome::Completed);
    assert_eq!(world.decides('n'), []);
    world.shows("not carried out");
    world.shows("plan · ");
    assert_eq!(world.say("/plan"), []);
    world.shows("Carry out this plan?");
    assert_eq!(world.tap(KeyCode::Esc), []);
    assert_eq!(world.decides('y'), [], "it is a letter of a message");
    world.tap(KeyCode::Backspace);
    world.say("/plan");
    world.type_in("what about tests?");
    assert_eq!(world.tap(KeyCode::Enter), push("what about tests?", PushKind::Queue));
    let id = world.accepted("what about tests?", PushKind::Queue);
    world.state.hear(super::ChatEvent::Started(vec![id]), world.now);
    world.wait(Duration::from_secs(5));
    assert_eq!(world.tap(KeyCode::Char('y')), [], "the question went with the turn that it was of");
}

/// A plan of a turn that was stopped is not asked about by itself.
#[test]
fn a_stopped_turn_asks_nothing() {
    let mut world = World::planned(ItemOutcome::Interrupted);
    world.hides("Carry out this plan?");
    world.say("/plan");
    world.shows("Carry out this plan?");
    let mut world = World::new();
    world.say("/plan");
    world.shows("no plan yet");
}

#[test]
fn an_own_command_sends_its_text() {
    let mut world = World::new();
    let mut own = CustomCommands::default();
    let (description, body) = ("Fix an issue".to_owned(), "Fix issue $ARGUMENTS.".to_owned());
    own.add("fix", CustomCommand { description, body }).unwrap();
    world.state.custom = own;
    assert_eq!(world.say("/fix 12 today"), push("Fix issue 12 today.", PushKind::Queue));
    world.say("/help");
    world.shows("/fix        Fix an issue");
}

/// A child run presents no plan of the conversation.
#[test]
fn a_plan_of_a_child_run_is_not_asked_about() {
    let mut world = World::running();
    let event = Arc::new(EventKind::Fact(Arc::new(super::started(PRESENT_PLAN, ""))));
    world.run(EventKind::Child { path: safepoint::ids::Path::default(), event });
    world.ended(ItemOutcome::Completed(turn(1)));
    world.hides("Carry out this plan?");
}
