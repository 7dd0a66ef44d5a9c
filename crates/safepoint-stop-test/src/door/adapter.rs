//! A library, by a small program in its own language that starts and stops it as its documentation says.
//!
//! The test writes a line of JSON for each wish, `{"do":"start","text":…}`, `{"do":"stop","how":…}`, `{"do":"next","text":…}`, and closes
//! the adapter's input when nothing more comes. The adapter writes `{"at":"ready","stops":[…]}` first, and
//! `{"at":"told","says":"stopped"|"done"|"failed"|"nothing","running":[…]}` when its *caller* has control back; whatever else it writes is
//! for a reader. Its tools post their arguments to `$STOP_TEST_TOOLS/work` and `/deaf`, so that it holds no logic.

use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{FIRST, NEXT, Started, Told, lines::JsonLines, wrote};
use crate::{
    claims::Said,
    report::is_obeyed,
    stage::{StageError, TrialStage},
};

/// How long an adapter may take to be ready, and to answer the next message: some start a virtual machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// An adapter that was started.
pub(super) struct Adapter {
    lines: JsonLines,
    ways: Vec<String>,
    crash: Option<String>,
}

impl Adapter {
    pub(super) async fn start(line: &str, stage: &TrialStage) -> Result<Self, StageError> {
        let mut adapter = Self::open(line, stage).await?;
        adapter.lines.say(&json!({"do": "start", "text": FIRST})).await;
        Ok(adapter)
    }

    /// Starts the adapter, and nothing in it.
    pub(super) async fn open(line: &str, stage: &TrialStage) -> Result<Self, StageError> {
        let mut lines = JsonLines::start(line, stage)?;
        let ready = timeout(PATIENCE, ready(&mut lines)).await;
        let Ok(ready) = ready else { return Err(not_ready("said nothing for too long", &lines)) };
        let Some(ready) = ready else {
            let why = format!("ended ({})", lines.end().await);
            return Err(not_ready(&why, &lines));
        };
        let ways: Vec<String> = serde_json::from_value(ready["stops"].clone()).unwrap_or_default();
        if ways.is_empty() {
            return Err(not_ready("named no way to stop it", &lines));
        }
        if ways.iter().any(|way| way.contains(is_obeyed)) {
            return Err(not_ready("named a way to stop it that is no word", &lines));
        }
        Ok(Self { lines, ways, crash: None })
    }

    pub(super) fn ways(&self) -> Vec<String> {
        self.ways.clone()
    }

    /// What its caller is told next; none once it has ended.
    async fn heard(&mut self) -> Option<Told> {
        loop {
            let line = self.lines.hear().await?;
            if line["at"] == "told" {
                let named = serde_json::from_value(line["running"].clone()).unwrap_or_default();
                return Some(Told { named, ..Told::now(said(&line["says"])) });
            }
        }
    }
}

fn not_ready(why: &str, lines: &JsonLines) -> StageError {
    StageError::NotStarted(format!("the adapter {why} before it was ready{}", wrote(&lines.words())))
}

async fn ready(lines: &mut JsonLines) -> Option<Value> {
    loop {
        let line = lines.hear().await?;
        if line["at"] == "ready" {
            return Some(line);
        }
    }
}

fn said(word: &Value) -> Said {
    match word.as_str() {
        Some("stopped") => Said::Stopped,
        Some("done") => Said::Done,
        Some("failed") => Said::Failed,
        _ => Said::Nothing,
    }
}

impl Started for Adapter {
    fn stop<'a>(&'a mut self, way: &'a str) -> BoxFuture<'a, Result<(), StageError>> {
        Box::pin(async move {
            if !self.ways.iter().any(|named| named == way) {
                let all = self.ways.join(", ");
                return Err(StageError::NotExpressed(format!("its adapter names no way `{way}`, but {all}")));
            }
            self.lines.say(&json!({"do": "stop", "how": way})).await;
            Ok(())
        })
    }

    fn told(&mut self) -> BoxFuture<'_, Told> {
        Box::pin(async move {
            match self.heard().await {
                Some(told) => told,
                None => {
                    self.crash = Some(self.lines.end().await);
                    Told::now(Said::Nothing)
                }
            }
        })
    }

    fn next(&mut self) -> BoxFuture<'_, Result<bool, String>> {
        Box::pin(async move {
            self.lines.say(&json!({"do": "next", "text": NEXT})).await;
            let answered = timeout(PATIENCE, async {
                while let Some(told) = self.heard().await {
                    match told.says {
                        Said::Done => return true,
                        Said::Failed => return false,
                        // A late word of the turn before it.
                        Said::Stopped | Said::Nothing => {}
                    }
                }
                false
            });
            Ok(answered.await.unwrap_or(false))
        })
    }

    fn crash(&mut self) -> Option<String> {
        self.crash.clone()
    }

    fn words(&self) -> String {
        self.lines.words()
    }
}
