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
    Grown { base: 3, entries: history.entries().to_vec(), view: history.view().clone() }
}

/// With and without what may be left out.
fn lines() -> Vec<Line> {
    let (turn, path) = (TurnId::new(2), Path::default().of(&CallId::from("call_1")));
    let fact = || Arc::new(Fact::ModelStarted { round: 1 });
    let plain = Grown { base: 0, entries: Vec::new(), view: View::default() };
    each!(Line {
        Line::Planned { .. } =>
            Line::Planned { turn, items: vec![1, 2], at: at() }, Line::Planned { turn, items: vec![], at: None };
        Line::Fact { .. } =>
            Line::Fact { turn, path: path.clone(), fact: fact(), grown: Some(grown()), at: at() },
            Line::Fact { turn, path, fact: fact(), grown: Some(plain), at: at() },
            Line::Fact { turn, path: Path::default(), fact: fact(), grown: None, at: None };
        Line::Ended { .. } =>
            Line::Ended { turn, fate: ItemOutcome::Completed(turn), at: at() },
            Line::Ended { turn, fate: ItemOutcome::Returned(RejectReason::Busy(Some(turn))), at: None };
        Line::Forgotten { .. } => Line::Forgotten { turn, at: at() }, Line::Forgotten { turn, at: None };
        Line::GivenUp { .. } => Line::GivenUp { turn, at: at().unwrap() };
        Line::Quiet { .. } =>
            Line::Quiet { turn, at: at().unwrap(), survivors: vec!["sleep (pid 7)".into()] },
            Line::Quiet { turn, at: at().unwrap(), survivors: Vec::new() };
    })
}

fn row(line: &Line) -> String {
    let Ok(Write::Record(record)) = line.write() else { panic!("a line is a record") };
    let Record { path, kind, version, bytes } = &record;
    let again = Line::read(0, &record).unwrap().write().unwrap();
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
