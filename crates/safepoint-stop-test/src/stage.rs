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
    script::{Reply, ReplyFault, Script},
    server::{Exchange, Gate, ModelServer},
    tool_server::{ServedCall, ToolServer},
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::{Instant, sleep, timeout};

use crate::{
    door::{CalledTools, Setting},
    facts::{Next, Work, WorkEnd, WorkKind},
    scenario::StopMoment,
};

mod asked;
mod error;
mod home;
mod processes;
mod work;

pub use error::StageError;
pub(crate) use {asked::AskedWork, processes::end_all};

use asked::BegunWork;
use error::{not_expressed, not_reached};
use home::Home;
use processes::WatchedProcess;
use work::{of_model, of_tool};

/// How long a target may take to ask its model, or to begin what that asks for, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);
/// After this, what a target does one after the other is not expected to begin at once.
const ONE_BY_ONE: Duration = Duration::from_secs(2);
/// How often it is looked for what begins.
const LOOK: Duration = Duration::from_millis(10);
/// The pause between two pieces of an answer that drips.
const DRIP: Duration = Duration::from_millis(100);
/// For how long an answer has been silent when it is called so.
const SILENCE: Duration = Duration::from_millis(500);
/// When a busy model wants to be asked again.
const BUSY: &str = "2";
/// The key of no provider.
const KEY: &str = "sk-stop-test";
/// What the model says a piece at a time.
const STORY: &str = "once upon a time there was a stop button that stopped what it was asked to stop. ";
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
        fs::create_dir(folder.path().join("work")).map_err(unbuilt)?;
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
        self.folder().join("work")
    }

    /// The variables by which a target finds its model and its tools, and what its setting adds.
    pub(crate) fn variables(&self) -> &[(String, String)] {
        &self.home.variables
    }

    /// Makes the calls of a server that asks no model which bring it to the moment.
    ///
    /// # Errors
    /// Which tool it does not offer.
    pub(crate) async fn call(
        &mut self,
        moment: StopMoment,
        server: &mut dyn CalledTools,
    ) -> Result<AskedWork, StageError> {
        let work =
            |moment| AskedWork::of_server(moment, server.offered(), (self.folder(), &self.tools.url()));
        let (asked, later) = (work(moment).map_err(not_expressed)?, work(StopMoment::AfterEnd));
        let later = later.ok().and_then(|later| later.reply.calls.into_iter().next());
        self.gate = None;
        server.call(&asked.reply.calls, later).await;
        Ok(asked)
    }

    /// Brings the target to the moment; one that was called is asked nothing more.
    ///
    /// # Errors
    /// What the target did not do.
    pub(crate) async fn reach(
        &mut self,
        moment: StopMoment,
        called: Option<AskedWork>,
    ) -> Result<Scene, StageError> {
        self.is_called = called.is_some();
        let still = Scene { gate: None, drips: false, pieces: 0 };
        if moment == StopMoment::AtOnce {
            self.is_reached();
            // What it asks nevertheless, its model leaves without an answer.
            return Ok(still);
        }
        if let Some(asked) = called {
            self.begun(&asked).await?;
            self.is_reached();
            return Ok(still);
        }
        let waits = self.gate.as_mut().expect("a stage is brought to one moment").request();
        let Ok(request) = timeout(PATIENCE, waits).await else { return Err(self.unasked()) };
        let mut gate = self.gate.take().expect("it was there");
        self.begin(moment, &mut gate, &request).await?;
        self.is_reached();
        let drips = moment == StopMoment::StreamDrips;
        Ok(Scene { gate: Some(gate), drips, pieces: 0 })
    }

    /// What is asked of the model from here on comes after the moment.
    pub(crate) fn is_reached(&mut self) {
        self.before = self.requests();
    }

    async fn begin(
        &mut self,
        moment: StopMoment,
        gate: &mut Gate,
        request: &Exchange,
    ) -> Result<(), StageError> {
        match moment {
            StopMoment::AtOnce | StopMoment::HeadersAwaited => {}
            StopMoment::StreamSilent | StopMoment::StreamDrips => {
                begins(gate, request, &Reply::text(STORY.repeat(64)).paced(8, Duration::ZERO)).await?;
            }
            StopMoment::InArguments => {
                let tool = asked::declared(&request.body).into_iter().next();
                let name = tool.and_then(|tool| Some(tool["name"].as_str()?.to_owned()));
                let name = name.unwrap_or_else(|| "write".to_owned());
                begins(gate, request, &Reply::call(name, json!({ "content": STORY.repeat(64) }))).await?;
            }
            StopMoment::Tool
            | StopMoment::ToolDeaf
            | StopMoment::Command
            | StopMoment::CommandApart
            | StopMoment::OneOfThree => {
                let asked = AskedWork::of(moment, &request.body, self.folder()).map_err(not_expressed)?;
                gate.reply(&asked.reply);
                self.ran = Some(asked.word);
                self.begun(&asked).await?;
            }
            StopMoment::Question => {
                let asked = AskedWork::of(StopMoment::Command, &request.body, self.folder())
                    .map_err(not_expressed)?;
                gate.reply(&asked.reply);
            }
            StopMoment::Retry => {
                let headers = vec![("retry-after".to_owned(), BUSY.to_owned())];
                let fault = ReplyFault::Status { status: 429, body: String::new(), headers };
                gate.reply(&Reply::default().fault(fault));
                answered(request).await?;
            }
            StopMoment::AfterEnd => {
                // With a call, if it has something to call: then the next message has a longer history.
                let asked = AskedWork::of(moment, &request.body, self.folder());
                let text = || Reply::text(AFTERWARDS);
                gate.reply(&asked.as_ref().map_or_else(|_| text(), |asked| asked.reply.clone()));
                self.tools.release(asked.as_ref().map_or(0, |asked| asked.released));
                self.ran = asked.ok().map(|asked| asked.word);
                answered(request).await?;
            }
        }
        Ok(())
    }

    /// Whether its tools are called by the test.
    pub(crate) fn is_called(&self) -> bool {
        self.is_called
    }

    fn unasked(&self) -> StageError {
        not_reached(self.unseen().unwrap_or_default())
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

    /// Waits until all has begun that was asked for.
    async fn begun(&mut self, asked: &AskedWork) -> Result<(), StageError> {
        let began = Instant::now();
        self.tools.release(asked.released);
        loop {
            let processes = processes::of(self.folder());
            let seen = [(processes.len(), asked.commands), (self.tools.calls().len(), asked.calls)];
            let are =
                |enough: fn(&BegunWork) -> usize| seen.iter().all(|(begun, wanted)| *begun >= enough(wanted));
            let is_late = began.elapsed() > ONE_BY_ONE;
            if are(|wanted| wanted.most) || is_late && are(|wanted| wanted.least) {
                self.look();
                join_all(self.tools.calls().iter().take(asked.released).map(ServedCall::ended)).await;
                return Ok(());
            }
            if began.elapsed() > PATIENCE {
                let [(commands, of), (calls, of_calls)] = seen;
                let why = format!(
                    "{commands} of {} commands and {calls} of {} calls of its model began",
                    of.least, of_calls.least
                );
                return Err(not_reached(why));
            }
            sleep(LOOK).await;
        }
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
        processes::end_all(self.folder());
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

/// The first pieces of an answer, and a silence: what came has been read then.
async fn begins(gate: &mut Gate, request: &Exchange, reply: &Reply) -> Result<(), StageError> {
    if !request.is_streamed() {
        return Err(not_expressed("it asks its model for a whole answer, and not for a stream"));
    }
    gate.headers();
    gate.script(reply);
    for _ in 0..3 {
        gate.send_next();
    }
    sleep(SILENCE).await;
    Ok(())
}

/// Waits until an answer was written whole: a target may close before that, and stay.
async fn answered(request: &Exchange) -> Result<(), StageError> {
    let written = timeout(PATIENCE, request.completed()).await;
    written.map(drop).map_err(|_elapsed| not_reached("it did not read the answer of its model"))
}

/// Whether a request is of the conversation itself.
fn is_of_a_conversation(body: &Value) -> bool {
    !asked::declared(body).is_empty()
}

/// Whether a request holds what was asked after the stop.
fn has_text(body: &Value) -> bool {
    body.to_string().contains(crate::door::NEXT)
}
