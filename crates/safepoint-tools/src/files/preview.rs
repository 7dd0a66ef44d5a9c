//! What a call of `edit_file` or `write_file` would change, before it does: what a person is asked about.

use serde_json::Value;

use super::{
    before::{Before, Content},
    diff::LineDiff,
    edit::{self, EditArgs},
    write::WriteArgs,
};
use crate::Root;

/// The argument that binds a call to what a person saw; the model is not offered it.
const SHOWN: &str = "if_sha256";

/// What a call of [`edit_file`](crate::edit_file) or [`write_file`](crate::write_file) would change, as the files are now.
///
/// A person who is asked about such a call sees this, and answers with [`bound_args`](Self::bound_args): the call then changes
/// nothing if the file is another by the time it runs (S8.21).
///
/// ```
/// use safepoint_tools::{EditPreview, Root};
/// # let folder = tempfile::tempdir()?;
/// # let root = Root::open(folder.path())?;
/// # std::fs::write(folder.path().join("menu.txt"), "soup\nfish\n")?;
/// let args = serde_json::json!({"path": "menu.txt", "old": "fish", "new": "rice"});
/// let preview = EditPreview::of(&root, "edit_file", &args).expect("it is a call that edits");
/// assert_eq!(preview.hunks(), ["@@ -1,2 +1,2 @@\n soup\n-fish\n+rice\n"]);
/// assert!(preview.bound_args()["if_sha256"].is_string());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct EditPreview {
    path: String,
    args: Value,
    is_edit: bool,
    state: Option<String>,
    change: Change,
    hunks: Vec<String>,
}

/// Exhaustive: text becomes other text; something that has no lines becomes text; or the call would fail.
#[derive(Clone, Debug)]
enum Change {
    Text { before: Option<String>, after: String },
    Opaque(String),
    Fails(String),
}

impl EditPreview {
    /// What a call of this tool with these arguments would change; none of another tool, or of arguments that do not fit.
    /// It reads the file, so it may block.
    #[must_use]
    pub fn of(root: &Root, tool: &str, args: &Value) -> Option<Self> {
        let is_edit = tool == "edit_file";
        let (path, state, change) = match tool {
            "edit_file" => edited(root, serde_json::from_value(args.clone()).ok()?),
            "write_file" => written(root, serde_json::from_value(args.clone()).ok()?),
            _ => return None,
        };
        let hunks = match &change {
            Change::Text { before, after } => {
                LineDiff::of(before.as_deref().unwrap_or_default(), after).hunks()
            }
            Change::Opaque(_) | Change::Fails(_) => Vec::new(),
        };
        Some(Self { path, args: args.clone(), is_edit, state, change, hunks })
    }

    /// The path, as the call names it.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Whether the file is made: there is none.
    #[must_use]
    pub fn is_new(&self) -> bool {
        matches!(self.change, Change::Text { before: None, .. })
    }

    /// Why the call would fail, if it would.
    #[must_use]
    pub fn failure(&self) -> Option<&str> {
        match &self.change {
            Change::Fails(why) => Some(why),
            Change::Text { .. } | Change::Opaque(_) => None,
        }
    }

    /// What the file is that would be replaced, if it has no lines to compare: binary, not UTF-8, or too large.
    #[must_use]
    pub fn replaced(&self) -> Option<&str> {
        match &self.change {
            Change::Opaque(what) => Some(what),
            Change::Text { .. } | Change::Fails(_) => None,
        }
    }

    /// The hunks of the unified diff, each from its `@@` on. Empty if nothing would change, or none can be shown.
    #[must_use]
    pub fn hunks(&self) -> &[String] {
        &self.hunks
    }

    /// The arguments, bound to the file as it was seen here: if it is another when the call runs, the call fails and changes
    /// nothing. A file that is too large to be compared is not bound.
    #[must_use]
    pub fn bound_args(&self) -> Value {
        self.bound(self.args.clone())
    }

    /// The arguments of a call that makes only these hunks, counted from 0, bound in the same way. None if there are no such
    /// hunks.
    #[must_use]
    pub fn with_hunks(&self, accepted: &[usize]) -> Option<Value> {
        let Change::Text { before, after } = &self.change else { return None };
        let before = before.as_deref().unwrap_or_default();
        let (text, old, new) = LineDiff::of(before, after).with(accepted)?;
        let mut args = self.args.clone();
        if !self.is_edit {
            args["content"] = text.into();
            return Some(self.bound(args));
        }
        let piece = &before[old.clone()];
        let is_unique = !piece.is_empty()
            && before.find(piece) == Some(old.start)
            && before.rfind(piece) == Some(old.start);
        let (old, new) = if is_unique { (&before[old], &text[new]) } else { (before, text.as_str()) };
        (args["old"], args["new"]) = (old.into(), new.into());
        if let Some(args) = args.as_object_mut() {
            args.remove("all");
        }
        Some(self.bound(args))
    }

    fn bound(&self, mut args: Value) -> Value {
        if let (Some(state), Some(args)) = (&self.state, args.as_object_mut()) {
            args.insert(SHOWN.to_owned(), state.clone().into());
        }
        args
    }

    /// The arguments without what binds them to a file: what a person reads.
    #[must_use]
    pub fn unbound(args: &Value) -> Value {
        let mut args = args.clone();
        if let Some(args) = args.as_object_mut() {
            args.remove(SHOWN);
        }
        args
    }
}

fn edited(root: &Root, asked: EditArgs) -> (String, Option<String>, Change) {
    let mut state = None;
    let made = Before::read(root, &asked.path).and_then(|before| {
        state.clone_from(&before.state);
        before.check(&asked.path, asked.if_sha256.as_deref())?;
        let text = edit::text_of(root, &asked.path, before)?;
        let (after, _) = edit::edit(&text, &asked)?;
        Ok(Change::Text { before: Some(text), after })
    });
    let change = made.unwrap_or_else(|failure| Change::Fails(failure.to_string()));
    (asked.path, state, change)
}

fn written(root: &Root, asked: WriteArgs) -> (String, Option<String>, Change) {
    let mut state = None;
    let made = Before::read(root, &asked.path).and_then(|before| {
        state.clone_from(&before.state);
        before.check(&asked.path, asked.if_sha256.as_deref())?;
        Ok(match before.content {
            Content::Absent => Change::Text { before: None, after: asked.content },
            Content::Text(text) => Change::Text { before: Some(text), after: asked.content },
            Content::Opaque(opaque) => Change::Opaque(opaque.what()),
        })
    });
    let change = made.unwrap_or_else(|failure| Change::Fails(failure.to_string()));
    (asked.path, state, change)
}
