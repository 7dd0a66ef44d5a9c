//! What arrived in the same read as the error behind it is kept: its text, and its bill.

use safepoint::{Outcome, receipt::ModelState, usage::UsageSource};
use safepoint_testkit::{
    script::{Reply, ReplyFault},
    server::ServedWire,
};
use serde_json::{Value, json};

use super::world::{Ledger, WIRES, builder, close, continues, server};

const PIECES: usize = 300;

/// The events of a reply up to its text, in the wire's own form; the input is named as 10 where a wire names
/// it first.
fn beginning(wire: ServedWire) -> Vec<Value> {
    match wire {
        ServedWire::Anthropic => vec![
            json!({"type": "message_start", "message": {"usage": {"input_tokens": 10, "output_tokens": 1}}}),
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        ],
        ServedWire::Responses => {
            vec![
                json!({"type": "response.created", "sequence_number": 0, "response": {"id": "r", "status": "in_progress"}}),
            ]
        }
        ServedWire::OpenAi | ServedWire::Gemini => Vec::new(),
    }
}

fn piece(wire: ServedWire, number: usize, text: &str) -> Value {
    match wire {
        ServedWire::OpenAi => json!({"choices": [{"index": 0, "delta": {"content": text}}]}),
        ServedWire::Anthropic => {
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}})
        }
        ServedWire::Responses => {
            json!({"type": "response.output_text.delta", "sequence_number": number + 1, "item_id": "i",
                "output_index": 0, "content_index": 0, "delta": text})
        }
        ServedWire::Gemini => {
            json!({"candidates": [{"index": 0, "content": {"role": "model", "parts": [{"text": text}]}}],
            "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 3}})
        }
    }
}

/// The provider's error in the stream, in a form that each wire knows.
fn error() -> String {
    json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded", "code": 503},
        "message": "Overloaded", "code": "server_error"})
    .to_string()
}

/// One body: the beginning, this many pieces, and what ends it.
fn body(wire: ServedWire, pieces: usize, end: &str) -> Vec<u8> {
    let pieces = (0..pieces).map(|number| piece(wire, number, &format!("w{number} ")));
    let events = beginning(wire).into_iter().chain(pieces).map(|event| event.to_string());
    events.chain([end.to_owned()]).map(|event| format!("data: {event}\n\n")).collect::<String>().into_bytes()
}

/// S3.9, S5.4, S2.2: text and usage that stand before a broken line, or before the provider's error, in the
/// same read are kept on every wire.
#[tokio::test]
async fn what_arrived_with_an_error_is_kept() {
    for wire in WIRES {
        for (pieces, end, why) in [
            (1, "{\"oops".to_owned(), "not what its wire promises"),
            (PIECES, "{\"oops".to_owned(), "not what its wire promises"),
            (PIECES, error(), "Overloaded"),
        ] {
            let broken = Reply::default().fault(ReplyFault::Raw(body(wire, pieces, &end)));
            let server = server([broken, Reply::text("and on")]).await;
            let agent = builder(&server, wire).build();
            let handle = agent.run("tell").detach();
            let (outcome, receipt) = close(&server, &handle, &Ledger::default()).await;
            let Outcome::Failed(error) = &outcome else { panic!("{outcome:?}") };
            assert!(error.to_string().contains(why), "{wire:?}: {error}");
            let all: String = (0..pieces).map(|number| format!("w{number} ")).collect();
            assert_eq!(outcome.partial_text(), all, "{wire:?}");
            assert_eq!(receipt.model.as_ref().unwrap().state, ModelState::Closed, "{wire:?}");
            let usage = &receipt.usage;
            if matches!(wire, ServedWire::Anthropic | ServedWire::Gemini) {
                assert_eq!(usage.input, 10, "{wire:?}: the provider's word");
            }
            // A token is at most some bytes: the floor grows with the text.
            assert!(usage.output >= u64::try_from(pieces / 2).unwrap().max(1), "{wire:?}: {usage:?}");
            if pieces == PIECES {
                assert_eq!(usage.source, UsageSource::Estimated, "{wire:?}: it named less than arrived");
            }
            continues(&agent, &outcome).await;
        }
    }
}
