//! Safepoint beside loops that a good engineer writes by hand, alternately: medians, ratios and verdicts.

fn main() -> anyhow::Result<()> {
    safepoint_bench::run()
}
