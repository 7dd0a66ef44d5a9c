//! The judge as a table: a case for each verdict and each way to it; and what holds of all cases.

use super::*;
use crate::{
    claims::Said,
    facts::{Work, WorkKind},
};

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn tool(end: WorkEnd) -> Work {
    Work { kind: WorkKind::Tool, name: "pay".into(), words: vec!["pay".into()], end }
}

fn process(end: WorkEnd) -> Work {
    Work { kind: WorkKind::Process, name: "make".into(), words: vec!["make".into()], end }
}

fn of(work: Vec<Work>) -> Facts {
    Facts { work, ..Facts::default() }
}

fn next(next: Next) -> Facts {
    Facts { next, ..of(vec![tool(WorkEnd::Cut(ms(1)))]) }
}

fn told(says: Said, free: u64) -> Claims {
    Claims { free: Some(ms(free)), says, named: Vec::new() }
}

fn named(says: Said, free: u64, names: &[&str]) -> Claims {
    Claims { named: names.iter().map(|name| (*name).to_owned()).collect(), ..told(says, free) }
}

/// Facts, claims, the verdict, and why.
#[expect(clippy::too_many_lines, reason = "it is one table")]
fn cases() -> Vec<(Facts, Claims, Verdict, &'static str)> {
    use Verdict::{Breaks, Ends, EndsLate, GoesOn, LetsGo, Lies, SaysSo};
    use WorkEnd::{Cut, Never, Whole};
    let crashed = Facts { crash: Some("signal 11".into()), ..of(vec![tool(Cut(ms(1)))]) };
    let never = Claims::default();
    let both = |one, other| of(vec![tool(one), process(other)]);
    vec![
        (of(vec![]), told(Said::Nothing, 2), Ends, "control came back after 2 ms"),
        (of(vec![tool(Cut(ms(9)))]), told(Said::Stopped, 10), Ends, "said to be stopped after 10 ms"),
        (of(vec![tool(Cut(ms(60)))]), told(Said::Stopped, 10), Ends, "said to be stopped after 10 ms"),
        (
            of(vec![tool(Cut(ms(61)))]),
            told(Said::Stopped, 10),
            EndsLate,
            "said to be stopped after 10 ms; the tool `pay` ended after 61 ms",
        ),
        (
            of(vec![tool(Cut(ms(2010)))]),
            told(Said::Nothing, 10),
            EndsLate,
            "control came back after 10 ms; the tool `pay` ended after 2010 ms",
        ),
        (
            of(vec![tool(Cut(ms(2011)))]),
            told(Said::Nothing, 10),
            LetsGo,
            "control came back after 10 ms; the tool `pay` ended after 2011 ms",
        ),
        (
            of(vec![tool(Never)]),
            told(Said::Nothing, 10),
            LetsGo,
            "control came back after 10 ms; the tool `pay` did not end",
        ),
        (
            of(vec![tool(Never)]),
            told(Said::Stopped, 10),
            Lies,
            "said to be stopped after 10 ms; the tool `pay` did not end",
        ),
        (
            of(vec![tool(Never)]),
            told(Said::Failed, 10),
            Lies,
            "said to have failed after 10 ms; the tool `pay` did not end",
        ),
        (
            of(vec![tool(Never)]),
            told(Said::Done, 10),
            Lies,
            "said to be done after 10 ms; the tool `pay` did not end",
        ),
        (
            of(vec![tool(Never)]),
            named(Said::Stopped, 10, &["pay"]),
            SaysSo,
            "said to be stopped after 10 ms; the tool `pay` did not end, which it named",
        ),
        (
            both(Never, Never),
            named(Said::Stopped, 10, &["pay"]),
            Lies,
            "said to be stopped after 10 ms; the process `make` did not end",
        ),
        (
            both(Cut(ms(1)), Never),
            named(Said::Stopped, 10, &["make"]),
            SaysSo,
            "said to be stopped after 10 ms; the process `make` did not end, which it named",
        ),
        (
            both(Cut(ms(1)), Cut(ms(900))),
            told(Said::Stopped, 10),
            EndsLate,
            "said to be stopped after 10 ms; the process `make` ended after 900 ms",
        ),
        (
            of(vec![tool(Whole(ms(700)))]),
            told(Said::Done, 705),
            GoesOn,
            "said to be done after 705 ms; the tool `pay` did all that it had to do",
        ),
        (
            both(Whole(ms(700)), Cut(ms(700))),
            told(Said::Stopped, 705),
            Ends,
            "said to be stopped after 705 ms",
        ),
        (
            of(vec![tool(Never)]),
            never.clone(),
            GoesOn,
            "no control after 10000 ms; the tool `pay` did not end",
        ),
        (
            of(vec![tool(Cut(ms(5)))]),
            never.clone(),
            Breaks,
            "the work ended, and the caller had no control after 10000 ms",
        ),
        (
            of(vec![tool(Cut(ms(5)))]),
            told(Said::Stopped, 10_001),
            Breaks,
            "the work ended, and the caller had no control after 10000 ms",
        ),
        (crashed, told(Said::Stopped, 1), Breaks, "the target ended unasked: signal 11"),
        (
            next(Next::Refused("no result".into())),
            told(Said::Stopped, 1),
            Breaks,
            "said to be stopped after 1 ms; the next message is refused: no result",
        ),
        (
            next(Next::Silent),
            told(Said::Stopped, 1),
            Breaks,
            "said to be stopped after 1 ms; the next message has no answer",
        ),
        (next(Next::CallLost("pay".into())), told(Said::Stopped, 1), Ends, "said to be stopped after 1 ms"),
        (
            next(Next::NotSent("its door has none".into())),
            told(Said::Stopped, 1),
            Ends,
            "said to be stopped after 1 ms",
        ),
    ]
}

#[test]
fn each_case_has_its_verdict_and_says_why() {
    for (facts, claims, verdict, because) in cases() {
        let judged = judge(&facts, &claims, &VerdictLimits::default());
        assert_eq!((judged.verdict, &*judged.because), (verdict, because), "{facts:?} {claims:?}");
    }
}

/// S15.3: who names every number names nothing.
#[test]
fn a_text_with_any_number_names_none() {
    let limits = VerdictLimits::default();
    let shell = Work { words: vec!["41".into()], ..process(WorkEnd::Never) };
    let facts = || of(vec![shell.clone()]);
    let few = named(Said::Stopped, 3, &["1 process is alive: 41; it took 12 ms"]);
    let all: Vec<String> = (0..2000).map(|number: u32| number.to_string()).collect();
    let any = named(Said::Stopped, 3, &[&all.join(" ")]);
    assert_eq!(judge(&facts(), &few, &limits).verdict, Verdict::SaysSo);
    assert_eq!(judge(&facts(), &any, &limits).verdict, Verdict::Lies);
}

#[test]
fn each_verdict_has_a_case() {
    let cases = cases();
    for verdict in Verdict::ALL {
        assert!(cases.iter().any(|case| case.2 == verdict), "{verdict}");
    }
}

#[test]
fn work_that_is_cut_earlier_or_named_is_never_judged_worse() {
    let ends = [
        WorkEnd::Cut(ms(1)),
        WorkEnd::Cut(ms(500)),
        WorkEnd::Cut(ms(4000)),
        WorkEnd::Cut(ms(12_000)),
        WorkEnd::Never,
    ];
    let frees = [None, Some(ms(0)), Some(ms(3000)), Some(ms(20_000))];
    let says = [Said::Stopped, Said::Done, Said::Failed, Said::Nothing];
    let verdict = |end: WorkEnd, other: WorkEnd, claims: &Claims| {
        judge(&of(vec![tool(end), process(other)]), claims, &VerdictLimits::default()).verdict
    };
    for (free, says) in frees.into_iter().flat_map(|free| says.map(|says| (free, says))) {
        let silent = Claims { free, says, named: Vec::new() };
        let naming = Claims { named: vec!["pay".into(), "make".into()], ..silent.clone() };
        for other in ends {
            for pair in ends.windows(2) {
                // Without control a hang that ended its work is another fault than a stop without an effect.
                if free.is_some_and(|free| free <= VerdictLimits::default().hang) {
                    assert!(
                        verdict(pair[0], other, &silent) <= verdict(pair[1], other, &silent),
                        "{pair:?} {silent:?}"
                    );
                }
                assert!(
                    verdict(pair[0], other, &naming) <= verdict(pair[0], other, &silent),
                    "{pair:?} {silent:?}"
                );
            }
        }
    }
}
