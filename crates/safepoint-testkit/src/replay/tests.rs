//! The golden file of a recording.

use safepoint::model::{ToolChoice, ToolDecl};
use safepoint_golden::{Golden, each};

use super::*;

fn spec(choice: ToolChoice) -> ModelSpec {
    let look =
        ToolDecl { name: "look".into(), description: "looks".into(), parameters: json!({"type": "object"}) };
    let choice = Some(choice);
    let system = Some("be brief".into());
    ModelSpec { system, tools: Arc::from([look]), choice, output_bytes: 1000, ..ModelSpec::default() }
}

/// What a model is asked, with each choice of a tool.
fn requests() -> Vec<Value> {
    let choices = each!(ToolChoice {
        ToolChoice::Auto => ToolChoice::Auto;
        ToolChoice::None => ToolChoice::None;
        ToolChoice::Required => ToolChoice::Required;
        ToolChoice::Tool(_) => ToolChoice::Tool("look".into());
    });
    let mut history = History::new();
    history.push(safepoint::history::Message::User("hello".into()));
    choices.into_iter().map(|choice| request(&said_of(&spec(choice)), &history)).collect()
}

#[test]
fn a_recording() {
    let lines = each!(RecordedLine {
        RecordedLine::Request(_) => RecordedLine::Request(requests().remove(0));
        RecordedLine::Delta(_) => RecordedLine::Delta(Delta::Text("hello".into()));
        RecordedLine::Failed(_) => RecordedLine::Failed("the stream broke".into());
    });
    Golden::file(env!("CARGO_MANIFEST_DIR"), "tests/golden/recording.txt")
        .json("line", lines)
        .json("request", requests())
        .check();
}
