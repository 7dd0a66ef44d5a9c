//! The stops of a recipe, and how many of their receipts claim an end that is not so: there must be none.

use std::{collections::BTreeMap, time::Duration};

use anyhow::ensure;
use serde_json::Value;

/// What was seen of all stops so far.
#[derive(Default)]
pub(in crate::peers) struct Stops {
    count: u32,
    false_claims: u32,
    /// The longest that our binary took to return after the agent's word, and where; by what our row says of that.
    longest: BTreeMap<String, (Duration, String)>,
}

impl Stops {
    /// Counts a stop. It fails where the outcome's receipt claims an end while work continues; a receipt that
    /// claims less than the facts passes.
    pub(in crate::peers) fn hold(&mut self, outcome: &Value, running: &[String]) -> anyhow::Result<()> {
        self.count += 1;
        let claims = claims(outcome);
        let is_false = !claims.is_empty() && !running.is_empty();
        self.false_claims += u32::from(is_false);
        let (claims, running) = (claims.join(", "), running.join(", "));
        ensure!(!is_false, "the receipt claims `{claims}`, and {running}: {outcome}");
        Ok(())
    }

    /// Notes how long after the agent's word our binary returned, whose row says this of it (`acknowledged`, `confirmed`).
    pub(in crate::peers) fn returned(&mut self, title: &str, row: &str, after: Duration) {
        let longest = self.longest.entry(row.to_owned()).or_default();
        if after >= longest.0 {
            *longest = (after, title.to_owned());
        }
    }

    /// Says what was counted, if anything was.
    pub(in crate::peers) fn print(&self) {
        let Self { count, false_claims, longest } = self;
        for (row, (after, title)) in longest {
            println!(
                "peers: a stop that is {row} returned at most {after:.2?} after the agent's word ({title})"
            );
        }
        if *count > 0 {
            println!("peers: {count} stops, {false_claims} receipts that claim an end the facts deny");
        }
    }
}

/// Which ends an outcome's receipt claims.
fn claims(outcome: &Value) -> Vec<String> {
    let receipt = &outcome["receipt"];
    let quiet = receipt["quiet"].is_string().then(|| "quiet".to_owned());
    let of_call = |call: &Value| {
        let status = call["status"].as_str().filter(|status| ["stopped", "killed"].contains(status));
        let word = call["remote"]["stop"].as_str().filter(|word| *word == "confirmed");
        [status, word].into_iter().flatten().map(str::to_owned).collect::<Vec<_>>()
    };
    let of_calls = receipt["calls"].as_array().into_iter().flatten().flat_map(of_call);
    quiet.into_iter().chain(of_calls).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_a_claim_of_an_end_that_is_not_so_is_a_failure() {
        let quiet = json!({"receipt": {"quiet": "2026-01-01T00:00:00Z", "calls": []}});
        let confirmed = json!({"receipt": {"quiet": null, "calls": [{"remote": {"stop": "confirmed"}}]}});
        let stopped = json!({"receipt": {"quiet": null, "calls": [{"status": "stopped"}]}});
        let less = json!({"receipt": {"quiet": null,
            "calls": [{"status": "left_running", "remote": {"stop": "acknowledged"}}]}});
        let ticks = ["its command ticks".to_owned()];
        let mut stops = Stops::default();
        for claim in [&quiet, &confirmed, &stopped] {
            assert!(stops.hold(claim, &ticks).is_err() && stops.hold(claim, &[]).is_ok());
        }
        assert!(stops.hold(&less, &ticks).is_ok() && stops.hold(&less, &[]).is_ok());
        assert_eq!((stops.count, stops.false_claims), (8, 3));
    }
}
