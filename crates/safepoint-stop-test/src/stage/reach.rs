//! How a target is brought to the moment: what its model answers, or what is called of it, and what must have begun then.

use std::time::Duration;

use futures_util::future::join_all;
use safepoint_testkit::{
    script::{Reply, ReplyFault},
    server::{Exchange, Gate},
    tool_server::ServedCall,
};
use serde_json::json;
use tokio::time::{Instant, sleep, timeout};

use crate::{door::CalledTools, scenario::StopMoment};

use super::{
    AFTERWARDS, Scene, TrialStage,
    asked::{self, AskedWork, BegunWork},
    error::{StageError, not_expressed, not_reached},
    processes,
};

/// How long a target may take to ask its model, or to begin what that asks for, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);
/// After this, what a target does one after the other is not expected to begin at once.
const ONE_BY_ONE: Duration = Duration::from_secs(2);
/// How often it is looked for what begins.
const LOOK: Duration = Duration::from_millis(10);
/// For how long an answer has been silent when it is called so.
const SILENCE: Duration = Duration::from_millis(500);
/// When a busy model wants to be asked again.
const BUSY: &str = "2";
/// What the model says a piece at a time.
const STORY: &str = "once upon a time there was a stop button that stopped what it was asked to stop. ";

impl TrialStage {
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
        // It asks no model.
        (self.gate, self.is_called) = (None, true);
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

    fn unasked(&self) -> StageError {
        not_reached(self.unseen().unwrap_or_default())
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
                    "{commands} of {} commands and {calls} of {} calls that were asked for began",
                    of.least, of_calls.least
                );
                return Err(not_reached(why));
            }
            sleep(LOOK).await;
        }
    }
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
