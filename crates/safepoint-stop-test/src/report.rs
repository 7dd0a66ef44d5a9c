//! What is shown of trials: a row for each scenario and way to stop.

use std::{collections::BTreeMap, fmt, time::Duration};

use serde::Serialize;

use crate::{
    facts::Next, judge::VerdictLimits, scenario::Scenario, stage::StageError, trial::Trial, verdict::Verdict,
};

mod junit;
mod page;
mod plain;
#[cfg(any(test, feature = "schema"))]
mod schema;
mod terminal;

#[cfg(any(test, feature = "schema"))]
pub use schema::report_schema;

pub(crate) use plain::is_obeyed;

/// All rows of one target.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct Report {
    /// The target, as it was named.
    pub target: String,
    /// The version of the test.
    pub version: &'static str,
    /// The times that are part of what the verdicts mean, in the report itself.
    pub limits: VerdictLimits,
    /// The rows.
    pub rows: Vec<Row>,
    /// What no door can bring about: number, name, why.
    pub unplayed: Vec<(u32, &'static str, &'static str)>,
}

/// One scenario, one way to stop, and all that was repeated of it.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct Row {
    /// The scenario.
    pub scenario: Scenario,
    /// How it was stopped.
    pub way: String,
    /// Each repetition: what came of it, or why the target could not be brought there.
    #[serde(serialize_with = "trials")]
    #[cfg_attr(any(test, feature = "schema"), schemars(with = "Vec<WrittenTrial<'static>>"))]
    pub trials: Vec<Result<Trial, StageError>>,
}

impl Row {
    /// The worst verdict, if it could be stopped at all.
    #[must_use]
    pub fn worst(&self) -> Option<Verdict> {
        self.judged().map(|trial| trial.judged.verdict).max()
    }

    /// How often each verdict came, from best to worst.
    #[must_use]
    pub fn verdicts(&self) -> BTreeMap<Verdict, usize> {
        let mut counted = BTreeMap::new();
        self.judged().for_each(|trial| *counted.entry(trial.judged.verdict).or_default() += 1);
        counted
    }

    /// The median and the longest time until the caller had control back.
    #[must_use]
    pub fn times(&self) -> Option<(Duration, Duration)> {
        let mut times: Vec<Duration> = self.judged().filter_map(|trial| trial.claims.free).collect();
        times.sort_unstable();
        Some((*times.get(times.len() / 2)?, *times.last()?))
    }

    /// Whether neither the door nor the target can bring the moment about: that is no fault of the target.
    #[must_use]
    pub fn is_unexpressed(&self) -> bool {
        let is_so = |trial: &Result<Trial, StageError>| matches!(trial, Err(StageError::NotExpressed(_)));
        !self.trials.is_empty() && self.trials.iter().all(is_so)
    }

    /// Whether the moment should have come in some repetition, and did not.
    fn was_missed(&self) -> bool {
        let is_so = |trial: &Result<Trial, StageError>| {
            trial.as_ref().is_err_and(|error| !matches!(error, StageError::NotExpressed(_)))
        };
        self.trials.iter().any(is_so)
    }

    /// What the worst verdict rests on, or why there is none: one line, also of a target that wrote what a terminal would obey.
    #[must_use]
    pub fn because(&self) -> String {
        let worst = self.judged().max_by_key(|trial| trial.judged.verdict);
        plain::plain(&match (worst, self.trials.iter().find_map(|trial| trial.as_ref().err())) {
            (Some(trial), _) => format!("{}{}", trial.judged.because, beside(trial)),
            (None, Some(error)) => error.to_string(),
            (None, None) => "it was not tried".to_owned(),
        })
    }

    /// The verdicts in words, the worst first, with how often each came where they differ.
    #[must_use]
    pub fn words(&self) -> String {
        let (counted, all) = (self.verdicts(), self.trials.len());
        let words = counted.iter().rev().map(|(verdict, times)| match times {
            times if *times == all => verdict.to_string(),
            times => format!("{verdict} {times} of {all}"),
        });
        let words: Vec<String> = words.collect();
        if words.is_empty() { "-".to_owned() } else { words.join(", ") }
    }

    fn judged(&self) -> impl Iterator<Item = &Trial> {
        self.trials.iter().filter_map(|trial| trial.as_ref().ok())
    }
}

/// What the verdict does not say, and costs money or memory.
fn beside(trial: &Trial) -> String {
    let facts = &trial.facts;
    let mut words = String::new();
    if let Next::CallLost(what) = &facts.next {
        words.push_str("; ");
        words.push_str(what);
    }
    if facts.asked_again > 0 {
        words.push_str(&format!("; asked its model {} times more", facts.asked_again));
    }
    if facts.pieces_after > 1 {
        words.push_str(&format!("; the model sent {} pieces more", facts.pieces_after));
    }
    words
}

impl Report {
    /// The rows that are worse than this, or of which nothing is known that could be known.
    pub fn worse_than(&self, required: Verdict) -> impl Iterator<Item = &Row> {
        let is_worse =
            move |row: &&Row| row.was_missed() || row.worst().is_some_and(|worst| worst > required);
        self.rows.iter().filter(is_worse)
    }

    /// As a file of JUnit, with a failure for each row that is worse than this.
    #[must_use]
    pub fn junit(&self, required: Verdict) -> String {
        junit::written(self, required)
    }

    /// As one page of HTML that needs nothing else: for each row a line of time, with what was said above what was so.
    #[must_use]
    pub fn page(&self) -> String {
        page::written(self)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        terminal::written(self, f)
    }
}

/// A repetition, as JSON has it.
#[derive(Serialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
enum WrittenTrial<'t> {
    /// What came of it.
    Judged(&'t Trial),
    /// Why its door, or the target itself, cannot bring the moment about.
    NotExpressed(String),
    /// Why the moment did not come.
    NotReached(String),
}

fn trials<S: serde::Serializer>(trials: &[Result<Trial, StageError>], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(trials.iter().map(|trial| match trial {
        Ok(trial) => WrittenTrial::Judged(trial),
        Err(StageError::NotExpressed(why)) => WrittenTrial::NotExpressed(why.clone()),
        Err(error) => WrittenTrial::NotReached(error.to_string()),
    }))
}

#[cfg(test)]
mod tests;
