//! What a question shows of an edit, and the pager, which has the terminal for a while.

use std::{process::Stdio, time::Instant};

use safepoint::approval::ApprovalRequest;
use tokio::{process::Command, task::JoinHandle};

use super::{desk::post, driver::Driver, later::Later, lent::Lent};
use crate::{
    output,
    render::{
        chat::state::Tone,
        edit::{self, EditView},
    },
};

impl Driver {
    /// Looks at what a call would change. The question can be answered once that is shown.
    pub(crate) fn preview(&self, asked: ApprovalRequest) {
        let (root, later) = (self.crew.edit_root(), self.later.0.clone());
        let _task: JoinHandle<()> = tokio::spawn(async move {
            let view = edit::looked(root, &asked).await;
            post(&later, Later::Previewed(Box::new(asked), view));
        });
    }

    /// What the call of a question would change is known.
    pub(crate) fn previewed(&mut self, asked: &ApprovalRequest, view: Option<EditView>) {
        self.state.edits.rows = self.surface.rows();
        self.state.previewed(asked, view, Instant::now());
    }

    /// Shows a text in the pager.
    pub(crate) fn page(&mut self, text: String) {
        if self.desk.lent.is_lent() {
            return;
        }
        let given = self.lend_terminal();
        let (later, lent) = (self.later.0.clone(), self.desk.lent.clone());
        let _task: JoinHandle<()> = tokio::spawn(async move {
            let paged = match given {
                Ok(()) => page(text, &lent).await,
                Err(error) => Err(format!("the terminal cannot be given away: {error}")),
            };
            post(&later, Later::Paged(paged.err()));
        });
    }

    /// The pager was left.
    pub(crate) fn paged(&mut self, failure: Option<String>) {
        if let Some(failure) = failure {
            self.state.tell(Tone::Bad, &failure);
        }
        self.take_back_terminal();
    }
}

/// Shows a text in the pager until it is left. A pager such as `cat` gives the terminal all that it gets, so it gets nothing that
/// a terminal obeys.
async fn page(text: String, lent: &Lent) -> Result<(), String> {
    let named = std::env::var("PAGER").ok().filter(|pager| !pager.trim().is_empty());
    let pager = named.unwrap_or_else(|| "less".to_owned());
    let fail = |why: String| {
        format!("the pager `{pager}` did not show it: {why}; set PAGER to one that is installed")
    };
    let mut program = Command::new("/bin/sh");
    program.args(["-c", &pager]).stdin(Stdio::piped());
    let status = lent
        .run(&mut program, Some(format!("{}\n", output::plain(&text))))
        .await
        .map_err(|error| fail(error.to_string()))?;
    match status.code() {
        Some(126 | 127) => Err(fail("it is not found".to_owned())),
        _ => Ok(()),
    }
}
