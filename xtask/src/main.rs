//! Recipes of this workspace: one recipe is one CI step.

mod api;
mod backends;
mod bench;
mod cargo;
mod check;
mod features;
mod figures;
mod first_minute;
mod fleet;
mod fuzz;
mod optional;
mod package;
mod peers;
mod picture;
mod rust_version;
mod soak;
mod source;
mod spec;
mod stores;
mod tidy;
mod watched;

use std::process::ExitCode;

const HELP: &str = "\
cargo xtask RECIPE
  check          what CI runs: format, clippy, tidy, tests, fuzz --smoke, peers, spec, documentation (CI adds loom)
  tidy           style as tests: file sizes, words, docs, edges between crates and modules
  tidy --figures lines of code, types, fields and circles, as counts
  api            what each crate shows against its api.txt; --write writes these anew
  watched [ARGS] the tests of the workspace, or `cargo test ARGS`; one that hangs is ended, with all that is known of it
  optional       the tests of what the binary has by features that are off by default
  fleet          simulated nodes that crash, pause and are cut off, for two minutes of seeds: --seconds N, --seed N; by hand
                 --large: a thousand nodes and a million sessions, for a virtual hour; --sessions: fifty nodes and 2,000
                 sessions of the engine; --watch WORD…, at the end: the steps of one of these that have such a word
  nodes          real nodes over a real database: they are killed, paused and cut off, for some two minutes; `stores` does it too
  stores         the PostgreSQL store and its job queue against a server that its tests start: `apt-get install postgresql` before
  spec           each clause with the tests that cite it, or with what owes it; --strict fails on neither
  bench [PARTS]  the benchmarks, beside loops written by hand; --write: into docs/benchmarks.md too. `bench counts`: what a
                 round and a stop have, against what is written down; CI runs it
  backends       measures what a stop does to each backend, and writes it into docs/backends.md
  features       each published crate with none of its features, and with each of them alone, without a warning
  first-minute   what a newcomer waits for, from cold: crates, demo, binary, dev build; --crates: only counts, and whether a
                 dependency wants a newer Rust than ours
  package        packs every published crate from a clean tree and builds it; --no-verify only packs
  fuzz           the fuzz targets, a minute each; --smoke, or without cargo-fuzz and nightly, under proptest
  peers [KIND]   our binary against servers written by others; what cannot be had is listed as skipped. --all: also the
                 agents that CI has no time for; --times N: their stops N times; --agent NAME: only that
  stop-table     by hand: what the stop of each target does, into docs/stops.md; with names, only of these; --table: only the table
                 --install: they are only installed; --ours: our own program drives them, and its receipt is judged
  soak           by hand: 10 minutes of 500 sessions of a server that is killed; --minutes N, --sessions N, --seed N
  picture A B T  a captured terminal (tmux capture-pane -e -p) as an SVG with a title: docs/pictures/capture.sh";

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let recipe = args.next().unwrap_or_default();
    let rest: Vec<String> = args.collect();
    let result = match recipe.as_str() {
        "check" => check::check(),
        "api" => api::api(&rest),
        "tidy" if rest.iter().any(|arg| arg == "--figures") => figures::figures(),
        "tidy" => tidy::tidy(),
        "spec" => spec::spec(&rest),
        "backends" => backends::backends(),
        "bench" => bench::bench(&rest),
        "features" => features::features(),
        "optional" => optional::optional(),
        "fleet" => fleet::fleet(&rest),
        "nodes" => stores::nodes(),
        "stores" => stores::stores(),
        "first-minute" => first_minute::Measured::of(&rest).and_then(first_minute::first_minute),
        "package" => package::package(&rest),
        "fuzz" => fuzz::fuzz(&rest),
        "soak" => soak::soak(&rest),
        "peers" => peers::Wanted::of(&rest).and_then(|wanted| peers::peers(&wanted)),
        "stop-table" => peers::stop_table(&rest),
        "watched" => watched::watched(&rest),
        "picture" => picture::draw(&rest),
        "" | "help" | "--help" => {
            println!("{HELP}");
            return ExitCode::SUCCESS;
        }
        other => {
            eprintln!("there is no recipe `{other}`\n{HELP}");
            // Exit: recipes fail with 1, so that CI can tell a wrong name from a recipe that failed.
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
