//! What lines are folded into, against what the journal itself is.

use serde_json::{Value, json};

use super::LineFold;
use crate::{
    render::trace::{text::text, timeline::Kind},
    tests::golden::at,
};
use safepoint::{raw::store::NewSession, store::SessionRow};

fn folded(lines: &[Value]) -> crate::render::trace::timeline::Timeline {
    let mut fold = LineFold::default();
    for (position, line) in lines.iter().enumerate() {
        fold.take(position as u64, Some(at(10 * position as i64)), line);
    }
    fold.story(SessionRow::new(&NewSession::of("ses_1"), at(0)), "idle".into())
}

/// S13.14: a child's lane has the name of the call that it is the work of; what is not known is a step, too.
#[test]
fn lines_of_a_child_are_in_its_lane_and_an_unknown_line_is_a_step() {
    let line = |kind: &str, more: Value| {
        let mut line = json!({"type": kind, "turn": 1, "run": "run_1"});
        line.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        line
    };
    let story = folded(&[
        line("turn_started", json!({"items": ["item-1"]})),
        line("run_started", json!({"attempt": 1})),
        line(
            "call_started",
            json!({"call_id": "call_1", "name": "scout", "round": 1, "args": {}, "effect": "unsafe"}),
        ),
        line("run_started", json!({"attempt": 1, "path": ["call_1"]})),
        line("novel_thing", json!({"weight": 7})),
        json!({"type": "of_no_turn", "count": 2}),
        line("turn_ended", json!({"outcome": "novel"})),
        line("turn_quiet", json!({"survivors": ["sleep (pid 7)"]})),
    ]);
    assert_eq!(story.runs[1].name, "scout");
    let titles: Vec<&str> = story.steps.iter().map(|step| &*step.title).collect();
    for title in ["attempt 1", "scout", "novel thing", "of no turn", "turn ended", "not quiet"] {
        assert!(titles.contains(&title), "{title} in {titles:?}");
    }
    let novel = story.steps.iter().find(|step| step.title == "novel thing").unwrap();
    assert_eq!((novel.kind, &novel.fields["weight"]), (Kind::Other, &json!(7)));
    let text = text(&story);
    assert!(text.contains("session ses_1: idle") && text.contains("[scout] attempt 1"), "{text}");
}

/// S13.14: each golden line of an event is a step, or the end of one, and none is lost.
#[test]
fn each_golden_line_is_taken() {
    let file = include_str!("../../../../tests/golden/events.txt");
    let lines: Vec<Value> = file
        .lines()
        .filter(|line| line.starts_with('{'))
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let story = folded(&lines);
    let titles: Vec<&str> = story.steps.iter().map(|step| &*step.title).collect();
    for title in [
        "round 1",
        "shell",
        "pay?",
        "stop requested",
        "stop escalated",
        "stop took effect",
        "settled",
        "steer",
    ] {
        assert!(titles.contains(&title), "{title} in {titles:?}");
    }
}
