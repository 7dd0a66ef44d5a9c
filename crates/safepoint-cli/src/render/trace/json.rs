//! A story as lines of JSON: one object a turn, one a step.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::timeline::{Step, Timeline, standing};
use crate::output::{Bulk, Unwritten};

/// The version of these lines.
const VERSION: u32 = 1;

/// Writes the whole story.
///
/// # Errors
/// If stdout does not take it.
pub(crate) fn say(story: &Timeline) -> Result<(), Unwritten> {
    let mut out = Bulk::default();
    lines(story, |line| out.json(line))?;
    out.flush()
}

/// Hands over each line in order, until one is not taken.
pub(crate) fn lines<E>(story: &Timeline, mut take: impl FnMut(Value) -> Result<(), E>) -> Result<(), E> {
    let mut seq = 0_u64;
    let mut each = |mut line: Map<String, Value>| {
        line.insert("v".into(), json!(VERSION));
        line.insert("session".into(), json!(story.row.id));
        line.entry("run").or_insert(Value::Null);
        line.insert("seq".into(), json!(seq));
        seq += 1;
        take(Value::Object(line))
    };
    story.steps_of(None).iter().try_for_each(|step| each(of_step(story, step)))?;
    for turn in &story.turns {
        each(object(json!({
            "type": "turn", "turn": turn.id, "asked": turn.asked, "fate": turn.fate,
            "state": standing(turn.fate), "rounds": turn.rounds, "usage": turn.usage,
            "at": turn.from, "ended_at": turn.to,
        })))?;
        story.steps_of(Some(turn.id)).iter().try_for_each(|step| each(of_step(story, step)))?;
    }
    Ok(())
}

fn of_step(story: &Timeline, step: &Step) -> Map<String, Value> {
    let lane = &story.runs[step.run];
    let mut line = step.fields.clone();
    // For people; the receipt beside it has all of it.
    line.remove("account");
    line.extend(object(json!({
        "type": step.kind, "position": step.position, "turn": step.turn, "round": step.round,
        "at": step.from, "title": step.title, "said": step.said, "tone": step.tone,
    })));
    if let Some(holder) = story.holder(step.position) {
        line.insert("node".into(), holder.json());
    }
    if lane.depth() > 0 {
        line.insert("path".into(), json!(lane.path));
        line.insert("lane".into(), json!(lane.name));
    }
    if step.kind.is_span() {
        line.insert("ended_at".into(), json!(step.to));
        line.insert("took_us".into(), json!(took(step.from, step.to)));
    }
    line
}

fn took(from: Option<Timestamp>, to: Option<Timestamp>) -> Option<i64> {
    i64::try_from(to?.duration_since(from?).as_micros()).ok()
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        other => Map::from_iter([("value".to_owned(), other)]),
    }
}
