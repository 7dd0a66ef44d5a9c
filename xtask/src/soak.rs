//! `soak`, by hand: minutes of many sessions with stops, readers that go away, and kills of the server.

use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};

use crate::{optional, peers, source};

const CLIENT: &str = include_str!("soak.py");

/// Runs it against a build for release: `[--minutes N] [--sessions N] [--seed N]`.
pub(crate) fn soak(args: &[String]) -> anyhow::Result<()> {
    let said = |name: &str, default: &str| {
        let at = args.iter().position(|arg| arg == name);
        at.and_then(|at| args.get(at + 1)).map_or_else(|| default.to_owned(), Clone::clone)
    };
    let binary = optional::released()?;
    let folder = peers::target().join("soak");
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    std::fs::create_dir_all(&folder)?;
    let client = folder.join("client.py");
    std::fs::write(&client, CLIENT)?;
    let status = Command::new("python3")
        .arg(&client)
        .args([binary.as_os_str(), folder.join("run").as_os_str()])
        .args([said("--minutes", "10"), said("--sessions", "500"), said("--seed", "1")])
        .current_dir(source::root())
        .stdin(Stdio::null())
        .status()
        .context("python3 could not be started")?;
    ensure!(status.success(), "the soak found faults: they are above");
    Ok(())
}
