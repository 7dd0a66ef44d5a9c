//! A story as one page that needs nothing else: no network, no font, no library.
//!
//! **Invariants**: what comes from the journal reaches the page as text, never as markup or script; the only script that
//! the page lets run is its own, by its checksum.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use jiff::Timestamp;
use safepoint::session::ItemOutcome;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::{
    text::text,
    timeline::{Step, Timeline, Tone, Turn, many, standing},
};
use crate::{output::plain, render::text::moment};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
const BODY: &str = include_str!("page.html");

/// What the heads of long texts may take together, in bytes.
const HEADS: usize = 6 << 20;
/// The least and the most of one long text that is shown.
const HEAD: (usize, usize) = (200, 8_000);
/// How many long texts a step has at most: arguments, output, message.
const TEXTS: usize = 3;

/// Colours, and what they mean: of bars, and of lines.
const LEGEND: [(&str, &str); 6] = [
    ("bar model", "model"),
    ("bar call", "call"),
    ("bar child", "child run"),
    ("bar approval", "waits for approval"),
    ("bar retry", "retry"),
    ("mark stopped", "stop"),
];

/// The page.
pub(crate) fn page(story: &Timeline) -> String {
    let (style, script) = (source(STYLE), source(SCRIPT));
    let data = safe_json(&data(story));
    let title = escaped(&plain(&format!("session {}", story.row.id)));
    let text = escaped(&text(story));
    let body = body(story, &title);
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; base-uri 'none'; \
         form-action 'none'; style-src {style}; script-src {script}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n{body}\
         <pre id=\"text\">{text}</pre>\n\
         <script type=\"application/json\" id=\"data\">{data}</script>\n<script>{SCRIPT}</script>\n</body>\n</html>\n"
    )
}

/// As a policy names what it allows.
fn source(text: &str) -> String {
    format!("'sha256-{}'", BASE64_STANDARD.encode(Sha256::digest(text.as_bytes())))
}

fn body(story: &Timeline, title: &str) -> String {
    let (damaged, state) = (story.damaged(), &story.state);
    let counts = format!("created {}; {}", moment(story.row.created), story.counts());
    let damaged =
        if damaged > 0 { format!("unreadable: {}", many(damaged, "record")) } else { String::new() };
    let legend: String = LEGEND
        .iter()
        .map(|(look, what)| format!("<span><i class=\"{look}\" aria-hidden=\"true\"></i>{what}</span>"))
        .collect();
    let tone = story.turns.last().map_or(Tone::Plain, |turn| tone(turn.fate));
    // One pass: inserted text is not scanned again.
    let mut out = String::with_capacity(BODY.len() * 2);
    let mut parts = BODY.split('@');
    while let Some(part) = parts.next() {
        out.push_str(part);
        match parts.next() {
            Some("title") => out.push_str(title),
            Some("tone") => out.push_str(json!(tone).as_str().unwrap_or_default()),
            Some("state") => out.push_str(&escaped(&plain(state))),
            Some("counts") => out.push_str(&escaped(&counts)),
            Some("damaged") => out.push_str(&damaged),
            Some("legend") => out.push_str(&legend),
            Some(_) | None => {}
        }
    }
    out
}

fn tone(fate: Option<ItemOutcome>) -> Tone {
    match fate {
        None => Tone::Open,
        Some(ItemOutcome::Completed(_)) => Tone::Good,
        Some(ItemOutcome::Failed(_)) => Tone::Bad,
        Some(ItemOutcome::Suspended(_)) => Tone::Plain,
        Some(_) => Tone::Stopped,
    }
}

/// What the script shows. Times are microseconds since `zero`, which is in milliseconds.
fn data(story: &Timeline) -> Value {
    let zero = story.steps.iter().filter_map(|step| step.from).min().unwrap_or(story.row.created);
    let end = story.steps.iter().filter_map(|step| step.to.max(step.from)).max().unwrap_or(zero);
    let head = (HEADS / TEXTS / story.steps.len().max(1)).clamp(HEAD.0, HEAD.1);
    let turns: Vec<Value> = story.turns.iter().map(|turn| turn_of(turn, zero)).collect();
    let lanes: Vec<Value> =
        story.runs.iter().map(|lane| json!({"name": shown(&lane.name), "depth": lane.depth()})).collect();
    let mut steps = Vec::with_capacity(story.steps.len());
    let mut last = 0;
    for step in &story.steps {
        let mut shown = step_of(story, step, head);
        last = step.from.map_or(last, |from| micros(zero, from));
        shown["a"] = json!(last);
        if step.kind.is_span() {
            shown["s"] = json!(1);
            shown["b"] = json!(step.to.map(|to| micros(zero, to)));
        }
        steps.push(shown);
    }
    #[expect(clippy::cast_precision_loss, reason = "microseconds since 1970 fit into a double for centuries")]
    let zero_ms = zero.as_microsecond() as f64 / 1e3;
    json!({"zero": zero_ms, "end": micros(zero, end), "turns": turns, "lanes": lanes, "steps": steps})
}

fn turn_of(turn: &Turn, zero: Timestamp) -> Value {
    json!({
        "id": turn.id.to_string(), "asked": shown(&turn.asked), "state": standing(turn.fate),
        "c": tone(turn.fate), "a": turn.from.map_or(0, |from| micros(zero, from)),
        "b": turn.to.map_or(0, |to| micros(zero, to)), "rounds": turn.rounds, "in": turn.usage.input,
        "out": turn.usage.output,
    })
}

fn step_of(story: &Timeline, step: &Step, head: usize) -> Value {
    let turn = step.turn.and_then(|id| story.turns.iter().rposition(|turn| turn.id == id));
    let mut fields = Map::new();
    for (name, value) in &step.fields {
        // The receipt is there as people read it, and the message's calls have rows of their own.
        if !matches!(name.as_str(), "receipt" | "calls") && !value.is_null() {
            fields.insert(name.clone(), headed(value, head));
        }
    }
    let mut shown_step = json!({
        "k": step.kind, "c": step.tone, "t": turn, "r": step.run, "p": step.position,
        "l": cut(&shown(&step.title), head), "w": cut(&shown(&step.said), head), "d": fields,
    });
    if let Some(round) = step.round {
        shown_step["n"] = json!(round);
    }
    shown_step
}

/// With long texts cut.
fn headed(value: &Value, head: usize) -> Value {
    match value {
        Value::String(text) => Value::String(cut(&shown(text), head)),
        Value::Array(_) | Value::Object(_) => {
            let text = value.to_string();
            if text.len() > head { Value::String(cut(&shown(&text), head)) } else { calm(value) }
        }
        other => other.clone(),
    }
}

/// The same, its texts shown and not obeyed.
fn calm(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(shown(text)),
        Value::Array(values) => Value::Array(values.iter().map(calm).collect()),
        Value::Object(map) => {
            Value::Object(map.iter().map(|(name, value)| (shown(name), calm(value))).collect())
        }
        other => other.clone(),
    }
}

fn shown(text: &str) -> String {
    plain(text).into_owned()
}

fn cut(text: &str, head: usize) -> String {
    if text.len() <= head {
        return text.to_owned();
    }
    let kept = (0..=head).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    format!("{}\n… {} bytes more; `safepoint trace --json` has all of it", &text[..kept], text.len() - kept)
}

fn micros(zero: Timestamp, at: Timestamp) -> i64 {
    at.as_microsecond().saturating_sub(zero.as_microsecond())
}

/// As text of a page: nothing in it is markup.
fn escaped(text: &str) -> String {
    // The ampersand first: the others bring their own.
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace('"', "&quot;").replace('\'', "&#39;")
}

/// As JSON inside a script element: nothing in it ends the element or begins a comment. Each of these letters stands
/// only in strings of JSON, where it may be written as an escape.
fn safe_json(value: &Value) -> String {
    let escaped = |text: String, letter| text.replace(letter, &format!("\\u{:04x}", u32::from(letter)));
    ['<', '>', '&', '\u{2028}', '\u{2029}'].into_iter().fold(value.to_string(), escaped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_written_as_policies_expect_them() {
        let known = "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='";
        assert_eq!(source(""), known);
    }

    #[test]
    fn a_long_text_is_cut_between_letters() {
        assert!(cut("ääää", 3).starts_with("ä\n… 6 bytes more"), "{}", cut("ääää", 3));
        assert_eq!(cut("ää", 4), "ää");
    }
}
