//! The last scene: a process is killed with SIGKILL during a command, and another process resumes its session.

use std::{
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use safepoint::{
    Session,
    ids::SessionId,
    raw::lasting,
    session::{ChatPlanner, SessionStop},
    store::{OwnerProcess, Store},
};
use safepoint_stores::SqliteStore;
use safepoint_testkit::{script::Reply, server::ModelServer};
use serde_json::json;

use super::{builder, indented, scene, server, talking::first_run};
use crate::output::say;

const SESSION: &str = "demo";
/// How long anything here may take.
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(5);

pub(crate) async fn kill_and_resume() -> anyhow::Result<()> {
    scene(
        8,
        "kill -9, and resume",
        "Another process of this program pays and is killed with SIGKILL in its next command. This process resumes.",
    )?;
    let folder = folder()?;
    let (ledger, pid) = (folder.join("ledger"), folder.join("pid"));
    let server = server(vec![
        Reply::call("shell", json!({ "command": format!("echo paid >> {}", quoted(&ledger)) })),
        Reply::call("shell", json!({ "command": format!("echo $$ > {}; sleep 300", quoted(&pid)) })),
        Reply::text("The payment is made. The effects of the second command are unknown."),
        Reply::text("I am still here."),
    ])
    .await?;
    let mut child = begin(&server, &folder)?;
    let command = number_in(&pid).await?;
    say(format_args!("  process {} has paid, and is in its second command (pid {command})", child.id()))?;
    child.kill().context("it cannot be killed")?;
    let killed = Instant::now();
    child.wait().context("it does not end")?;
    gone(&command).await?;
    let after = lasting(killed.elapsed());
    say(format_args!("  kill -9 {}: nothing of its command is left after {after}", child.id()))?;
    go_on(&server, &folder).await?;
    let paid = std::fs::read_to_string(&ledger).context("the ledger cannot be read")?;
    let paid = paid.trim().replace('\n', ", ");
    say(format_args!("  the ledger says: {paid} (once: what was done is not done again)"))?;
    let store = folder.join("store.db").display().to_string();
    say(format_args!("  look back: safepoint trace {SESSION} --store {store} --html demo.html\n"))?;
    Ok(())
}

/// A directory of ours alone, which stays: its store can be looked at.
fn folder() -> anyhow::Result<PathBuf> {
    let folder = std::env::temp_dir().join(format!("safepoint-demo-{}", uuid::Uuid::now_v7().simple()));
    std::fs::DirBuilder::new()
        .mode(0o700)
        .create(&folder)
        .with_context(|| format!("{} cannot be made", folder.display()))?;
    Ok(folder)
}

fn begin(server: &ModelServer, folder: &Path) -> anyhow::Result<Child> {
    let config = folder.join("config.toml");
    std::fs::write(&config, "").context("the demo's folder cannot be written")?;
    let program = std::env::current_exe().context("this program cannot be found")?;
    Command::new(program)
        .args(["run", "Pay, and then do the rest.", "--session", SESSION])
        // This process resumes with a tool that is not confined: it is to be the same one.
        .args(["--approve", "auto", "--tools", "shell", "--sandbox", "off"])
        .args(["--model", "openai:scripted", "--base-url", &server.url()])
        .arg("--store")
        .arg(folder.join("store.db"))
        .arg("--config")
        .arg(config)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .context("safepoint cannot start itself again")
}

/// Takes the turn up in this process, shows its account, and talks on.
async fn go_on(server: &ModelServer, folder: &Path) -> anyhow::Result<()> {
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(folder.join("store.db"))?);
    let tools = safepoint_tools::toolbox(folder)?.select("shell")?;
    let chat = ChatPlanner::new(builder(server).tools(tools).build());
    let session: Session<String> =
        Session::builder(chat).open(store, SessionId::from(SESSION), OwnerProcess::here()).await?;
    say(format_args!("  process {} resumes the session", std::process::id()))?;
    anyhow::ensure!(session.resume().await, "there is nothing to resume");
    if let Some(run) = first_run(&session).await {
        let outcome = run.done().await;
        say(format_args!("  model: {}", outcome.answer().unwrap_or_default()))?;
        say(format_args!("\n{}\n", indented(&run.quiet().await.receipt().to_string())))?;
    }
    let next = session.push("And now?".to_owned())?;
    next.outcome().await;
    drop(session.stop(SessionStop::at_turn_end()));
    let exit = session.done().await;
    say(format_args!("  next message accepted: {}", exit.history().last_text().unwrap_or_default()))?;
    Ok(())
}

fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', "'\\''"))
}

/// Waits for the file that a command writes its process id into.
async fn number_in(file: &Path) -> anyhow::Result<String> {
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        match std::fs::read_to_string(file) {
            Ok(text) if text.ends_with('\n') => return Ok(text.trim().to_owned()),
            _ => tokio::time::sleep(LOOK).await,
        }
    }
    anyhow::bail!("the second command did not begin")
}

async fn gone(pid: &str) -> anyhow::Result<()> {
    let (process, began) = (Path::new("/proc").join(pid), Instant::now());
    while process.exists() {
        anyhow::ensure!(began.elapsed() < PATIENCE, "process {pid} of the command is still running");
        tokio::time::sleep(LOOK).await;
    }
    Ok(())
}
