//! Where a process may run, and whether something else ran meanwhile.

use std::{
    fmt, fs,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The processors of one process. Exhaustive: one, or all that there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cpu {
    Only(usize),
    Any,
}

impl Cpu {
    /// As it was displayed.
    pub(crate) fn of(said: &str) -> anyhow::Result<Self> {
        if said == "any" { Ok(Self::Any) } else { Ok(Self::Only(said.parse()?)) }
    }

    /// Confines this process to it. Threads that begin later are confined too.
    pub(crate) fn pin(self) -> anyhow::Result<()> {
        let Self::Only(cpu) = self else { return Ok(()) };
        let mut set = CpuSet::new();
        set.set(cpu);
        Ok(sched_setaffinity(None, &set)?)
    }
}

impl fmt::Display for Cpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Only(cpu) => write!(f, "{cpu}"),
            Self::Any => f.write_str("any"),
        }
    }
}

/// The processors that this process may use.
pub(crate) fn available() -> anyhow::Result<Vec<usize>> {
    let set = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect())
}

/// The share of one processor that others may have used in a run that counts as quiet.
const QUIET: f64 = 0.05;
/// Ticks by which two counts may differ for their roundness alone: they are allowed beside that share.
const ROUND: f64 = 4.0;
/// Ticks of a second, in what the system reports to programs.
const TICKS: f64 = 100.0;

/// A look at all that the processors did, and at what these processes, their ended children and the kernel's own threads had of
/// it: those write to a disk for another process, whose share of a processor is seen by itself.
pub(crate) struct ProcessorUse {
    at: Instant,
    busy: f64,
    own: f64,
}

impl ProcessorUse {
    pub(crate) fn now(others_of_ours: &[u32]) -> anyhow::Result<Self> {
        let mut own = ticks("/proc/self/stat")? + of_the_kernel()?;
        for process in others_of_ours {
            own += ticks(&format!("/proc/{process}/stat"))?;
        }
        Ok(Self { at: Instant::now(), busy: busy()?, own })
    }

    /// The share of one processor that something else used from then until now; nothing if that is as good as nothing.
    pub(crate) fn disturbed_until(&self, now: &Self) -> Option<f64> {
        let passed = now.at.duration_since(self.at).max(Duration::from_millis(1)).as_secs_f64() * TICKS;
        let foreign = (now.busy - self.busy) - (now.own - self.own);
        (foreign > QUIET * passed + ROUND).then_some(foreign / passed)
    }
}

/// Ticks in which any processor worked, or was taken away by the machine below.
fn busy() -> anyhow::Result<f64> {
    let stat = fs::read_to_string("/proc/stat")?;
    let line = stat.lines().next().context("/proc/stat is empty")?;
    let figures: Vec<f64> = line.split_whitespace().skip(1).map(str::parse).collect::<Result<_, _>>()?;
    // user, nice, system, irq, softirq and steal. Where the kernel counts by ticks, the time of an interrupt is in the system
    // time of the process that it came upon, so it has to be here too: what is subtracted has it.
    [0, 1, 2, 5, 6, 7].iter().map(|at| figures.get(*at).copied().context("/proc/stat is short")).sum()
}

/// Ticks of the kernel's own threads, which are all children of the second process.
fn of_the_kernel() -> anyhow::Result<f64> {
    const PARENT: &str = "2";
    let mut all = 0.0;
    for process in fs::read_dir("/proc")? {
        let Ok(stat) = fs::read_to_string(process?.path().join("stat")) else { continue };
        let parent = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1));
        if parent == Some(PARENT) {
            all += used(&stat)?;
        }
    }
    Ok(all)
}

/// Ticks of a process and of its ended children.
fn ticks(path: &str) -> anyhow::Result<f64> {
    used(&fs::read_to_string(path)?)
}

/// The same, from what the system says of that process.
fn used(stat: &str) -> anyhow::Result<f64> {
    // The name, which may have blanks, ends with the last bracket; the third field is the first one behind it.
    let (_, rest) = stat.rsplit_once(')').context("a process has no name")?;
    let figures: Vec<&str> = rest.split_whitespace().collect();
    let at =
        |field: usize| -> anyhow::Result<f64> { Ok(figures.get(field - 3).context("it is short")?.parse()?) };
    Ok(at(14)? + at(15)? + at(16)? + at(17)?)
}
