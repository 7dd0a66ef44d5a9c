//! Commands in the background: which are known, and what is asked of them.

use std::path::PathBuf;

use crossterm::event::KeyCode;
use safepoint::event::Fact;
use serde_json::json;

use super::{World, started};
use crate::render::chat::{
    state::Action,
    tasks::{Task, TaskAsk},
};

const MOVED: &str = "one\n[the user moved it to the background: it continues with pid 18; what it writes from here on goes to /tmp/a]";

impl World {
    fn shell_ended(&mut self, text: &str) {
        let report = json!({
            "call_id": "shell", "name": "shell", "round": 1, "status": "completed", "effect": "none",
            "started_at": null, "ended_at": null, "reason": null, "stopped_by": null, "processes": [], "cleanups": [],
        });
        let result = json!({"call_id": "shell", "name": "shell", "text": text, "verdict": "good"});
        let fact = json!({"fact": "call_ended", "report": report, "result": result, "extent": "all"});
        self.fact(serde_json::from_value(fact).unwrap());
    }

    fn asks_tasks(&mut self, line: &str) -> Vec<Action> {
        self.state.input.set(line.to_owned());
        self.tap(KeyCode::Enter)
    }

    fn listed(&mut self) -> Vec<Task> {
        match &self.asks_tasks("/tasks")[..] {
            [Action::Tasks(TaskAsk::List(tasks))] => tasks.clone(),
            other => panic!("{other:?}"),
        }
    }
}

/// S12.59: a command that its person moved to the background is listed, shown and ended by its number.
#[test]
fn a_command_that_was_moved_to_the_background_has_a_way_back() {
    let mut world = World::running();
    world.fact(started("shell", "cargo watch"));
    assert_eq!(world.control('b'), [Action::Background]);
    world.shell_ended(MOVED);
    let tasks = world.listed();
    let [task] = &tasks[..] else { panic!("{tasks:?}") };
    assert_eq!((task.number, task.pid, &*task.command), (1, 18, "cargo watch"));
    assert_eq!(task.file, Some(PathBuf::from("/tmp/a")));
    world.state.tell_tasks(&tasks, world.now);
    world.shows("  1  0 s  pid 18  cargo watch");
    world.shows("     /tmp/a");
    assert_eq!(world.asks_tasks("/tasks 1"), [Action::Tasks(TaskAsk::Show(task.clone()))]);
    assert_eq!(world.asks_tasks("/tasks end 1"), [Action::Tasks(TaskAsk::End(task.clone()))]);
    let again = Task { is_asked: true, ..task.clone() };
    assert_eq!(world.asks_tasks("/tasks end 1"), [Action::Tasks(TaskAsk::End(again))], "at once, then");
    assert_eq!(world.asks_tasks("/tasks 2"), []);
    world.shows("2 is no number of /tasks");
    world.state.tell_tasks(&[], world.now);
    world.shows("no command runs in the background");
}

/// S12.59: what a command writes makes no other process one of the background.
#[test]
fn what_a_command_writes_names_no_process() {
    for text in [MOVED, "started in the background with pid 18; its output goes to /tmp/a"] {
        let mut world = World::running();
        world.fact(started("shell", "printf"));
        world.shell_ended(text);
        assert_eq!(world.listed(), []);
    }
    let mut world = World::running();
    let mut began = started("shell", "x");
    if let Fact::CallStarted { args, .. } = &mut began {
        *args = json!({"command": "serve", "background": true}).into();
    }
    world.fact(began);
    world.shell_ended("started in the background with pid 18; its output goes to /tmp/a");
    assert_eq!(world.listed()[0].command, "serve");
}
