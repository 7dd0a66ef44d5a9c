//! The stage of one trial: a model, tools, a folder, and whatever the target starts.
//!
//! **Invariants:** no trial sees what another one has left. Nothing whose command line or environment names the stage's folder is alive
//! once the stage is gone, also if it ignores every signal.

use std::{
    convert::Infallible,
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use futures_util::future::{join_all, select};
use safepoint_testkit::{
    script::{Reply, Script},
    server::{Exchange, Gate, ModelServer},
    tool_server::{ServedCall, ToolServer},
};
use serde_json::Value;
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use crate::{
    door::Setting,
    facts::{Next, Work, WorkEnd, WorkKind},
};

mod asked;
mod error;
mod home;
mod processes;
mod reach;
mod work;

pub use error::StageError;
pub(crate) use processes::{end_all, end_below};

use home::Home;
use processes::WatchedProcess;
use work::{of_model, of_tool};

/// The pause between two pieces of an answer that drips.
const DRIP: Duration = Duration::from_millis(100);
/// Where a target works, and where it has what it needs for a moment.
const WORK: &str = "work";
const TEMPORARY: &str = "tmp";
/// The key of no provider.
const KEY: &str = "sk-stop-test";
/// What the model answers when it is asked again.
pub(crate) const AFTERWARDS: &str = "and so it went";

/// A model, tools, a folder, and what is at work there.
pub(crate) struct TrialStage {
    server: ModelServer,
    tools: ToolServer,
    /// The answer to the first request of the conversation, until the scene has it.
    gate: Option<Gate>,
    folder: TempDir,
    home: Home,
    /// How many requests had come when the moment was there.
    before: usize,
    /// Whether the test calls its tools, and it asks no model.
    is_called: bool,
    /// What ran before the stop, by a word that the next request must have.
    ran: Option<&'static str>,
    processes: Vec<WatchedProcess>,
}

/// The moment that was reached. The model answers as long as this is played.
pub(crate) struct Scene {
    gate: Option<Gate>,
    drips: bool,
    /// How many pieces were sent.
    pub(crate) pieces: usize,
}

impl TrialStage {
    /// Builds a stage on which the first answer of a conversation is driven step by step. A request without tools is none of the
    /// conversation, but of a title or such, unless the target has no tools.
    ///
    /// # Errors
    /// Why this machine has no place for it.
    pub(crate) async fn build(setting: &Setting) -> Result<Self, StageError> {
        let unbuilt = |error: io::Error| StageError::Unbuilt(error.to_string());
        let script = Script { repeat: true, ..Script::of([Reply::text(AFTERWARDS)]) };
        let server = ModelServer::start(script).await.map_err(unbuilt)?;
        let tools = ToolServer::start().await.map_err(unbuilt)?;
        let folder = setting.folder().map_err(unbuilt)?;
        fs::write(folder.path().join(asked::ON), "").map_err(unbuilt)?;
        for part in [WORK, TEMPORARY] {
            fs::create_dir(folder.path().join(part)).map_err(unbuilt)?;
        }
        let gate =
            Some(if setting.is_toolless { server.gate() } else { server.gate_for(is_of_a_conversation) });
        let own = own_variables(&server, &tools, folder.path());
        let home = Home::build(&folder.path().join("home"), setting, own).map_err(unbuilt)?;
        Ok(Self {
            server,
            tools,
            gate,
            folder,
            home,
            before: 0,
            is_called: false,
            ran: None,
            processes: Vec::new(),
        })
    }

    fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A name that no other trial has.
    pub(crate) fn name(&self) -> String {
        self.folder().file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Where the target works: an empty folder beside its home.
    pub(crate) fn work_folder(&self) -> PathBuf {
        self.folder().join(WORK)
    }

    /// The variables by which a target finds its model and its tools, and what its setting adds.
    pub(crate) fn variables(&self) -> &[(String, String)] {
        &self.home.variables
    }

    /// What is asked of the model from here on comes after the moment.
    pub(crate) fn is_reached(&mut self) {
        self.before = self.requests();
    }

    /// Whether its tools are called by the test.
    pub(crate) fn is_called(&self) -> bool {
        self.is_called
    }

    /// Why no request of the conversation was seen, if none was.
    pub(crate) fn unseen(&self) -> Option<String> {
        let _waits = self.gate.as_ref()?;
        Some(match self.requests() {
            0 => "it asked its model nothing".to_owned(),
            asked => format!(
                "none of its requests, {asked} in all, offers its model a tool; if it has none, say `--no-tools`"
            ),
        })
    }

    /// Watches what has begun since it was looked before.
    fn look(&mut self) {
        let seen = processes::of(self.folder());
        let new = seen.into_iter().filter(|seen| !self.processes.iter().any(|known| known.is(seen)));
        let new: Vec<WatchedProcess> = new.map(WatchedProcess::of).collect();
        self.processes.extend(new);
    }

    /// What was never asked of its model is answered like any other message from here on, and no tool waits any more.
    pub(crate) fn let_go(&mut self) {
        if self.is_called {
            self.tools.release(usize::MAX);
        }
        if let Some(mut gate) = self.gate.take().filter(|_| self.requests() == self.before) {
            tokio::spawn(async move {
                gate.request().await;
                gate.reply(&Reply::text(AFTERWARDS));
                gate
            });
        }
    }

    /// Waits until all work has ended that was under way at the stop, and all that has begun since.
    ///
    /// # Cancel safety
    /// Nothing is lost: what has ended is known.
    pub(crate) async fn quiet(&mut self) {
        self.look();
        let ends = |exchange: Exchange| async move {
            // Either leads to the same look at what became of it.
            select(Box::pin(exchange.peer_closed()), Box::pin(exchange.completed())).await;
        };
        let ended = join_all(self.server.requests().into_iter().map(ends));
        let calls = self.tools.calls();
        let called = join_all(calls.iter().map(ServedCall::ended));
        let gone = join_all(self.processes.iter_mut().map(WatchedProcess::gone));
        tokio::join!(ended, called, gone);
    }

    /// All work that was under way at the stop or began after it, as it is now.
    pub(crate) async fn work(&mut self, stop: Instant) -> Vec<Work> {
        self.look();
        let mut work: Vec<Work> =
            self.server.requests().iter().filter_map(|exchange| of_model(exchange, stop)).collect();
        work.extend(self.tools.calls().iter().filter_map(|call| of_tool(call, stop)));
        for process in &mut self.processes {
            let since = |at: Instant| at.saturating_duration_since(stop);
            let end = process.ended().await.map_or(WorkEnd::Never, |at| WorkEnd::Cut(since(at)));
            let words = vec![process.pid().to_string()];
            work.push(Work { kind: WorkKind::Process, name: process.name().to_owned(), words, end });
        }
        work
    }

    /// How many more requests the model got after the stop.
    pub(crate) fn asked_again(&self) -> usize {
        self.requests() - self.before
    }

    /// What became of a message after the stop, which was answered or was not. `asked` were the requests before it.
    pub(crate) fn next(&self, asked: usize, is_answered: bool) -> Next {
        if self.is_called {
            return if is_answered { Next::Accepted } else { Next::Silent };
        }
        let later = self.server.requests().into_iter().skip(asked);
        let mut later = later.filter(|exchange| has_text(&exchange.body)).peekable();
        let Some(last) = later.peek().cloned() else { return Next::Silent };
        for exchange in later {
            if let Some(refusal) = exchange.wire.judge(&exchange.body) {
                let words = refusal["error"]["message"].as_str().map(ToOwned::to_owned);
                return Next::Refused(words.unwrap_or_else(|| refusal.to_string()));
            }
        }
        if !is_answered {
            return Next::Silent;
        }
        match self.ran {
            Some(word) if !asked::history(&last.body).contains(word) => {
                Next::CallLost("the model does not learn of the call that ran".to_owned())
            }
            _ => Next::Accepted,
        }
    }

    pub(crate) fn requests(&self) -> usize {
        self.server.requests().len()
    }
}

impl Drop for TrialStage {
    fn drop(&mut self) {
        // Without this file each command ends by itself; what does not is killed, and it is looked again for what that has started.
        if fs::remove_file(self.folder().join(asked::ON)).is_err() {
            // The target has removed it, or the whole folder.
        }
        if !processes::end_all(self.folder()) {
            // What does not die is tried again when the run ends, and named then.
        }
    }
}

impl Scene {
    /// Has the model say what it still says. Never ends.
    pub(crate) async fn play(&mut self) -> Infallible {
        while let Some(gate) = self.gate.as_mut().filter(|_| self.drips)
            && gate.send_next()
        {
            self.pieces += 1;
            sleep(DRIP).await;
        }
        std::future::pending().await
    }
}

/// The variables by which a target finds its model and its tools, and a home in which nothing of others is.
fn own_variables(server: &ModelServer, tools: &ToolServer, folder: &Path) -> Vec<(String, String)> {
    let (versioned, bare) = (server.url(), format!("http://{}", server.address()));
    let key = || KEY.to_owned();
    let own = [
        ("HOME", folder.join("home").display().to_string()),
        ("TMPDIR", folder.join(TEMPORARY).display().to_string()),
        ("OPENAI_BASE_URL", versioned),
        ("OPENAI_API_KEY", key()),
        ("ANTHROPIC_BASE_URL", bare.clone()),
        ("ANTHROPIC_API_KEY", key()),
        ("GOOGLE_GEMINI_BASE_URL", bare),
        ("GEMINI_API_KEY", key()),
        ("STOP_TEST_TOOLS", tools.url()),
        ("NO_COLOR", "1".to_owned()),
        ("PATH", std::env::var("PATH").unwrap_or_default()),
    ];
    own.map(|(name, value)| (name.to_owned(), value)).to_vec()
}

/// Whether a request is of the conversation itself.
fn is_of_a_conversation(body: &Value) -> bool {
    !asked::declared(body).is_empty()
}

/// Whether a request holds what was asked after the stop.
fn has_text(body: &Value) -> bool {
    body.to_string().contains(crate::door::NEXT)
}
