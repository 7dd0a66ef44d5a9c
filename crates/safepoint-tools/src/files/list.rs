//! `list_dir`: what a directory holds.

use std::sync::Arc;

use rustix::fs::{AtFlags, Dir, FileType, statat};
use safepoint::{
    ToolContext, ToolResult,
    tool::{EffectClass, FnTool, OnStop, from_blocking_fn},
};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{Root, limits, root::fault};

#[derive(Deserialize, JsonSchema)]
struct ListArgs {
    /// The directory, relative to the root directory; the root directory itself if it is left out.
    path: Option<String>,
}

/// Lists directories below `root`.
#[must_use]
pub fn list_dir(root: Arc<Root>) -> FnTool {
    let about =
        "Lists a directory, one entry a line: directories end with `/`, links with `@`, files have a size.";
    let place = root.place();
    from_blocking_fn("list_dir", about, move |cx, args: ListArgs| {
        list(&root, cx, args.path.as_deref().unwrap_or("."))
    })
    .with(|spec| spec.effect(EffectClass::ReadOnly).on_stop(OnStop::Drop).place(place))
}

fn list(root: &Root, cx: &ToolContext, path: &str) -> ToolResult<String> {
    let directory = root.open_directory(path)?;
    let entries = Dir::read_from(&directory).map_err(|error| fault("list", path, &error.into()))?;
    let mut names = Vec::new();
    for entry in entries {
        if let Some(stop) = cx.scope().stopping() {
            return Err(stop.into());
        }
        let entry = entry.map_err(|error| fault("list", path, &error.into()))?;
        let name = entry.file_name();
        if !matches!(name.to_bytes(), b"." | b"..") {
            names.push(name.to_owned());
        }
    }
    names.sort();
    let total = names.len();
    let mut text = String::new();
    for name in names.iter().take(limits::LISTED) {
        let shown = name.to_string_lossy();
        text.push_str(&match statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => match FileType::from_raw_mode(found.st_mode) {
                FileType::Directory => format!("{shown}/\n"),
                FileType::Symlink => format!("{shown}@\n"),
                FileType::RegularFile => format!("{shown}  {} bytes\n", found.st_size),
                _ => format!("{shown}  (special)\n"),
            },
            Err(_) => format!("{shown}  (gone)\n"),
        });
    }
    if total > limits::LISTED {
        text.push_str(&format!("[{} more entries are not shown; use search]\n", total - limits::LISTED));
    }
    if text.is_empty() {
        text.push_str("[the directory is empty]");
    }
    Ok(text)
}
