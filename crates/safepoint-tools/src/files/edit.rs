//! `edit_file`: replaces a piece of text that must be there, and be the only one unless all are meant.

use std::sync::Arc;

use safepoint::{
    stop::Failure,
    tool::{EffectClass, FnTool, OnStop, from_blocking_fn},
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    before::{Before, Content, Opaque},
    diff, write,
};
use crate::{Root, limits, root::refusal};

#[derive(Deserialize, JsonSchema)]
pub(super) struct EditArgs {
    /// The file, relative to the root directory.
    pub(super) path: String,
    /// The text to be replaced, exactly as it stands in the file.
    old: String,
    /// The text to put in its place.
    new: String,
    /// Whether every occurrence is replaced; otherwise `old` must occur exactly once.
    all: Option<bool>,
    /// The state of the file that a person saw. The model is not offered it.
    #[schemars(skip)]
    pub(super) if_sha256: Option<String>,
}

/// Edits files below `root`.
///
/// A call with the argument `if_sha256`, which the model is not offered, changes nothing if the file's content has another
/// SHA-256: a person approved the change of that content ([`EditPreview`](crate::EditPreview)). The call's progress is the
/// unified diff of what was changed.
#[must_use]
pub fn edit_file(root: Arc<Root>) -> FnTool {
    let about =
        "Replaces text in a file. `old` must be exactly what stands there, and unique unless `all` is true.";
    let place = root.place();
    from_blocking_fn("edit_file", about, move |cx, args: EditArgs| {
        let (before, after, count) = change(&root, &args)?;
        cx.progress(diff::report(&args.path, Some(&before), &after));
        Ok(format!("replaced {count} occurrence{} in {}", if count == 1 { "" } else { "s" }, args.path))
    })
    // Done twice it may change twice (`new` may hold `old`); it is short, so a stop lets it end.
    .with(|spec| spec.effect(EffectClass::Unsafe).on_stop(OnStop::Finish(None)).place(place))
}

/// Edits the file; the text before, the text after, and how often it was replaced.
fn change(root: &Root, args: &EditArgs) -> Result<(String, String, usize), Failure> {
    let _change = root.change();
    let before = Before::read(root, &args.path)?;
    before.check(&args.path, args.if_sha256.as_deref())?;
    let text = text_of(root, &args.path, before)?;
    let (after, count) = edit(&text, args)?;
    write::replace(root, &args.path, after.as_bytes())?;
    Ok((text, after, count))
}

/// The text of what is there, if it can be edited.
pub(super) fn text_of(root: &Root, path: &str, before: Before) -> Result<String, Failure> {
    match before.content {
        Content::Text(text) => Ok(text),
        // There is none, as opening it says.
        Content::Absent => {
            Err(root.open_file(path).err().unwrap_or_else(|| refusal(format!("{path:?} has just been made"))))
        }
        Content::Opaque(Opaque::TooLarge(_)) => {
            Err(refusal(format!("{path:?} is larger than {} bytes; use shell", limits::EDIT_BYTES)))
        }
        Content::Opaque(Opaque::Binary(_) | Opaque::Unread) => {
            Err(refusal(format!("{path:?} is not a text file")))
        }
        Content::Opaque(Opaque::NotUtf8(_, error)) => Err(refusal(format!("{path:?} is not UTF-8: {error}"))),
    }
}

pub(super) fn edit(text: &str, args: &EditArgs) -> Result<(String, usize), Failure> {
    let EditArgs { path, old, new, all, .. } = args;
    if old.is_empty() {
        return Err(refusal(
            "`old` is empty; to make a file or replace all of it, use write_file".to_owned(),
        ));
    }
    if old == new {
        return Err(refusal("`old` and `new` are the same: there is nothing to do".to_owned()));
    }
    match (text.matches(old.as_str()).count(), all.unwrap_or(false)) {
        (0, _) => Err(refusal(format!("`old` does not occur in {path:?}{}", near_miss(text, old)))),
        (count, false) if count > 1 => Err(refusal(format!(
            "`old` occurs {count} times in {path:?}; add lines around it so that it is unique, or set `all`"
        ))),
        (count, _) => Ok((text.replace(old.as_str(), new), count)),
    }
}

/// What most often is the matter.
fn near_miss(text: &str, old: &str) -> &'static str {
    let squeeze = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    if text.contains("\r\n") && !old.contains('\r') && text.replace("\r\n", "\n").contains(old) {
        "; the file's lines end with \\r\\n"
    } else if !squeeze(old).is_empty() && squeeze(text).contains(&squeeze(old)) {
        "; it does with other blanks or line ends, so copy it exactly from read_file"
    } else {
        "; read the file again and copy it exactly"
    }
}
