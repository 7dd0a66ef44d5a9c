//! What a user's message asks the model server to do, and the bytes of it: chat completions, streamed.

use std::{collections::BTreeMap, time::Duration};

use memchr::memmem;

use crate::tools::{ECHO, NAP};

/// What every user's message of the comparison begins with.
const ASK: &str = "\"do:";
/// What an id of a call begins with; its round follows.
const CALL: &str = "call_";

/// Exhaustive: what is measured needs no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Script {
    /// Asks for one call of `echo` in each of this many rounds, and then answers.
    Chain(usize),
    /// Asks once for this many naps of that many milliseconds, and then answers.
    Fan(usize, u64),
    /// Sends a word each time that many milliseconds have passed, without an end.
    Drip(u64),
    /// Sends one word, and nothing more.
    Hang,
    /// Sends nothing at all.
    Stall,
    /// Answers at once.
    Say,
}

/// Exhaustive: ways to answer.
pub(super) enum ScriptedReply {
    Whole(Vec<u8>),
    /// These bytes, and then nothing until the client is gone.
    Waits(Vec<u8>),
    /// The first bytes, and then the second ones, so far apart, until the client is gone.
    Drips(Vec<u8>, Vec<u8>, Duration),
}

impl Script {
    pub(super) fn of(body: &[u8]) -> Self {
        let ask = memmem::find(body, ASK.as_bytes()).map(|at| &body[at + ASK.len()..]).unwrap_or_default();
        let ask = ask.split(|byte| *byte == b'"').next().and_then(|ask| str::from_utf8(ask).ok());
        let mut words = ask.unwrap_or_default().split(' ');
        let name = words.next().unwrap_or_default();
        let mut number = || words.next().and_then(|word| word.parse::<u64>().ok()).unwrap_or_default();
        match name {
            "chain" => Self::Chain(count(number())),
            "fan" => Self::Fan(count(number()), number()),
            "drip" => Self::Drip(number()),
            "hang" => Self::Hang,
            "stall" => Self::Stall,
            _ => Self::Say,
        }
    }

    pub(super) fn answer(self, body: &[u8]) -> ScriptedReply {
        let results = Results::of(body);
        match self {
            Self::Chain(_) if !results.are_right() => ScriptedReply::Whole(refusal()),
            Self::Chain(rounds) if results.rounds < rounds => {
                let round = results.rounds;
                ScriptedReply::Whole(calls([(
                    format!("{CALL}{round}"),
                    ECHO,
                    format!("{{\"text\": \"round-{round}\"}}"),
                )]))
            }
            Self::Fan(naps, ms) if results.count == 0 => ScriptedReply::Whole(calls(
                (0..naps).map(|n| (format!("{CALL}{n}"), NAP, format!("{{\"ms\": {ms}}}"))),
            )),
            Self::Hang => ScriptedReply::Waits([HEAD, &chunk(&word())].concat()),
            Self::Stall => ScriptedReply::Waits(Vec::new()),
            Self::Drip(ms) => ScriptedReply::Drips(HEAD.to_vec(), chunk(&word()), Duration::from_millis(ms)),
            Self::Chain(_) | Self::Fan(..) | Self::Say => {
                ScriptedReply::Whole(text("That is all that was wanted."))
            }
        }
    }
}

fn count(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// The results of calls that a request has.
struct Results {
    count: usize,
    /// One more than the number of the last.
    rounds: usize,
    has_last: bool,
}

impl Results {
    fn of(body: &[u8]) -> Self {
        const ID: &[u8] = b"\"tool_call_id\":\"call_";
        let found = memmem::find_iter(body, ID);
        let (mut count, mut last) = (0, None);
        for at in found {
            count += 1;
            last = Some(at + ID.len());
        }
        let Some(last) = last else { return Self { count, rounds: 0, has_last: true } };
        let digits = body[last..].split(|byte| *byte == b'"').next().unwrap_or_default();
        let number = str::from_utf8(digits).ok().and_then(|digits| digits.parse::<usize>().ok());
        let message = ToolMessage::around(body, last);
        let has_last = number.zip(message).is_some_and(|(number, message)| message.is_of(number));
        Self { count, rounds: number.map_or(0, |number| number + 1), has_last }
    }

    /// Whether each round has its one result, and the last one what was asked for.
    fn are_right(&self) -> bool {
        self.count == self.rounds && self.has_last
    }
}

/// A message with a result: its texts by their names.
struct ToolMessage<'a>(BTreeMap<&'a str, &'a str>);

impl<'a> ToolMessage<'a> {
    /// The message that has this place in it, if it is one with a result.
    fn around(body: &'a [u8], at: usize) -> Option<Self> {
        let begins = memmem::rfind(&body[..at], b"{\"role\":\"tool\"")?;
        serde_json::Deserializer::from_slice(&body[begins..]).into_iter().next()?.ok().map(Self)
    }

    /// Whether it has the id of this round's call, and what that was to say, and nothing else.
    fn is_of(&self, round: usize) -> bool {
        let number = |name: &str, before: &str| self.0.get(name)?.strip_prefix(before)?.parse().ok();
        number("tool_call_id", CALL) == Some(round) && number("content", "round-") == Some(round)
    }
}

const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\n\
transfer-encoding: chunked\r\n\r\n";

fn refusal() -> Vec<u8> {
    b"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}".to_vec()
}

fn event(delta: &str, reason: &str) -> String {
    format!(
        "data: {{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1700000000,\"model\":\"m\",\
         \"choices\":[{{\"index\":0,\"delta\":{delta},\"finish_reason\":{reason}}}]}}\n\n"
    )
}

/// One chunk of a body that is sent in chunks.
fn chunk(events: &str) -> Vec<u8> {
    format!("{:x}\r\n{events}\r\n", events.len()).into_bytes()
}

fn word() -> String {
    event("{\"content\":\"well \"}", "null")
}

/// A whole reply: each of its events is a chunk, since a model sends each when it has it.
fn reply(deltas: impl IntoIterator<Item = String>, reason: &str) -> Vec<u8> {
    const END: &str = "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1700000000,\
         \"model\":\"m\",\"choices\":[],\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":5,\"total_tokens\":15}}\n\n\
         data: [DONE]\n\n";
    let mut bytes = HEAD.to_vec();
    for delta in deltas {
        bytes.extend_from_slice(&chunk(&event(&delta, "null")));
    }
    bytes.extend_from_slice(&chunk(&[event("{}", reason).as_str(), END].concat()));
    bytes.extend_from_slice(b"0\r\n\r\n");
    bytes
}

fn text(said: &str) -> Vec<u8> {
    reply(said.split_inclusive(' ').map(|word| format!("{{\"content\":\"{word}\"}}")), "\"stop\"")
}

/// A reply with these calls: id, name and arguments of each, the arguments in three pieces.
fn calls(wanted: impl IntoIterator<Item = (String, &'static str, String)>) -> Vec<u8> {
    let deltas = wanted.into_iter().enumerate().flat_map(|(index, (id, name, arguments))| {
        let begun = format!(
            "{{\"tool_calls\":[{{\"index\":{index},\"id\":\"{id}\",\"type\":\"function\",\
             \"function\":{{\"name\":\"{name}\",\"arguments\":\"\"}}}}]}}"
        );
        let third = arguments.len() / 3;
        let piece = |text: &str| {
            let text = text.replace('"', "\\\"");
            format!("{{\"tool_calls\":[{{\"index\":{index},\"function\":{{\"arguments\":\"{text}\"}}}}]}}")
        };
        let pieces = [&arguments[..third], &arguments[third..2 * third], &arguments[2 * third..]];
        [begun, piece(pieces[0]), piece(pieces[1]), piece(pieces[2])]
    });
    reply(deltas, "\"tool_calls\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_what_the_user_says() {
        let said = |ask: &str| Script::of(format!("{{\"content\":\"do:{ask}\"}}").as_bytes());
        assert_eq!(said("chain 20"), Script::Chain(20));
        assert_eq!(said("fan 100 10"), Script::Fan(100, 10));
        assert_eq!(said("hang"), Script::Hang);
        assert_eq!(Script::of(b"{}"), Script::Say);
    }

    #[test]
    fn a_history_without_its_last_result_is_refused() {
        let answered = |results: &str| {
            let body = format!("\"do:chain 3\"{results}");
            match Script::of(body.as_bytes()).answer(body.as_bytes()) {
                ScriptedReply::Whole(bytes) => String::from_utf8(bytes).unwrap(),
                _ => String::new(),
            }
        };
        let with = |number: usize, content: &str| {
            format!(",{{\"role\":\"tool\",\"tool_call_id\":\"call_{number}\",\"content\":\"{content}\"}}")
        };
        let result = |number: usize| with(number, &format!("round-{number}"));
        assert!(answered("").contains("call_0"));
        assert!(answered(&result(0)).contains("call_1"));
        assert!(answered(&result(1)).starts_with("HTTP/1.1 400"), "the first one is missing");
        for wrong in ["round-10", "round-", "rested", "round-1 round-0"] {
            let results = result(0) + &with(1, wrong);
            assert!(answered(&results).starts_with("HTTP/1.1 400"), "{wrong}");
        }
        let elsewhere = result(0) + &with(1, "") + ",{\"content\":\"round-1\"}";
        assert!(answered(&elsewhere).starts_with("HTTP/1.1 400"), "it is in another message");
        let all: String = (0..3).map(result).collect();
        assert!(answered(&all).contains("\"stop\""));
    }
}
