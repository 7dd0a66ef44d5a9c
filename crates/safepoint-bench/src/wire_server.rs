//! The testkit's model server, which speaks every wire, in a separate process, so that this process's CPU time is the
//! client's alone.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::SocketAddr,
    process::{Child, Command, Stdio},
};

use safepoint_testkit::{
    script::{Reply, Script, When},
    server::{KeptExchanges, ModelServer, ServerOptions, Strictness},
};
use serde_json::json;

/// The hidden argument that makes this program such a server; its rounds follow.
pub(crate) const WIRES: &str = "__wires";

/// Asks for a call in each round but the last.
pub(crate) struct WireServer {
    child: Child,
    pub(crate) url: String,
}

impl WireServer {
    pub(crate) fn start(rounds: usize) -> anyhow::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        let mut child = command.args([WIRES, &rounds.to_string()]).stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        if let Some(stdout) = child.stdout.as_mut() {
            BufReader::new(stdout).read_line(&mut line)?;
        }
        Ok(Self { url: line.trim().to_owned(), child })
    }
}

impl Drop for WireServer {
    fn drop(&mut self) {
        if self.child.kill().and_then(|()| self.child.wait().map(drop)).is_err() {
            // It has ended by itself.
        }
    }
}

/// The other side of [`WireServer::start`]: serves until it is killed.
pub(crate) async fn serve(rounds: usize) -> anyhow::Result<()> {
    let last = Reply {
        when: Some(When { user: None, results: Some(rounds - 1) }),
        ..Reply::text("That is all that I wanted to know, thank you.")
    };
    let script = Script { repeat: true, ..Script::of([last, Reply::call("noop", json!({"n": 1}))]) };
    let options = ServerOptions {
        strictness: Strictness::Lenient,
        recording: KeptExchanges::Off,
        ..ServerOptions::default()
    };
    let server = ModelServer::start_with(script, options, SocketAddr::from(([127, 0, 0, 1], 0))).await?;
    println!("{}", server.url());
    std::io::stdout().flush()?;
    std::future::pending::<()>().await;
    Ok(())
}
