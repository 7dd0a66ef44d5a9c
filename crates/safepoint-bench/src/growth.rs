//! What a step costs when much has gone before, or much is there: drawn as plots, with the verdict whether it is flat. The
//! model is in process, so that all of a step is ours. Each measurement is a separate process.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use anyhow::Context as _;

mod plot;
mod steps;

use self::plot::Plot;
use crate::{durable, figures::median, quiet::QuietRow};

/// The hidden argument that makes this program one of these measurements.
pub(crate) const GROWTH: &str = "__growth";

/// One plot: its name, what is drawn, and the words at its axes.
struct Grown {
    name: &'static str,
    what: &'static str,
    x: &'static str,
    y: &'static str,
}

const ALL: [Grown; 7] = [
    Grown { name: "rounds", what: "one run of 100,000 rounds", x: "rounds before", y: "µs a round" },
    Grown {
        name: "session",
        what: "a durable session of 100,000 rounds",
        x: "rounds before",
        y: "µs a round",
    },
    Grown {
        name: "tools", what: "a round with 10,000 tools declared", x: "tools declared", y: "µs a round"
    },
    Grown { name: "declared", what: "declaring 10,000 tools", x: "tools declared", y: "µs a tool" },
    Grown { name: "children", what: "1,000 children at one parent", x: "children before", y: "µs a child" },
    Grown { name: "spilled", what: "1 GiB of tool output spilled", x: "MiB before", y: "µs a MiB" },
    Grown {
        name: IN_MEMORY,
        what: "1 GiB of tool output spilled to a file system in memory",
        x: "MiB before",
        y: "µs a MiB",
    },
];

/// The same as what it begins with, but for the place.
const IN_MEMORY: &str = "spilled-in-memory";

/// How often each is measured; what is drawn is the run in the middle.
const RUNS: usize = 3;

/// What the last tenth may cost more than the first one, and count as flat.
const FLAT: f64 = 1.25;
/// Of all points, these are left out: everything is cold.
const WARM: usize = 20;

/// One run: its points, what the first tenth and the last one of them cost, and how many times as much.
struct GrownRun {
    points: Vec<(f64, f64)>,
    ends: (f64, f64),
    ratio: f64,
    is_disturbed: bool,
}

/// Measures and draws those whose name begins with `only`, into this folder; the verdicts and the plots, as Markdown.
pub(crate) async fn measure(only: &str, folder: &Path) -> anyhow::Result<String> {
    fs::create_dir_all(folder)?;
    let mut pictures = String::new();
    let mut verdicts = String::from(
        "| what | points | first tenth | last tenth | ratio | all runs | verdict |\n|---|---|---|---|---|---|---|\n",
    );
    let is_there = |grown: &&Grown| grown.name != IN_MEMORY || Path::new(durable::IN_MEMORY).is_dir();
    for grown in ALL.iter().filter(|grown| grown.name.starts_with(only)).filter(is_there) {
        eprintln!("growth: {}", grown.what);
        let mut runs = all_runs(grown.name).await?;
        let ratios: Vec<String> = runs.iter().map(|run| format!("{:.2}", run.ratio)).collect();
        let disturbed = runs.iter().filter(|run| run.is_disturbed).count();
        runs.sort_by(|one, other| one.ratio.total_cmp(&other.ratio));
        let GrownRun { points, ends, ratio, .. } = &runs[RUNS / 2];
        let verdict = if *ratio <= FLAT { "flat" } else { "**not flat**" };
        let busy =
            if disturbed > 0 { format!(" ({disturbed} of {RUNS} runs not quiet)") } else { String::new() };
        let row = format!(
            "| [{}](benchmarks/{}.svg) | {} | {:.1} {} | {:.1} {} | {ratio:.2} | {} | {verdict}{busy} |\n",
            grown.what,
            grown.name,
            points.len(),
            ends.0,
            grown.y,
            ends.1,
            grown.y,
            ratios.join(", "),
        );
        eprint!("{row}");
        verdicts.push_str(&row);
        pictures.push_str(&format!("\n![{}](benchmarks/{}.svg)", grown.what, grown.name));
        let plot = Plot { title: grown.what, x: grown.x, y: grown.y, points, ends: *ends };
        fs::write(folder.join(format!("{}.svg", grown.name)), plot.to_string())?;
    }
    Ok(format!("{verdicts}{pictures}\n\n"))
}

async fn all_runs(name: &str) -> anyhow::Result<Vec<GrownRun>> {
    let (mut row, mut runs) = (QuietRow::with(&[]), Vec::new());
    for _ in 0..RUNS {
        let run = row.run(async || in_a_process(name)).await?;
        let ends = ends(&run.value);
        let (ratio, is_disturbed) = (ends.1 / ends.0, run.disturbed.is_some());
        runs.push(GrownRun { points: run.value, ends, ratio, is_disturbed });
    }
    Ok(runs)
}

/// The medians of the first tenth of the points and of the last.
fn ends(points: &[(f64, f64)]) -> (f64, f64) {
    let warm = &points[points.len() / WARM..];
    let tenth = warm.len().div_ceil(10);
    let middle = |part: &[(f64, f64)]| median(part.iter().map(|(_, cost)| *cost).collect());
    (middle(&warm[..tenth]), middle(&warm[warm.len() - tenth..]))
}

/// The points that such a process prints.
fn in_a_process(name: &str) -> anyhow::Result<Vec<(f64, f64)>> {
    let is_in_memory = name == IN_MEMORY;
    let folder = if is_in_memory { tempfile::tempdir_in(durable::IN_MEMORY)? } else { tempfile::tempdir()? };
    let mut command = Command::new(std::env::current_exe()?);
    // What is spilled lies there, and is gone afterwards.
    command.args([GROWTH, name]).env("TMPDIR", folder.path()).stderr(Stdio::inherit());
    let output = command.output()?;
    anyhow::ensure!(output.status.success(), "the measurement of {name} failed");
    let point = |line: &str| {
        let (x, y) = line.split_once(' ').context("a point has two numbers")?;
        Ok((x.parse()?, y.parse()?))
    };
    let points: Vec<_> =
        String::from_utf8(output.stdout)?.lines().map(point).collect::<anyhow::Result<_>>()?;
    anyhow::ensure!(points.len() >= WARM, "the measurement of {name} has too few points");
    Ok(points)
}

/// The measurement itself: prints its points.
pub(crate) async fn gather(name: &str) -> anyhow::Result<()> {
    let points = match name {
        "rounds" => steps::rounds().await?,
        "session" => steps::session().await?,
        "tools" => steps::tools().await?,
        "declared" => steps::declared(),
        "children" => steps::children().await,
        "spilled" | IN_MEMORY => steps::spilled().await?,
        other => anyhow::bail!("nothing that grows is named `{other}`"),
    };
    for (x, y) in points {
        println!("{x} {y}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_and_the_last_tenth_are_compared_without_the_cold_points() {
        let points: Vec<_> =
            (0..200).map(|n| (f64::from(n), if n < 10 { 1000.0 } else { f64::from(n) })).collect();
        assert_eq!(ends(&points), (19.0, 190.0));
    }
}
