//! A turn: what the prompt asks for, and how it ends on a cancel.

use serde_json::{Value, json};

use super::{
    brain::Brain,
    say::{AcpStep, asks, called, calls, chunk, end, error, may_i, result, thought, update},
};

/// What the first word of a prompt's last line makes of the turn.
pub const WORDS: [(&str, &str); 35] = [
    ("say", "says the rest of the line, in chunks of one word, and ends"),
    ("think", "thinks, uses its own tool, says `thought about it`, and ends"),
    ("work", "says `working`, begins a tool call, and works until it is asked to end, which it confirms"),
    ("deaf", "the same, but ignores `session/cancel`"),
    ("sly", "the same, but says `end_turn` where it should say that it was cancelled"),
    ("fail", "the same, but answers with an error when it is asked to end"),
    (
        "babble",
        "the same, but says a hundred more things, and that its tool call is done, before it confirms",
    ),
    ("late", "ignores `session/cancel`, but says more and answers when its input ends"),
    ("unmoved", "answers `session/cancel` with no more than that it is `still working`"),
    ("ask", "asks whether it may pay; pays if it may; and ends, or confirms that it was asked to"),
    ("nag", "asks the same twice at once, and then as `ask`"),
    ("odd-ask", "asks with no answer to choose from that allows anything"),
    ("tree", "starts a grandchild in its own session, and then as `deaf`"),
    ("command", "runs a command as `work` does, and confirms its end at once, while the command continues"),
    ("hand", "hands its work to the hub of its manners, and then as `work`"),
    ("clan", "starts a grandchild as `tree` does, and then as `hand`"),
    (
        "serve",
        "starts a command in the background, says `serving`, and ends; the command ends with the agent",
    ),
    ("tidy", "the same, but it ends the command itself when its input ends"),
    ("shy", "asks as `ask`, and where it may not, ends without a word"),
    ("sulk", "asks as `ask`, and where it may not, ends with `cancelled`"),
    ("flood", "writes many megabytes to standard error, and then as `say`"),
    ("noise", "writes lines that are no messages, and then as `say`"),
    ("big", "writes one line of 50 MB, says `after`, and ends"),
    ("gush", "says one thing after the other without end"),
    ("brood", "thinks one thing after the other without end"),
    ("essay", "says 15 MiB in many pieces, and ends"),
    ("die", "says `half`, and why on standard error, and ends the process with code 3"),
    ("twice", "answers twice, differently"),
    ("file", "asks for a file, says what it was answered, and ends"),
    ("wedge", "says `wedged`, and reads and does nothing more"),
    ("count", "says how many prompts this session has had, and ends"),
    ("refuse", "ends with `refusal`"),
    ("tokens", "says `cut`, and ends with `max_tokens`"),
    ("new-reason", "ends with an unknown reason"),
    ("broken", "answers with neither a result nor an error"),
];

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
        "gush" => vec![gush(chunk(session, &"x".repeat(GUSH_BYTES)))],
        "brood" => vec![gush(thought(session, &"x".repeat(GUSH_BYTES)))],
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

/// The same thing without end.
fn gush(said: AcpStep) -> AcpStep {
    match said {
        AcpStep::Say(message) => AcpStep::Gush(message),
        other => other,
    }
}

/// A turn that runs until a message arrives.
fn under_way(brain: &mut Brain, mut turn: AcpTurn, rest: &str) -> Vec<AcpStep> {
    let session = turn.session.clone();
    let steps = match turn.word.as_str() {
        "ask" | "nag" | "shy" | "sulk" => {
            turn.open.push("q1".into());
            let mut steps = vec![calls(&session, "pay1", "Pay the rent"), may_i(&session, "q1")];
            if turn.word == "nag" {
                turn.open.push("q2".into());
                steps.push(may_i(&session, "q2"));
            }
            steps
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
            let mut steps = vec![chunk(&session, "working"), calls(&session, CALL, "Working")];
            match (turn.word.as_str(), &brain.manners.hub) {
                ("tree", _) => steps.insert(0, AcpStep::Spawn),
                ("command", _) => steps.insert(0, AcpStep::Command),
                ("hand", Some(hub)) => steps.insert(0, AcpStep::HandOver(hub.clone())),
                ("clan", hub) => {
                    let hands = hub.clone().map(AcpStep::HandOver);
                    steps.splice(0..0, [AcpStep::Spawn].into_iter().chain(hands));
                }
                _ => {}
            }
            steps
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
    let Some(turn) = brain.turn.take() else { return Vec::new() };
    note(brain, "ended");
    vec![chunk(&turn.session, "finished"), end(&turn.prompt, "end_turn")]
}

/// Handles a request to end the turn.
pub(super) fn cancelled(brain: &mut Brain) -> Vec<AcpStep> {
    let Some(mut turn) = brain.turn.take() else { return Vec::new() };
    turn.is_cancelled = true;
    note(brain, "asked");
    let (id, session) = (turn.prompt.clone(), turn.session.clone());
    match turn.word.as_str() {
        "deaf" | "late" | "tree" => {
            brain.turn = Some(turn);
            Vec::new()
        }
        "unmoved" => {
            brain.turn = Some(turn);
            vec![chunk(&session, "still working")]
        }
        // Who asks waits for the answers first, as the protocol says.
        _ if !turn.open.is_empty() => {
            brain.turn = Some(turn);
            Vec::new()
        }
        word => {
            note(brain, "ended");
            confirm(word, &id, &session)
        }
    }
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
    let Some(mut turn) = brain.turn.take() else { return Vec::new() };
    turn.open.retain(|open| id != open);
    let (prompt, session) = (turn.prompt.clone(), turn.session.clone());
    if !turn.open.is_empty() {
        brain.turn = Some(turn);
        return Vec::new();
    }
    if turn.word == "file" {
        note(brain, "ended");
        let code = answer["error"]["code"].to_string();
        return vec![chunk(&session, &code), end(&prompt, "end_turn")];
    }
    note(brain, "ended");
    let outcome = &answer["result"]["outcome"];
    match (outcome["outcome"].as_str(), outcome["optionId"].as_str()) {
        (Some("selected"), Some(option @ ("yes" | "ever"))) => {
            brain.manners.note(&json!({"paid": 900, "option": option}));
            vec![called(&session, "pay1", "completed"), chunk(&session, "paid"), end(&prompt, "end_turn")]
        }
        (Some("selected"), Some(_)) if turn.word == "shy" => vec![end(&prompt, "end_turn")],
        (Some("selected"), Some(_)) if turn.word == "sulk" => vec![end(&prompt, "cancelled")],
        (Some("selected"), Some(option)) => {
            vec![
                called(&session, "pay1", "failed"),
                chunk(&session, &format!("not paid: {option}")),
                end(&prompt, "end_turn"),
            ]
        }
        _ if turn.is_cancelled => vec![end(&prompt, "cancelled")],
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
