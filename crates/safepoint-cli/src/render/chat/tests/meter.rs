//! The figures below the input, `/cost`, `/context` and `/compact`.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use safepoint::{
    History, Usage,
    event::{EventKind, Fact},
    history::Message,
    receipt::Ending,
    session::{ItemOutcome, SessionEvent},
};

use super::{Action, PushKind, World, receipt, turn};
use crate::{
    prices::{Figures, Prices},
    render::chat::{compact, meter::table::Fixed},
};

fn report(model: &str, state: &str, usage: &Usage) -> serde_json::Value {
    let at = jiff::Timestamp::UNIX_EPOCH;
    serde_json::json!({
        "model": model, "round": 1, "state": state, "usage": usage, "started_at": at, "ended_at": at,
    })
}

fn answered(model: &str, usage: &Usage) -> Fact {
    let fact = serde_json::json!({
        "fact": "model_ended", "message": {"blocks": []}, "whole": "whole",
        "report": report(model, "completed", usage),
    });
    serde_json::from_value(fact).unwrap()
}

fn summarised() -> Fact {
    let entry = Message::User("in short".into());
    let omitted = serde_json::json!({
        "entries": 3, "keeps_from": 3, "rounds": 2, "by": "summary", "entry": entry,
    });
    let fact = serde_json::json!({
        "fact": "summary_ended", "whole": "whole", "report": report("openai:x", "completed", &Usage::new(5000, 100)),
        "shortened": {"omitted": omitted, "tokens_before": 12_000, "tokens_after": 1500},
    });
    serde_json::from_value(fact).unwrap()
}

impl World {
    /// A chat with a window of 20k, and prices of `openai:x` alone.
    fn measured() -> Self {
        let mut world = Self::running();
        let own = toml::from_str("'openai:x' = { input = 2.0, cached_input = 0.2, output = 8.0 }").unwrap();
        world.state.meter.set(Figures { window: Some(20_000), prices: Prices::new(own, false) });
        world
    }

    fn done(&mut self, ending: Ending) -> Vec<Action> {
        let mut receipt = receipt();
        (receipt.ending, receipt.stop) = (ending, None);
        let fate = ItemOutcome::Completed(turn(1));
        let acts = self.hear(SessionEvent::TurnEnded { turn: turn(1), fate, receipt: Arc::new(receipt) });
        self.hear(SessionEvent::TurnQuiet {
            turn: turn(1),
            receipt: Arc::new(super::receipt()),
            survivors: Vec::new(),
        });
        acts
    }
}

/// S12.57: the footer has what the conversation has used and how full its window is, by the provider's own count.
#[test]
fn the_footer_has_what_was_used() {
    let mut world = World::measured();
    world.hides("20k");
    world.fact(Fact::ModelStarted { round: 1 });
    world.wait(Duration::from_secs(3));
    world.fact(answered("openai:x", &Usage::new(5000, 1000).with_cached_input(4000)));
    world.shows("30 % of 20k · $0.0108 · 5.0k in · 4.0k cached · 1.0k out · 1 round · ");
}

/// S12.57: a cost whose price is not known is not made up, and one that is known in part is a least one.
#[test]
fn an_unknown_price_is_no_cost() {
    let mut world = World::measured();
    world.fact(Fact::ModelStarted { round: 1 });
    world.fact(answered("openai:y", &Usage::new(5000, 1000)));
    world.shows("5.0k in · 1.0k out");
    world.hides("$");
    world.fact(Fact::ModelStarted { round: 2 });
    world.fact(answered("openai:x", &Usage::new(5000, 1000)));
    world.shows("≥ $0.0180");
    world.say("/cost");
    world.shows("the price of some requests is not known");
}

/// S12.57: what a sub-agent uses counts, and does not fill the window of the conversation.
#[test]
fn a_sub_agent_costs_and_fills_no_window() {
    let mut world = World::measured();
    world.fact(Fact::ModelStarted { round: 1 });
    world.fact(answered("openai:x", &Usage::new(1000, 0)));
    let path = safepoint::ids::Path::default().of(&safepoint::ids::CallId::from("call_7"));
    let event = Arc::new(EventKind::Fact(Arc::new(answered("openai:x", &Usage::new(9000, 1000)))));
    world.run(EventKind::Child { path, event });
    world.shows("5 % of 20k · $0.0280 · 10k in");
    world.say("/cost");
    world.shows("sub-agents");
    // The screen of these tests has 80 columns; a row of the table needs fewer than 60 of them.
    world.shows("        turn    in  cached   out  requests  time     cost");
}

/// S12.57: a request whose program ended has a cost that is not known: the sum is a least one.
#[test]
fn figures_of_a_request_that_was_cut_are_a_least_one() {
    let mut world = World::measured();
    world.fact(Fact::ModelStarted { round: 1 });
    let mut cut = Usage::new(5000, 10);
    cut.billed_beyond = safepoint::usage::ExtraBilling::Unknown;
    world.fact(answered("openai:x", &cut));
    world.shows("≥ $0.0101");
}

/// S12.57: what fills the window is shown by part, the files of the project by name, and the parts make the sum.
#[test]
fn the_context_is_shown_by_part() {
    let mut world = World::measured();
    world.fact(Fact::ModelStarted { round: 1 });
    world.fact(answered("openai:x", &Usage::new(9000, 1000)));
    world.done(Ending::Done);
    assert_eq!(world.say("/context"), [Action::Context]);
    let mut history = History::new();
    history.push(Message::User("a".repeat(1000).as_str().into()));
    let files = vec![("/project/AGENTS.md".to_owned(), 3000)];
    world.state.tell_context(&history, &Fixed { system: 1000, tools: (9, 5000), files });
    for part in ["10k tokens of 20k (50 %)", "tools (9)", "/project/AGENTS.md", "your messages", "free"] {
        world.shows(part);
    }
}

/// S12.60: `/compact` is a message to the session, with what is to be kept; what comes of it is one line.
#[test]
fn a_conversation_is_compacted_and_that_is_one_line() {
    let mut world = World::measured();
    assert_eq!(world.say("/compact"), [], "a turn is running");
    world.shows("/compact when it has ended");
    world.done(Ending::Done);
    let [Action::Push { text, how: PushKind::Queue }] = &*world.say("/compact the names") else { panic!() };
    assert_eq!(compact::keep(text), Some("the names"));
    let id = world.accepted(text, PushKind::Queue);
    assert_eq!(world.state.hear(super::ChatEvent::Started(vec![id]), world.now), []);
    world.shows("compacting the conversation, keeping: the names");
    world.fact(Fact::SummaryStarted { round: 0 });
    world.fact(summarised());
    world.done(Ending::Done);
    world.shows("compacted to a summary and the newest messages: about 12k tokens, now 1.5k");
    world.shows("~8 % of 20k");
}

/// S12.60: where nothing was compacted, that is said.
#[test]
fn a_compaction_that_did_not_happen_is_said() {
    for (ending, said) in [
        (Ending::Done, "there is nothing to compact yet"),
        (Ending::Stopped, "the conversation was not compacted: nothing is left out"),
    ] {
        let mut world = World::measured();
        world.done(Ending::Done);
        let id = world.accepted(&compact::asked(""), PushKind::Queue);
        assert_eq!(world.state.hear(super::ChatEvent::Started(vec![id]), world.now), []);
        world.done(ending);
        world.shows(said);
    }
}

/// S12.60: a window that fills up is said in one line, when a summary was made of it.
#[test]
fn a_full_window_is_said_in_one_line() {
    let mut world = World::measured();
    world.fact(Fact::SummaryStarted { round: 1 });
    world.fact(summarised());
    world.shows("window full: the oldest messages became a summary: about 12k tokens, now 1.5k");
}

/// S12.57: a narrow terminal leaves out what matters least; no row is broken.
#[test]
fn a_narrow_terminal_has_what_matters_most() {
    let mut world = World::measured();
    world.fact(Fact::ModelStarted { round: 1 });
    world.fact(answered("openai:x", &Usage::new(5000, 1000)));
    let row = |columns| world.state.meter.footer(columns, world.now);
    assert_eq!(row(8), None);
    assert_eq!(row(12).as_deref(), Some("30 % of 20k"));
    assert_eq!(row(24).as_deref(), Some("30 % of 20k · $0.0180"));
    let none: BTreeMap<String, crate::prices::OwnPrice> = BTreeMap::new();
    assert!(Prices::new(none, false).window("openai:gpt-5").is_none());
}
