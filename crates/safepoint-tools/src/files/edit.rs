//! `edit_file`: replaces a piece of text that must be there, and be the only one unless all are meant.

use std::{io::Read, sync::Arc};

use safepoint::{
    stop::Failure,
    tool::{EffectClass, FnTool, OnStop, from_blocking_fn},
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{is_binary, write};
use crate::{
    Root, limits,
    root::{fault, refusal},
};

#[derive(Deserialize, JsonSchema)]
struct EditArgs {
    /// The file, relative to the root directory.
    path: String,
    /// The text to be replaced, exactly as it stands in the file.
    old: String,
    /// The text to put in its place.
    new: String,
    /// Whether every occurrence is replaced; otherwise `old` must occur exactly once.
    all: Option<bool>,
}

/// Edits files below `root`.
#[must_use]
pub fn edit_file(root: Arc<Root>) -> FnTool {
    let about =
        "Replaces text in a file. `old` must be exactly what stands there, and unique unless `all` is true.";
    let place = root.place();
    from_blocking_fn("edit_file", about, move |_cx, args: EditArgs| {
        let _change = root.change();
        let text = text_of(&root, &args.path)?;
        let (text, count) = edit(&text, &args)?;
        write::replace(&root, &args.path, text.as_bytes())?;
        Ok(format!("replaced {count} occurrence{} in {}", if count == 1 { "" } else { "s" }, args.path))
    })
    // Done twice it may change twice (`new` may hold `old`); it is short, so a stop lets it end.
    .with(|spec| spec.effect(EffectClass::Unsafe).on_stop(OnStop::Finish(None)).place(place))
}

fn text_of(root: &Root, path: &str) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    let mut file = root.open_file(path)?.take(limits::EDIT_BYTES + 1);
    file.read_to_end(&mut bytes).map_err(|error| fault("read", path, &error))?;
    if bytes.len() as u64 > limits::EDIT_BYTES {
        return Err(refusal(format!("{path:?} is larger than {} bytes; use shell", limits::EDIT_BYTES)));
    }
    if is_binary(&bytes) {
        return Err(refusal(format!("{path:?} is not a text file")));
    }
    String::from_utf8(bytes)
        .map_err(|error| refusal(format!("{path:?} is not UTF-8: {}", error.utf8_error())))
}

fn edit(text: &str, args: &EditArgs) -> Result<(String, usize), Failure> {
    let EditArgs { path, old, new, all } = args;
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
