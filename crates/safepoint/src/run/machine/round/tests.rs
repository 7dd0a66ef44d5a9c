//! What a round says of its calls, for rounds of every make.

use serde_json::json;

use super::*;
use crate::{
    run::machine::tests::made::{child, ended, question, tool_call},
    value::{
        effect::EffectClass,
        message::Block,
        receipt::{CallStatus, StopSource},
    },
};

/// A round of calls by letter: `w`anted, `l`ost, `q`uestion, `s`uspended, `c`leared, `r`unning, `e`nded, and `x`, ended by the
/// run's stop. A great letter is a call that runs alone.
fn round(letters: &str) -> Round {
    left_out(letters, 0)
}

fn left_out(letters: &str, more: u64) -> Round {
    let blocks = (0..letters.len()).map(|n| Block::Call(tool_call(&format!("c{n}")))).collect();
    let mut round = Round::new(Arc::new(AssistantMessage { blocks }), more);
    for (n, letter) in letters.chars().enumerate() {
        let id = format!("c{n}");
        round.change(n, |call| {
            call.overlaps = letter.is_lowercase();
            call.step = match letter.to_ascii_lowercase() {
                'w' => CallState::Requested,
                'l' => CallState::EffectUnknown,
                'q' => CallState::AwaitingApproval(question(&id)),
                's' => CallState::Suspended { child: child(), approvals: vec![question(&id)] },
                'c' => CallState::Ready { args: json!(1).into(), asks_again: false },
                'r' => CallState::Running,
                'e' => ended(&id, CallStatus::Completed, None),
                'x' => ended(&id, CallStatus::Stopped, Some(StopSource::Run)),
                other => panic!("no call is {other}"),
            };
        });
    }
    round
}

/// What of a round is so, by name.
fn is(round: &Round) -> String {
    let all = [
        (round.is_running(), "running"),
        (round.is_closing(), "closing"),
        (round.is_complete(), "complete"),
        (round.only_questions(), "questions"),
    ];
    all.iter().filter(|(is, _)| *is).map(|(_, name)| *name).collect::<Vec<_>>().join(" ")
}

/// S5.3, S8.3, S9.3: a round runs while a call does, closes once the run's stop has ended one, waits for a person when all that
/// is open does, and is complete when every end stands.
#[test]
fn a_round_knows_how_far_it_is() {
    for (letters, expected) in [
        ("w", ""),
        ("q", "questions"),
        ("s", "questions"),
        ("qe", "questions"),
        ("qqe", "questions"),
        ("qw", ""),
        ("qc", ""),
        ("qr", "running"),
        ("qx", "closing questions"),
        ("r", "running"),
        ("rr", "running"),
        ("rx", "running closing"),
        ("e", "complete"),
        ("ee", "complete"),
        ("ew", ""),
        ("ex", "closing"),
        ("x", "closing"),
        ("xx", "closing"),
        ("l", ""),
    ] {
        assert_eq!(is(&round(letters)), expected, "{letters}");
    }
}

/// S2.17: a round is at rest when all that runs waits for a person inside, and nothing is left to be judged.
#[test]
fn a_round_rests_when_all_that_runs_is_parked() {
    for (letters, parked, rests) in [
        ("r", 1, true),
        ("r", 0, false),
        ("rr", 1, false),
        ("rr", 2, true),
        ("rw", 1, false),
        ("rq", 1, true),
        ("re", 1, true),
        ("q", 0, false),
    ] {
        assert_eq!(round(letters).is_resting(parked), rests, "{letters} {parked}");
    }
}

/// S12.7: only a person can take a round on when what runs waits for one too, and nothing may begin.
#[test]
fn a_round_waits_for_a_person_when_nothing_else_can_happen() {
    for (letters, waiting, parallel, waits) in [
        ("q", 0, 1, true),
        ("qq", 0, 1, true),
        ("r", 1, 1, true),
        ("r", 0, 1, false),
        ("qr", 0, 2, false),
        ("qr", 1, 2, true),
        ("qw", 0, 1, false),
        ("qc", 0, 0, false),
        ("qe", 0, 1, true),
        ("e", 0, 1, false),
        ("qrc", 1, 1, true),
        ("qrc", 1, 2, false),
    ] {
        assert_eq!(
            round(letters).waits_for_a_person(waiting, parallel),
            waits,
            "{letters} {waiting} {parallel}"
        );
    }
}

/// S4.2, S8.3: unchecked calls are checked first; then parallel calls begin together up to the limit and
/// others begin alone, in the order of the calls; a question blocks no other call.
#[test]
fn calls_begin_in_their_order() {
    let gate = SafePoints::AFTER_ALL_CALLS;
    let start = |calls: &[usize]| NextStep::StartCalls { calls: calls.to_vec(), gate };
    for (letters, parallel, due) in [
        ("wc", 4, NextStep::Judge(vec![0])),
        ("cwrl", 4, NextStep::Judge(vec![1, 3])),
        ("ccc", 2, start(&[0, 1])),
        ("ccc", 0, start(&[0])),
        ("cCc", 4, start(&[0])),
        ("Cc", 4, start(&[0])),
        ("CC", 4, start(&[0])),
        ("rcc", 2, start(&[1])),
        ("rrc", 2, NextStep::Wait),
        ("rC", 4, NextStep::Wait),
        ("Rc", 4, NextStep::Wait),
        ("qc", 1, start(&[1])),
        ("ec", 1, start(&[1])),
        ("q", 1, NextStep::Settle(Ending::Suspended)),
        ("qe", 1, NextStep::Settle(Ending::Suspended)),
        ("qr", 1, NextStep::Wait),
        ("r", 1, NextStep::Wait),
    ] {
        assert_eq!(round(letters).due(parallel, gate), due, "{letters} {parallel}");
    }
}

/// S1.3, S2.4: the boundary is the one after the model as well until a call has begun.
#[test]
fn the_boundary_moves_when_a_call_begins() {
    let mut round = round("cc");
    assert_eq!(round.gate(), SafePoints::AFTER_MODEL | SafePoints::AFTER_STARTED_CALLS);
    round.change(1, |call| call.effect = Some(EffectClass::Unsafe));
    assert_eq!(round.gate(), SafePoints::AFTER_STARTED_CALLS);
    round.change(1, |call| call.effect = None);
    assert_eq!(round.gate(), SafePoints::AFTER_MODEL | SafePoints::AFTER_STARTED_CALLS);
}

/// S4.1: each call is found by its id, and reported as what it is.
#[test]
fn each_call_is_found_by_its_id() {
    let mut round = round("erqx");
    let id = |n: usize| CallId::from(format!("c{n}"));
    for n in 0..4 {
        assert_eq!(
            (round.place(&id(n)), round.call(n).map(|call| call.call.id.clone())),
            (Some(n), Some(id(n)))
        );
    }
    assert_eq!((round.place(&id(4)), round.call(4).is_some()), (None, false));
    let running: Vec<bool> = (0..5).map(|n| round.running_call(&id(n)).is_some()).collect();
    assert_eq!(running, [false, true, false, false, false]);
    assert_eq!(round.running_call(&id(1)).map(|call| &call.id), Some(&id(1)));
    let open: Vec<CallId> = round.open().map(|call| call.call.id.clone()).collect();
    let over: Vec<CallId> = round.reports().map(|report| report.call_id.clone()).collect();
    assert_eq!((open, over), (vec![id(1), id(2)], vec![id(0), id(3)]));
    let rows: Vec<Option<CallId>> =
        (0..5).map(|n| round.report_mut(&id(n)).map(|row| row.call_id.clone())).collect();
    assert_eq!(rows, [Some(id(0)), None, None, Some(id(3)), None]);
    assert_eq!(round.message().calls().count(), 4);
}

/// S12.3, S5.3: a round is passed on with what is known of each call, and the last result says how many calls
/// were left out.
#[test]
fn a_round_is_handed_on_whole() {
    let texts =
        |results: &[CallResult]| results.iter().map(|result| String::clone(&result.text)).collect::<Vec<_>>();
    let (message, results) = round("ee").close(&mut Vec::new());
    assert_eq!((message.calls().count(), texts(&results)), (2, vec!["end of c0".into(), "end of c1".into()]));
    let (_, results) = left_out("ee", 1).close(&mut Vec::new());
    assert_eq!(*results[0].text, "end of c0");
    assert_eq!(*results[1].text, format!("end of c1{}", note::calls_left_out(1)));
    let OpenEnd::Open { message, calls } = left_out("eq", 2).tail() else { panic!("it is open") };
    let results: Vec<CallResult> = calls.into_iter().map(|call| call.result).collect();
    assert_eq!(message.calls().count(), 2);
    assert_eq!(
        texts(&results),
        vec!["end of c0".to_owned(), format!("{}{}", note::NOT_STARTED, note::calls_left_out(2))]
    );
}

/// S5.3, S7.3: a resumed round resumes each of its calls, and knows of runs that continue.
#[test]
fn a_round_is_taken_up_call_by_call() {
    let mut round = round("cwe");
    round.reopen(OnUnknownEffect::Tell);
    assert_eq!(round.due(4, SafePoints::ANY), NextStep::Judge(vec![0, 1]));
    assert!(round.runs_to_resume().next().is_none());
    round.change(0, |call| {
        call.step = CallState::Running;
        call.run = Some(json!(1).into());
    });
    assert!(round.runs_to_resume().map(|call| call.call.id.as_str()).eq(["c0"]));
}
