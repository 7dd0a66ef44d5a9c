//! What is kept of a run: a line for each scenario and way, in `docs/stops/NAME.json`.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::recipe::Recipe;

/// All of one target.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Kept {
    pub(super) name: String,
    /// The version that was driven.
    pub(super) version: String,
    /// When, as a day.
    pub(super) date: String,
    pub(super) rows: Vec<KeptRow>,
}

/// One scenario, one way.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct KeptRow {
    pub(super) number: u64,
    pub(super) scenario: String,
    pub(super) way: String,
    /// How often each verdict came.
    pub(super) verdicts: BTreeMap<String, usize>,
    /// What the worst rests on, or why there is none.
    pub(super) because: String,
    /// Whether its door, or the target itself, cannot bring it about.
    #[serde(default)]
    pub(super) is_unexpressed: bool,
}

/// From best to worst, as the test has them.
pub(super) const VERDICTS: [&str; 7] =
    ["ends", "ends-late", "says-so", "lets-go", "goes-on", "lies", "breaks"];

impl Kept {
    /// From what the test wrote.
    pub(super) fn of(recipe: &Recipe, seen: &Value) -> anyhow::Result<Self> {
        let rows = seen["rows"].as_array().context("the test wrote no rows")?;
        Ok(Self {
            name: recipe.name.clone(),
            version: recipe.version.clone(),
            date: today()?,
            rows: rows.iter().map(KeptRow::of).collect(),
        })
    }

    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let text = fs::read_to_string(path)?;
        serde_json::from_str(&text).with_context(|| format!("{} is no result", path.display()))
    }

    pub(super) fn write(&self, path: &Path) -> anyhow::Result<()> {
        fs::write(path, format!("{}\n", serde_json::to_string_pretty(self)?))?;
        Ok(())
    }

    /// The ways that were tried, in order.
    pub(super) fn ways(&self) -> Vec<&str> {
        let mut ways: Vec<&str> = Vec::new();
        for row in &self.rows {
            if !ways.contains(&&*row.way) {
                ways.push(&row.way);
            }
        }
        ways
    }

    /// The worst verdict of a scenario by this way, and whether another one came, too.
    pub(super) fn worst(&self, scenario: &str, way: &str) -> Option<(&'static str, bool)> {
        let row = self.rows.iter().find(|row| row.scenario == scenario && row.way == way)?;
        let found = || VERDICTS.into_iter().filter(|word| row.verdicts.contains_key(*word));
        Some((found().next_back()?, found().count() > 1))
    }
}

impl KeptRow {
    /// What is worse than *ends late* in it, or was not reached, in words.
    pub(super) fn bad(&self) -> Option<String> {
        let is_good = |word: &String| VERDICTS[..2].contains(&word.as_str());
        let is_bad =
            if self.verdicts.is_empty() { !self.is_unexpressed } else { !self.verdicts.keys().all(is_good) };
        is_bad.then(|| format!("{} by {}: {:?}, {}", self.scenario, self.way, self.verdicts, self.because))
    }

    fn of(row: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let mut verdicts = BTreeMap::new();
        let (mut worst, mut because) = (None, String::new());
        for trial in row["trials"].as_array().into_iter().flatten() {
            let judged = &trial["judged"]["judged"];
            let Some(verdict) = judged["verdict"].as_str() else {
                let why = [&trial["not-expressed"], &trial["not-reached"]];
                if worst.is_none() {
                    because = why.into_iter().map(text).collect();
                }
                continue;
            };
            *verdicts.entry(verdict.to_owned()).or_default() += 1;
            let place = VERDICTS.iter().position(|word| *word == verdict);
            if place >= worst {
                (worst, because) = (place, text(&judged["because"]));
            }
        }
        let scenario = &row["scenario"];
        let number = scenario["number"].as_u64().unwrap_or_default();
        let is_unexpressed = row["trials"]
            .as_array()
            .is_some_and(|all| all.iter().all(|one| one["not-expressed"].is_string()));
        Self {
            number,
            scenario: text(&scenario["name"]),
            way: text(&row["way"]),
            verdicts,
            because,
            is_unexpressed,
        }
    }
}

/// This day, as the machine has it.
fn today() -> anyhow::Result<String> {
    let output =
        std::process::Command::new("date").arg("+%Y-%m-%d").output().context("there is no `date`")?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
