//! `search`: names or contents of files, leaving out what git ignores.
//!
//! **Invariants** Nothing is reported that was not found below the root's descriptor. The walk goes by paths, and a directory
//! that becomes a link while it is walked leads it out: what it names there is not below the root, and is left out.

use std::{
    io::{BufRead, BufReader, Read},
    path::{Path, PathBuf},
    sync::Arc,
};

use ignore::{DirEntry, Walk, WalkBuilder, overrides::OverrideBuilder};
use regex::bytes::{Regex, RegexBuilder};
use safepoint::{
    ToolContext, ToolResult,
    stop::Failure,
    tool::{EffectClass, FnTool, OnStop, from_blocking_fn},
};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    Root,
    files::{self, SecretFiles},
    limits,
    root::refusal,
};

#[derive(Deserialize, JsonSchema)]
struct SearchArgs {
    /// A regular expression.
    pattern: String,
    /// Where to look: `contents` of files (default), or their `names` (paths).
    #[serde(rename = "in")]
    place: Option<Place>,
    /// The directory to look in, relative to the root directory.
    path: Option<String>,
    /// Only files that fit this glob, such as `*.rs` or `src/**`.
    glob: Option<String>,
    /// Whether upper and lower case are the same.
    ignore_case: Option<bool>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Place {
    Contents,
    Names,
}

/// Searches below `root`. Into the `secrets` it does not look.
#[must_use]
pub fn search(root: Arc<Root>, secrets: Arc<SecretFiles>) -> FnTool {
    let about = "Searches file contents (or names) for a regular expression. Leaves out what git ignores.";
    let place = root.place();
    from_blocking_fn("search", about, move |cx, args: SearchArgs| look((&root, &secrets), cx, &args))
        .with(|spec| spec.effect(EffectClass::ReadOnly).on_stop(OnStop::Drop).place(place))
}

fn look((root, secrets): (&Root, &SecretFiles), cx: &ToolContext, args: &SearchArgs) -> ToolResult<String> {
    let regex = RegexBuilder::new(&args.pattern)
        .case_insensitive(args.ignore_case.unwrap_or(false))
        .build()
        .map_err(|error| refusal(format!("`pattern` is not a regular expression: {error}")))?;
    let mut found = Found::default();
    for entry in walk(root, args)? {
        if let Some(stop) = cx.scope().stopping() {
            return Err(stop.into());
        }
        let Some(path) = entry.ok().and_then(|entry| file_path(root, &entry)) else { continue };
        let shown = path.to_string_lossy();
        match args.place.unwrap_or(Place::Contents) {
            Place::Names if regex.is_match(shown.as_bytes()) && root.holds(&path) => found.add(&shown),
            Place::Names => {}
            Place::Contents => found.look_into((root, secrets), &shown, &regex, cx),
        }
        if found.is_full() {
            break;
        }
    }
    Ok(found.reported())
}

fn walk(root: &Root, args: &SearchArgs) -> Result<Walk, Failure> {
    let path = args.path.as_deref().unwrap_or(".");
    // Opened only to be sure that it is inside; the walk itself follows no link, and files are opened below the root.
    drop(root.open_directory(path)?);
    let start = root.path().join(root.relative(path)?);
    let mut globs = OverrideBuilder::new(&start);
    if let Some(glob) = &args.glob {
        globs.add(glob).map_err(|error| refusal(format!("`glob` cannot be understood: {error}")))?;
    }
    let globs = globs.build().map_err(|error| refusal(format!("`glob` cannot be understood: {error}")))?;
    Ok(WalkBuilder::new(start)
        .follow_links(false)
        .hidden(false)
        .require_git(false)
        .overrides(globs)
        .filter_entry(|entry| entry.file_name() != ".git")
        .sort_by_file_name(Ord::cmp)
        .build())
}

/// The path below the root, if the entry is a file.
fn file_path(root: &Root, entry: &DirEntry) -> Option<PathBuf> {
    if !entry.file_type()?.is_file() {
        return None;
    }
    let path = entry.path().strip_prefix(root.path()).ok()?;
    Some(path.strip_prefix(Path::new(".")).unwrap_or(path).to_owned())
}

#[derive(Default)]
struct Found {
    text: String,
    matches: usize,
    skipped: usize,
    secret: usize,
}

impl Found {
    fn is_full(&self) -> bool {
        self.matches >= limits::MATCHES || self.text.len() >= limits::TEXT_BYTES
    }

    fn add(&mut self, line: &str) {
        self.matches += 1;
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// A file that cannot be read, is too large, or is no text, is counted and passed over.
    fn look_into(
        &mut self,
        (root, secrets): (&Root, &SecretFiles),
        path: &str,
        regex: &Regex,
        cx: &ToolContext,
    ) {
        let Ok(file) = root.open_file(path) else { return self.skipped += 1 };
        if secrets.holds_open(root, (path, &file)) {
            return self.secret += 1;
        }
        if file.metadata().map_or(u64::MAX, |found| found.len()) > limits::EDIT_BYTES {
            return self.skipped += 1;
        }
        let mut reader = BufReader::with_capacity(limits::SNIFF_BYTES, file.take(limits::EDIT_BYTES));
        if reader.fill_buf().map_or(true, files::is_binary) {
            return self.skipped += 1;
        }
        for (number, line) in reader.split(b'\n').enumerate() {
            let Ok(line) = line else { return self.skipped += 1 };
            if self.is_full() || cx.is_stopping() {
                return;
            }
            if regex.is_match(&line) {
                let text = String::from_utf8_lossy(&line);
                let shown = files::cut(text.trim_end(), limits::MATCH_BYTES);
                let mark = if shown.len() < text.trim_end().len() { " [cut]" } else { "" };
                self.add(&format!("{path}:{}:{shown}{mark}", number + 1));
            }
        }
    }

    fn reported(self) -> String {
        let full = self.is_full();
        let mut text = self.text;
        if self.matches == 0 {
            text.push_str("[nothing found]\n");
        }
        if full {
            text.push_str("[there may be more: narrow the pattern, the path or the glob]\n");
        }
        if self.skipped > 0 {
            text.push_str(&format!(
                "[{} files that are binary, too large or unreadable were passed over]\n",
                self.skipped
            ));
        }
        if self.secret > 0 {
            text.push_str(&format!(
                "[{} files that commonly hold secrets were passed over; read_file asks for one]\n",
                self.secret
            ));
        }
        text
    }
}
