//! Servers in processes of their own, so that this process's CPU time and memory are the client's alone.

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

use crate::silent;

/// The hidden argument that makes this program its own server.
pub(crate) const SERVE: &str = "__serve";

/// What it does. Exhaustive: what the measurements need.
#[derive(Clone, Copy)]
pub(crate) enum Serving {
    /// Asks for a call in each of this many rounds but the last.
    Rounds(usize),
    /// Begins to answer, and says nothing more.
    Silence,
}

pub(crate) struct Server {
    child: Child,
    pub(crate) url: String,
    /// Where a silent server tells how many wait; empty for another.
    pub(crate) control: String,
}

impl Server {
    pub(crate) fn start(serving: Serving) -> anyhow::Result<Self> {
        let what = match serving {
            Serving::Rounds(rounds) => rounds.to_string(),
            Serving::Silence => "silence".to_owned(),
        };
        let mut child = Command::new(std::env::current_exe()?)
            .args([SERVE, &what])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        if let Some(stdout) = child.stdout.as_mut() {
            BufReader::new(stdout).read_line(&mut line)?;
        }
        let (url, control) = line.trim().split_once(' ').unwrap_or((line.trim(), ""));
        Ok(Self { url: url.to_owned(), control: control.to_owned(), child })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.child.kill().and_then(|()| self.child.wait().map(drop)).is_err() {
            // It has ended by itself.
        }
    }
}

/// The other side of [`Server::start`]: serves until it is killed.
pub(crate) async fn serve(what: &str) -> anyhow::Result<()> {
    match what.parse() {
        Ok(rounds) => serve_rounds(rounds).await,
        Err(_not_a_number) => silent::serve().await,
    }
}

async fn serve_rounds(rounds: usize) -> anyhow::Result<()> {
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
