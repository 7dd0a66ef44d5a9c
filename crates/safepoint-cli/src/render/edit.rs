//! What is shown of a call that edits a file, and what each answer to its question comes to.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use safepoint::approval::{ApprovalKind, ApprovalRequest, Decision};
use safepoint_tools::{EditPreview, Root};
use serde_json::Value;

use super::{
    approval,
    diff::{self, DiffRow},
};
use crate::visible;

/// The tools whose calls are shown as diffs.
const TOOLS: [&str; 2] = ["edit_file", "write_file"];
/// Letters of a path that a question shows.
const PATH: usize = 400;
/// Bytes of what the model learns of an answer.
const SAID: usize = 4 << 10;
/// How long a question waits for its diff; after that it shows the arguments.
const PATIENCE: Duration = Duration::from_secs(3);
/// Rows of a diff where nothing can unfold it.
const PLAIN: usize = 400;

/// A call that edits a file, as a person sees it.
#[derive(Clone, Debug)]
pub(crate) struct EditView {
    preview: EditPreview,
    /// Each hunk.
    pub(crate) hunks: Vec<Vec<DiffRow>>,
}

/// Whether calls of this tool are shown as diffs.
pub(crate) fn is_edit(tool: &str) -> bool {
    TOOLS.contains(&tool)
}

/// What the call of a question would change below `root`, if it is a call that edits. It reads the file.
pub(crate) fn look(root: &Path, asked: &ApprovalRequest) -> Option<EditView> {
    if asked.question != ApprovalKind::BeforeCall || !is_edit(&asked.tool) {
        return None;
    }
    let preview = EditPreview::of(&Root::open(root).ok()?, &asked.tool, &asked.args)?;
    let hunks = preview.hunks().iter().map(|hunk| diff::rows(hunk)).collect();
    Some(EditView { preview, hunks })
}

/// The question as plain text: with the diff, if there is one.
pub(crate) fn put(asked: &ApprovalRequest, view: Option<&EditView>) -> String {
    view.map_or_else(|| approval::put(asked), |view| view.plain(asked))
}

impl EditView {
    /// The rows of all hunks.
    pub(crate) fn rows(&self) -> Vec<DiffRow> {
        self.hunks.concat()
    }

    /// The question above the diff. Where there is no diff, it shows the arguments and says why.
    pub(crate) fn head(&self, asked: &ApprovalRequest) -> String {
        let path = visible::one_line(self.preview.path(), PATH);
        let of =
            if asked.path.is_root() { String::new() } else { format!(" (of the agent at {})", asked.path) };
        if self.hunks.is_empty() {
            let why = match (self.preview.failure(), self.preview.replaced()) {
                (Some(why), _) => format!("As the file is now, this call will FAIL: {why}"),
                (None, Some(what)) if self.preview.bound_args().get("if_sha256").is_none() => {
                    format!("It replaces {what}. A yes holds for whatever the file is by then.")
                }
                (None, Some(what)) => format!("It replaces {what}, so there is no diff to show."),
                (None, None) if self.preview.is_new() => format!("{path} will be made, empty."),
                (None, None) => format!("It changes nothing: {path} holds exactly this already."),
            };
            return format!("{}\n  {}", approval::put(asked), why.replace('\n', "\n  "));
        }
        let (added, removed) = diff::counts(&self.rows());
        let what = if self.preview.is_new() { "make" } else { "change" };
        let hunks = match self.hunks.len() {
            1 => String::new(),
            count => format!(", in {count} hunks"),
        };
        let tool = visible::one_line(&asked.tool, PATH);
        format!("Allow {tool}{of} to {what} {path}?  +{added} -{removed}{hunks}")
    }

    /// The path in a few letters.
    pub(crate) fn path(&self) -> String {
        const SHORT: usize = 48;
        visible::one_line(self.preview.path(), SHORT)
    }

    /// The question in a few words, if there is a diff.
    pub(crate) fn short(&self) -> Option<String> {
        let (added, removed) = diff::counts(&self.rows());
        let path = self.path();
        let what = if self.preview.is_new() { "make" } else { "change" };
        (!self.hunks.is_empty()).then(|| format!("may it {what} {path}: +{added} -{removed}"))
    }

    /// The question and the diff as plain text.
    fn plain(&self, asked: &ApprovalRequest) -> String {
        format!("{}\n{}", self.head(asked), diff::plain(&self.rows(), PLAIN)).trim_end().to_owned()
    }

    /// The yes to what is shown: the call changes nothing if the file is another by then.
    pub(crate) fn approve(&self, changed: Option<String>) -> Decision {
        Decision::ApproveWith { args: self.preview.bound_args(), message: changed.unwrap_or_default() }
    }

    /// The answer that makes only these hunks; a no if there are none.
    pub(crate) fn approve_hunks(&self, accepted: &[usize], changed: Option<String>) -> Decision {
        let count = self.hunks.len();
        if accepted.len() == count {
            return self.approve(changed);
        }
        let Some(args) = self.preview.with_hunks(accepted) else {
            return Decision::Deny {
                message: format!(
                    "[denied by the user, who looked at each of the {count} hunks and accepted none]"
                ),
            };
        };
        let refused = self.preview.hunks().iter().enumerate().filter(|(index, _)| !accepted.contains(index));
        let refused: String = refused.map(|(_, hunk)| hunk.as_str()).collect();
        let before = changed.map(|changed| format!("{changed}\n")).unwrap_or_default();
        let message = format!(
            "{before}[the user accepted {} of the {count} hunks of this edit, and only those were made. Refused, and not made:\n{}]",
            accepted.len(),
            bounded(refused.trim_end())
        );
        Decision::ApproveWith { args, message }
    }
}

/// Whether this is a plain yes to what was shown: the arguments as they were asked about, bound to a file.
pub(crate) fn is_as_shown(decision: &Decision) -> bool {
    matches!(decision, Decision::ApproveWith { args, message }
        if message.is_empty() && *args != EditPreview::unbound(args))
}

/// The same question, with the arguments that a person gives.
pub(crate) fn with_args(asked: &ApprovalRequest, args: &Value) -> ApprovalRequest {
    let mut asked = asked.clone();
    asked.args = args.clone();
    asked
}

/// [`look`] for a program that waits for it: off the async threads, and within a bound.
///
/// # Cancel safety
/// Nothing is lost.
pub(crate) async fn looked(root: Option<PathBuf>, asked: &ApprovalRequest) -> Option<EditView> {
    let (root, asked) = (root?, asked.clone());
    let look = tokio::task::spawn_blocking(move || look(&root, &asked));
    tokio::time::timeout(PATIENCE, look).await.ok()?.ok()?
}

/// What the model learns of arguments that a person changed.
pub(crate) fn changed(args: &Value) -> String {
    format!(
        "[the user changed the arguments of this call before they allowed it. It ran with {}]",
        bounded(&EditPreview::unbound(args).to_string())
    )
}

/// The arguments of a call as people read them: without what binds them to a file.
pub(crate) fn readable(tool: &str, args: &Value) -> Value {
    if is_edit(tool) { EditPreview::unbound(args) } else { args.clone() }
}

fn bounded(text: &str) -> String {
    let mut end = text.len().min(SAID);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    if end == text.len() {
        text.to_owned()
    } else {
        format!("{}… ({} bytes in all)", &text[..end], text.len())
    }
}
