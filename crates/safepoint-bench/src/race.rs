//! The comparison: each kind of loop in a separate process, in turns, beside one model server; a run is repeated when
//! something else used a processor meanwhile.

use std::{
    io::{BufRead as _, BufReader},
    process::{Child, Command, Stdio},
};

use crate::{
    client::{CLIENT, KINDS},
    cpus::{Cpu, available},
    figures::{Figures, median, percentile},
    quiet::{PASSES, QuietRow, Run},
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
}

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
        Ok(Self { server: ModelServer::start(server)?, client })
    }

    /// The base URL of its model server.
    pub(crate) fn url(&self) -> &str {
        &self.server.url
    }

    /// Runs a measure of `client` with these numbers: each kind once a pass, and each pass begins with the next kind, so that
    /// what changes slowly, and what the run before left behind, falls on all alike.
    pub(crate) async fn run(&self, measure: &str, numbers: &[usize]) -> anyhow::Result<Laps> {
        let mut laps = Laps::default();
        let server = [self.server.child.id()];
        let mut row = QuietRow::with(&server);
        for pass in 0..PASSES {
            for kind in (0..KINDS.len()).map(|at| (at + pass) % KINDS.len()) {
                let lap = row.run(async || self.lap(KINDS[kind], measure, numbers)).await?;
                eprintln!(
                    "{measure} {numbers:?}, pass {} of {PASSES}, {}: {} figures{}",
                    pass + 1,
                    KINDS[kind],
                    lap.value.len(),
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

    fn lap(&self, kind: &str, measure: &str, numbers: &[usize]) -> anyhow::Result<Lines> {
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
        let output = command.stderr(Stdio::inherit()).output()?;
        anyhow::ensure!(output.status.success(), "the client {kind} failed at {measure} {numbers:?}");
        let line = |line: &str| line.split_whitespace().map(str::parse).collect::<Result<Vec<f64>, _>>();
        Ok(String::from_utf8(output.stdout)?.lines().map(line).collect::<Result<_, _>>()?)
    }
}

/// What one run of one kind prints: figures of each repetition.
type Lines = Vec<Vec<f64>>;

fn column(lines: &Lines, at: usize) -> Vec<f64> {
    lines.iter().filter_map(|line| line.get(at).copied()).collect()
}

/// All runs of a row, by kind.
#[derive(Default)]
pub(crate) struct Laps([Vec<Run<Lines>>; KINDS.len()]);

impl Laps {
    /// The medians over all repetitions of all passes, and the median of the ratios of one pass each.
    pub(crate) fn medians(&self, at: usize) -> Figures {
        let ratios = self.ratios(|lines| median(column(lines, at)));
        let each = [0, 1, 2].map(|kind| median(self.all(kind, at)));
        Figures { each, ratio: median(ratios.clone()), ratios, disturbed: self.disturbed() }
    }

    /// The medians of the last repetitions of each pass, for a figure that can only rise.
    pub(crate) fn lasts(&self, at: usize) -> Figures {
        let last = |lines: &Lines| column(lines, at).pop().unwrap_or(f64::NAN);
        let ratios = self.ratios(last);
        let each = [0, 1, 2].map(|kind| median(self.0[kind].iter().map(|lap| last(&lap.value)).collect()));
        Figures { each, ratio: median(ratios.clone()), ratios, disturbed: self.disturbed() }
    }

    /// The 99th percentiles of all passes together, and their ratio.
    pub(crate) fn p99(&self, at: usize) -> Figures {
        let ratios = self.ratios(|lines| percentile(column(lines, at), 99));
        let each = [0, 1, 2].map(|kind| percentile(self.all(kind, at), 99));
        Figures { each, ratio: each[2] / each[1], ratios, disturbed: self.disturbed() }
    }

    /// Ours to `reqwest`, pass by pass.
    fn ratios(&self, of: impl Fn(&Lines) -> f64) -> Vec<f64> {
        let [_, reqwest, ours] = &self.0;
        ours.iter().zip(reqwest).map(|(ours, theirs)| of(&ours.value) / of(&theirs.value)).collect()
    }

    fn all(&self, kind: usize, at: usize) -> Vec<f64> {
        self.0[kind].iter().flat_map(|lap| column(&lap.value, at)).collect()
    }

    fn disturbed(&self) -> (usize, usize) {
        let laps = || self.0.iter().flatten();
        (laps().filter(|lap| lap.disturbed.is_some()).count(), laps().count())
    }
}
