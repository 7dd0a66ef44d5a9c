//! Agents that people run, from npm: each in a separate home, on a scripted model, stopped in every phase of
//! its work. The facts of what they did are compared with our receipt.

use std::{fs, path::Path, time::Instant};

use anyhow::Context as _;

use super::super::{
    Absent, Reach, Tally, Wanted,
    facts::{Stops, fresh},
    target,
};

use self::{
    agents::{Agent, agents},
    bench::Bench,
    scenarios::SCENARIOS,
    table::Table,
};

mod agents;
mod bench;
mod install;
mod scenarios;
mod stop;
mod table;

/// What our binary says of an agent that takes too long to start.
const NOT_READY: &str = "was not ready within";

/// Runs every scenario that is wanted against every agent that is, as often as is wanted.
pub(super) fn peers(binary: &Path, tally: &mut Tally, wanted: &Wanted) -> anyhow::Result<()> {
    let mut table = Table::default();
    for agent in agents(wanted.reach).filter(|agent| wanted.agent(agent.name)) {
        let cache = target().join("peers").join(format!("acp-{}", agent.folder));
        fs::create_dir_all(&cache).with_context(|| format!("{} cannot be made", cache.display()))?;
        let began = Instant::now();
        let installed = install::install(agent, &cache);
        println!("peers: {} is looked for and installed ({:.1?})", agent.name, began.elapsed());
        for round in 1..=wanted.times {
            let scenarios = SCENARIOS.iter().filter(|scenario| wanted.reach.includes(scenario.reach));
            for scenario in scenarios {
                let title = title(agent, scenario.name, round);
                match &installed {
                    Err(Absent(reason)) => tally.skip(&title, reason),
                    Ok(program) => tally.take_stop(&title, |stops| {
                        let place = cache.join("scenario");
                        let try_it = |stops: &mut Stops| {
                            fresh(&place)?;
                            (scenario.run)(&Bench::set_up(binary, &place, agent, program)?, stops)
                        };
                        // A busy machine may not start an agent in its time; then nothing was seen of a stop.
                        let seen = match try_it(stops) {
                            Err(error) if format!("{error:#}").contains(NOT_READY) => try_it(stops)?,
                            tried => tried?,
                        };
                        if let Some((row, after)) = seen.as_ref().and_then(|seen| seen.after_word.clone()) {
                            stops.returned(&title, &row, after);
                        }
                        seen.into_iter().for_each(|seen| table.note(agent.name, scenario.name, seen));
                        Ok(())
                    }),
                }
            }
        }
    }
    table.keep(wanted)
}

fn title(agent: &Agent, scenario: &str, round: u32) -> String {
    let round = if round == 1 { String::new() } else { format!(", round {round}") };
    format!("{} over ACP: {scenario}{round}", agent.name)
}

impl Reach {
    /// Whether what is done by default, or only where all is wanted, is done.
    pub(in crate::peers) fn includes(self, of: Reach) -> bool {
        self == Reach::All || of == Reach::Default
    }
}
