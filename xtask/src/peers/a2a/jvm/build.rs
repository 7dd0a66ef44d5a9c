//! How the JVM agents are had: a copy of each one's sources, built by Maven from Maven Central, by name and version.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail, ensure};

use super::{
    super::super::{Absent, facts::fresh, target},
    Peer,
};
use crate::source;

/// What Quarkus makes of a project.
pub(super) const QUARKUS: &str = "target/quarkus-app/quarkus-run.jar";

const SOURCES: &str = "xtask/src/peers/a2a/jvm";
/// How long Maven may take, from cold and with a slow line.
const PATIENCE: Duration = Duration::from_secs(600);
const LOOK: Duration = Duration::from_millis(50);

/// The program of an agent, built unless it is there. A source that does not compile is no reason for a skip.
pub(super) fn jar(peer: &Peer) -> anyhow::Result<Result<PathBuf, Absent>> {
    if let Err(absent) = has_tools(peer) {
        return Ok(Err(absent));
    }
    let sources = sources(peer)?;
    let folder = target().join("peers/a2a-jvm").join(peer.folder);
    let (jar, stamp) = (folder.join(peer.jar), folder.join("built"));
    let wanted: String = sources.iter().map(|(path, text)| format!("{}\n{text}\n", path.display())).collect();
    if jar.exists() && fs::read_to_string(&stamp).is_ok_and(|built| built == wanted) {
        return Ok(Ok(jar));
    }
    fresh(&folder)?;
    for (path, text) in &sources {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().context("a file lies in a folder")?)?;
        fs::write(path, text)?;
    }
    if let Err(absent) = package(&folder)? {
        return Ok(Err(absent));
    }
    ensure!(jar.exists(), "Maven made no {}", jar.display());
    fs::write(stamp, wanted)?;
    Ok(Ok(jar))
}

/// Whether Maven is there, and a Java that is new enough.
fn has_tools(peer: &Peer) -> Result<(), Absent> {
    let output = |program: &str| Command::new(program).arg("-version").stdin(Stdio::null()).output();
    let there_is = |program: &str| {
        let output = output(program).ok().filter(|output| output.status.success());
        output.ok_or_else(|| Absent(format!("there is no `{program}`")))
    };
    there_is("mvn")?;
    let java = there_is("java")?;
    let text = String::from_utf8_lossy(&java.stderr).into_owned();
    let version: Option<u32> =
        text.split('"').nth(1).and_then(|version| version.split('.').next()?.parse().ok());
    match version {
        Some(version) if version >= peer.java => Ok(()),
        Some(version) => Err(Absent(format!("it needs Java {} or later, and {version} is here", peer.java))),
        None => Err(Absent("`java -version` does not say its version".into())),
    }
}

/// Its own files and those that it shares, by their paths in the project.
fn sources(peer: &Peer) -> anyhow::Result<Vec<(PathBuf, String)>> {
    let root = source::root().join(SOURCES);
    let mut files = Vec::new();
    for folder in peer.shares.iter().chain([&peer.folder]) {
        let folder = root.join(folder);
        read(&folder, &folder, &mut files)?;
    }
    files.sort();
    Ok(files)
}

fn read(root: &Path, folder: &Path, files: &mut Vec<(PathBuf, String)>) -> anyhow::Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("{} cannot be read", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            read(root, &path, files)?;
        } else {
            files.push((path.strip_prefix(root)?.to_owned(), fs::read_to_string(&path)?));
        }
    }
    Ok(())
}

/// Has Maven build the project in the folder.
fn package(folder: &Path) -> anyhow::Result<Result<(), Absent>> {
    let output = maven(folder)?;
    if output.status.success() {
        return Ok(Ok(()));
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("[ERROR] ")).collect();
    let is_absent = |line: &&&str| {
        let line = line.to_lowercase();
        line.contains("resolv") || line.contains("transfer")
    };
    match errors.iter().find(is_absent) {
        Some(why) => Ok(Err(Absent(format!("Maven cannot have what it needs: {why}")))),
        None => bail!("Maven cannot build {}: {}", folder.display(), errors.join("\n")),
    }
}

fn maven(folder: &Path) -> anyhow::Result<Output> {
    // A daemon of Kotlin's compiler would stay.
    let mut child = Command::new("mvn")
        .args(["-q", "-B", "-Dkotlin.compiler.daemon=false", "package"])
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(fs::File::create(folder.join("maven.log"))?)
        .stderr(Stdio::null())
        .spawn()
        .context("Maven could not be started")?;
    let began = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if began.elapsed() > PATIENCE {
            child.kill()?;
            child.wait()?;
            bail!("Maven did not end within {PATIENCE:?}");
        }
        thread::sleep(LOOK);
    };
    Ok(Output { status, stdout: fs::read(folder.join("maven.log"))?, stderr: Vec::new() })
}
