//! The to-do list of the agent on the screen.

use std::sync::Arc;

use safepoint::{
    event::{EventKind, Fact},
    ids::CallId,
    raw::OutputExtent,
    receipt::CallReport,
};
use serde_json::{Value, json};

use super::World;
use crate::render::chat::todo::LIST_TOOL;

impl World {
    /// A call of the list's tool with this outcome.
    fn lists(&mut self, items: &Value, status: &str) {
        let Fact::CallStarted { round, effect, key, work, at, .. } = super::started(LIST_TOOL, "") else {
            panic!("it is a call that began")
        };
        let (call_id, name, args) =
            (CallId::from("todo"), LIST_TOOL.to_owned(), Arc::new(json!({ "items": items })));
        self.fact(Fact::CallStarted { call_id, name, round, args, effect, key, work, at });
        let report = json!({"call_id": "todo", "name": LIST_TOOL, "round": 1, "status": status, "effect": "none",
            "processes": [], "cleanups": [], "started_at": null, "ended_at": null, "reason": null, "stopped_by": null});
        let report: CallReport = serde_json::from_value(report).unwrap();
        let result = json!({"call_id": "todo", "name": LIST_TOOL, "text": "seen", "verdict": "good"});
        let result = serde_json::from_value(result).unwrap();
        self.fact(Fact::CallEnded { report: report.into(), result, extent: OutputExtent::All });
    }
}

fn items(states: &[&str]) -> Value {
    let item =
        |(index, state): (usize, &&str)| json!({"text": format!("step {}", index + 1), "state": state});
    states.iter().enumerate().map(item).collect()
}

/// The rows around what is active stand in the pane; all of them are shown by a command.
#[test]
fn the_list_is_shown_around_what_is_active() {
    let mut world = World::running();
    world.lists(
        &items(&["done", "done", "done", "active", "open", "open", "open", "open", "open"]),
        "completed",
    );
    world.shows("▪ to do: 3 of 9 done · step 4");
    for row in ["☑ step 3", "▸ step 4", "☐ step 7", "and 2 more; /todo shows all"] {
        world.shows(row);
    }
    world.hides("step 2");
    world.hides("{\"items\"");
    world.state.input.set("/todo".to_owned());
    world.tap(crossterm::event::KeyCode::Enter);
    world.shows("☐ step 9");
}

/// A list that was not taken changes nothing, nor does one of a sub-agent; a list that is done goes away.
#[test]
fn only_a_list_that_was_taken_counts() {
    let mut world = World::running();
    world.lists(&items(&["active", "open"]), "completed");
    world.lists(&items(&["done", "done", "active"]), "failed");
    world.shows("▸ step 1");
    world.hides("step 3");
    let event = Arc::new(EventKind::Fact(Arc::new(super::started(LIST_TOOL, ""))));
    world.run(EventKind::Child { path: safepoint::ids::Path::default(), event });
    world.shows("▸ step 1");
    world.lists(&items(&["done", "done"]), "completed");
    world.shows("▪ to do: 2 of 2 done");
    world.hides("☑ step 1");
}

/// A text of the model is shown, not obeyed.
#[test]
fn an_item_is_one_row_of_text() {
    let mut world = World::running();
    world.lists(&json!([{"text": "a\u{1b}[2J\nb", "state": "active"}]), "completed");
    assert!(!world.screen().contains('\u{1b}'));
    world.shows("▸ a");
}
