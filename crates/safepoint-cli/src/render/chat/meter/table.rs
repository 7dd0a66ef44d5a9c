//! `/cost` and `/context` as text.

use std::time::Instant;

use safepoint::{History, Usage, history::Message, receipt::Ending, usage::ExtraBilling};
use safepoint_model::raw::history::{bytes, tokens_of};

use super::{Meter, Sum, TurnCount, footer::percent, tokens};
use crate::{prices::AS_OF, render::activity::lasted};

/// Columns of `/cost`, and what stands in them.
const COLUMNS: usize = 7;
type Cells = [String; COLUMNS];

/// What each request holds beside the conversation, in bytes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fixed {
    /// The instructions of the command line and the config file.
    pub(crate) system: u64,
    /// How many tools there are, and what their names, descriptions and schemas take.
    pub(crate) tools: (usize, u64),
    /// The files of the project that are sent, each by its name.
    pub(crate) files: Vec<(String, u64)>,
}

impl Meter {
    /// `/cost`: each turn, and all of them.
    pub(crate) fn cost(&self, now: Instant) -> String {
        if self.is_empty() {
            return "no model was asked yet".to_owned();
        }
        const NEWEST: usize = 30;
        let turns: Vec<&TurnCount> =
            self.counts.turns.iter().filter(|turn| turn.all.requests > 0 || turn.lost > 0).collect();
        let before = turns.len().saturating_sub(NEWEST);
        let (mut all, mut below, mut lost) = (Sum::default(), Sum::default(), 0);
        for turn in &turns {
            all.join(&turn.all);
            below.join(&turn.below);
            lost += turn.lost;
        }
        let head = ["turn", "in", "cached", "out", "requests", "time", "cost"].map(str::to_owned);
        let mut table = vec![(head, String::new())];
        table.extend(turns.iter().skip(before).map(|turn| turn_row(turn, now)));
        table.push((figures("all".to_owned(), &all, String::new()), String::new()));
        if below.requests > 0 {
            let figures = figures("sub-agents".to_owned(), &below, String::new());
            table.push((figures, "a part of the sum".to_owned()));
        }
        let mut rows = aligned(&table);
        if before > 0 {
            rows.insert(1, format!("  {before} turns before these are in the sum"));
        }
        rows.extend(notes(&all, lost));
        rows.join("\n")
    }

    /// `/context`: what fills the window, by part.
    pub(crate) fn filling(&self, history: &History, fixed: &Fixed) -> String {
        let parts: Vec<(String, u64)> =
            parts(history, fixed).into_iter().filter(|(_, bytes)| *bytes > 0).collect();
        let whole: u64 = parts.iter().map(|(_, bytes)| bytes).sum();
        let size = self.context();
        let total = size.map_or(tokens_of(whole), |size| size.tokens);
        let share = |bytes: u64| {
            let tokens = u128::from(bytes) * u128::from(total) / u128::from(whole.max(1));
            u64::try_from(tokens).unwrap_or(u64::MAX)
        };
        let how = match size {
            Some(size) if size.is_exact => "as the provider counted the last request",
            Some(_) | None => "estimated: the provider has not counted it as it is now",
        };
        let of = self
            .figures
            .window
            .map_or(String::new(), |window| format!(" of {} ({} %)", tokens(window), percent(total, window)));
        let mut rows = vec![format!("{} tokens{of}, {how}", tokens(total))];
        let line = |name: &str, count: u64| {
            let part = self.figures.window.unwrap_or(total);
            format!("  {name:<24} {:>6}  {:>3} %", tokens(count), percent(count, part))
        };
        rows.extend(parts.iter().map(|(name, bytes)| line(name, share(*bytes))));
        match self.figures.window {
            Some(window) => rows.push(line("free", window.saturating_sub(total))),
            None => rows.push(
                "the window of this model is not known: `window = N` in the config file, or --window N, says it"
                    .to_owned(),
            ),
        }
        rows.push("the parts are estimated from their bytes; their sum is what stands above".to_owned());
        rows.join("\n")
    }
}

fn parts(history: &History, fixed: &Fixed) -> Vec<(String, u64)> {
    let (count, tools) = fixed.tools;
    let mut parts = vec![("instructions".to_owned(), fixed.system), (format!("tools ({count})"), tools)];
    parts.extend(fixed.files.iter().cloned());
    let summary = history.omitted().map_or(0, |omitted| bytes(&omitted.entry));
    let from = usize::from(summary > 0);
    let [mut yours, mut models, mut results] = [0; 3];
    for entry in history.sent().entries().iter().skip(from) {
        *match &**entry {
            Message::User(_) => &mut yours,
            Message::Assistant(_) => &mut models,
            Message::Results { .. } => &mut results,
        } += bytes(entry);
    }
    let said = [("summaries", summary), ("your messages", yours), ("the model's messages", models)];
    parts.extend(
        said.into_iter().chain([("tool results", results)]).map(|(name, bytes)| (name.to_owned(), bytes)),
    );
    parts
}

/// The figures of a turn, and what is to be said of them.
fn turn_row(turn: &TurnCount, now: Instant) -> (Cells, String) {
    let number = turn.turn.number().to_string();
    let row = figures(number, &turn.all, lasted(turn.elapsed(now)));
    let how = match turn.ending {
        Some(Ending::Stopped) => Some("stopped"),
        Some(Ending::Failed) => Some("failed"),
        Some(Ending::Done | Ending::Suspended) | None => None,
    };
    let more = (turn.all.usage.billed_beyond == ExtraBilling::Unknown)
        .then_some("a request was cut, and what more it was billed is not known");
    let lost =
        (turn.lost > 0).then_some("a request ended with its program, and what it was billed is not known");
    let notes: Vec<&str> = how.into_iter().chain(more).chain(lost).collect();
    (row, notes.join("; "))
}

fn figures(name: String, sum: &Sum, time: String) -> Cells {
    let Usage { input, cached_input, output, .. } = sum.usage;
    let price = sum.price().unwrap_or_else(|| "not known".to_owned());
    [name, tokens(input), tokens(cached_input), tokens(output), sum.requests.to_string(), time, price]
}

/// Rows whose columns are as wide as they must be, so that the table fits a narrow screen; figures stand to the right.
fn aligned(table: &[(Cells, String)]) -> Vec<String> {
    let widest = |at: usize| table.iter().map(|(cells, _)| cells[at].chars().count()).max().unwrap_or(0);
    let widths: [usize; COLUMNS] = std::array::from_fn(widest);
    let row = |(cells, note): &(Cells, String)| {
        let cells = cells.iter().zip(widths).map(|(cell, width)| format!("{cell:>width$}"));
        format!("  {}  {note}", cells.collect::<Vec<_>>().join("  ")).trim_end().to_owned()
    };
    table.iter().map(row).collect()
}

/// What the figures do not say by themselves.
fn notes(all: &Sum, lost: u32) -> Vec<String> {
    let mut notes = Vec::new();
    if all.unpriced > 0 {
        let which = if all.unpriced == all.requests { "" } else { " of some requests" };
        notes.push(format!(
            "the price{which} is not known: [prices.\"PROVIDER:NAME\"] in the config file says it"
        ));
    }
    if all.unpriced < all.requests {
        notes.push(format!("US dollars; prices as of {AS_OF}, or of the config file"));
    }
    if all.is_floor() || lost > 0 {
        notes.push("≥: requests that were cut are counted as far as they are known".to_owned());
    }
    notes
}
