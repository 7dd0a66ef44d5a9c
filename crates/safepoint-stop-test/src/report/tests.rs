//! The golden lines of all that is written as JSON: `Report`, `Row`, `WrittenTrial`, `Scenario`, `StopMoment`, `Trial`, `Facts`, `Work`,
//! `WorkKind`, `WorkEnd`, `Next`, `Claims`, `Said`, `Judged`, `VerdictLimits`, `Verdict`.

use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::{
    claims::{Claims, Said},
    facts::{Facts, Next, Work, WorkEnd, WorkKind},
    judge::judge,
    scenario::{SCENARIOS, StopMoment},
};

const MS: Duration = Duration::from_millis(1);

fn written(value: impl Serialize) -> Value {
    serde_json::to_value(value).unwrap()
}

fn time(millis: u32) -> Value {
    json!({"secs": millis / 1000, "nanos": millis % 1000 * 1_000_000})
}

fn trial() -> Trial {
    let work =
        Work { kind: WorkKind::Tool, name: "pay".into(), words: vec!["pay".into()], end: WorkEnd::Never };
    let next = Next::CallLost("it does not learn of it".into());
    let facts =
        Facts { work: vec![work], asked_again: 1, pieces_after: 2, next, crash: None, watched: 9 * MS };
    let claims = Claims { free: Some(3 * MS), says: Said::Stopped, named: vec!["1 call".into()] };
    let judged = judge(&facts, &claims, &VerdictLimits::default());
    Trial { facts, claims, judged }
}

/// One with each kind of repetition.
fn report() -> Report {
    let trials = vec![
        Ok(trial()),
        Err(StageError::NotExpressed("no question".into())),
        Err(StageError::NotReached("it asked its model nothing".into())),
    ];
    let row = Row { scenario: SCENARIOS[6], way: "abort".into(), trials };
    Report {
        target: "adapter:a".into(),
        version: "1.2.3",
        limits: VerdictLimits::default(),
        rows: vec![row],
        unplayed: vec![(12, "sub-agent", "no door knows")],
    }
}

/// S15.4, S15.5: the JSON of a report, to the last field, and what stands beside a verdict.
#[test]
fn a_report_is_written_like_this() {
    let report = report();
    let because = "said to be stopped after 3 ms; the tool `pay` did not end";
    let expected = json!({
        "target": "adapter:a",
        "version": "1.2.3",
        "limits": {"blur": time(50), "late": time(2000), "hang": time(10_000), "again": time(300)},
        "rows": [{
            "scenario": {
                "number": 6, "name": "tool", "moment": "tool", "stops": 1, "what": SCENARIOS[6].what, "source": SCENARIOS[6].source,
            },
            "way": "abort",
            "trials": [
                {"judged": {
                    "facts": {
                        "work": [{"kind": "tool", "name": "pay", "words": ["pay"], "end": "never"}],
                        "asked_again": 1, "pieces_after": 2, "next": {"call-lost": "it does not learn of it"}, "crash": null,
                        "watched": time(9),
                    },
                    "claims": {"free": time(3), "says": "stopped", "named": ["1 call"]},
                    "judged": {"verdict": "lies", "because": because},
                }},
                {"not-expressed": "no question"},
                {"not-reached": "it asked its model nothing"},
            ],
        }],
        "unplayed": [[12, "sub-agent", "no door knows"]],
    });
    assert_eq!(written(&report), expected);
    // A repetition that did not come to the moment is a failure, whatever the others were (S15.2).
    assert_eq!(report.worse_than(Verdict::Breaks).count(), 1);
    assert!(
        report.junit(Verdict::Breaks).contains("failures=\"1\"")
            && report.junit(Verdict::Breaks).contains("<failure")
    );
    // What costs money or memory stands beside the verdict.
    let beside = "; it does not learn of it; asked its model 1 times more; the model sent 2 pieces more";
    assert_eq!(report.rows[0].because(), format!("{because}{beside}"));
}

/// S15.5: each word that stands for one of several.
#[test]
fn each_word_is_written_like_this() {
    use StopMoment::{
        AfterEnd, AtOnce, Command, CommandApart, HeadersAwaited, InArguments, OneOfThree, Question, Retry,
        StreamDrips, StreamSilent, Tool, ToolDeaf,
    };
    let moments = [
        AtOnce,
        HeadersAwaited,
        StreamSilent,
        StreamDrips,
        InArguments,
        Tool,
        ToolDeaf,
        Command,
        CommandApart,
        OneOfThree,
        Question,
        Retry,
        AfterEnd,
    ];
    let words = [
        "at-once",
        "headers-awaited",
        "stream-silent",
        "stream-drips",
        "in-arguments",
        "tool",
        "tool-deaf",
        "command",
        "command-apart",
        "one-of-three",
        "question",
        "retry",
        "after-end",
    ];
    assert_eq!(written(moments), json!(words));
    assert_eq!(
        written(Verdict::ALL),
        json!(["ends", "ends-late", "says-so", "lets-go", "goes-on", "lies", "breaks"])
    );
    assert_eq!(
        written([WorkKind::Model, WorkKind::Tool, WorkKind::Process]),
        json!(["model", "tool", "process"])
    );
    let ends = [WorkEnd::Cut(MS), WorkEnd::Whole(MS), WorkEnd::Never];
    assert_eq!(written(ends), json!([{"cut": time(1)}, {"whole": time(1)}, "never"]));
    let nexts = [Next::NotSent("a".into()), Next::Accepted, Next::Refused("b".into()), Next::Silent];
    assert_eq!(written(nexts), json!([{"not-sent": "a"}, "accepted", {"refused": "b"}, "silent"]));
    let said = [Said::Stopped, Said::Done, Said::Failed, Said::Nothing];
    assert_eq!(written(said), json!(["stopped", "done", "failed", "nothing"]));
}

/// Where a value does not fit the schema, if it does not.
fn misfit(value: &Value) -> Option<String> {
    const NAME: &str = "schema:///report";
    let (mut schemas, mut compiler) = (boon::Schemas::new(), boon::Compiler::new());
    compiler.add_resource(NAME, report_schema()).unwrap();
    let schema = compiler.compile(NAME, &mut schemas).unwrap();
    schemas.validate(value, schema).err().map(|error| error.to_string())
}

/// S15.17: the published schema is the one that is made of the types.
#[test]
fn the_published_schema_is_made_of_the_types() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schema/stop-test.json");
    if std::env::var_os(safepoint_golden::WRITE).is_some() {
        std::fs::write(path, serde_json::to_string_pretty(&report_schema()).unwrap() + "\n").unwrap();
    }
    let published: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    assert_eq!(published, report_schema(), "write it anew with {}=1", safepoint_golden::WRITE);
}

/// S15.17: a report fits the schema, with each word that stands for one of several; a field or a word that the schema does not name
/// does not fit it.
#[test]
fn what_is_written_fits_the_schema_and_nothing_else_does() {
    let report = report();
    assert_eq!(misfit(&written(&report)), None);
    let facts = |next, end| {
        let mut trial = trial();
        (trial.facts.next, trial.facts.work[0].end) = (next, end);
        let row = Row { trials: vec![Ok(trial)], ..report.rows[0].clone() };
        written(Report { rows: vec![row], ..report.clone() })
    };
    let nexts = [Next::NotSent("a".into()), Next::Accepted, Next::Refused("b".into()), Next::Silent];
    for (next, end) in
        nexts.into_iter().zip([WorkEnd::Cut(MS), WorkEnd::Whole(MS), WorkEnd::Never, WorkEnd::Never])
    {
        let value = facts(next, end);
        assert_eq!(misfit(&value), None, "{value}");
    }
    let mut beyond = written(&report);
    beyond["rows"][0]["trials"][0]["judged"]["facts"]["guessed"] = json!(1);
    assert!(misfit(&beyond).is_some(), "a field without a name");
    let mut other = written(&report);
    other["rows"][0]["trials"][0]["judged"]["judged"]["verdict"] = json!("fine");
    assert!(misfit(&other).is_some(), "a word that is no verdict");
}
