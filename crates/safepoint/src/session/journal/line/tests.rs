//! The golden file of the session's journal: each line, with the row in which the store keeps it.

use safepoint_golden::{Golden, each};

use super::*;
use crate::{History, ids::CallId, session::outcome::RejectReason};

fn at() -> Option<Timestamp> {
    Some(Timestamp::from_second(1_767_225_600).unwrap())
}

fn grown() -> Grown {
    let mut history = History::new();
    history.push(Message::User("hello".into()));
    history.measure(77);
    Grown { base: 3, entries: history.entries().iter().cloned().collect(), view: history.view().clone() }
}

/// With and without what may be left out.
fn lines() -> Vec<JournalLine> {
    let (turn, path) = (TurnId::new(2), Path::default().of(&CallId::from("call_1")));
    let fact = || Arc::new(Fact::ModelStarted { round: 1 });
    let plain = Grown { base: 0, entries: Vec::new(), view: View::default() };
    each!(JournalLine {
        JournalLine::Begun { .. } =>
            JournalLine::Begun {
                from: "ses_1".into(), turn, history: grown(), notes: vec!["a note".into()], at: at().unwrap(),
            },
            JournalLine::Begun {
                from: "ses_1".into(), turn, history: grown(), notes: Vec::new(), at: at().unwrap(),
            };
        JournalLine::BegunMore { .. } =>
            JournalLine::BegunMore { history: grown(), notes: vec!["a note".into()], at: at().unwrap() },
            JournalLine::BegunMore { history: grown(), notes: Vec::new(), at: at().unwrap() };
        JournalLine::Planned { .. } =>
            JournalLine::Planned { turn, items: vec![1, 2], at: at() }, JournalLine::Planned { turn, items: vec![], at: None };
        JournalLine::Fact { .. } =>
            JournalLine::Fact { turn, path: path.clone(), fact: fact(), grown: Some(grown()), at: at() },
            JournalLine::Fact { turn, path, fact: fact(), grown: Some(plain), at: at() },
            JournalLine::Fact { turn, path: Path::default(), fact: fact(), grown: None, at: None };
        JournalLine::Ended { .. } =>
            JournalLine::Ended { turn, fate: ItemOutcome::Completed(turn), holds: None, at: at() },
            JournalLine::Ended { turn, fate: ItemOutcome::Interrupted(turn), holds: Some(3), at: at() },
            JournalLine::Ended {
                turn, fate: ItemOutcome::Returned(RejectReason::Busy(Some(turn))), holds: None, at: None,
            };
        JournalLine::Forgotten { .. } => JournalLine::Forgotten { turn, at: at() }, JournalLine::Forgotten { turn, at: None };
        JournalLine::GivenUp { .. } => JournalLine::GivenUp { turn, at: at().unwrap() };
        JournalLine::Quiet { .. } =>
            JournalLine::Quiet { turn, at: at().unwrap(), survivors: vec!["sleep (pid 7)".into()] },
            JournalLine::Quiet { turn, at: at().unwrap(), survivors: Vec::new() };
    })
}

fn row(line: &JournalLine) -> String {
    let Ok(Write::Record(record)) = line.write() else { panic!("a line is a record") };
    let Record { path, kind, version, bytes } = &record;
    let again = JournalLine::read(0, &record).unwrap().write().unwrap();
    assert_eq!(again, Write::Record(record.clone()), "it is read as another line");
    format!("{path} {kind} {version} {}", String::from_utf8_lossy(bytes))
}

#[test]
fn the_journal_of_a_session() {
    Golden::file(env!("CARGO_MANIFEST_DIR"), "tests/golden/journal.txt")
        .json("line", lines())
        .lines("row", lines().iter().map(row))
        .check();
}

/// S7.17: a fact is read in one go, and no other line is taken for one.
#[test]
fn a_fact_and_no_other_line_is_read_as_one() {
    for line in lines() {
        let Ok(Write::Record(record)) = line.write() else { panic!("a line is a record") };
        let read = FactLine::read(&record.bytes);
        assert_eq!(read.is_some(), matches!(line, JournalLine::Fact { .. }), "{line:?}: {read:?}");
        if let Some(read) = read {
            assert_eq!(format!("{read:?}"), format!("{line:?}"));
        }
    }
}
