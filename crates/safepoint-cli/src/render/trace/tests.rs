//! The golden files of `trace`: a story of every record, as JSON and as text.

use std::sync::Arc;

use safepoint::{
    event::Fact,
    history::Message,
    ids::{Path, TurnId},
    raw::{
        JournalFact, JournalStep,
        store::{Damage, DamageKind, NewSession},
    },
    session::ItemOutcome,
    store::SessionRow,
};
use safepoint_golden::each;
use serde_json::json;

use super::{
    fold::TimelineBuilder,
    json::lines,
    text::text,
    timeline::{Kind, Timeline, Tone},
};
use crate::tests::golden::{at, golden, of_the_engine, schema};

/// Each fact of the engine's golden file, of the root and of a child, then each other record; a turn for each end.
fn story() -> Timeline {
    let turn: TurnId = "turn-1".parse().unwrap();
    let facts: Vec<Fact> = of_the_engine("facts", "fact");
    let fates: Vec<ItemOutcome> = of_the_engine("outcomes", "fate");
    let child = Path::default().of(&"call_1".into());
    let fact = |path: &Path, fact: &Fact| JournalFact::Fact {
        turn,
        path: path.clone(),
        fact: Arc::new(fact.clone()),
        grown: vec![Arc::new(Message::User("list".into()))],
    };
    let mut happened = vec![Ok(JournalFact::Planned { turn, items: vec![1] })];
    for path in [Path::default(), child] {
        happened.extend(facts.iter().map(|one| Ok(fact(&path, one))));
    }
    happened.extend(fates.into_iter().map(|fate| Ok(JournalFact::Ended { turn, fate })));
    happened.extend([
        Ok(JournalFact::Forgotten { turn }),
        Ok(JournalFact::GivenUp { turn }),
        Ok(JournalFact::Quiet { turn, survivors: vec!["sleep (pid 7)".into()] }),
        Err(Damage { position: 99, flaw: DamageKind::Altered }),
    ]);
    let mut folder = TimelineBuilder::default();
    for (position, what) in happened.into_iter().enumerate() {
        let at = Some(at(10 * position as i64));
        folder.take(JournalStep { position: position as u64, at, what });
    }
    let session = NewSession { title: "a title".into(), label: "idle".into(), ..NewSession::of("ses_1") };
    let mut row = SessionRow::new(&session, at(0));
    (row.updated, row.head, row.epoch) = (at(9000), 99, 3);
    folder.story(row)
}

/// S11.4: a line of each step, as it is published; what it says to people is in the text.
#[test]
fn a_story_as_json() {
    let schema = schema("trace");
    let mut written = Vec::new();
    lines(&story(), |mut line| -> Result<(), ()> {
        assert_eq!(schema.check(&line), Ok(()), "{line}");
        for words in ["title", "said"] {
            if line.get(words).is_some_and(|words| words != "") {
                line[words] = "…".into();
            }
        }
        written.push(line.to_string());
        Ok(())
    })
    .unwrap();
    golden("trace").lines("line", written).check();
}

/// S7.21: a session that continues another one says so before its first turn.
#[test]
fn the_story_of_a_fork_begins_with_what_it_continues() {
    let (turn, from) = ("turn-1".parse().unwrap(), "ses_0".into());
    let mut folder = TimelineBuilder::default();
    let what = Ok(JournalFact::Begun { from, turn, history: Vec::new() });
    folder.take(JournalStep { position: 0, at: Some(at(0)), what });
    let story = folder.story(SessionRow::new(&NewSession::of("ses_1"), at(0)));
    assert!(text(&story).contains("continues ses_0 after turn-1"), "{}", text(&story));
}

/// The wording may change, and then this file alone.
#[test]
fn a_story_as_text() {
    golden("trace.people").lines("text", text(&story()).lines()).check();
}

/// Each kind and each tone by its word in the lines, which is the class of its step on the page, too.
#[test]
fn each_kind_and_each_tone_has_its_word() {
    let kinds = each!(Kind {
        Kind::Attempt => Kind::Attempt;
        Kind::Model => Kind::Model;
        Kind::Retry => Kind::Retry;
        Kind::Call => Kind::Call;
        Kind::Child => Kind::Child;
        Kind::Approval => Kind::Approval;
        Kind::Steer => Kind::Steer;
        Kind::StopAsked => Kind::StopAsked;
        Kind::StopEscalated => Kind::StopEscalated;
        Kind::StopObserved => Kind::StopObserved;
        Kind::Settled => Kind::Settled;
        Kind::Quiet => Kind::Quiet;
        Kind::TurnEnded => Kind::TurnEnded;
        Kind::Other => Kind::Other;
        Kind::Damaged => Kind::Damaged;
    });
    let words = [
        "attempt",
        "model",
        "retry",
        "call",
        "child",
        "approval",
        "steer",
        "stop_requested",
        "stop_escalated",
        "stop_observed",
        "settled",
        "quiet",
        "turn_ended",
        "other",
        "damaged",
    ];
    assert_eq!(json!(kinds), json!(words));
    let tones = each!(Tone {
        Tone::Plain => Tone::Plain;
        Tone::Good => Tone::Good;
        Tone::Bad => Tone::Bad;
        Tone::Stopped => Tone::Stopped;
        Tone::Open => Tone::Open;
    });
    assert_eq!(json!(tones), json!(["plain", "good", "bad", "stopped", "open"]));
}
