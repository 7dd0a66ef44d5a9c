//! A turn: what the prompt asks for, and how it ends on a cancel.

use serde_json::{Value, json};

use super::{
    brain::Brain,
    say::{AcpStep, asks, called, calls, chunk, end, error, may_i, result, thought, update},
};

const BIG_BYTES: usize = 50 << 20;
const BABBLE: usize = 100;
/// The bytes of one thing of a gush.
const GUSH_BYTES: usize = 4 << 10;
/// All that an essay says, and one thing of it.
const ESSAY_BYTES: usize = 15 << 20;
const ESSAY_PIECE: usize = 16 << 10;
const INTERNAL: i64 = -32603;
const CALL: &str = "call1";

/// A turn under way.
#[derive(Debug)]
pub(super) struct AcpTurn {
    prompt: Value,
    session: String,
    word: String,
    is_cancelled: bool,
    /// Questions that are not answered yet.
    open: Vec<String>,
}

/// The text of a prompt.
pub(super) fn text_of(params: &Value) -> String {
    let blocks = params["prompt"].as_array().into_iter().flatten();
    let texts: Vec<&str> = blocks.filter_map(|block| block["text"].as_str()).collect();
    texts.join("\n")
}

pub(super) fn begin(brain: &mut Brain, id: &Value, session: &str, params: &Value) -> Vec<AcpStep> {
    let text = brain.manners.word.clone().unwrap_or_else(|| text_of(params));
    let line = text.lines().last().unwrap_or_default();
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    let turn = AcpTurn {
        prompt: id.clone(),
        session: session.to_owned(),
        word: word.to_owned(),
        is_cancelled: false,
        open: Vec::new(),
    };
    if let Some(steps) = at_once(brain, &turn, rest) {
        return steps;
    }
    under_way(brain, turn, rest)
}

/// What is over as soon as it is said.
fn at_once(brain: &Brain, turn: &AcpTurn, rest: &str) -> Option<Vec<AcpStep>> {
    let (id, session) = (&turn.prompt, turn.session.as_str());
    let said = || rest.split_inclusive(' ').map(|word| chunk(session, word));
    let ends = |reason| end(id, reason);
    Some(match turn.word.as_str() {
        "say" => said().chain([ends("end_turn")]).collect(),
        "think" => vec![
            thought(session, "hm"),
            calls(session, CALL, "Looking at it"),
            called(session, CALL, "completed"),
            chunk(session, "thought about it"),
            ends("end_turn"),
        ],
        "flood" => [AcpStep::Flood].into_iter().chain(said()).chain([ends("end_turn")]).collect(),
        "noise" => noise(session).into_iter().chain(said()).chain([ends("end_turn")]).collect(),
        "big" => vec![chunk(session, &"x".repeat(BIG_BYTES)), chunk(session, "after"), ends("end_turn")],
        "gush" => vec![AcpStep::Gush(Box::new(chunk(session, &"x".repeat(GUSH_BYTES))))],
        "brood" => vec![AcpStep::Gush(Box::new(thought(session, &"x".repeat(GUSH_BYTES))))],
        "essay" => {
            let piece = "x".repeat(ESSAY_PIECE);
            let pieces = std::iter::repeat_n(&piece, ESSAY_BYTES / ESSAY_PIECE);
            pieces.map(|piece| chunk(session, piece)).chain([ends("end_turn")]).collect()
        }
        "die" => vec![chunk(session, "half"), AcpStep::Die("the disk is on fire", 3)],
        "twice" => vec![chunk(session, "once"), ends("end_turn"), chunk(session, "again"), ends("refusal")],
        "serve" | "tidy" => vec![AcpStep::Command, chunk(session, "serving"), ends("end_turn")],
        "wedge" => vec![chunk(session, "wedged"), AcpStep::Wedge],
        "count" => {
            let count = brain.earlier(session).len();
            vec![chunk(session, &format!("prompt {count}")), ends("end_turn")]
        }
        "refuse" => vec![ends("refusal")],
        "tokens" => vec![chunk(session, "cut"), ends("max_tokens")],
        "new-reason" => vec![ends("bored")],
        "broken" => vec![AcpStep::Say(json!({"jsonrpc": "2.0", "id": id}))],
        _ => return None,
    })
}

/// A turn that runs until a message arrives.
fn under_way(brain: &mut Brain, mut turn: AcpTurn, rest: &str) -> Vec<AcpStep> {
    let session = turn.session.clone();
    let steps = match turn.word.as_str() {
        "ask" | "nag" | "shy" | "sulk" => {
            let questions: &[&str] = if turn.word == "nag" { &["q1", "q2"] } else { &["q1"] };
            turn.open = questions.iter().map(|question| (*question).to_owned()).collect();
            let asks = questions.iter().map(|question| may_i(&session, question));
            [calls(&session, "pay1", "Pay the rent")].into_iter().chain(asks).collect()
        }
        "odd-ask" => {
            turn.open.push("q1".into());
            vec![asks(&session, "q1", json!([{"optionId": "hm", "name": "Hm", "kind": "ponder"}]))]
        }
        "file" => {
            turn.open.push("q1".into());
            let params = json!({"sessionId": session, "path": "/etc/hostname"});
            vec![AcpStep::Say(
                json!({"jsonrpc": "2.0", "id": "q1", "method": "fs/read_text_file", "params": params}),
            )]
        }
        "work" | "deaf" | "sly" | "fail" | "babble" | "late" | "unmoved" | "tree" | "command" | "hand"
        | "clan" => {
            let hands = brain.manners.hub.clone().map(AcpStep::HandOver);
            let first: Vec<AcpStep> = match turn.word.as_str() {
                "tree" => vec![AcpStep::Spawn],
                "command" => vec![AcpStep::Command],
                "hand" => hands.into_iter().collect(),
                "clan" => [AcpStep::Spawn].into_iter().chain(hands).collect(),
                _ => Vec::new(),
            };
            let begins = [chunk(&session, "working"), calls(&session, CALL, "Working")];
            first.into_iter().chain(begins).collect()
        }
        word => return vec![error(&turn.prompt, INTERNAL, &format!("I cannot {word} {rest}"))],
    };
    brain.turn = Some(turn);
    note(brain, "begun");
    steps
}

/// Records that its work has begun, was asked to end, or has ended.
fn note(brain: &Brain, what: &str) {
    brain.manners.note(&json!({ what: std::process::id() }));
}

/// What is under way ends by itself.
pub(super) fn finish(brain: &mut Brain) -> Vec<AcpStep> {
    let Some(turn) = ended(brain) else { return Vec::new() };
    vec![chunk(&turn.session, "finished"), end(&turn.prompt, "end_turn")]
}

/// Handles a request to end the turn.
pub(super) fn cancelled(brain: &mut Brain) -> Vec<AcpStep> {
    let Some(turn) = &mut brain.turn else { return Vec::new() };
    turn.is_cancelled = true;
    let stays = match turn.word.as_str() {
        "deaf" | "late" | "tree" => Some(Vec::new()),
        "unmoved" => Some(vec![chunk(&turn.session, "still working")]),
        // Who asks waits for the answers first, as the protocol says.
        _ if !turn.open.is_empty() => Some(Vec::new()),
        _ => None,
    };
    note(brain, "asked");
    if let Some(steps) = stays {
        return steps;
    }
    let Some(turn) = ended(brain) else { return Vec::new() };
    confirm(&turn.word, &turn.prompt, &turn.session)
}

/// Takes the turn, whose work has ended.
fn ended(brain: &mut Brain) -> Option<AcpTurn> {
    let turn = brain.turn.take()?;
    note(brain, "ended");
    Some(turn)
}

/// What it says when it has ended.
fn confirm(word: &str, id: &Value, session: &str) -> Vec<AcpStep> {
    match word {
        "sly" => vec![end(id, "end_turn")],
        "fail" => vec![error(id, INTERNAL, "the request was aborted")],
        "babble" => (0..BABBLE)
            .map(|_| chunk(session, "and "))
            .chain([called(session, CALL, "completed"), end(id, "cancelled")])
            .collect(),
        _ => vec![end(id, "cancelled")],
    }
}

/// Handles the answer to a request of the agent.
pub(super) fn answered(brain: &mut Brain, id: &Value, answer: &Value) -> Vec<AcpStep> {
    let Some(turn) = &mut brain.turn else { return Vec::new() };
    turn.open.retain(|open| id != open);
    if !turn.open.is_empty() {
        return Vec::new();
    }
    let Some(AcpTurn { prompt, session, word, is_cancelled, .. }) = ended(brain) else { return Vec::new() };
    if word == "file" {
        let code = answer["error"]["code"].to_string();
        return vec![chunk(&session, &code), end(&prompt, "end_turn")];
    }
    let outcome = &answer["result"]["outcome"];
    match (outcome["outcome"].as_str(), outcome["optionId"].as_str()) {
        (Some("selected"), Some(option @ ("yes" | "ever"))) => {
            brain.manners.note(&json!({"paid": 900, "option": option}));
            vec![called(&session, "pay1", "completed"), chunk(&session, "paid"), end(&prompt, "end_turn")]
        }
        (Some("selected"), Some(_)) if word == "shy" => vec![end(&prompt, "end_turn")],
        (Some("selected"), Some(_)) if word == "sulk" => vec![end(&prompt, "cancelled")],
        (Some("selected"), Some(option)) => {
            vec![
                called(&session, "pay1", "failed"),
                chunk(&session, &format!("not paid: {option}")),
                end(&prompt, "end_turn"),
            ]
        }
        _ if is_cancelled => vec![end(&prompt, "cancelled")],
        _ => vec![chunk(&session, "no answer"), end(&prompt, "end_turn")],
    }
}

/// The input has ended, so no cancel can arrive any more.
pub(super) fn end_of_input(brain: &mut Brain) -> Vec<AcpStep> {
    let is_tidy = brain.manners.word.as_deref().is_some_and(|word| word.starts_with("tidy"));
    let Some(turn) = brain.turn.take() else {
        return if is_tidy { vec![AcpStep::EndCommands] } else { Vec::new() };
    };
    if !turn.is_cancelled {
        note(brain, "asked");
    }
    if turn.word != "late" {
        return Vec::new();
    }
    let session = turn.session.as_str();
    vec![chunk(session, "done after all"), called(session, CALL, "completed"), end(&turn.prompt, "end_turn")]
}

/// Lines that are no messages, messages without a recipient, and one of a kind that this release does not
/// know.
fn noise(session: &str) -> Vec<AcpStep> {
    vec![
        AcpStep::Raw("Listening on {port".into()),
        AcpStep::Raw(String::new()),
        AcpStep::Raw("[1, 2".into()),
        AcpStep::Raw("\"text\"".into()),
        AcpStep::Raw("{\"jsonrpc\":\"2.0\"}".into()),
        result(&json!(424_242), json!({"stopReason": "refusal"})),
        result(&json!("unknown"), json!({})),
        chunk("another-session", "not for you "),
        update(session, json!({"sessionUpdate": "moon_phase", "phase": "full"})),
        AcpStep::Say(json!({"jsonrpc": "2.0", "method": "_vendor/hello", "params": {}})),
    ]
}
