//! The row of figures at the foot of the pane. What matters least is left out first where it is narrow.

use std::time::Instant;

use super::{Meter, Sum};
use crate::render::activity::lasted;

/// A figure, and how soon it is left out: the greater, the sooner.
type Part = (u8, String);

impl Meter {
    /// The row, no wider than this number of columns; none before a model was asked.
    pub(crate) fn footer(&self, columns: usize, now: Instant) -> Option<String> {
        let mut parts = self.parts(now);
        while !parts.is_empty() {
            let row = parts.iter().map(|(_, part)| part.as_str()).collect::<Vec<_>>().join(" · ");
            if row.chars().count() <= columns {
                return Some(row);
            }
            let least = parts.iter().map(|(rank, _)| *rank).max();
            parts.retain(|(rank, _)| Some(*rank) != least);
        }
        None
    }

    fn parts(&self, now: Instant) -> Vec<Part> {
        let Some(turn) = self.counts.turns.last().filter(|_| !self.is_empty()) else { return Vec::new() };
        let mut all = Sum::default();
        self.counts.turns.iter().for_each(|turn| all.join(&turn.all));
        let used = &all.usage;
        let mut parts = Vec::new();
        parts.extend(self.filled().map(|filled| (0, filled)));
        let lost = self.counts.turns.iter().any(|turn| turn.lost > 0);
        parts.extend(all.price().map(|price| {
            let is_more = lost && !price.starts_with('≥');
            (1, if is_more { format!("≥ {price}") } else { price })
        }));
        parts.push((2, format!("{} in", tokens(used.input))));
        if used.cached_input > 0 {
            parts.push((4, format!("{} cached", tokens(used.cached_input))));
        }
        parts.push((2, format!("{} out", tokens(used.output))));
        match turn.rounds {
            0 => {}
            1 => parts.push((5, "1 round".to_owned())),
            rounds => parts.push((5, format!("{rounds} rounds"))),
        }
        parts.push((3, lasted(turn.elapsed(now))));
        parts
    }

    /// How much of the window is full; of an unknown window the tokens alone.
    pub(crate) fn filled(&self) -> Option<String> {
        let size = self.counts.context?;
        let about = if size.is_exact { "" } else { "~" };
        Some(match self.figures.window.filter(|window| *window > 0) {
            Some(window) => format!("{about}{} % of {}", percent(size.tokens, window), tokens(window)),
            None => format!("context {about}{}", tokens(size.tokens)),
        })
    }
}

pub(crate) fn percent(part: u64, of: u64) -> u128 {
    let of = u128::from(of);
    (u128::from(part) * 100 + of / 2).checked_div(of).unwrap_or_default()
}

/// `950`, `1.2k`, `12k`, `1.05M`.
pub(crate) fn tokens(count: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "it is rounded to three digits")]
    let float = count as f64;
    match count {
        0..1_000 => count.to_string(),
        1_000..9_950 => format!("{:.1}k", float / 1e3),
        9_950..999_500 => format!("{:.0}k", float / 1e3),
        _ => format!("{:.2}M", float / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_have_few_digits() {
        let shown = [0, 999, 1_000, 1_250, 9_949, 9_950, 12_345, 999_499, 999_500, 1_048_576].map(tokens);
        assert_eq!(shown, ["0", "999", "1.0k", "1.2k", "9.9k", "10k", "12k", "999k", "1.00M", "1.05M"]);
    }
}
