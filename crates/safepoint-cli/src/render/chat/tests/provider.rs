//! What a provider did itself, on the screen of a chat.

use std::sync::Arc;

use safepoint::{
    event::{EventKind, Fact},
    message::{AssistantMessage, Block, Citation, ProviderBlock, ProviderPart, ResultStatus},
    session::ItemOutcome,
};
use serde_json::{Value, json};

use super::{World, turn};

fn provider(part: ProviderPart) -> ProviderBlock {
    ProviderBlock::new("w", part, Value::Null)
}

fn ended(blocks: Vec<Block>) -> Fact {
    let mut message = AssistantMessage::of_text("");
    message.blocks = blocks;
    let at = "2026-01-01T00:00:00Z";
    let usage = safepoint::Usage::new(1, 1);
    let report = json!({"model": "m", "round": 1, "state": "completed", "usage": usage, "started_at": at, "ended_at": at});
    let fact = json!({"fact": "model_ended", "message": message, "whole": "whole", "report": report});
    serde_json::from_value(fact).unwrap()
}

/// S4.24: a use and the first lines of what it gave stand between the texts before and behind it; where the answer is from stands
/// below it. What is above the pane is in the scrollback, whatever the width.
#[test]
fn what_the_provider_did_stands_in_its_place() {
    for columns in [60, 200] {
        let mut world = World::running();
        world.state.columns = columns;
        let (id, tool, input) =
            ("u".to_owned(), "code_execution".to_owned(), "print(1)\nprint(2)".to_owned());
        let (of, by, status) = (id.clone(), tool.clone(), ResultStatus::Ok);
        let text = (1..=9).map(|line| line.to_string()).collect::<Vec<_>>().join("\n");
        world.run(EventKind::Text("Let me".into()));
        world.run(EventKind::Provider(Arc::new(provider(ProviderPart::Use {
            id,
            tool,
            input,
            result: None,
        }))));
        let gave = ProviderPart::Result { id: of, tool: by, status, text };
        world.run(EventKind::Provider(Arc::new(provider(gave))));
        world.run(EventKind::Text("It is 1.".into()));
        let page = "https://example.com/a/long/address/of/a/page/with/many/parts".to_owned();
        let cited = vec![Citation::new(Some(page.clone()), Some("Numbers".into()), None)];
        let block = Block::Provider(Box::new(provider(ProviderPart::Citations(cited))));
        world.fact(ended(vec![block]));
        world.ended(ItemOutcome::Completed(turn(1)));
        world.screen();
        let rows: Vec<String> =
            world.above.iter().map(|line| line.to_string().trim_end().to_owned()).collect();
        let begins = rows.iter().position(|row| row == "Let me").unwrap();
        let shown: Vec<&str> =
            rows[begins..].iter().map(String::as_str).filter(|row| !row.is_empty()).collect();
        let (head, tail) = shown.split_at(9);
        let expected = [
            "Let me",
            "▸ code_execution (by the provider) print(1) print(2)",
            "▪ code_execution: completed",
            "  1",
            "  2",
            "  … 4 more lines: Ctrl-O shows all",
            "  7",
            "  8",
            "  9",
        ];
        assert_eq!(head, expected, "{columns}");
        assert_eq!(&tail[..2], ["It is 1.", "sources:"], "{columns}");
        let listed = tail[2..].join("").replace("     ", "");
        assert!(listed.starts_with("  1. Numbers") && listed.contains(&page), "{columns}: {tail:?}");
    }
}
