//! Messages to the session, with their files, and the stop of a turn.

use std::path::{Path, PathBuf};

use safepoint::{
    Grace, Reason, SafePoints, StopRequest,
    ids::{CallId, Path as RunPath},
    message::Part,
    session::Policy,
};
use tokio::task::spawn_blocking;

use super::{
    desk::{place, post},
    driver::Driver,
    later::Later,
};
use crate::{
    render::{
        chat::{
            queue::{Origin, PushKind},
            state::Tone,
            typing::TypingNews,
        },
        text::in_a_row,
    },
    session::attachments,
    signals::StopLevel,
};

/// A message whose files were read.
pub(crate) struct WithFiles {
    text: String,
    how: PushKind,
    parts: Vec<Part>,
}

impl Driver {
    pub(super) fn push(&mut self, text: String, how: PushKind) {
        let policy = if how == PushKind::Steer { Policy::steer() } else { Policy::Enqueue };
        if let Err(error) = self.host.push(text, policy, None, Origin::Here) {
            self.state.tell(Tone::Bad, &error.to_string());
            self.state.back(&error.into_item().unwrap_or_default());
        }
    }

    /// A message with its files: they are read first, so that what cannot be read is known before anything is sent.
    pub(super) fn read_files(&self, text: String, how: PushKind, files: Vec<PathBuf>) {
        let (root, later) = (self.desk.root.clone(), self.later.0.clone());
        let is_external = self.crew.is_external();
        spawn_blocking(move || {
            let read = match (read(&root, &files), is_external) {
                (Ok(parts), true) if !parts.is_empty() => {
                    Err("not sent: this agent takes text alone, and no images or documents".to_owned())
                }
                (read, _) => read,
            };
            let news = match read {
                Ok(parts) => Later::WithFiles(WithFiles { text, how, parts }),
                Err(why) => Later::Typing(TypingNews::Unsent { text, why }),
            };
            post(&later, news);
        });
    }

    pub(super) fn push_with(&mut self, message: WithFiles) {
        let WithFiles { text, how, parts } = message;
        self.crew.attached.add(text.clone(), parts);
        self.push(text, how);
    }

    pub(super) fn stop(&self, level: StopLevel) {
        // The run's events tell what it reached.
        drop(self.host.session.stop_turn(None, self.request(level)));
    }

    /// Stops one call of the running turn, or of a run below it; the rest continues.
    pub(super) fn stop_call(&mut self, run: &RunPath, call: &CallId, level: StopLevel) {
        let turn = self.host.session.current_turn();
        let asked = turn.and_then(|turn| turn.run.child(run)?.stop_call(call, self.request(level)));
        if asked.is_none() {
            self.state.tell(Tone::Aside, "it has ended already");
        }
    }

    fn request(&self, level: StopLevel) -> StopRequest {
        let request = match (level, Grace::try_from(self.times.grace)) {
            (StopLevel::AtSafePoint, Ok(grace)) => StopRequest::at_within(SafePoints::ANY, grace),
            _ => StopRequest::now(),
        };
        request.with_cleanup_cap(self.times.cleanup_cap).with_reason(Reason::user("at the terminal"))
    }
}

/// The files as parts; those that do not exist are text.
fn read(root: &Path, files: &[PathBuf]) -> Result<Vec<Part>, String> {
    let there = files.iter().map(|file| (file, place(root, file))).filter(|(_, place)| place.exists());
    there
        .map(|(file, place)| {
            let name = in_a_row(&file.to_string_lossy());
            attachments::part(&place).map_err(|why| format!("not sent: @{name}: {why}"))
        })
        .collect()
}
