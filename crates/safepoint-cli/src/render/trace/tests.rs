//! The golden files of `trace`: a story of every record, as JSON and as text.

use std::sync::Arc;

use safepoint::{
    event::{Fact, HookAction, HookReport},
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
    let facts: Vec<Fact> = facts.into_iter().filter(|fact| !is_of_hooks(fact)).collect();
    let fates: Vec<ItemOutcome> = of_the_engine("outcomes", "fate");
    let child = Path::default().of(&"call_1".into());
    let mut happened = vec![Ok(JournalFact::Planned { turn, items: vec![1] })];
    for path in [Path::default(), child] {
        happened.extend(facts.iter().map(|one| Ok(recorded(turn, &path, one))));
    }
    happened.extend(fates.into_iter().map(|fate| Ok(JournalFact::Ended { turn, fate })));
    happened.extend([
        Ok(JournalFact::Forgotten { turn }),
        Ok(JournalFact::GivenUp { turn }),
        Ok(JournalFact::Quiet { turn, survivors: vec!["sleep (pid 7)".into()] }),
        Err(Damage { position: 99, flaw: DamageKind::Altered }),
    ]);
    folded(happened)
}

/// A model call that is refused as too long, and what hooks do: steps are numbered, so they have a story of their own.
fn story_of_hooks() -> Timeline {
    let turn: TurnId = "turn-1".parse().unwrap();
    let facts: Vec<Fact> = of_the_engine("facts", "fact");
    let actions: Vec<HookAction> = of_the_engine("facts", "hook action");
    let acted = actions.into_iter().map(|action| Fact::HookActed(HookReport::new("dry-run", action)));
    let is_begun = |fact: &&Fact| matches!(fact, Fact::AttemptOpened { .. } | Fact::ModelStarted { .. });
    let of_model = |fact: &&Fact| matches!(fact, Fact::ModelTooLong { .. });
    let begun = facts.iter().filter(is_begun).chain(facts.iter().filter(of_model)).cloned();
    let planned = Ok(JournalFact::Planned { turn, items: vec![1] });
    let facts = begun.chain(acted).map(|fact| Ok(recorded(turn, &Path::default(), &fact)));
    folded([planned].into_iter().chain(facts).collect())
}

fn is_of_hooks(fact: &Fact) -> bool {
    matches!(fact, Fact::HookActed(_) | Fact::ModelTooLong { .. })
}

fn recorded(turn: TurnId, path: &Path, fact: &Fact) -> JournalFact {
    let grown = vec![Arc::new(Message::User("list".into()))];
    JournalFact::Fact { turn, path: path.clone(), fact: Arc::new(fact.clone()), grown }
}

fn folded(happened: Vec<Result<JournalFact, Damage>>) -> Timeline {
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
    golden("trace").lines("line", written(&story())).lines("hooks", written(&story_of_hooks())).check();
}

/// The lines of a story, which their schema must match.
fn written(story: &Timeline) -> Vec<String> {
    let schema = schema("trace");
    let mut written = Vec::new();
    lines(story, |mut line| -> Result<(), ()> {
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
    written
}

/// S7.21: a session that continues another one says so before its first turn.
#[test]
fn the_story_of_a_fork_begins_with_what_it_continues() {
    let (turn, from) = ("turn-1".parse().unwrap(), "ses_0".into());
    let mut folder = TimelineBuilder::default();
    let what = Ok(JournalFact::Begun { from, turn, history: Vec::new() });
    folder.take(JournalStep { position: 0, at: Some(at(0)), what });
    let what = Ok(JournalFact::BegunMore { history: Vec::new() });
    folder.take(JournalStep { position: 1, at: Some(at(0)), what });
    let story = folder.story(SessionRow::new(&NewSession::of("ses_1"), at(0)));
    assert_eq!(text(&story).matches("continues ses_0 after turn-1").count(), 1, "{}", text(&story));
}

/// The wording may change, and then this file alone.
#[test]
fn a_story_as_text() {
    let (story, of_hooks) = (text(&story()), text(&story_of_hooks()));
    golden("trace.people").lines("text", story.lines()).lines("hooks", of_hooks.lines()).check();
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
