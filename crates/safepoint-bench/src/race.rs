//! The comparison: each kind of loop in a separate process, in turns, beside one model server; a run is repeated when
//! something else used a processor meanwhile.

use std::{
    io::{BufRead as _, BufReader},
    process::{Child, Command, Stdio},
};

use crate::{
    client::{CLIENT, KINDS},
    cpus::{Cpu, ProcessorUse, available},
    figures::{Figures, median, percentile},
};

/// The hidden argument that makes this program the model server; the processor follows.
pub(crate) const SERVER: &str = "__server";

/// The model server's process.
pub(crate) struct ModelServer {
    child: Child,
    pub(crate) url: String,
    /// Where it tells how many wait.
    pub(crate) control: String,
}

impl ModelServer {
    pub(crate) fn start(cpu: Cpu) -> anyhow::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        let mut child =
            command.args([SERVER, &cpu.to_string()]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        if let Some(stdout) = child.stdout.as_mut() {
            BufReader::new(stdout).read_line(&mut line)?;
        }
        let (url, control) = line.trim().split_once(' ').unwrap_or_default();
        Ok(Self { url: url.to_owned(), control: control.to_owned(), child })
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        if self.child.kill().and_then(|()| self.child.wait().map(drop)).is_err() {
            // It has ended by itself.
        }
    }
}

/// Whether the two sides have a processor each. Exhaustive: they have, or they have what there is.
#[derive(Clone, Copy)]
pub(crate) enum Pinned {
    Apart,
    Nowhere,
}

pub(crate) struct Race {
    server: ModelServer,
    client: Cpu,
    passes: usize,
}

/// How often a row is measured, at the least.
pub(crate) const PASSES: usize = 5;
/// How often a disturbed run is repeated, and how many such repetitions a row has in all.
const REPEATS: usize = 2;
const REPEATS_OF_A_ROW: usize = 6;

impl Race {
    pub(crate) fn start(pinned: Pinned) -> anyhow::Result<Self> {
        let cpus = available()?;
        let (server, client) = match (pinned, &cpus[..]) {
            (Pinned::Apart, [server, client, ..]) => (Cpu::Only(*server), Cpu::Only(*client)),
            (Pinned::Apart, _) => {
                eprintln!("there is one processor: the server and its client share it");
                (Cpu::Any, Cpu::Any)
            }
            (Pinned::Nowhere, _) => (Cpu::Any, Cpu::Any),
        };
        Ok(Self { server: ModelServer::start(server)?, client, passes: PASSES })
    }

    /// The base URL of its model server.
    pub(crate) fn url(&self) -> &str {
        &self.server.url
    }

    /// Runs a measure of `client` with these numbers: each kind once a pass, the order turned round each time, so that what
    /// changes slowly falls on all alike.
    pub(crate) fn run(&self, measure: &str, numbers: &[usize]) -> anyhow::Result<Laps> {
        let mut laps = Laps::default();
        let mut repeats = REPEATS_OF_A_ROW;
        for pass in 0..self.passes {
            let mut order: Vec<usize> = (0..KINDS.len()).collect();
            if pass % 2 == 1 {
                order.reverse();
            }
            for kind in order {
                let lap = self.quiet_lap(KINDS[kind], measure, numbers, &mut repeats)?;
                eprintln!(
                    "{measure} {numbers:?}, pass {} of {}, {}: {} figures{}",
                    pass + 1,
                    self.passes,
                    KINDS[kind],
                    lap.lines.len(),
                    lap.disturbed.map_or(String::new(), |share| format!(
                        "; something else used {:.0} % of a processor",
                        share * 100.0
                    ))
                );
                laps.0[kind].push(lap);
            }
        }
        Ok(laps)
    }

    /// A run in which nothing else used a processor, or the quietest of a few.
    fn quiet_lap(
        &self,
        kind: &str,
        measure: &str,
        numbers: &[usize],
        repeats: &mut usize,
    ) -> anyhow::Result<Lap> {
        let mut best = self.lap(kind, measure, numbers)?;
        for _ in 0..REPEATS {
            if best.disturbed.is_none() || *repeats == 0 {
                break;
            }
            *repeats -= 1;
            let again = self.lap(kind, measure, numbers)?;
            if again.disturbed.unwrap_or_default() < best.disturbed.unwrap_or_default() {
                best = again;
            }
        }
        Ok(best)
    }

    fn lap(&self, kind: &str, measure: &str, numbers: &[usize]) -> anyhow::Result<Lap> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args([
            CLIENT,
            kind,
            &self.client.to_string(),
            &self.server.url,
            &self.server.control,
            measure,
        ]);
        command.args(numbers.iter().map(usize::to_string));
        let server = [self.server.child.id()];
        let before = ProcessorUse::now(&server)?;
        let output = command.stderr(Stdio::inherit()).output()?;
        let disturbed = before.disturbed_until(&ProcessorUse::now(&server)?);
        anyhow::ensure!(output.status.success(), "the client {kind} failed at {measure} {numbers:?}");
        let line = |line: &str| line.split_whitespace().map(str::parse).collect::<Result<Vec<f64>, _>>();
        let lines = String::from_utf8(output.stdout)?.lines().map(line).collect::<Result<_, _>>()?;
        Ok(Lap { lines, disturbed })
    }
}

/// One run of one kind: its lines of figures, and the share of a processor that something else used, if any did.
struct Lap {
    lines: Vec<Vec<f64>>,
    disturbed: Option<f64>,
}

impl Lap {
    fn column(&self, at: usize) -> Vec<f64> {
        self.lines.iter().filter_map(|line| line.get(at).copied()).collect()
    }
}

/// All runs of a row, by kind.
#[derive(Default)]
pub(crate) struct Laps([Vec<Lap>; KINDS.len()]);

impl Laps {
    /// The medians over all passes, and the median of the ratios of one pass each.
    pub(crate) fn medians(&self, column: usize) -> Figures {
        let each = [0, 1, 2].map(|kind| median(self.all(kind, column)));
        let [_, reqwest, ours] = &self.0;
        let of = |lap: &Lap| median(lap.column(column));
        let ratio = median(ours.iter().zip(reqwest).map(|(ours, theirs)| of(ours) / of(theirs)).collect());
        Figures { each, ratio, disturbed: self.disturbed() }
    }

    /// The 99th percentiles of all passes together, and their ratio.
    pub(crate) fn p99(&self, column: usize) -> Figures {
        let each = [0, 1, 2].map(|kind| percentile(self.all(kind, column), 99));
        Figures { each, ratio: each[2] / each[1], disturbed: self.disturbed() }
    }

    fn all(&self, kind: usize, column: usize) -> Vec<f64> {
        self.0[kind].iter().flat_map(|lap| lap.column(column)).collect()
    }

    fn disturbed(&self) -> (usize, usize) {
        let laps = || self.0.iter().flatten();
        (laps().filter(|lap| lap.disturbed.is_some()).count(), laps().count())
    }
}
