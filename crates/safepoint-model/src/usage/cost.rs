//! The sum of what several runs cost, of which some may have no price.

use super::Usage;

/// The cost of several parts: unknown as soon as a part that used something has no price, and never less than it is.
#[derive(Clone, Copy, Debug, Default)]
pub struct TotalCost {
    known: Option<f64>,
    is_unknown: bool,
}

impl TotalCost {
    /// Adds one part: what it used, and its cost if that has a price.
    pub fn add(&mut self, usage: &Usage, cost: Option<f64>) {
        match cost {
            Some(cost) => *self.known.get_or_insert(0.0) += cost,
            None => self.is_unknown |= usage.total() > 0,
        }
    }

    /// Adds another sum.
    pub fn add_all(&mut self, other: Self) {
        if let Some(cost) = other.known {
            *self.known.get_or_insert(0.0) += cost;
        }
        self.is_unknown |= other.is_unknown;
    }

    /// The sum, if all of it is known.
    #[must_use]
    pub fn sum(self) -> Option<f64> {
        self.known.filter(|_| !self.is_unknown).and_then(recorded)
    }
}

/// A cost as it is recorded: twelve digits, so that what is read again is equal; none if it is no amount.
#[must_use]
pub fn recorded(cost: f64) -> Option<f64> {
    format!("{cost:.11e}").parse().ok().filter(|cost: &f64| cost.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S3.12: a part without a price makes the sum unknown, unless it used nothing.
    #[test]
    fn an_unknown_part_makes_an_unknown_sum() {
        let used = Usage::new(10, 1);
        let mut total = TotalCost::default();
        assert_eq!(total.sum(), None, "nothing is known");
        total.add(&used, Some(1.5));
        total.add(&Usage::default(), None);
        assert_eq!(total.sum(), Some(1.5));
        total.add(&used, None);
        total.add(&used, Some(1.0));
        assert_eq!(total.sum(), None);
    }

    /// I1: what is read again is what was recorded.
    #[test]
    fn a_recorded_cost_is_read_as_it_was() {
        for cost in [0.1 + 0.2, 1.0 / 3.0, 12_345.678_901_234_56, 5.0e-9 / 3.0, 0.0] {
            let cost = recorded(cost).unwrap();
            let read: f64 = serde_json::from_str(&serde_json::to_string(&cost).unwrap()).unwrap();
            assert_eq!(read.to_bits(), cost.to_bits(), "{cost}");
        }
        assert_eq!((recorded(f64::NAN), recorded(f64::INFINITY)), (None, None));
    }
}
