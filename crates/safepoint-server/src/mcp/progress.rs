//! How far a call is, for a client that asked to know: what the agent says, summed up at a bounded rate, and its calls.
//!
//! **Invariants**: a client that does not read delays no call and costs bounded memory; nothing is said of a call after its answer.

use std::time::Duration;

use rmcp::{
    RoleServer,
    model::{ProgressNotificationParam, ProgressToken},
    service::Peer,
};
use tokio::{sync::mpsc, time::Instant};

use crate::follow::ShownEvent;

/// How many notices may wait for the client.
const AHEAD: usize = 64;
/// How often what the agent says is shown.
const RATE: Duration = Duration::from_millis(250);
/// The bytes of it that one notice has.
const MOST_TEXT: usize = 4_096;

/// What is shown of one call.
pub(super) struct Progress {
    /// None: it is not shown.
    says: Option<mpsc::Sender<String>>,
    text: String,
    shown: Option<Instant>,
}

impl Progress {
    /// With the end at which [`tell`] reads.
    pub(super) fn new() -> (Self, mpsc::Receiver<String>) {
        let (says, said) = mpsc::channel(AHEAD);
        (Self { says: Some(says), text: String::new(), shown: None }, said)
    }

    /// Nothing more is shown.
    pub(super) fn end(&mut self) {
        self.says = None;
    }

    pub(super) fn show(&mut self, event: &ShownEvent) {
        if !event.is_root() {
            return;
        }
        let data = &event.data;
        let name = || data["name"].as_str().unwrap_or_default();
        match event.kind.as_str() {
            "text_delta" => {
                self.text.push_str(data["text"].as_str().unwrap_or_default());
                if self.shown.is_none_or(|shown| shown.elapsed() >= RATE) {
                    self.flush();
                }
            }
            "model_ended" => self.flush(),
            "call_started" => {
                self.flush();
                self.say(name().to_owned());
            }
            "call_ended" => {
                let status = data["status"].as_str().unwrap_or_default();
                self.say(format!("{}: {status}", name()));
            }
            _ => {}
        }
    }

    fn flush(&mut self) {
        if self.text.is_empty() {
            return;
        }
        let mut text = std::mem::take(&mut self.text);
        if let Some(over) = text.len().checked_sub(MOST_TEXT) {
            let at = (over..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or_default();
            text.drain(..at);
        }
        self.shown = Some(Instant::now());
        self.say(text);
    }

    fn say(&self, notice: String) {
        if self.says.as_ref().is_some_and(|says| says.try_send(notice).is_err()) {
            // The client reads slower than this is made: it misses a notice.
        }
    }
}

/// Tells the client, until the call says no more.
///
/// # Cancel safety
/// What was not told is lost.
pub(super) async fn tell(
    client: Option<(Peer<RoleServer>, ProgressToken)>,
    mut said: mpsc::Receiver<String>,
) {
    let Some((peer, token)) = client else { return };
    let mut count = 0;
    while let Some(notice) = said.recv().await {
        count += 1;
        let mut progress = ProgressNotificationParam::new(token.clone(), f64::from(count));
        progress.message = Some(notice);
        if peer.notify_progress(progress).await.is_err() {
            // It is gone, and the call learns that by itself.
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn shown(kind: &str, data: Value) -> ShownEvent {
        ShownEvent { position: None, kind: kind.to_owned(), data }
    }

    /// S13.18: text is summed up, and not more often than the rate; a call is shown at once, behind what was said before it.
    #[tokio::test(start_paused = true)]
    async fn text_is_summed_up_and_a_call_is_shown_at_once() {
        let (mut progress, mut said) = Progress::new();
        for text in ["a", "b", "c"] {
            progress.show(&shown("text_delta", json!({"text": text})));
        }
        tokio::time::advance(RATE).await;
        progress.show(&shown("text_delta", json!({"text": "d"})));
        progress.show(&shown("text_delta", json!({"text": "e"})));
        progress.show(&shown("text_delta", json!({"text": "of a child", "path": ["call_1"]})));
        progress.show(&shown("call_started", json!({"name": "shell"})));
        progress.show(&shown("call_ended", json!({"name": "shell", "status": "killed"})));
        progress.end();
        progress.show(&shown("call_started", json!({"name": "late"})));
        let mut all = Vec::new();
        while let Some(notice) = said.recv().await {
            all.push(notice);
        }
        assert_eq!(all, ["a", "bcd", "e", "shell", "shell: killed"]);
    }

    #[test]
    fn a_client_that_does_not_read_costs_bounded_memory() {
        let (mut progress, said) = Progress::new();
        for _ in 0..AHEAD * 4 {
            progress.show(&shown("text_delta", json!({"text": "ü".repeat(MOST_TEXT)})));
            progress.show(&shown("model_ended", json!({})));
        }
        assert_eq!((said.len(), progress.text.len()), (AHEAD, 0));
    }
}
