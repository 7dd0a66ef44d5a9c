//! What the system tells of a process, and processes of this program that print figures.

use std::{fs, process::Command, time::Duration};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit of open files as far as it may be.
pub(crate) fn allow_files() -> anyhow::Result<()> {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    Ok(setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?)
}

/// How many of these connections the limit of open files allows.
pub(crate) fn files_for(wanted: usize) -> usize {
    const OTHER_FILES: u64 = 200;
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let room = maximum.map_or(u64::MAX, |most| most.saturating_sub(OTHER_FILES));
    usize::try_from(room).unwrap_or(usize::MAX).min(wanted)
}

/// What this program prints, started with these arguments.
pub(crate) fn in_a_process<const N: usize>(args: &[&str]) -> anyhow::Result<[f64; N]> {
    let output = Command::new(std::env::current_exe()?).args(args).output()?;
    anyhow::ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8(output.stdout)?;
    let figures: Vec<f64> = said.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
    figures.try_into().map_err(|_figures| anyhow::anyhow!("a process said `{said}`"))
}

/// KiB of this process in memory once it has settled down.
pub(crate) async fn resident_at_rest() -> anyhow::Result<f64> {
    const REST: Duration = Duration::from_secs(1);
    tokio::time::sleep(REST).await;
    resident()
}

/// KiB of this process in memory.
pub(crate) fn resident() -> anyhow::Result<f64> {
    figure(&fs::read_to_string("/proc/self/status")?, "VmRSS:")
}

/// KiB that this process had in memory at the most.
pub(crate) fn peak() -> anyhow::Result<f64> {
    figure(&fs::read_to_string("/proc/self/status")?, "VmHWM:")
}

/// Context switches in this time.
pub(crate) async fn switches_in(time: Duration) -> anyhow::Result<f64> {
    let before = switches()?;
    tokio::time::sleep(time).await;
    Ok(switches()? - before)
}

/// How often any thread of this process slept or was preempted.
fn switches() -> anyhow::Result<f64> {
    let mut all = 0.0;
    for thread in fs::read_dir("/proc/self/task")? {
        let status = fs::read_to_string(thread?.path().join("status"))?;
        all += figure(&status, "voluntary_ctxt_switches:")? + figure(&status, "nonvoluntary_ctxt_switches:")?;
    }
    Ok(all)
}

fn figure(status: &str, name: &str) -> anyhow::Result<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let figure = line.and_then(|rest| rest.split_whitespace().next());
    Ok(figure.ok_or_else(|| anyhow::anyhow!("the system does not tell {name}"))?.parse()?)
}
